"""Checkpoints: where a fit stands, and ends of starts, as plain values; and again from them, to the same bits.

Kept are the reference points of categories, the global factors with their natural parameters, the expected statistics
and sums over rows that the next update starts from, the terms of the objective, the memory of the moves, and local
factors or sums by batch where the next pass starts from those; of the stochastic schedule the state of its generator
and what the batches of the present pass said. Compiled from model and data anew are the problem, and the
sums that no factor enters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ...language import Variable
from ..ascent.acceleration import Memory, Move, Pair, Place
from ..ascent.driver import Result
from ..ascent.elbo import Objective
from ..ascent.moment import Moment, Visits, Walk
from ..ascent.problem import Problem
from ..ascent.state import HalfStep, State, Visit
from ..ascent.status import Status
from ..local.statistics import LocalState, Sums
from ..rows.row_map import RowMap
from ..rows.sums_by_batch import SumsByBatch
from .plain_values import plain, restored

__all__ = ["plain_moment", "plain_result", "restored_moment", "restored_result"]


def _plain_by_key(values: Mapping[Any, Any]) -> list[Any]:
    """Return values by key as pairs of plain values, in their order."""
    return [[plain(key), plain(value)] for key, value in values.items()]


def _by_key(pairs: list[Any]) -> dict[Any, Any]:
    """Return values by key."""
    return {restored(key): restored(value) for key, value in pairs}


def _plain_by_name(values: Mapping[Variable, Any]) -> list[Any]:
    """Return values by variable as pairs of its name and a plain value, in their order."""
    return [[variable.name, plain(value)] for variable, value in values.items()]


def _by_variable(pairs: list[Any], problem: Problem) -> dict[Variable, Any]:
    """Return the values by variable."""
    variables = {node.name: node for node in problem.bound.nodes if isinstance(node, Variable)}
    return {variables[name]: restored(value) for name, value in pairs}


def plain_moment(moment: Moment | Walk) -> dict[str, Any]:
    """Return where a fit stands as plain values.

    Raises
    ------
    ParameterError
        If what an executor carries over stays elsewhere, or a generator is of a kind that cannot be kept.
    """
    return _plain_walk(moment) if isinstance(moment, Walk) else _plain_moment(moment)


def _plain_moment(moment: Moment) -> dict[str, Any]:
    state = moment.state
    return {
        **_plain_frame(state.problem),
        "q": _plain_by_name(state.q),
        "arrays": _plain_by_key(state.arrays),
        "natural": _plain_by_name(state.natural),
        "values": plain(state.objective.values),
        "own": _plain_by_key(state.objective.own),
        "fell_at": state.fell_at,
        "trace": np.array(moment.trace),
        "change": float(moment.change),
        "memory": None if moment.memory is None else _plain_memory(moment.memory),
        "carried": [[number, _plain_blocks(own)] for number, own in state.warm.items()],
        "batches": [] if state.by_batch is None else [_plain_sums(sums) for sums in state.by_batch.batches],
        "n_batches": state.rows.n_batches,
        "anew": state.is_fresh,
        "visits": _plain_visits(moment.visits, state.problem),
        "status": None if moment.status is None else moment.status.value,
        "saddles": moment.saddles,
    }


def restored_moment(document: Mapping[str, Any], problem: Problem, rows: RowMap) -> Moment | Walk:
    """Return where a fit stood, which plain values hold.

    Parameters
    ----------
    document
        What :func:`plain_moment` returned.
    problem, rows
        Of the same model and data.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If it holds none.
    """
    return (_walk_of if "random_state" in document else _moment_of)(document, problem, rows)


def _moment_of(document: Mapping[str, Any], problem: Problem, rows: RowMap) -> Moment:
    problem = _in_frame(document, problem)
    own = {key: float(value) for key, value in _by_key(document["own"]).items()}
    state = State(
        problem,
        replace(rows.at(problem.rows), n_batches=int(document["n_batches"])),
        _factors_of(document, problem),
        _arrays_of_state(document["arrays"], problem),
        Objective.of(problem, restored(document["values"]), own),
        str(document["fell_at"]),
        _by_variable(document["natural"], problem),
        {int(number): _blocks_of(own) for number, own in document["carried"]},
        _by_batch([_sums_of(sums) for sums in document["batches"]]),
        bool(document["anew"]),
    )
    trace = [float(value) for value in document["trace"]]
    if trace[-1] != state.elbo:
        raise ValueError("the objective is not that of the factors")
    return Moment(
        state,
        trace,
        len(trace) - 1,
        float(document["change"]),
        None if document["memory"] is None else _memory_of(document["memory"]),
        _visits_of(document["visits"], state),
        None if document["status"] is None else Status(document["status"]),
        int(document["saddles"]),
    )


def _plain_visits(visits: Visits, problem: Problem) -> dict[str, Any]:
    """Return the visits to batches; those from other reference points tell nothing any more."""
    now = visits.now
    last_time = [
        [number, _plain_by_name(visit.natural)]
        for number, visit in visits.last_time.items()
        if visit.problem is problem
    ]
    if now is None:
        return {"now": None, "last_time": last_time}
    document = {
        "values": plain(now.before.values),
        "own": _plain_by_key(now.before.own),
        "slack": float(now.slack),
    }
    return {"now": document, "last_time": last_time}


def _visits_of(document: Mapping[str, Any], state: State) -> Visits:
    """Return the visits to batches."""
    problem, found, now = state.problem, document["now"], None
    if found is not None:
        own = {key: float(value) for key, value in _by_key(found["own"]).items()}
        before = Objective.of(problem, restored(found["values"]), own)
        coefficients = problem.rows.coefficients(state.arrays)
        loss = problem.worst_loss(state.q, coefficients)
        now = HalfStep(before, coefficients, loss, float(found["slack"]))
    last_time = {
        int(number): Visit(problem, _by_variable(natural, problem))
        for number, natural in document["last_time"]
    }
    return Visits(now, last_time)


def _plain_walk(walk: Walk) -> dict[str, Any]:
    if walk.random_state["bit_generator"] != "PCG64":
        raise ParameterError(
            f"checkpoint= cannot keep a generator of kind {walk.random_state['bit_generator']}; give a whole number as "
            f"seed, or numpy.random.default_rng(...)"
        )
    return {
        **_plain_frame(walk.problem),
        "q": _plain_by_name(walk.q),
        "natural": _plain_by_name(walk.natural),
        "trace": np.array(walk.trace),
        "step": walk.step,
        "change": float(walk.change),
        "random_state": plain(walk.random_state),
        "estimates": np.array(walk.estimates),
        "status": None if walk.status is None else walk.status.value,
    }


def _walk_of(document: Mapping[str, Any], problem: Problem, rows: RowMap) -> Walk:
    problem = _in_frame(document, problem)
    trace = [float(value) for value in document["trace"]]
    return Walk(
        problem,
        rows.at(problem.rows),
        _factors_of(document, problem),
        _by_variable(document["natural"], problem),
        trace,
        len(trace) - 1,
        int(document["step"]),
        float(document["change"]),
        restored(document["random_state"]),
        tuple(float(value) for value in document["estimates"]),
        None if document["status"] is None else Status(document["status"]),
    )


def plain_result(result: Result) -> dict[str, Any]:
    """Return the end of a start as plain values."""
    return {
        **_plain_frame(result.problem),
        "q": _plain_by_name(result.q),
        "elbo": float(result.elbo),
        "trace": np.array(result.trace),
        "terms": plain({name: float(value) for name, value in result.terms.items()}),
        "status": result.status.value,
        "n_iter": result.n_iter,
        "fell_at": result.fell_at,
        "lost_in": result.lost_in,
        "lost": float(result.lost),
        "beliefs": _plain_by_name(result.beliefs),
    }


def restored_result(document: Mapping[str, Any], problem: Problem) -> Result:
    """Return the end that plain values hold, of a problem of the same model and data.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they hold none.
    """
    problem = _in_frame(document, problem)
    kept = {name: document[name] for name in ("elbo", "trace", "n_iter", "fell_at", "lost_in", "lost")}
    return Result(
        problem=problem,
        q=_factors_of(document, problem),
        terms=restored(document["terms"]),
        status=Status(document["status"]),
        beliefs=_by_variable(document["beliefs"], problem),
        **kept,
    )


def _arrays_of_state(pairs: list[Any], problem: Problem) -> dict[Hashable, Any]:
    """Return the expected statistics and sums that the terms of a problem need."""
    arrays = _by_key(pairs)
    if not all(key in arrays for term in problem.compiled.terms for key in term.contraction.keys):
        raise ValueError("the statistics and sums are those of another model")
    return arrays


def _factors_of(document: Mapping[str, Any], problem: Problem) -> dict[Variable, Any]:
    q = _by_variable(document["q"], problem)
    if set(q) != set(problem.order):
        raise ValueError("the factors are those of other variables")
    return q


def _plain_frame(problem: Problem) -> dict[str, Any]:
    """Return the reference points of categories; all others follow from the data."""
    centres = problem.coordinates.centres.items()
    return {"centres": [[number, gate.name, plain(offsets)] for number, (gate, offsets) in centres]}


def _in_frame(document: Mapping[str, Any], problem: Problem) -> Problem:
    variables = {node.name: node for node in problem.bound.nodes if isinstance(node, Variable)}
    centres = {
        int(number): (variables[name], restored(offsets)) for number, name, offsets in document["centres"]
    }
    if not centres and not problem.coordinates.centres:
        return problem
    coordinates = replace(problem.coordinates, centres=centres)
    return problem.measured_from(coordinates)


def _plain_memory(memory: Memory) -> dict[str, Any]:
    """Return the memory of the moves; each place, move and pair is a list of its arrays."""
    document = {own.name: getattr(memory, own.name) for own in fields(memory)}
    for name in ("place", "move"):
        document[name] = None if document[name] is None else _arrays_of(document[name])
    return {**document, "pairs": [_arrays_of(pair) for pair in memory.pairs]}


def _arrays_of(record: Place | Move | Pair) -> list[Any]:
    return [plain(getattr(record, own.name)) for own in fields(record)]


def _memory_of(document: Mapping[str, Any]) -> Memory:
    def made(kind: Callable[..., Any], parts: list[Any] | None) -> Any:
        return None if parts is None else kind(*(restored(part) for part in parts))

    pairs = tuple(made(Pair, parts) for parts in document["pairs"])
    place, move = made(Place, document["place"]), made(Move, document["move"])
    return Memory(**{**document, "place": place, "move": move, "pairs": pairs})


def _by_batch(batches: list[Sums]) -> SumsByBatch | None:
    found = SumsByBatch.of(len(batches)) if batches else None
    for number, sums in enumerate(batches):
        assert found is not None
        found = found.replaced(number, sums)
    return found


def _plain_blocks(blocks: Any) -> list[Any]:
    if not isinstance(blocks, list):
        raise ParameterError(
            "checkpoint= is impossible here: local factors depend on each other, and the executor keeps them where "
            "the rows are. Leave factors= out, so that they are one factor, or leave the executor out"
        )
    return [_plain_by_key(block) for block in blocks]


def _blocks_of(blocks: list[Any]) -> list[LocalState]:
    return [_by_key(block) for block in blocks]


def _plain_sums(sums: Sums) -> dict[str, Any]:
    return {own.name: _plain_by_key(getattr(sums, own.name)) for own in fields(sums)}


def _sums_of(document: Mapping[str, Any]) -> Sums:
    return Sums(**{own.name: _by_key(document[own.name]) for own in fields(Sums)})
