"""Data of a page beside data sets that the fitted model makes, a column at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ....language import Categorical
from ....posterior.diagnostics.replicates import Bars, bars_of, replicated
from ..numbers import as_numbers

_N_DRAWS, _FEWEST_DRAWS = 100, 20
_MOST_VALUES = 2_000_000
"""Rows times data sets; of more rows there are fewer data sets."""
_MOST_ROWS = 50_000
_MOST_COLUMNS, _MOST_BARS = 12, 24
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ColumnBars:
    """A column of what was observed, in bars.

    Attributes
    ----------
    name
        Of the column.
    labels
        What the bars are called, where each is one value; None for intervals of numbers.
    bars
        Its rows, and those of data sets of the model.
    """

    name: str
    labels: Sequence[str] | None
    bars: Bars


def replicates_of(
    posterior: Any, data: Mapping[str, Any], names: Sequence[str] | None = None
) -> list[ColumnBars] | str:
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
    if not leaves or posterior.data_plate is None:
        return "the model has no rows of numbers or labels to compare"
    n_rows = len(np.asarray(data[leaves[0].name]))
    if n_rows > _MOST_ROWS:
        return f"data sets of {n_rows:,} rows are not made for a report"
    n_draws = int(np.clip(_MOST_VALUES // max(n_rows, 1), _FEWEST_DRAWS, _N_DRAWS))
    try:
        drawn = replicated(posterior, data, n_rows, n_draws, 0)
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    return [
        own for leaf in leaves for own in _of_leaf(posterior, leaf, data[leaf.name], drawn[leaf.name], names)
    ]


def _of_leaf(
    posterior: Any, leaf: Any, observed: Any, drawn: Any, given: Sequence[str] | None
) -> list[ColumnBars]:
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
    found = []
    for place in range(min(width, _MOST_COLUMNS)):
        is_there = ~np.isnan(own[:, place])
        if is_there.any():
            bars = bars_of(own[is_there, place], made[:, is_there, place], _MOST_BARS, _LEVEL)
            found.append(ColumnBars(str(names[place]), _labels(bars, categories), bars))
    return found


def _labels(bars: Bars, categories: Sequence[str] | None) -> list[str] | None:
    """Return what the bars are called, where each is one value."""
    if not bars.are_single:
        return None
    values = np.ceil(bars.edges[:-1]).astype(int).tolist()
    if categories is not None and values[-1] < len(categories):
        return [str(categories[value]) for value in values]
    return list(map(str, values))
