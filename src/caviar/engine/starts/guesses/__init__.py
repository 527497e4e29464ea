"""Guesses of labels, and their assignment to components."""
