"""Posterior, the result of a fit: factors, predictions, diagnostics, draws."""
