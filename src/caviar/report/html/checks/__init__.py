"""Checks of a model against its data: data sets that it makes, and residuals."""
