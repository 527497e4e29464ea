"""Prediction of observed variables that new rows lack: mean and standard deviation under q, where they are closed."""

from .absent import predicted
from .prediction import Prediction

__all__ = ["Prediction", "predicted"]
