"""Posteriors without the independence of some globals: integrated over a lattice of their values."""
