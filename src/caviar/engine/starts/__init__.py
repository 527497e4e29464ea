"""Starts from the data: candidates of several kinds, of which a race keeps the best."""
