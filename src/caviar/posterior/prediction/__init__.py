"""Prediction of variables that are missing in new rows: mean and standard deviation under q, in closed form."""

from .absent import inferred, predicted
from .along_chains import predicted_along_chains
from .forecasts import with_forecasts
from .given_in_some_rows import known_inside, nothing_left, numbers_later, without_missing
from .over_precisions import OverPrecisions, over_precisions
from .partly_given import vectors_later
from .prediction import OfRows, Prediction, Predictions
from .residuals import Residuals, residuals_of

__all__ = [
    "OfRows",
    "OverPrecisions",
    "Prediction",
    "Predictions",
    "Residuals",
    "inferred",
    "known_inside",
    "nothing_left",
    "numbers_later",
    "over_precisions",
    "predicted",
    "predicted_along_chains",
    "residuals_of",
    "vectors_later",
    "with_forecasts",
    "without_missing",
]
