"""Sides of a turn: what the sums over rows and the shared factors tell of each member of a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....._typing import Array
from .....language import MultivariateNormal, Variable
from ....design.features import CONSTANT
from ....design.keys import StatisticKey, SumKey
from ...state import AscentState
from .chains import TurnedChain
from .groups import Group, Member, known_parameters
from .rotation import Side, Turned


def sides_of(state: AscentState, group: Group) -> list[Side] | None:
    """Return what is known of the vectors of a group; None where a prior differs from repetition to repetition."""
    found = [_side_of(state, own) for own in group.members]
    return None if any(own is None for own in found) else [own for own in found if own is not None]


def _side_of(state: AscentState, member: Member) -> Side | None:
    problem, variable = state.problem, member.variable
    if member.transition is not None:
        return _chain_of(state, member, member.transition)
    moments, count = _moments(state, member)
    size = len(moments)
    if member.relevance is not None:
        shape, rate = known_parameters(problem, member.relevance, size)
        repeated = np.prod([problem.bound.sizes[plate] for plate in variable.plates])
        chosen = count if variable.has_zeros else repeated
        return Turned(moments, count, member.is_dual, None, shape + 0.5 * chosen, rate)
    precision = _precision(state, variable, size)
    return None if precision is None else Turned(moments, count, member.is_dual, precision)


def _chain_of(state: AscentState, member: Member, transition: MultivariateNormal) -> TurnedChain | None:
    """Return what is known of a chain and of its transition; their precisions are as they are."""

    def of(found: Any, name: str, *axes: int) -> Array:
        return np.broadcast_to(found.get(StatisticKey(member.variable.name, name), 0.0), axes)

    size = transition.dimension or 1
    precision = _precision(state, transition, size)
    if precision is None:
        return None
    sums, said = state.arrays, state.problem.rows.coefficients(state.arrays).parts
    first_precision = -of(said, "first_xx", size, size)
    linear = sum(_said(state, transition, "x"), np.zeros((size, size)))
    return TurnedChain(
        first=of(sums, "first_xx", size, size),
        before=of(sums, "previous_xx", size, size),
        pairs=of(sums, "pairs", size, size),
        after=of(sums, "next_xx", size, size),
        first_mean=of(sums, "first_x", size),
        count=float(of(sums, "n_first") + of(sums, "n_steps")),
        first_precision=first_precision + first_precision.T,
        first_linear=of(said, "first_x", size),
        noise=-2.0 * np.diagonal(of(said, "next_xx", size, size)),
        prior_linear=np.broadcast_to(linear, (size, size)),
        prior_precision=precision,
        is_dual=member.is_dual,
    )


def _moments(state: AscentState, member: Member) -> tuple[Array, Any]:
    """Return the sum of the second moments of a vector, (K, K), and how many change their volume."""
    variable, arrays = member.variable, state.arrays
    if state.problem.bound.is_local(variable):
        key = SumKey((StatisticKey(variable.name, "xx"),), CONSTANT.key)
        return arrays[key], state.rows.total_weight
    name = "squares" if variable.has_zeros else "xx"
    sizes = tuple(state.problem.bound.sizes[plate] for plate in variable.plates)
    values = arrays[StatisticKey(variable.name, name)]
    event = values.shape[-1:] if variable.has_zeros else values.shape[-2:]
    axes = tuple(range(len(sizes)))
    total = np.broadcast_to(values, (*sizes, *event)).sum(axis=axes)
    if not variable.has_zeros:
        return total, 0.0 if variable in state.problem.point else float(np.prod(sizes))
    included = np.broadcast_to(arrays[StatisticKey(variable.name, "included")], (*sizes, *event))
    return np.diag(total), included.sum(axis=axes) if variable not in state.problem.point else 0.0


def _precision(state: AscentState, variable: Variable, size: int) -> Array | None:
    """Return the expected precision of a vector under its prior, (K, K); None if repetitions have different ones."""
    name = "squares" if variable.has_zeros else "xx"
    n_event, total = 1 if variable.has_zeros else 2, np.zeros((size, size))
    for own in _said(state, variable, name):
        said = own.reshape(-1, *own.shape[own.ndim - n_event :])
        if not np.all(said == said[0]):
            return None
        total = total - 2.0 * (
            np.diag(said[0]) if variable.has_zeros else np.broadcast_to(said[0], total.shape)
        )
    return 0.5 * (total + total.T)


def _said(state: AscentState, variable: Variable, name: str) -> Iterator[Array]:
    """Yield what the terms of a variable's own density multiply one of its statistics by."""
    key = StatisticKey(variable.name, name)
    for term in state.problem.compiled.terms:
        if term.owner is variable:
            for position, own in enumerate(term.contraction.keys):
                if own == key or (isinstance(own, SumKey) and own.local == (key,)):
                    yield np.asarray(term.derivative(position)(state.arrays))
