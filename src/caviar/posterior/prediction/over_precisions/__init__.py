"""Predictions of few rows or groups, integrated over the precisions."""

from .averaged import OverPrecisions, over_precisions

__all__ = ["OverPrecisions", "over_precisions"]
