"""The results of every fit, for readers and, as JSON, for programs: numbers, how it ended, where it comes from."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

import caviar as cv

from .outputs import counted, say
from .wording import status_in_options


def objective_document(posterior: cv.Posterior) -> dict[str, Any]:
    """Return what a posterior says of its objective and of the rows that it was fitted to."""
    data = posterior.data_summary
    return {
        "elbo": finite(posterior.elbo),
        "elbo_terms": {name: finite(term) for name, term in posterior.elbo_terms.items()},
        "elbo_trace": [finite(value) for value in posterior.elbo_trace.tolist()],
        "restart_elbos": [finite(value) for value in posterior.restart_elbos.tolist()],
        "distinct_ends": [{"elbo": elbo, "starts": n_starts} for elbo, n_starts in posterior.distinct_ends],
        "n_iter": posterior.n_iter,
        "converged": posterior.converged,
        "status": posterior.status.value,
        "rows": None if data is None else data["rows"],
    }


def finite(value: float | None) -> float | None:
    """Return a number as JSON can hold it."""
    return value if value is not None and math.isfinite(value) else None


def print_document(document: dict[str, Any]) -> None:
    """Print a document as JSON."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def columns_table(*numbers: str) -> Table:
    """Return an empty table with columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def print_end(
    console: Console, posterior: cv.Posterior, *, objective: str, value: float, n_iter: int, more: str = ""
) -> None:
    """Print where a fit ended, and why."""
    starts = len(posterior.restart_elbos)
    best = f" (the best of {starts} starts)" if starts > 1 else ""
    say(console, f"{objective} {value:.4f} nats after {counted(n_iter, 'iteration')}{best}{more}")
    say(console, status_in_options(posterior.status))
    if posterior.told_ends:
        say(console, posterior.told_ends)


def print_origin(console: Console, about: Mapping[str, Any]) -> None:
    """Print where the data and the fit come from, as far as it was kept."""
    if about.get("source") or about.get("query"):
        query = f", query {about['query']}" if about.get("query") else ""
        say(console, f"fitted to {about.get('source') or 'the result of a query'}{query}")
    if about.get("seed") is not None:
        say(console, f"seed {about['seed']}")


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
