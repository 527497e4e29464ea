"""Posterior: what a fit gives back, and what is asked of it."""
