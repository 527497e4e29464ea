"""Data beside data sets that the fitted model makes: counts of rows in bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ...._typing import Array
from ....language import Categorical, Data
from ..numbers import as_numbers

_N_DRAWS, _FEWEST_DRAWS = 100, 20
_MOST_VALUES = 2_000_000
"""Rows times data sets; of more rows there are fewer data sets."""
_MOST_ROWS = 50_000
_MOST_COLUMNS, _MOST_BARS = 12, 24
_TAIL = 0.002
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Bars:
    """How many rows each bar has.

    Attributes
    ----------
    name
        Of the column.
    edges
        Ends of the bars, (B + 1,).
    labels
        What the bars are called, where each is one value; None for intervals of numbers.
    observed
        Rows of the data, (B,).
    lower, middle, upper
        Quantiles of the rows of the data sets of the model, (B,).
    by_chance
        The largest ``share_outside`` of the data sets of the model.
    """

    name: str
    edges: Array
    labels: Sequence[str] | None
    observed: Array
    lower: Array
    middle: Array
    upper: Array
    by_chance: float

    @property
    def share_outside(self) -> float:
        """Share of the rows that would have to be in other bars for all bars to be in their bands."""
        return _share_outside(self.observed, self.lower, self.upper)


def replicates_of(
    posterior: Any, data: Mapping[str, Any], names: Sequence[str] | None = None
) -> list[Bars] | str:
    """Return bars for each column of what was observed; or why there are none.

    Parameters
    ----------
    posterior
        Of the fit.
    data
        Name -> array, as the posterior takes them.
    names
        Of the columns of what was observed; by default those that the posterior knows.
    """
    leaves = [leaf for leaf in posterior.model.leaves if as_numbers(data.get(leaf.name)) is not None]
    plate = posterior.data_plate
    if not leaves or plate is None:
        return "the model has no rows of numbers or labels to compare"
    n_rows = len(np.asarray(data[leaves[0].name]))
    if n_rows > _MOST_ROWS:
        return f"data sets of {n_rows:,} rows are not made for a report"
    known = {node.name: data[node.name] for node in posterior.model.nodes if isinstance(node, Data)}
    told = any(plate in node.plates for node in posterior.model.nodes if isinstance(node, Data))
    n_draws = int(np.clip(_MOST_VALUES // max(n_rows, 1), _FEWEST_DRAWS, _N_DRAWS))
    try:
        drawn = posterior.predictive(
            {} if told else {plate.name: n_rows}, data=known or None, n_draws=n_draws, seed=0
        )
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    return [
        bars
        for leaf in leaves
        for bars in _of_leaf(posterior, leaf, data[leaf.name], drawn[leaf.name], names)
    ]


def _of_leaf(posterior: Any, leaf: Any, observed: Any, drawn: Any, given: Sequence[str] | None) -> list[Bars]:
    """Return the bars of each column of a variable, the first dozen."""
    own = np.asarray(as_numbers(observed), dtype=np.float64)
    made = np.asarray(drawn, dtype=np.float64)
    if made.shape[1:] != own.shape:
        return []
    own, made = own.reshape(len(own), -1), made.reshape(len(made), len(own), -1)
    is_label = isinstance(leaf, Categorical)
    categories = posterior.names.entries(leaf.name) if is_label else None
    names = None if is_label else given or posterior.names.entries(leaf.name)
    arrays = (posterior.data_summary or {}).get("arrays", {})
    names = names or arrays.get(leaf.name, {}).get("columns")
    width = own.shape[1]
    if names is None or len(names) != width or is_label:
        names = [leaf.name] if width == 1 else [f"{leaf.name} {place}" for place in range(width)]
    return [
        bars_of(str(names[place]), own[:, place], made[:, :, place], categories)
        for place in range(min(width, _MOST_COLUMNS))
        if not np.isnan(own[:, place]).all()
    ]


def bars_of(name: str, observed: Array, made: Array, categories: Sequence[str] | None) -> Bars:
    """Return the bars of one column.

    Parameters
    ----------
    name
        Of the column.
    observed
        Its values, (N,); NaN where one is missing.
    made
        Values of data sets, (n, N).
    categories
        Names of labels; None for numbers.

    Examples
    --------
    >>> made = np.repeat([[0.0, 0.0, 1.0, 2.0]], 10, axis=0)
    >>> bars = bars_of("deaths", np.array([0.0, 1.0, 1.0, 2.0]), made, None)
    >>> bars.labels, bars.observed.tolist(), bars.upper.tolist(), bars.share_outside
    (['0', '1', '2'], [1, 2, 1], [2.0, 1.0, 1.0], 0.25)
    """
    is_there = ~np.isnan(observed)
    observed, made = observed[is_there], made[:, is_there]
    is_whole = bool((observed == np.round(observed)).all() and (made == np.round(made)).all())
    low, high = np.quantile(made, [_TAIL, 1 - _TAIL])
    low, high = float(min(low, observed.min())), float(max(high, observed.max()))
    labels: Sequence[str] | None = None
    if is_whole and high - low < _MOST_BARS:
        first, last = int(low), int(np.ceil(high))
        edges = np.arange(first - 0.5, last + 1.0)
        labels = [str(value) for value in range(first, last + 1)]
        if categories is not None and last < len(categories):
            labels = list(categories[first : last + 1])
    else:
        n_bars = int(np.clip(2 * len(observed) ** 0.4, 8, _MOST_BARS))
        edges = np.linspace(low, high if high > low else low + 1.0, n_bars + 1)
    counts = np.array([np.histogram(values, edges)[0] for values in made])
    ends = (0.5 - LEVEL / 2, 0.5, 0.5 + LEVEL / 2)
    lower, middle, upper = np.quantile(counts, ends, axis=0)
    by_chance = max(_share_outside(own, lower, upper) for own in counts)
    return Bars(name, edges, labels, np.histogram(observed, edges)[0], lower, middle, upper, by_chance)


def _share_outside(counts: Array, lower: Array, upper: Array) -> float:
    too_many, too_few = np.maximum(counts - upper, 0).sum(), np.maximum(lower - counts, 0).sum()
    return float(max(too_many, too_few) / max(counts.sum(), 1))
