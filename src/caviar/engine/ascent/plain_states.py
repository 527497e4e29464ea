"""States as values that a checkpoint holds, and back: texts, numbers, arrays, keys, factors, and lists of such.

Kept are the reference points of categories, the global factors with their natural parameters, the expected statistics
and sums over rows that the next update starts from, the terms of the objective, and local factors or sums by batch
where the next pass starts from those. Compiled from model and data anew are the problem, and the sums that
no factor enters.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ...language import Variable
from ..local.statistics import Sums
from ..rows.row_map import Precision, RowMap
from ..rows.sums_by_batch import SumsByBatch
from .elbo import Objective
from .problem import Factors, Problem
from .state import AscentState, FitState
from .status import Status

_ROUNDING = 1e-12
"""Of an objective beside the sum of its terms, relative to their sizes."""


def plain_fit(state: FitState) -> dict[str, Any]:
    """Return what the states of all schedules have."""
    return {
        "centres": plain_frame(state.problem),
        "precision": state.rows.precision.value,
        "q": by_name(state.q),
        "natural": by_name(state.natural),
        "trace": np.array(state.trace),
        "change": float(state.change),
        "status": None if state.status is None else state.status.value,
        "n_updates": state.n_updates,
    }


def fit_of(document: Mapping[str, Any], problem: Problem, rows: RowMap) -> dict[str, Any]:
    """Return the fields that the states of all schedules have."""
    problem = in_frame_of(document["centres"], problem)
    rows = replace(rows.at(problem.rows), precision=Precision(document["precision"]))
    return {
        "problem": problem,
        "rows": rows,
        "q": factors_of(document["q"], problem),
        "natural": by_variable(document["natural"], problem),
        "trace": tuple(float(value) for value in document["trace"]),
        "change": float(document["change"]),
        "status": None if document["status"] is None else Status(document["status"]),
        "n_updates": int(document["n_updates"]),
    }


def plain_place(state: AscentState) -> dict[str, Any]:
    """Return what states with the objective of all rows have."""
    return {
        **plain_fit(state),
        **plain_objective(state.objective),
        "arrays": _by_key(state.arrays),
        "fell_at": state.fell_at,
        "warm": [[number, _blocks(own)] for number, own in state.warm.items()],
        "n_batches": state.rows.n_batches,
        "batches": [] if state.by_batch is None else [_plain_sums(sums) for sums in state.by_batch.batches],
        "is_fresh": state.is_fresh,
        "saddles": state.saddles,
        "swaps": state.swaps,
        "renewals": state.renewals,
        "rows_raced": state.rows_raced,
        "is_from_clusters": state.is_from_clusters,
    }


def place_of(document: Mapping[str, Any], problem: Problem, rows: RowMap) -> dict[str, Any]:
    """Return the fields that states with the objective of all rows have."""
    rows = replace(rows, n_batches=int(document["n_batches"]))
    found = fit_of(document, problem, rows)
    arrays = _arrays_of(document["arrays"], found["problem"])
    value = found["trace"][-1]
    objective = objective_of(document, found["problem"], value, found["q"], arrays)
    if not abs(objective.values.sum() + sum(objective.own.values()) - value) <= _ROUNDING * objective.scale:
        raise ValueError("the objective is not that of the factors")
    return {
        **found,
        "objective": objective,
        "arrays": arrays,
        "fell_at": str(document["fell_at"]),
        "warm": {int(number): [dict(block) for block in blocks] for number, blocks in document["warm"]},
        "by_batch": _by_batch([_sums_of(sums) for sums in document["batches"]]),
        "is_fresh": bool(document["is_fresh"]),
        "saddles": int(document["saddles"]),
        "swaps": int(document["swaps"]),
        "renewals": int(document["renewals"]),
        "rows_raced": int(document["rows_raced"]),
        "is_from_clusters": bool(document["is_from_clusters"]),
    }


def plain_objective(objective: Objective) -> dict[str, Any]:
    """Return the terms of an objective."""
    return {"values": objective.values, "own": _by_key(objective.own)}


def objective_of(
    document: Mapping[str, Any],
    problem: Problem,
    value: float | None = None,
    q: Factors | None = None,
    arrays: Mapping[Hashable, Array] | None = None,
) -> Objective:
    """Return the objective of these terms; see :meth:`Objective.of`."""
    own = {key: float(value) for key, value in document["own"]}
    return Objective.of(problem, document["values"], own, value, q, arrays)


def plain_frame(problem: Problem) -> list[Any]:
    """Return the reference points of categories; all others follow from the data."""
    centres = problem.coordinates.centres.items()
    return [[number, gate.name, offsets] for number, (gate, offsets) in centres]


def in_frame_of(centres: list[Any], problem: Problem) -> Problem:
    """Return a problem measured from these reference points."""
    variables = _variables(problem)
    own = {int(number): (variables[name], offsets) for number, name, offsets in centres}
    if not own and not problem.coordinates.centres:
        return problem
    return problem.measured_from(replace(problem.coordinates, centres=own))


def by_name(values: Mapping[Variable, Any]) -> list[Any]:
    """Return values by variable as pairs of its name and the value, in their order."""
    return [[variable.name, value] for variable, value in values.items()]


def by_variable(pairs: list[Any], problem: Problem) -> dict[Variable, Any]:
    """Return the values by variable."""
    variables = _variables(problem)
    return {variables[name]: value for name, value in pairs}


def factors_of(pairs: list[Any], problem: Problem) -> dict[Variable, Any]:
    """Return the global factors of a problem."""
    q = by_variable(pairs, problem)
    if set(q) != set(problem.order):
        raise ValueError("the factors are those of other variables")
    return q


def _variables(problem: Problem) -> dict[str, Variable]:
    own = [node for node in problem.bound.nodes if isinstance(node, Variable)]
    return {variable.name: variable for variable in (*own, *problem.coupled)}


def _by_key(values: Mapping[Any, Any]) -> list[Any]:
    """Return values by key as pairs, in their order."""
    return [[key, value] for key, value in values.items()]


def _arrays_of(pairs: list[Any], problem: Problem) -> dict[Hashable, Any]:
    """Return the expected statistics and sums that the terms of a problem need."""
    arrays = dict(pairs)
    if not all(key in arrays for term in problem.compiled.terms for key in term.contraction.keys):
        raise ValueError("the statistics and sums are those of another model")
    return arrays


def _blocks(blocks: Any) -> list[Any]:
    if not isinstance(blocks, list):
        raise ParameterError(
            "checkpoint= is impossible here: local factors depend on each other, and the executor keeps "
            "them with the rows. Leave factors= out, so that they share one factor, or leave executor= out"
        )
    return [_by_key(block) for block in blocks]


def _plain_sums(sums: Sums) -> dict[str, Any]:
    return {own.name: _by_key(getattr(sums, own.name)) for own in fields(sums)}


def _sums_of(document: Mapping[str, Any]) -> Sums:
    return Sums(**{own.name: dict(document[own.name]) for own in fields(Sums)})


def _by_batch(batches: list[Sums]) -> SumsByBatch | None:
    found = SumsByBatch.of(len(batches)) if batches else None
    for number, sums in enumerate(batches):
        assert found is not None
        found = found.replaced(number, sums)
    return found
