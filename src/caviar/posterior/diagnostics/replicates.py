"""Data beside data sets that the fitted model makes: counts of rows in bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Data
from ...numerics.arguments import central_ends
from ..new_rows import rows_first

_TAIL = 0.002
"""Share of replicated values on each side that may lie beyond the bars."""


def replicated(
    posterior: Any,
    data: Mapping[str, Any],
    n_rows: int,
    n_draws: int,
    seed: int | np.random.Generator | None,
) -> dict[str, AnyArray]:
    """Return data sets of the model at the known arrays of the data: observed variable -> values, (n_draws, N, ...).

    Variables without an axis of the rows have (n_draws, ...).
    """
    nodes = [node for node in posterior.model.nodes if isinstance(node, Data) and node.name in data]
    plate = posterior.data_plate
    # a known array along the rows says how many there are
    is_told = any(plate in node.plates for node in nodes)
    sizes = {} if plate is None or is_told else {plate.name: n_rows}
    known = {node.name: data[node.name] for node in nodes}
    drawn = posterior.predictive(sizes, data=known or None, n_draws=n_draws, seed=seed)
    return {name: rows_first(posterior, name, values, 1) for name, values in drawn.items()}


@dataclass(frozen=True, eq=False)
class Bars:
    """How many rows each bar has.

    Attributes
    ----------
    edges
        Ends of the bars, (B + 1,).
    are_single
        Whether each bar is one whole number.
    observed
        Rows of the data, (B,).
    made
        Rows of each data set of the model, (n, B).
    level
        Share of the data sets whose rows lie in the band of a bar.
    """

    edges: Array
    are_single: bool
    observed: AnyArray
    made: AnyArray
    level: float

    @cached_property
    def quantiles(self) -> tuple[Array, Array, Array]:
        """Lower end of the band, median and upper end of the band of each bar, (B,) each."""
        low, high = central_ends(self.level)
        lower, middle, upper = np.quantile(self.made, [low, 0.5, high], axis=0)
        return lower, middle, upper

    @property
    def share_outside(self) -> float:
        """Share of the rows that would have to be in other bars for all bars to be in their bands."""
        return self._share_outside(self.observed)

    @property
    def by_chance(self) -> float:
        """The largest ``share_outside`` of the data sets of the model."""
        return max(map(self._share_outside, self.made))

    def _share_outside(self, counts: AnyArray) -> float:
        lower, _, upper = self.quantiles
        too_many, too_few = np.maximum(counts - upper, 0).sum(), np.maximum(lower - counts, 0).sum()
        return float(max(too_many, too_few) / max(counts.sum(), 1))


def bars_of(observed: Array, made: Array, most: int, level: float) -> Bars:
    """Return the bars of one column without missing values.

    Parameters
    ----------
    observed
        Its values, (N,).
    made
        Those of data sets of the model, (n, N).
    most
        Bars, at most.
    level
        Of the bands.

    Examples
    --------
    >>> made = np.repeat([[0.0, 0.0, 1.0, 2.0]], 10, axis=0)
    >>> bars = bars_of(np.array([0.0, 1.0, 1.0, 2.0]), made, 24, 0.95)
    >>> bars.edges.tolist(), bars.observed.tolist(), bars.quantiles[2].tolist(), bars.share_outside
    ([-0.5, 0.5, 1.5, 2.5], [1, 2, 1], [2.0, 1.0, 1.0], 0.25)
    """
    edges, are_single = _edges(observed, made, most)
    counts = np.array([np.histogram(own, edges)[0] for own in made])
    return Bars(edges, are_single, np.histogram(observed, edges)[0], counts, level)


def _edges(observed: Array, made: Array, most: int) -> tuple[Array, bool]:
    """Return the edges of the bars, and whether each bar is one whole number."""
    is_whole = bool((observed == np.round(observed)).all() and (made == np.round(made)).all())
    low, high = np.quantile(made, [_TAIL, 1 - _TAIL])
    low, high = float(min(low, observed.min())), float(max(high, observed.max()))
    if is_whole and high - low < most:
        return np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.0), True
    if is_whole:
        width = np.ceil((high - low + 1) / most)
        return np.arange(np.floor(low) - 0.5, high + width + 0.5, width), False
    n_bars = int(np.clip(2 * len(observed) ** 0.4, 8, most))
    return np.linspace(low, high if high > low else low + 1.0, n_bars + 1), False
