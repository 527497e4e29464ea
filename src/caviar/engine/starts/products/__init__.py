"""Starts of models in which hidden locations are multiplied: factors of a table, found by principal components."""
