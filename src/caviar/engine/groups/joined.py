"""Groups of several states as those of one: few that go on share the calls of an iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from .ascent import GroupedEnds, GroupedState
from .moves import GroupedMemory
from .problem import GroupedProblem, Share

_OWN = "own_entropy", "entropy", "elbo", "change", "ended", "n_iter"
"""What a state has of each group, (G,)."""


@dataclass(frozen=True, eq=False)
class Left:
    """The groups of a state that go on, after a step or more; nothing of the others is kept.

    Attributes
    ----------
    share
        Their data.
    places
        Which groups they are, (g,).
    natural, expected
        Natural parameters and expected statistics of the global factors, in the order of the problem.
    sums
        Sums over rows, (g, K, F); None where nothing is hidden in the rows.
    memory
        Of their moves; None where they have made none yet.
    own
        Name of what else a state has of each group -> that, (g,).
    traces
        Places among them, from 0, and objectives of each step so far.
    """

    share: Share
    places: AnyArray
    natural: Sequence[Statistics]
    expected: Sequence[Statistics]
    sums: Array | None
    memory: GroupedMemory | None
    own: Mapping[str, AnyArray]
    traces: list[tuple[AnyArray, Array]]

    @classmethod
    def of(cls, state: GroupedState, ends: GroupedEnds) -> Left:
        """Return the groups of a state that go on; the traces are those of the ends."""
        groups = state.goes_on.nonzero()[0]
        places, order = state.places[groups], state.problem.problem.order
        traces = []
        for there, elbo in ends.traces:
            is_in = np.isin(there, places)
            traces.append((np.searchsorted(places, there[is_in]), elbo[is_in]))
        return cls(
            state.problem.share(groups),
            places,
            [_some(state.natural[variable], groups) for variable in order],
            [_some(state.expected[variable], groups) for variable in order],
            None if state.sums is None else state.sums[groups],
            None if state.memory is None else state.memory.taken(groups),
            {name: getattr(state, name)[groups] for name in _OWN},
            traces,
        )


def joined(several: Sequence[Left]) -> tuple[GroupedState, GroupedEnds]:
    """Return the state of the groups of several, one after another, and their ends, which have their traces so far."""
    problem = GroupedProblem.joined([own.share for own in several])
    naturals = [_one_after_another(parts) for parts in zip(*[own.natural for own in several], strict=True)]
    expected = [_one_after_another(parts) for parts in zip(*[own.expected for own in several], strict=True)]
    order, arrays = problem.problem.order, {}
    for variable, statistics in zip(order, expected, strict=True):
        arrays |= zip(problem.problem.keys[variable], statistics, strict=True)
    looked_at = [own.sums for own in several if own.sums is not None]
    sums = np.concatenate(looked_at) if looked_at else None
    memories = [own.memory for own in several if own.memory is not None]
    each: dict[str, Any] = {name: np.concatenate([own.own[name] for own in several]) for name in _OWN}
    state = GroupedState(
        problem=problem,
        places=np.arange(problem.size),
        natural=dict(zip(order, naturals, strict=True)),
        arrays={**arrays, **problem.parts(sums)},
        sums=sums,
        memory=GroupedMemory.joined(memories) if memories else None,
        **each,
    )
    ends, first = GroupedEnds.none(problem.size), 0
    for own in several:
        ends.traces += [(first + places, elbo) for places, elbo in own.traces]
        first += len(own.places)
    return state, ends


def _some(arrays: Statistics, groups: AnyArray) -> Statistics:
    return tuple([array[groups] for array in arrays])


def _one_after_another(several: Sequence[Statistics]) -> Statistics:
    return tuple([np.concatenate(arrays) for arrays in zip(*several, strict=True)])
