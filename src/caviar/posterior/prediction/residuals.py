"""Residuals: observed values beside what the rest of their rows says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._errors import DataError, ModelError
from ..._tables import html_of
from ..._typing import Array
from ...lazy.rows import as_floats
from ...names import Placed
from ...names.meeting import NamedData
from ..new_rows import rows_first
from ..pandas_tables import columns_of_figures, data_frame, fitting
from .prediction import Prediction

_MOST_LINES = 10
"""Rows that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Observed values minus their predictions from the rest of the data; it prints as one line.

    Attributes
    ----------
    observed
        The observed values, rows first; NaN if a value is missing.
    prediction
        Prediction of these values, which were left out of the data for it. If the data are those of the fit, the fit
        has used these values.
    """

    observed: Array
    prediction: Prediction

    @property
    def values(self) -> Array:
        """Observed values minus their predicted means, in the units of the data."""
        return self.observed - self.prediction.mean

    @property
    def standardised(self) -> Array:
        """The residuals divided by the standard deviation of the prediction (noise and parameter uncertainty)."""
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
        shape = self.observed.shape
        flat = {name: np.broadcast_to(values, shape) for name, values in figures.items()}
        columns = columns_of_figures(flat, self.prediction.names)
        return data_frame(columns, fitting(self.prediction.index, len(self.observed)))

    def _by_row(self, values: Array) -> Array:
        """Return figures of all rows, (N, entries): rows that are alike may have one prediction."""
        return np.broadcast_to(values, self.observed.shape).reshape(len(self.observed), -1)

    def _repr_html_(self) -> str:
        """Return a sentence and the first rows, for a notebook."""
        figures = (self.observed, self.prediction.mean, self.values, self.standardised)
        flat = [self._by_row(own) for own in figures]
        width = flat[0].shape[1]
        names = [""] if self.observed.ndim == 1 else list(self.prediction.names or map(str, range(width)))
        cells: list[tuple[str, ...]] = [("row", "observed", "predicted", "residual", "standardised")]
        n_rows = len(self.observed)
        index = fitting(self.prediction.index, n_rows)
        rows = range(n_rows) if index is None else index
        for row in range(min(n_rows, _MOST_LINES)):
            for place, name in enumerate(names):
                label = f"{rows[row]}, {name}" if name else str(rows[row])
                cells.append((label, *(f"{own[row, place]:.4g}" for own in flat)))
        left = n_rows - _MOST_LINES
        more = [f"and {left:,} more {'row' if left == 1 else 'rows'}"] if left > 0 else []
        return html_of(repr(self), cells, more)

    def __repr__(self) -> str:
        scaled = self.standardised[np.isfinite(self.standardised)]
        outside = float(np.mean(np.abs(scaled) > 2)) if scaled.size else float("nan")
        return f"Residuals({scaled.size} values, {outside:.1%} more than 2 standard deviations off)"


def from_the_rest(posterior: Any, arrays: Mapping[str, Any], name: str) -> Prediction:
    """Return the prediction of a variable from everything else in the data, as if its values were not known."""
    return posterior.predict(Placed({own: value for own, value in arrays.items() if own != name}))[name]


def residuals_of(posterior: Any, met: NamedData, variable: str | None) -> Residuals:
    """Return observed values of a variable minus what the rest of the data says of them.

    Raises
    ------
    ModelError
        If there is no such observed variable, it is a label, or its prediction has no closed form.
    DataError
        If the data lack it.
    """
    leaves = [leaf.name for leaf in posterior.model.leaves]
    name = leaves[0] if variable is None and len(leaves) == 1 else str(variable)
    if name not in leaves:
        known = " or ".join(map(repr, leaves))
        told = f"as residuals(data, {leaves[0]!r})" if variable is None else f"got {name!r}"
        raise ModelError(f"residuals need the name of an observed variable, {known}; {told}")
    if name not in met.values:
        raise DataError(f"the data lack '{name}', which its residuals need")
    told = from_the_rest(posterior, met.values, name)
    if told.is_label:
        raise ModelError(f"'{name}' is a label, which has no residuals; use posterior.log_predictive")
    return Residuals(rows_first(posterior, name, as_floats(met.values[name])), replace(told, index=met.index))


def means_of_neighbours(across: Array, values: Array, n_groups: int) -> list[tuple[float, float, int]]:
    """Return mean place, mean value and number of rows of groups of neighbours; equal places are one group.

    Parameters
    ----------
    across
        Place of each row, (N,).
    values
        One of each row, (N,).
    n_groups
        Groups of about one size, at most; at least one is made.

    Examples
    --------
    >>> across = np.repeat([0.0, 1.0], 16)
    >>> means_of_neighbours(across, np.where(across > 0, 2.0, -1.0), 4)
    [(0.0, -1.0, 16), (1.0, 2.0, 16)]
    """
    n_groups = max(1, n_groups)
    # a place that many rows share belongs to one group
    ranks = np.searchsorted(np.sort(across), across, side="left")
    groups = np.minimum(ranks * n_groups // max(len(across), 1), n_groups - 1)
    return [
        (float(across[groups == k].mean()), float(values[groups == k].mean()), int((groups == k).sum()))
        for k in np.unique(groups)
    ]
