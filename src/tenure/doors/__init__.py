"""Doors: each parses, calls one thing of the house, and spells the answer. No rule lives here."""
