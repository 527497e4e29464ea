"""Values with weights, as draws or fits at several values have: their moments and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._tables import MOST_LINES, beside, html_of, text_table
from .._typing import Array
from ..numerics.arguments import central_ends

HEADINGS = ("at", "mean", "sd", "95% interval")
"""Of a table of entries."""


@dataclass(frozen=True, eq=False, repr=False)
class Weighted:
    """Values with weights.

    Attributes
    ----------
    values
        Shape (n, ...).
    weights
        Shape (n,); they sum to one.
    """

    values: Array
    weights: Array

    @property
    def mean(self) -> Array:
        """Mean of each entry."""
        return np.tensordot(self.weights, self.values, axes=1)

    @property
    def sd(self) -> Array:
        """Standard deviation of each entry."""
        return np.sqrt(np.tensordot(self.weights, np.square(self.values - self.mean), axes=1))

    def quantile(self, q: float | Sequence[float]) -> Array:
        """Return quantiles of each entry, shape of q + (...)."""
        flat = self.values.reshape(len(self.values), -1)
        found = np.empty((np.size(q), flat.shape[1]))
        for number, column in enumerate(flat.T):
            order = np.argsort(column, kind="stable")
            ordered = self.weights[order]
            found[:, number] = np.interp(np.ravel(q), np.cumsum(ordered) - 0.5 * ordered, column[order])
        return found.reshape(np.shape(q) + self.values.shape[1:])

    def interval(self, level: float = 0.95) -> Array:
        """Return the central interval of each entry: lower ends, then upper ends, shape (2, ...)."""
        return self.quantile(central_ends(level))

    def transformed(self, function: Callable[[Array], Any]) -> Weighted:
        """Return the values that a function makes of these."""
        return Weighted(np.asarray(function(self.values), dtype=np.float64), self.weights)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the first entries as rows of a table."""
        mean, sd, (lower, upper) = self.mean, self.sd, self.interval()
        places = list(np.ndindex(self.values.shape[1:]))[:MOST_LINES]
        return [
            (
                f"[{', '.join(map(str, at))}]" if at else "",
                beside(float(mean[at]), float(sd[at])),
                f"{sd[at]:.4g}",
                f"{lower[at]:.4g} to {upper[at]:.4g}",
            )
            for at in places
        ]

    def _remark(self) -> str:
        left = int(np.prod(self.values.shape[1:], dtype=int)) - MOST_LINES
        return f"{len(self.values):,} weighted values" + (f"; and {left:,} more entries" if left > 0 else "")

    def __repr__(self) -> str:
        return f"{text_table([HEADINGS, *self.cells()], left={0, 3})}\n{self._remark()}"

    def _repr_html_(self) -> str:
        """Return the first entries as a table, for a notebook."""
        return html_of("", [HEADINGS, *self.cells()], [self._remark()])
