"""Differences between the components of a start."""
