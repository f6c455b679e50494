"""Proofs that are shipped: the laws, and the worlds in which they are tried."""
