"""The subject of a page on a mixture of Gaussians: the mixture, its components, and rows and which are unexpected."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ...._errors import ParameterError
from ...._typing import AnyArray
from ....estimators._components import column_names, telling_columns
from ....estimators._uncertainty import mean_marginal
from ...tables import component_table
from ..checks.section import Checks
from ..numbers import in_digits
from ..quality import quality_of, remembered_quality
from ..section import Section
from ..shared import Progress, Quality, Reproduce, Trust
from ..subject import Subject
from .findings import findings_of
from .held_out import HeldOut, held_out_of
from .judged import RATE, JudgedRows, judge
from .views import Plots, components_in_use


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
