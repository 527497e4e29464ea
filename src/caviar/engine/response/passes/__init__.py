"""Directional passes: how sums over the rows and natural parameters change along directions of the globals."""
