"""Predictions by weighted draws of the globals."""
