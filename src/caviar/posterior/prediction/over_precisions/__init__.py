"""Predictions of few rows or groups, integrated over the precisions."""
