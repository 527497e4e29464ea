"""Fits in which some globals are known, at many of their values: without passes, by a matrix, by random directions."""
