"""Stores for runs: a clock and a compare-and-set each. They know documents, not leases."""
