"""Residuals: observed values beside what the rest of their rows says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ..pandas_tables import data_frame
from .prediction import Prediction


@dataclass(frozen=True, eq=False)
class Residuals:
    """Observed values minus their predictions from the rest of the data, row by row; prints as a line.

    Attributes
    ----------
    observed
        The values, rows first; NaN where one is missing.
    prediction
        Of the same values, which were left out of the data for it. The fit has seen them, if these are its data.
    """

    observed: Array
    prediction: Prediction

    @property
    def values(self) -> Array:
        """Observed values minus their predicted means, in their own units."""
        return self.observed - self.prediction.mean

    @property
    def standardised(self) -> Array:
        """The residuals in units of the standard deviation of the prediction: noise and what is not known."""
        return self.values / self.prediction.sd

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas with observed, mean, sd, residual and standardised for each row, of numbers.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        figures = {
            "observed": self.observed,
            "mean": self.prediction.mean,
            "sd": self.prediction.sd,
            "residual": self.values,
            "standardised": self.standardised,
        }
        flat = {name: values.reshape(len(values), -1) for name, values in figures.items()}
        width = flat["observed"].shape[1]
        names = self.prediction.names or [str(entry) for entry in range(width)]
        columns = (
            {name: values[:, 0] for name, values in flat.items()}
            if self.observed.ndim == 1
            else {
                f"{entry}_{name}": values[:, place]
                for place, entry in enumerate(names)
                for name, values in flat.items()
            }
        )
        index = self.prediction.index
        return data_frame(columns, index if index is not None and len(index) == len(self.observed) else None)

    def __repr__(self) -> str:
        scaled = self.standardised[np.isfinite(self.standardised)]
        outside = float(np.mean(np.abs(scaled) > 2)) if scaled.size else float("nan")
        return f"Residuals({scaled.size} values, {outside:.1%} more than 2 standard deviations off)"
