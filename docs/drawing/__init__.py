"""Diagrams and tables of the documentation, made from the code. See `docs/draw.py`."""
