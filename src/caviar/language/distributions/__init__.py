"""Distributions of numbers, vectors, matrices and weights."""
