"""Truncated responsibilities: each row may belong to a few components only, those that its neighbours belong to."""
