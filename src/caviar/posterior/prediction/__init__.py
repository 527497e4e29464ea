"""Prediction of variables that are missing in new rows: mean and standard deviation under q, in closed form."""

from .absent import predicted
from .along_chains import predicted_along_chains
from .forecasts import with_forecasts
from .partly_given import vectors_later
from .prediction import OfRows, Prediction, Predictions
from .residuals import Residuals, residuals_of

__all__ = [
    "OfRows",
    "Prediction",
    "Predictions",
    "Residuals",
    "predicted",
    "predicted_along_chains",
    "residuals_of",
    "vectors_later",
    "with_forecasts",
]
