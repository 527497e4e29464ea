"""What a fitted mixture is, for readers and, as JSON, for programs."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

import caviar as cv

from .kinds import kind_of
from .speaking import counted, plain, say

__all__ = [
    "document_of",
    "document_of_posterior",
    "in_digits",
    "interval_remark",
    "objective_document",
    "print_document",
    "print_results",
]

_MOST_LINES = 200
"""Lines of a table on a terminal; JSON holds them all."""


def document_of(estimator: Any, **more: Any) -> dict[str, Any]:
    """Return everything that a fit says, as JSON can hold it."""
    names = cv.report.column_names(estimator)
    return {
        "model": type(estimator).__name__,
        **getattr(estimator, "about_", {}),
        "elbo": _number(estimator.elbo_),
        "elbo_trace": [_number(value) for value in estimator.elbo_trace_.tolist()],
        "restart_elbos": [_number(value) for value in estimator.posterior_.restart_elbos.tolist()],
        "distinct_ends": _ends(estimator.posterior_),
        "n_iter": estimator.n_iter_,
        "converged": bool(estimator.converged_),
        "covariance_type": getattr(estimator, "covariance_type", None),
        "status": estimator.posterior_.status.value,
        "components": [
            {
                "component": row.label,
                "weight": _estimate(row.weight),
                "mean": {name: _estimate(mean) for name, mean in zip(names, row.mean, strict=True)},
                "standard_deviation": dict(zip(names, row.standard_deviation, strict=True)),
            }
            for row in cv.report.component_table(estimator)
        ],
        "interval_remark": interval_remark(estimator),
        **more,
    }


def document_of_posterior(posterior: cv.Posterior) -> dict[str, Any]:
    """Return what the posterior of a stated model says, as JSON can hold it."""
    figures = ("mean", "sd", "lower", "upper")
    return {
        "model": "Posterior",
        "statement": {name: variable.describe() for name, variable in posterior.model.variables.items()},
        **objective_document(posterior),
        "entries": [
            {
                "variable": row.variable,
                "at": row.index,
                **{name: _number(getattr(row, name)) for name in figures},
            }
            for row in posterior.summary(max_rows=None).rows
        ],
        "interval_remark": posterior.interval_remark,
    }


def objective_document(posterior: cv.Posterior) -> dict[str, Any]:
    """Return what a posterior says of its objective and of the rows that it was fitted to."""
    data = posterior.data_summary
    return {
        "elbo": _number(posterior.elbo),
        "elbo_terms": {name: _number(term) for name, term in posterior.elbo_terms.items()},
        "elbo_trace": [_number(value) for value in posterior.elbo_trace.tolist()],
        "restart_elbos": [_number(value) for value in posterior.restart_elbos.tolist()],
        "distinct_ends": _ends(posterior),
        "n_iter": posterior.n_iter,
        "converged": posterior.converged,
        "status": posterior.status.value,
        "rows": None if data is None else data["rows"],
    }


def _ends(posterior: cv.Posterior) -> list[dict[str, float]]:
    return [{"elbo": elbo, "starts": n_starts} for elbo, n_starts in posterior.distinct_ends]


def _estimate(estimate: Any) -> dict[str, float | None]:
    return {"value": _number(estimate.value), "low": _number(estimate.low), "high": _number(estimate.high)}


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def print_document(document: dict[str, Any]) -> None:
    """Print a document as JSON."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_results(console: Console, estimator: Any) -> None:
    """Print what a fitted mixture is: its components, heaviest first, its bound, and why the fit ended."""
    kind = kind_of(estimator)
    about = getattr(estimator, "about_", {})
    n_components = len(estimator.weights_)
    rows = f", {counted(about['rows'], 'row')}" if isinstance(about.get("rows"), int) else ""
    structure = getattr(estimator, "covariance_type", "full")
    shape = "" if structure == "full" else f" with {structure} covariances"
    say(console, f"{kind.words}{shape}, {counted(n_components, 'component')}{rows}", "bold")
    if about.get("missing_entries"):
        one = about["missing_entries"] == 1
        what = "entry, which was" if one else "entries, which were"
        say(console, f"{about['missing_entries']:,} missing {what} integrated out")
    say(console)
    _print_components(console, estimator)
    remark = interval_remark(estimator)
    if remark:
        say(console, remark)
    say(console)
    starts = len(estimator.posterior_.restart_elbos)
    best = f" (the best of {starts} starts)" if starts > 1 else ""
    say(
        console,
        f"{kind.objective} {estimator.elbo_:.4f} nats after {counted(estimator.n_iter_, 'iteration')}{best}",
    )
    say(console, str(estimator.posterior_.status))
    if estimator.posterior_.told_ends:
        say(console, estimator.posterior_.told_ends)
    _say_moves(console, getattr(estimator, "moves_", []))


def interval_remark(estimator: Any) -> str:
    """Return what is to be known of the intervals of a mixture; empty where it gives none."""
    has_intervals = any(row.mean[0].low is not None for row in cv.report.component_table(estimator))
    return estimator.posterior_.interval_remark if has_intervals else ""


def _say_moves(console: Console, moves: Any) -> None:
    """Say how the number of components was found, where it was searched for."""
    if moves:
        taken = [move for move in moves if move.accepted]
        kinds = ", ".join(
            counted(count, kind)
            for kind in ("split", "merge", "delete")
            if (count := sum(move.kind == kind for move in taken))
        )
        say(console, f"{len(moves)} moves tried, {len(taken)} accepted{': ' + kinds if kinds else ''}")


def _print_components(console: Console, estimator: Any) -> None:
    """Print a line for each component and column."""
    rows = sorted(cv.report.component_table(estimator), key=lambda row: -row.weight.value)
    names = cv.report.column_names(estimator)
    shown = rows[: max(1, _MOST_LINES // len(names))]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("component", justify="right")
    table.add_column("weight" + _interval_word(rows[0].weight))
    table.add_column("column")
    table.add_column("mean" + _interval_word(rows[0].mean[0]))
    table.add_column("std. dev.", justify="right")
    for row in shown:
        first = (str(row.label), in_digits(row.weight))
        for name, mean, deviation in zip(names, row.mean, row.standard_deviation, strict=True):
            table.add_row(*first, plain(name), in_digits(mean), f"{deviation:.4g}")
            first = ("", "")
    console.print(table)
    if len(shown) < len(rows):
        say(console, f"... and {len(rows) - len(shown)} lighter components; --json shows all")


def _interval_word(estimate: Any) -> str:
    return "" if estimate.low is None else " [95% interval]"


def in_digits(estimate: Any) -> str:
    """Return an estimate with its interval, with the digits that the width of the interval gives reason for.

    Examples
    --------
    >>> in_digits(cv.report.Estimate(79.96812, 79.0391, 80.897))
    '79.97 [79.04, 80.90]'
    >>> in_digits(cv.report.Estimate(79.96812))
    '79.97'
    """
    if estimate.low is None:
        return f"{estimate.value:.4g}"
    width = estimate.high - estimate.low
    decimals = 3 - math.ceil(math.log10(width)) if width > 0 else 3
    form = f".{max(decimals, 0)}f" if decimals < 8 and abs(estimate.value) < 1e9 else ".6g"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"
