"""The subject of a page on a mixture of Gaussians: the mixture, its components, and rows and which are unexpected.

The data of the plots of a page: some rows, the densities of columns, and the ellipses of components.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...._errors import ParameterError
from ...._typing import AnyArray, Array
from ....estimators.mixtures.components import column_names, covariances_of, means_of, telling_columns
from ....estimators.mixtures.uncertainty import mean_marginal
from ...tables import component_table
from ..checks.section import Checks
from ..numbers import in_digits, spread_out
from ..quality import quality_of, remembered_quality
from ..section import Page, Section
from ..shared import Progress, Quality, Reproduce, Trust
from ..subject import Subject
from .findings import findings_of
from .held_out import HeldOut, held_out_of
from .judged import RATE, JudgedRows, judge

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


class Components(Section):
    """The table of components, with the controls that filter it."""

    name, link, template, scripts = "components", "Components", "components.html", ("components.js",)

    def gather(self, subject: Any) -> dict[str, Any]:
        estimator, judged, told = subject.estimator, subject.judged, subject.told
        counts = None if judged is None else np.bincount(judged.labels, minlength=len(estimator.weights_))
        entries = [
            {
                "k": row.label,
                "weight": [row.weight.value, row.weight.low, row.weight.high],
                "rows": None if counts is None else int(counts[row.label]),
                "mean": [[row.mean[j].value, row.mean[j].low, row.mean[j].high] for j in told],
                "sd": [row.standard_deviation[j] for j in told],
            }
            for row in component_table(estimator)
        ]
        return {"components": entries, "table_columns": [subject.names[j] for j in told]}


_MOST_OUTLIERS = 20
_EDGES = (0.0, 0.5, 0.8, 0.95, 0.99)
"""Probabilities of the most probable component, between which rows are counted."""


class Outliers(Section):
    """How clearly rows belong, and which are not expected."""

    name, link, template = "rows", "Outliers", "outliers.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        judged, seen = subject.judged, subject.seen
        if judged is None:
            return {"rows": None, "outliers": []}
        tails = judged.tails[~np.isnan(judged.tails)]
        counts = [int((judged.certainty >= edge).sum()) for edge in _EDGES]
        steps = [first - second for first, second in zip(counts, [*counts[1:], 0], strict=True)]
        rows = {
            "source": subject.source,
            "seen": {"words": seen.words, "label": seen.label},
            "n": len(judged.labels),
            "mean_log_density": in_digits(float(-np.nanmean(judged.scores))),
            "rate": RATE,
            "n_judged": len(tails),
            "n_outliers": int((tails <= RATE).sum()),
            "certainty": [{"from": edge, "rows": rows} for edge, rows in zip(_EDGES, steps, strict=True)],
        }
        return {"rows": rows, "outliers": subject.outliers}


def outliers_of(judged: JudgedRows, subject: Any) -> list[dict[str, Any]]:
    """Return the rows that are least expected, the most extreme first."""
    known = np.flatnonzero(~np.isnan(judged.tails))
    order = known[np.lexsort((-judged.scores[known], judged.tails[known]))][:_MOST_OUTLIERS]
    if not len(order):
        return []
    values = subject.rows_at(order)[:, subject.told]
    return [
        {
            "row": int(row),
            "score": float(judged.scores[row]) if math.isfinite(judged.scores[row]) else None,
            "tail": float(judged.tails[row]),
            "k": int(judged.labels[row]),
            "certainty": float(judged.certainty[row]),
            "values": [in_digits(value) for value in own],
        }
        for row, own in zip(order, values.tolist(), strict=True)
    ]


_TERMS = {
    "x": "how well the rows are explained, given their components",
    "z": "what assigning rows to components costs",
    "weights": "how far the weights have moved from their prior",
    "theta": "how far means and covariances have moved from their prior",
    "mean_precision": "how far the spread of the means has moved from its prior",
    "scale": "how far the typical covariance has moved from its prior",
    "mean": "how far the means have moved from their prior",
    "precision": "how far the covariances have moved from their prior",
}
_MOST_TABLE_COLUMNS = 24


class MixtureSubject(Subject):
    """A fitted mixture of Gaussians.

    Parameters
    ----------
    estimator
        The mixture.
    data
        Rows, shape (N, D), as the methods of the estimator take them; None for none.
    source
        What the data are called.

    Raises
    ------
    ParameterError
        If there are data for a mixture of rows with errors.
    """

    sections = (Trust(), Components(), Plots(), Checks(), Outliers(), Quality(), Progress(), Reproduce())

    def __init__(self, estimator: Any, data: Any, source: str | None) -> None:
        if data is not None and "true" in estimator.posterior_.model.variables:
            raise ParameterError(
                "the mixture was fitted to rows with errors, which a report does not take: leave the data out"
            )
        self.estimator, self.posterior, self.source = estimator, estimator.posterior_, source
        self.about = dict(getattr(estimator, "about_", {}))
        self.rows = None if data is None else estimator._validated(data, reset=False)
        self.data = None if self.rows is None else {"x": estimator._values(self.rows)}

    @cached_property
    def judged(self) -> JudgedRows | None:
        """The rows under the mixture."""
        return None if self.rows is None else judge(self.estimator, self.rows)

    @cached_property
    def held_out(self) -> HeldOut | str:
        """The rows judged by fits without them; or why there are no such fits."""
        return "there are no data" if self.seen is None else held_out_of(self.estimator, self.rows, self.seen)

    @cached_property
    def used(self) -> list[int]:
        """The components with rows."""
        kept = self.about.get("rows")
        n_rows = kept if isinstance(kept, int) else None if self.judged is None else len(self.judged.labels)
        return components_in_use(np.asarray(self.estimator.weights_), n_rows)

    @cached_property
    def told(self) -> list[int]:
        """The columns of the tables: those in which the components differ most."""
        return telling_columns(self.estimator, _MOST_TABLE_COLUMNS)

    @cached_property
    def outliers(self) -> list[dict[str, Any]]:
        """The rows that are least expected, the most extreme first."""
        return [] if self.judged is None else outliers_of(self.judged, self)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return column_names(self.estimator)

    @property
    def observed_columns(self) -> tuple[str, ...]:
        """Names of the columns, which the command line keeps beside the estimator."""
        return self.names

    def rows_at(self, numbers: AnyArray) -> AnyArray:
        """Return some rows; rows that are not in memory are read where they lie."""
        rows: Any = self.rows
        if isinstance(rows, np.ndarray):
            return np.asarray(rows[numbers], dtype=np.float64)
        return np.concatenate([np.asarray(rows[int(n) : int(n) + 1], dtype=np.float64) for n in numbers])

    def findings(self) -> list[dict[str, str]]:
        return findings_of(self.fit, self.judged, self.seen, self.held_out, self.checks)

    def quality(self) -> list[dict[str, Any]]:
        summary = self.about.get("column_summary") or {}
        return (
            remembered_quality(summary) if self.rows is None else quality_of(self.rows, self.names, summary)
        )

    @property
    def makes_draws(self) -> bool:
        return False

    def words(self) -> dict[str, str]:
        return _TERMS

    @property
    def offset(self) -> float:
        return self.estimator.elbo_ - self.posterior.elbo

    def own_facts(self) -> dict[str, Any]:
        estimator = self.estimator
        is_point = mean_marginal(estimator) is None
        is_repeated = self.about.get("command") or "random_state" in repr(estimator)
        return {
            "elbo": float(estimator.elbo_),
            "kind": estimator._kind_in_words,
            "class": type(estimator).__name__,
            "objective": estimator._objective_in_words,
            "is_point": is_point,
            "interval_remark": "" if is_point else self.interval_remark,
            "n_components": len(estimator.weights_),
            "used": self.used,
            "covariance_type": getattr(estimator, "covariance_type", None),
            "columns": list(self.names),
            "max_iter": int(estimator.max_iter),
            "rows": self.about.get("rows"),
            "seed": self.about.get("seed"),
            "call": f"import caviar as cv\ncv.{estimator!r}.fit(X)",
            "remarks": []
            if is_repeated
            else ["No random_state was given: another run may begin, and end, elsewhere."],
            "missing_entries": self.about.get("missing_entries"),
        }

    def heading(self) -> list[tuple[str, str]]:
        fit = self.fit
        in_use = f"{len(fit['used'])} in use of " if len(fit["used"]) < fit["n_components"] else ""
        nameless = "the result of a query" if fit["query"] else "rows without a name"
        covariances = [("Covariances", str(fit["covariance_type"]))] if fit["covariance_type"] else []
        return [
            ("Fitted to", str(fit["source"] or nameless)),
            ("Rows", self.n_rows),
            ("Columns", f"{len(fit['columns']):,}"),
            ("Components", f"{in_use}{fit['n_components']}"),
            *covariances,
        ]
