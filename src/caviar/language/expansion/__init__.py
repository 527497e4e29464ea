"""Densities with sums, products and functions in their slots, written out in statistics of what these are made of."""
