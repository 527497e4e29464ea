r"""Densities given values of the globals, for the weights of draws from q.

With every global at a point the local factors are exact wherever they do not depend on each other, so the objective is

.. math:: \log p(x, \theta) = \log p(\theta) + \sum_n \log \int p(x_n, z_n \mid \theta)\, dz_n

and a row's own share is the log-partition of its local factors plus the terms that no local variable enters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import Array
from ...language import Variable
from ..ascent.impossible import known_zeros, zeros_by_row
from ..ascent.problem import Problem, statistics_of
from ..ascent.state import begin, ready
from ..binding.clamped.factor import PointMass
from ..design.backend import Workspace
from ..local.statistics import Arrays
from ..rows.row_map import RowMap
from ..rows.tasks import blocks_of, rows_at
from ..rows.terms.row_term import BlockWork
from .evaluate import in_frame


def why_inexact(problem: Problem) -> str:
    """Return why the local variables cannot be integrated out exactly given the globals; nothing if they can."""
    return problem.rows.why_inexact()


def why_no_rows(problem: Problem) -> str:
    """Return why the rows have no separate densities given the globals; nothing if they have."""
    if problem.bound.data_plate is None:
        return "the model has no plate with rows of data"
    if problem.chains:
        return f"the rows of '{problem.chains[0].name}' depend on their neighbours"
    return why_inexact(problem)


def log_joint_at(problem: Problem, values: Mapping[str, Any], row_map: RowMap) -> float:
    """Return log p(x, globals) in nats with the local variables integrated out.

    Parameters
    ----------
    problem
        In which every global is a point mass.
    values
        Name of each global -> its value; a pair (mean, precision) of a joint factor.
    """
    with row_map.executor.session():
        return begin(problem, points_of(problem, values), row_map).elbo


def row_log_likelihoods(problem: Problem, values: Mapping[str, Any], row_map: RowMap) -> Array:
    """Return log p(x_n | globals) of each row in nats, its local variables integrated out, shape (rows,).

    Raises
    ------
    ModelError
        If rows have no separate densities; the message says why.
    """
    reason = why_no_rows(problem)
    if reason:
        raise ModelError(f"the rows have no log-likelihoods of their own: {reason}")
    q = points_of(problem, values)
    problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q))
    static = problem.rows.static_coefficients(_static_coefficients(problem, arrays))
    scratch, source = Workspace(), row_map.source
    zeros = known_zeros(problem)
    found = []
    for bounds in blocks_of(problem.rows, source):
        rows = rows_at(source, bounds, every=True)
        total = problem.rows.static_by_row(static, rows, scratch)
        found_natural = problem.rows.infer(BlockWork(rows, coefficients, scratch))
        for factor in problem.factors:
            gain, seen = factor.infer(found_natural[factor.key]).log_partition, factor.seen(rows.columns)
            counted = gain if seen is None else np.where(seen, gain, 0.0)
            # the log-partition of factors with one precision for all rows has length 1 where nothing varies
            total += (
                np.broadcast_to(counted, (*counted.shape[:-1], rows.n_rows)).reshape(-1, rows.n_rows).sum(0)
            )
        if zeros is not None:
            total[zeros_by_row(problem.rows, *zeros, rows, scratch) > 0] = -np.inf
        found.append(total)
    joined, places = np.concatenate(found or [np.zeros(0)]), source.places(0, source.n_rows)
    return joined if isinstance(places, slice) else joined[np.argsort(places)]


def points_of(problem: Problem, values: Mapping[str, Any]) -> dict[Variable, Any]:
    """Return points of all globals, measured from the problem's frame."""
    return in_frame(problem, {v.name: PointMass.of(v, values[v.name]) for v in problem.order})


def _static_coefficients(problem: Problem, arrays: Mapping[Any, Array]) -> Arrays:
    """Return what multiplies each sum over rows that no local variable enters."""
    found: Arrays = {}
    for term in problem.compiled.terms:
        for position, key in enumerate(term.contraction.keys):
            part = problem.compiled.parts.get(key)
            if part is not None and part.factor is None:
                value = np.broadcast_to(term.contraction.derivative(position)(arrays), part.shape)
                found[key] = found[key] + value if key in found else value
    return found
