"""What a fitted mixture of mixed columns is, for readers and, as JSON, for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import caviar as cv

from .arrays import categories_of
from .results import document_of_posterior, in_digits
from .speaking import counted, plain, say

__all__ = ["document_of_mixed", "is_mixed", "print_mixed"]

_PARAMETERS = {"Normal": "_theta", "Categorical": "_probabilities"}
"""Family of a column -> how the name of its parameters ends."""
_MOST_LINES = 200
"""Lines of the table on a terminal; JSON holds them all."""
_MOST_VALUES = 3
"""Categories of a column in the table."""


@dataclass(frozen=True)
class _Component:
    """What the fit says about one component: of each column the mean and the spread, or the categories."""

    component: int
    weight: cv.report.Estimate
    mean: Mapping[str, cv.report.Estimate]
    standard_deviation: Mapping[str, float]
    probabilities: Mapping[str, Mapping[str, cv.report.Estimate]]


def is_mixed(posterior: cv.Posterior) -> bool:
    """Whether this is a posterior of ``caviar.models.mixed_mixture`` of numbers and categories, learnt as a whole."""
    variables = posterior.model.variables
    leaves = {leaf.name: type(leaf).__name__ for leaf in posterior.model.leaves}
    if not set(leaves.values()) <= set(_PARAMETERS):
        return False
    parameters = [name + _PARAMETERS[kind] for name, kind in leaves.items()]
    if sorted(variables) != sorted(["weights", "z", *leaves, *parameters]):
        return False
    if sorted(posterior) != sorted(["weights", *parameters]):
        return False
    if any(type(posterior[name]).__name__ != type(variables[name]).__name__ for name in posterior):
        # points, and what was given in part, have no intervals
        return False
    like = cv.models.mixed_mixture(
        np.size(posterior["weights"].mean),
        numbers=[name for name, kind in leaves.items() if kind == "Normal"],
        n_categories={name: 2 for name, kind in leaves.items() if kind == "Categorical"},
    )
    return _shape_of(posterior.model) == _shape_of(like)


def _shape_of(model: cv.Model) -> dict[str, Any]:
    """Return a statement without its numbers."""
    return {name: variable.describe() for name, variable in model.variables.items()}


def _components(posterior: cv.Posterior) -> list[_Component]:
    """Return the components, the heaviest first."""
    estimates: dict[str, list[cv.report.Estimate]] = {}
    for row in posterior.summary(max_rows=None).rows:
        estimates.setdefault(row.variable, []).append(cv.report.Estimate(row.mean, row.lower, row.upper))
    leaves = posterior.model.leaves
    numbers = [leaf.name for leaf in leaves if type(leaf).__name__ == "Normal"]
    names = categories_of(posterior)
    found = []
    for k, weight in enumerate(estimates["weights"]):
        probabilities = {}
        for leaf in leaves:
            if leaf.name not in numbers:
                size = posterior[f"{leaf.name}_probabilities"].mean.shape[-1]
                own = estimates[f"{leaf.name}_probabilities"][k * size : (k + 1) * size]
                told = names.get(leaf.name, [str(place) for place in range(size)])
                probabilities[leaf.name] = dict(zip(told, own, strict=True))
        found.append(
            _Component(
                component=k,
                weight=weight,
                mean={name: estimates[f"{name}_theta.mean"][k] for name in numbers},
                standard_deviation={name: _deviation(posterior[f"{name}_theta"], k) for name in numbers},
                probabilities=probabilities,
            )
        )
    return sorted(found, key=lambda own: -own.weight.value)


def _deviation(factor: Any, k: int) -> float:
    """Return the standard deviation of the rows of a component, at the expected precision."""
    return math.sqrt(float(factor.rate[k]) / float(factor.shape[k]))


def document_of_mixed(posterior: cv.Posterior, **more: Any) -> dict[str, Any]:
    """Return everything that a fit says, as JSON can hold it."""
    summary = posterior.data_summary or {}
    return {
        **document_of_posterior(posterior),
        **summary.get("about", {}),
        "missing_entries": _n_missing(summary),
        "columns": [leaf.name for leaf in posterior.model.leaves],
        "components": [asdict(own) for own in sorted(_components(posterior), key=lambda own: own.component)],
        **more,
    }


def _n_missing(summary: Mapping[str, Any]) -> int:
    return sum(own.get("missing", 0) for own in summary.get("arrays", {}).values())


def print_mixed(console: Console, posterior: cv.Posterior) -> None:
    """Print what a fitted mixture is: its components, heaviest first, its bound, and why the fit ended."""
    components = _components(posterior)
    summary = posterior.data_summary or {}
    rows = f", {counted(summary['rows'], 'row')}" if summary else ""
    say(console, f"Bayesian mixture of mixed columns, {counted(len(components), 'component')}{rows}", "bold")
    missing = _n_missing(summary)
    if missing:
        what = "entry, which was" if missing == 1 else "entries, which were"
        say(console, f"{missing:,} missing {what} integrated out")
    say(console)
    _print_components(console, components)
    say(console, posterior.interval_remark)
    say(console)
    starts = len(posterior.restart_elbos)
    best = f" (the best of {starts} starts)" if starts > 1 else ""
    say(console, f"ELBO {posterior.elbo:.4f} nats after {counted(posterior.n_iter, 'iteration')}{best}")
    say(console, str(posterior.status))
    if posterior.told_ends:
        say(console, posterior.told_ends)


def _print_components(console: Console, components: list[_Component]) -> None:
    """Print a line for each component and column."""
    n_columns = len(components[0].mean) + len(components[0].probabilities)
    shown = components[: max(1, _MOST_LINES // n_columns)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("component", justify="right")
    table.add_column("weight [95% interval]")
    table.add_column("column")
    table.add_column("mean [95% interval], or values")
    table.add_column("std. dev.", justify="right")
    for own in shown:
        first = (str(own.component), in_digits(own.weight))
        for name, mean in own.mean.items():
            table.add_row(*first, plain(name), in_digits(mean), f"{own.standard_deviation[name]:.4g}")
            first = ("", "")
        for name, probabilities in own.probabilities.items():
            table.add_row(*first, plain(name), plain(_most_probable(probabilities)), "-")
            first = ("", "")
    console.print(table)
    if len(shown) < len(components):
        say(console, f"... and {len(components) - len(shown)} lighter components; --json shows all")


def _most_probable(probabilities: Mapping[str, cv.report.Estimate]) -> str:
    """Return the most probable categories with their probabilities."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1].value)
    told = [f"{name} {estimate.value:.3f}" for name, estimate in ranked[:_MOST_VALUES]]
    return ", ".join([*told, *(["..."] if len(ranked) > _MOST_VALUES else [])])
