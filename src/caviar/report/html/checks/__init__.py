"""Checks of a model against its data: data sets that it makes, and residuals."""

from .section import Checks, checks_of

__all__ = ["Checks", "checks_of"]
