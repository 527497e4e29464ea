"""Everything that the page of a mixture shows, as one plain dictionary: no markup, no NumPy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...._errors import ParameterError
from ...._typing import AnyArray
from ...tables import component_table
from ..markup import number
from ..quality import quality_of, remembered_quality
from ..seen import Seen, seen_of
from ..verdict import verdict_of
from ..versions import versions
from .fit import fit_facts
from .held_out import HeldOut, held_out_of
from .rows import RATE, JudgedRows, judge
from .verdict import findings_of
from .views import chosen_rows, components_in_use, densities, ellipses, telling_columns

__all__ = ["gather"]

_MOST_OUTLIERS = 20
_MOST_TABLE_COLUMNS = 24
_MOST_PLOT_COLUMNS = 8


def gather(estimator: Any, data: Any = None, *, source: str | None = None) -> dict[str, Any]:
    """Return what a page shows of a fitted mixture, and of data, as plain values.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    data
        Rows, shape (N, D), as the methods of the estimator take them; None for none.
    source
        What the data are called.

    Raises
    ------
    ParameterError
        If there are data for a mixture of rows with errors.

    Examples
    --------
    >>> import caviar as cv
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(cv.datasets.load_faithful().values)
    >>> page = gather(mixture)
    >>> page["fit"]["kind"], page["fit"]["status"], page["rows"] is None
    ('Bayesian mixture of Gaussians', 'converged', True)
    """
    if data is not None and "true" in estimator.posterior_.model.variables:
        raise ParameterError(
            "the mixture was fitted to rows with errors, which a report does not take: leave the data out"
        )
    with warnings.catch_warnings():
        # The blocks are arrays; the names of the columns were compared when the data came.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        rows = None if data is None else estimator._validated(data, reset=False)
        judged = None if rows is None else judge(estimator, rows)
        seen = None if rows is None else seen_of(estimator.posterior_, {"x": estimator._values(rows)})
        held_out = "there are no data" if seen is None else held_out_of(estimator, rows, seen)
        return _gathered(estimator, rows, judged, seen, held_out, source)


def _gathered(
    estimator: Any,
    rows: Any,
    judged: JudgedRows | None,
    seen: Seen | None,
    held_out: HeldOut | str,
    source: str | None,
) -> dict[str, Any]:
    kept = getattr(estimator, "about_", {}).get("rows")
    n_rows = kept if isinstance(kept, int) else None if judged is None else len(judged.labels)
    used = components_in_use(np.asarray(estimator.weights_), n_rows)
    fit = fit_facts(estimator, used)
    names, summary = fit["columns"], fit.pop("column_summary")
    told = telling_columns(estimator, _MOST_TABLE_COLUMNS)
    plotted = telling_columns(estimator, _MOST_PLOT_COLUMNS)
    findings = findings_of(fit, judged, seen, held_out)
    outliers = [] if judged is None else _outliers(judged, rows, told)
    points = None if judged is None else chosen_rows(len(judged.labels), [entry["row"] for entry in outliers])
    shown = None if points is None else _rows_at(rows, points)
    return {
        "fit": fit,
        "facts": _facts(fit),
        "has_data": judged is not None,
        "verdict": verdict_of(findings),
        "findings": findings,
        "components": _components(estimator, judged, told),
        "table_columns": [names[j] for j in told],
        "plot": {
            "columns": [names[j] for j in plotted],
            "ellipses": ellipses(estimator, plotted, used),
            "densities": densities(estimator, plotted, shown, used),
            "points": None if shown is None else _points(shown[:, plotted], points, judged),
            "left_out": len(names) - len(plotted),
        },
        "rows": None if judged is None or seen is None else _row_facts(judged, seen, source),
        "outliers": outliers,
        "quality": remembered_quality(summary) if rows is None else quality_of(rows, names, summary),
        "versions": versions(),
    }


def _facts(fit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures at the head of the page."""
    in_use = f"{len(fit['used'])} in use of " if len(fit["used"]) < fit["n_components"] else ""
    facts = [
        (
            "Fitted to",
            str(fit["source"] or ("the result of a query" if fit["query"] else "rows without a name")),
        ),
        ("Rows", "not recorded" if fit["rows"] is None else f"{fit['rows']:,}"),
        ("Columns", f"{len(fit['columns']):,}"),
        ("Components", f"{in_use}{fit['n_components']}"),
        (f"{fit['objective']}, nats", number(fit["elbo"], 7)),
    ]
    if fit["covariance_type"]:
        facts.insert(4, ("Covariances", str(fit["covariance_type"])))
    return facts


def _rows_at(rows: Any, numbers: AnyArray) -> Any:
    """Return some rows; rows that are not in memory are read where they stand."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows[numbers], dtype=np.float64)
    return np.concatenate([np.asarray(rows[int(n) : int(n) + 1], dtype=np.float64) for n in numbers])


def _components(estimator: Any, judged: JudgedRows | None, told: Sequence[int]) -> list[dict[str, Any]]:
    counts = None if judged is None else np.bincount(judged.labels, minlength=len(estimator.weights_))
    return [
        {
            "k": row.label,
            "weight": [row.weight.value, row.weight.low, row.weight.high],
            "rows": None if counts is None else int(counts[row.label]),
            "mean": [[row.mean[j].value, row.mean[j].low, row.mean[j].high] for j in told],
            "sd": [row.standard_deviation[j] for j in told],
        }
        for row in component_table(estimator)
    ]


def _points(values: Any, numbers: Any, judged: Any) -> dict[str, Any]:
    return {
        "values": [[_digits(value) for value in row] for row in values.tolist()],
        "rows": [int(n) for n in numbers],
        "labels": judged.labels[numbers].tolist(),
        "of": len(judged.labels),
    }


def _digits(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _row_facts(judged: JudgedRows, seen: Seen, source: str | None) -> dict[str, Any]:
    tails = judged.tails[~np.isnan(judged.tails)]
    edges = (0.0, 0.5, 0.8, 0.95, 0.99)
    counts = [int((judged.certainty >= edge).sum()) for edge in edges]
    steps = [first - second for first, second in zip(counts, [*counts[1:], 0], strict=True)]
    return {
        "source": source,
        "seen": {"words": seen.words, "label": seen.label},
        "n": len(judged.labels),
        "mean_log_density": _digits(float(-np.nanmean(judged.scores))),
        "rate": RATE,
        "n_judged": len(tails),
        "n_outliers": int((tails <= RATE).sum()),
        "certainty": [{"from": edge, "rows": rows} for edge, rows in zip(edges, steps, strict=True)],
    }


def _outliers(judged: JudgedRows, rows: Any, told: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows that are least expected, the most extreme first."""
    known = np.flatnonzero(~np.isnan(judged.tails))
    order = known[np.lexsort((-judged.scores[known], judged.tails[known]))][:_MOST_OUTLIERS]
    if not len(order):
        return []
    values = _rows_at(rows, order)[:, told]
    return [
        {
            "row": int(row),
            "score": float(judged.scores[row]) if math.isfinite(judged.scores[row]) else None,
            "tail": float(judged.tails[row]),
            "k": int(judged.labels[row]),
            "certainty": float(judged.certainty[row]),
            "values": [_digits(value) for value in own],
        }
        for row, own in zip(order, values.tolist(), strict=True)
    ]
