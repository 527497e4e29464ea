"""Kept local factors: those that depend on each other go on from where the last pass has left them, or are moved.

Where all rows are one chunk, all of them are one vector, as the globals are. More chunks may be kept by workers of a
cluster, and results are to be the same there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ..design.keys import KeptKey, StatisticKey
from .local_factor import LocalFactor
from .statistics import LocalState

_MOST_NUMBERS = 1 << 20
"""Numbers of local factors up to which they are one vector: 8 MB."""


class KeptFactors(NamedTuple):
    """Natural parameters and expected statistics of kept local factors, (P,) each.

    Expected statistics are multiplied by the weights of the rows, as the objective has them.
    """

    natural: Array
    expected: Array


def last_update(
    movable: Sequence[LocalFactor], warm: Mapping[int, Any], weights: Array
) -> tuple[KeptFactors, KeptFactors] | None:
    """Return the local factors that the last pass started from, and those that it has updated these to.

    None where there are none, rows are more than one chunk, they are many, or some of their numbers are not finite.

    Parameters
    ----------
    movable
        Those that may be moved.
    warm
        What is kept of the blocks of each chunk, by its number.
    weights
        Of the rows, (N,).
    """
    if (
        not movable
        or not _are_here(warm)
        or len(weights) * sum(own.n_rows for own in movable) > _MOST_NUMBERS
    ):
        return None
    parts: list[list[Array]] = []
    start = 0
    for state in _blocks(warm):
        stop = start + state[movable[0].key].shape[1]
        own, start = weights[start:stop], stop
        for factor in movable:
            if KeptKey(factor.key, "natural before") not in state:
                return None
            before, expected_before, natural = (
                state[KeptKey(factor.key, kind)] for kind in ("natural before", "expected before", "natural")
            )
            several = before, expected_before * own, natural, state[factor.key] * own
            parts.append([array.ravel() for array in several])
    joined = [np.concatenate(own) for own in zip(*parts, strict=True)]
    if not all(np.isfinite(own).all() for own in joined):
        return None
    return KeptFactors(*joined[:2]), KeptFactors(*joined[2:])


def moved_to(movable: Sequence[LocalFactor], warm: Mapping[int, Any], natural: Array) -> Mapping[int, Any]:
    """Return kept local factors with these natural parameters, (P,).

    Raises
    ------
    ImproperError
        If they are those of no factors.
    """
    start = 0

    def renewed(factor: LocalFactor, before: Array) -> Array:
        nonlocal start
        stop = start + before.size
        own, start = natural[start:stop].reshape(before.shape), stop
        return own

    return _changed(warm, movable, renewed)


def with_divided(
    warm: Mapping[int, Any], factor: LocalFactor, key: StatisticKey, by: Array
) -> Mapping[int, Any]:
    """Return kept local factors with one natural parameter of one of them divided by numbers, (shape...)."""

    def divided(factor: LocalFactor, before: Array) -> Array:
        natural = before.copy()
        view = factor.view(natural, key)
        view /= by[..., None]
        return natural

    return _changed(warm, (factor,), divided)


def kept_statistic(warm: Mapping[int, Any], factor: LocalFactor, key: StatisticKey) -> Array | None:
    """Return an expected statistic of a factor that may be moved, of all rows, (shape..., N).

    None where rows are more than one chunk.
    """
    states = [*_blocks(warm)] if _are_here(warm) else []
    if not states or any(KeptKey(factor.key, "natural") not in state for state in states):
        return None
    return np.concatenate([factor.view(state[factor.key], key) for state in states], axis=-1)


def _are_here(warm: Mapping[int, Any]) -> bool:
    """Whether there are kept factors, of one chunk: that is in this process with any executor."""
    return len(warm) == 1 and all(isinstance(blocks, list) for blocks in warm.values())


def _blocks(warm: Mapping[int, Any]) -> Iterator[LocalState]:
    """Yield what is kept of each block, in the order of the rows."""
    for number in sorted(warm):
        yield from (state for state in warm[number] if state)


def _changed(
    warm: Mapping[int, Any], factors: Sequence[LocalFactor], change: Callable[[LocalFactor, Array], Array]
) -> Mapping[int, Any]:
    """Return kept factors with other natural parameters of some of them."""
    found: dict[int, list[LocalState]] = {}
    for number in sorted(warm):
        found[number] = []
        for state in warm[number]:
            own = dict(state)
            for factor in factors if state else ():
                key = KeptKey(factor.key, "natural")
                own[key] = change(factor, state[key])
                expected = own[key].copy()
                factor.infer(expected)
                own[factor.key] = expected
            found[number].append(own)
    return found
