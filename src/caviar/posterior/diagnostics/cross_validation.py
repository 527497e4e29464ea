"""Posteriors without some of the rows, found by coordinate ascent from the posterior of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...engine.ascent.driver import Result, Settings, ascend
from ...engine.ascent.problem import Problem
from ...engine.ascent.schedule import Beginning
from ...engine.ascent.schedules.batch import Batch
from ...engine.binding.nested import nested_plates
from ...engine.evaluation.evaluate import in_frame
from ...engine.rows.row_map import RowMap

_MOST_PASSES = 200
_TOLERANCE = 1e-6
"""Nats a row; an interval moves by far less than can be seen in a count of rows."""


@dataclass(frozen=True, eq=False)
class Left:
    """Rows that were left out, and where the ascent to the posterior of the others ended."""

    rows: AnyArray
    result: Result


def _folds_of(n_rows: int, n_folds: int, rng: np.random.Generator) -> list[AnyArray]:
    """Return the rows of each fold in ascending order: a random partition, equal in size up to one row."""
    order = rng.permutation(n_rows)
    return [np.sort(order[number::n_folds]) for number in range(n_folds)]


def results_without(
    bind: Callable[[Array], tuple[Problem, RowMap]],
    problem: Problem,
    factors: Mapping[str, Any],
    weights: Array,
    n_folds: int,
    rng: np.random.Generator,
) -> Iterator[Left]:
    """Yield for each fold its rows, and where coordinate ascent on the others ends, begun at the factors of all.

    Parameters
    ----------
    bind
        Returns the problem for rows of these weights, and the map over its rows. A row of weight zero is not there.
    problem
        For all rows.
    factors
        Of all rows.
    weights
        Of the rows, (N,).

    Raises
    ------
    ModelError
        If rows cannot be left out: the message says why.
    ParameterError
        If there are fewer rows than folds.
    """
    reason = _why_together(problem)
    if reason:
        raise ModelError(f"rows cannot be left out of the fit one by one: {reason}")
    if not 2 <= n_folds <= len(weights):
        raise ParameterError(
            f"n_folds must be between 2 and the number of rows, {len(weights)} here; got {n_folds}"
        )
    settings = Settings(_MOST_PASSES, _TOLERANCE)
    for rows in _folds_of(len(weights), n_folds, rng):
        others = weights.copy()
        others[rows] = 0.0
        own, row_map = bind(others)
        with row_map.executor.session():
            result = ascend(Batch(), Beginning(own, in_frame(own, factors), row_map), settings)
        yield Left(rows, result)


def _why_together(problem: Problem) -> str:
    """Return why no row can be left out of a fit by itself; nothing if each can."""
    if problem.bound.data_plate is None:
        return "the model has no plate with rows of data"
    if problem.chains:
        return f"the rows of '{problem.chains[0].name}' depend on their neighbours"
    if nested_plates(problem.bound.nodes):
        return "they lie within others"
    return ""
