"""The data of the plots of a page: some rows, the densities of columns, and the ellipses of components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....estimators._components import covariances_of, means_of, telling_columns
from ..numbers import in_digits, spread_out
from ..section import Page, Section

_MOST_PLOT_COLUMNS = 8

_MOST_DRAWN = 24
"""Components that are drawn: the heaviest."""

_MOST_POINTS = 2000
_GRID = 160
_FEWEST_ROWS = 2.0
_NEGLIGIBLE = 0.005
_HEAVY = 0.02
"""Weight of the components by which the range of a density goes: a light one may be very wide."""


class Plots(Section):
    """Pairs of columns, and the density of each column."""

    name, link, template = "plots", "Plots", "plots.html"
    scripts = ("pairs.js", "density.js")

    def gather(self, subject: Any) -> dict[str, Any]:
        estimator, used = subject.estimator, subject.used
        columns = telling_columns(estimator, _MOST_PLOT_COLUMNS)
        shown, points = None, None
        if subject.judged is not None:
            labels = subject.judged.labels
            numbers = chosen_rows(len(labels), [entry["row"] for entry in subject.outliers])
            shown = subject.rows_at(numbers)
            points = {
                "values": [[in_digits(value) for value in row] for row in shown[:, columns].tolist()],
                "rows": [int(n) for n in numbers],
                "labels": labels[numbers].tolist(),
                "of": len(labels),
            }
        plot = {
            "columns": [subject.names[j] for j in columns],
            "ellipses": ellipses(estimator, columns, used),
            "densities": densities(estimator, columns, shown, used),
            "points": points,
            "left_out": len(subject.names) - len(columns),
        }
        return {"plot": plot}

    def figures(self, page: Page) -> dict[str, Any]:
        return {"plot": page["plot"]}


def components_in_use(weights: Array, n_rows: int | None) -> list[int]:
    """Return the components that have rows, by number.

    Parameters
    ----------
    weights
        Shape (K,), summing to one.
    n_rows
        Of the fit; None where it is not known.

    Examples
    --------
    >>> (
    ...     components_in_use(np.array([0.6, 0.001, 0.399]), 272),
    ...     components_in_use(np.array([0.999, 0.001]), 10_000),
    ... )
    ([0, 2], [0, 1])
    """
    least = _FEWEST_ROWS / n_rows if n_rows else _NEGLIGIBLE
    used = [k for k, weight in enumerate(weights) if weight >= min(least, 1 / len(weights))]
    return used or [int(np.argmax(weights))]


def _heaviest(weights: Array, used: Sequence[int]) -> list[int]:
    """Return the components that are drawn, by number."""
    return sorted(sorted(used, key=lambda k: -weights[k])[:_MOST_DRAWN])


def chosen_rows(n_rows: int, always: Sequence[int]) -> AnyArray:
    """Return the numbers of the rows that are drawn: evenly spread, and those that are spoken of.

    Examples
    --------
    >>> chosen_rows(5, [4])
    array([0, 1, 2, 3, 4])
    """
    return np.union1d(spread_out(n_rows, _MOST_POINTS), np.asarray(always, dtype=np.int64))


def ellipses(estimator: Any, columns: Sequence[int], used: Sequence[int]) -> list[dict[str, Any]]:
    """Return the centre and covariance of each drawn component in some columns."""
    weights = np.asarray(estimator.weights_)
    means = means_of(estimator)
    covariances = covariances_of(estimator)
    return [
        {
            "k": k,
            "weight": float(weights[k]),
            "mean": means[k, columns].tolist(),
            "covariance": covariances[k][np.ix_(columns, columns)].tolist(),
        }
        for k in _heaviest(weights, used)
    ]


def densities(
    estimator: Any, columns: Sequence[int], rows: Array | None, used: Sequence[int]
) -> list[dict[str, Any]]:
    """Return, for each column, its predictive density on a grid, that of each drawn component, and a histogram."""
    drawn = _heaviest(estimator.weights_, used)
    return [_density(estimator, j, None if rows is None else rows[:, j], drawn) for j in columns]


def _density(estimator: Any, column: int, values: Array | None, drawn: Sequence[int]) -> dict[str, Any]:
    low, high = _range(estimator, column, drawn)
    seen = np.empty(0) if values is None else values[~np.isnan(values)]
    if len(seen):
        ends = np.quantile(seen, [0.005, 0.995])
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    grid = np.linspace(low, high, _GRID)
    parts = _parts(estimator, column, grid)
    found: dict[str, Any] = {
        "low": low,
        "high": high,
        "total": parts.sum(axis=0).tolist(),
        "parts": {str(k): parts[k].tolist() for k in drawn},
    }
    if len(seen):
        bins = int(np.clip(2 * np.sqrt(len(seen)), 8, 48))
        counts, _ = np.histogram(seen, bins=bins, range=(low, high))
        found["histogram"] = (counts / (len(seen) * (high - low) / bins)).tolist()
        found["outside"] = int(((seen < low) | (seen > high)).sum())
    return found


def _range(estimator: Any, column: int, drawn: Sequence[int]) -> tuple[float, float]:
    """Return where the components lie in a column."""
    heavy = [k for k in drawn if estimator.weights_[k] > _HEAVY] or list(drawn)
    means = means_of(estimator)[heavy, column]
    spreads = np.sqrt(covariances_of(estimator)[heavy, column, column])
    return float((means - 3.2 * spreads).min()), float((means + 3.2 * spreads).max())


def _parts(estimator: Any, column: int, grid: Array) -> Array:
    """Return the density of one column divided among the components, (K, G)."""
    points = grid[:, np.newaxis]
    if not hasattr(estimator, "marginal"):
        return (np.exp(estimator.score_samples(points))[:, np.newaxis] * estimator.predict_proba(points)).T
    marginal = estimator.marginal(column)
    return marginal.weights[:, np.newaxis] * np.exp(marginal.component_log_densities(points))
