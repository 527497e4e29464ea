"""Moves of a chain's states that the order of rows shows, whatever each row looks like by itself.

The rows of a stay in a state belong together, so a state is cut between its stays; and successive rows that their
states explain badly may have one of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._typing import AnyArray, Array

_MOST_UPDATES = 10
"""Updates of the means of two groups of stays."""

_LENGTHS, _MOST_BIRTHS = (6, 15), 8
"""Rows of the stretches that may have a state of their own, and stretches of each length at most."""


def stays_in_halves(
    responsibilities: Array, points: Array, weights: Array, starts: AnyArray
) -> Iterator[tuple[int, Array]]:
    """Yield each state that has several stays, and the share of the first of two groups of these in each row, (N,).

    Parameters
    ----------
    responsibilities
        Shape (N, K).
    points
        Rows in units of their spread, (N, D).
    weights
        Of the rows, (N,).
    starts
        Whether a sequence begins at each row, (N,).

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [9.0], [9.0], [1.0], [0.0], [5.0], [5.0]])
    >>> state = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    >>> found = stays_in_halves(np.eye(2)[state], points, np.ones(8), np.arange(8) == 0)
    >>> [(k, share) for k, share in found]
    [(1, array([0.5, 0.5, 1. , 1. , 0.5, 0.5, 0. , 0. ]))]
    """
    for k, share in enumerate(responsibilities.T):
        (rows,) = np.nonzero(share > 0.5)
        is_first = np.diff(rows, prepend=-2) > 1
        is_first |= starts[rows]
        stay = np.cumsum(is_first) - 1
        if not len(rows) or not stay[-1]:
            continue
        mass: Array = np.bincount(stay, weights[rows]).astype(np.float64)
        sums = np.stack([np.bincount(stay, weights[rows] * column) for column in points[rows].T], axis=1)
        half = _halves(sums / mass[:, None], mass)
        if half.any() and not half.all():
            found = np.full(len(share), mass[half].sum() / mass.sum())
            found[rows] = half[stay]
            yield k, found


def badly_explained(
    responsibilities: Array, logits: Array, weights: Array, starts: AnyArray
) -> Iterator[tuple[int, int, Array]]:
    """Yield stretches of rows whose states explain them worst, compared with the other rows of these states.

    Each comes as its length, the state that it takes most from, which differs between stretches of a length, and ones
    in its rows, (N,).

    Parameters
    ----------
    responsibilities, logits
        Of the states in each row, and what these are the exponentials of for rows by themselves, (N, K).
    weights
        Of the rows, (N,).
    starts
        Whether a sequence begins at each row, (N,).
    """
    mass = np.maximum(weights @ responsibilities, np.finfo(float).tiny)
    own = (responsibilities * np.where(responsibilities > 0, logits, 0.0)).sum(axis=1)
    missed = own - responsibilities @ ((weights * own) @ responsibilities / mass)
    sequence = np.cumsum(starts)
    for length in _LENGTHS:
        if len(missed) < length:
            return
        sums = np.convolve(missed, np.ones(length), "valid")
        sums[sequence[length - 1 :] != sequence[: len(sums)]] = np.inf
        taken: set[int] = set()
        for _ in range(_MOST_BIRTHS):
            first = int(sums.argmin())
            if not sums[first] < 0:
                break
            rows = slice(first, first + length)
            sums[max(0, first - length + 1) : first + length] = np.inf
            state = int((weights[rows] @ responsibilities[rows]).argmax())
            if state not in taken:
                taken.add(state)
                share = np.zeros(len(missed))
                share[rows] = 1.0
                yield length, state, share


def _halves(means: Array, mass: Array) -> AnyArray:
    """Return which stays are in the first of two groups, by their means: k-means from both sides of the widest axis."""
    centred = means - np.average(means, axis=0, weights=mass)
    half = centred @ np.linalg.svd(centred * np.sqrt(mass)[:, None], full_matrices=False)[2][0] > 0
    for _ in range(_MOST_UPDATES):
        if half.all() or not half.any():
            break
        one, other = (np.average(centred[own], axis=0, weights=mass[own]) for own in (half, ~half))
        before, half = half, np.square(centred - one).sum(axis=1) < np.square(centred - other).sum(axis=1)
        if (before == half).all():
            break
    return half
