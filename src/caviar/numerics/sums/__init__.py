"""Sums: along a tree, by label, and of products."""
