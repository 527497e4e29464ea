"""The problem of a search for the number of states of a hidden Markov model, and moves that the order of rows shows.

The rows of a stay in a state belong together, so a state is cut between its stays; and successive rows that their
states explain badly may have one of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import AnyArray, Array
from ...engine.ascent.schedules.moves.swaps import Mixture
from ...engine.ascent.schedules.moves.weighed import weighed
from ...fitting.model import Model
from ...names import Placed
from ...posterior.posterior import Posterior
from .move import Patience
from .problem import MoveInTime, Problem, factors_of, state_at
from .proposals import in_units

_MOST_UPDATES = 10
"""Updates of the means of two groups of stays."""

_LENGTHS, _MOST_BIRTHS = (6, 15), 8
"""Rows of the stretches that may have a state of their own, and stretches of each length at most."""


@dataclass(frozen=True)
class SequenceProblem(Problem):
    """Rows in sequences, and the statement of their hidden Markov model for any number of states.

    Moves are proposed by mixtures of the rows of a state, or of two, in any order; each is judged by the ELBO
    of the hidden Markov model of all sequences.

    Attributes
    ----------
    starts
        1 where a sequence begins, (N,).
    mixture_of
        Number of components -> the mixture of rows by themselves, with the same emissions.
    """

    # a split begins with rows by themselves, and time tells its states apart only slowly
    patience: ClassVar[Patience] = Patience(least=10, ahead=100, slow=0.01)
    tries_anew: ClassVar[bool] = True
    settles_near: ClassVar[bool] = False
    label: str = "s"
    starts: Array | None = None
    mixture_of: Callable[[int], Model] | None = None

    def responsibilities_under_part(self, posterior: Posterior) -> Array:
        """Return q(z) of each row by itself, shape (N, K)."""
        return posterior.local({"x": self.values(self.X)})["z"].probabilities

    def weighed(self, posterior: Posterior, responsibilities: Array) -> Mixture | None:
        """Return the mixture of rows by themselves that has the emissions of the states."""
        assert self.mixture_of is not None
        model = self.mixture_of(responsibilities.shape[1])
        known = model.variables
        emissions = {
            name: own
            for name, own in factors_of(posterior).items()
            # weights of transitions are no weights of rows
            if name in known and own.family is known[name].family
        }
        start = {**emissions, "z": responsibilities}
        return weighed(state_at(model, {"x": self.values(self.X)}, start, self.weights))

    def moves_in_time(self, responsibilities: Array, natural: Array) -> list[MoveInTime]:
        """Return splits of states by their stays, and births of states in stretches that are badly explained."""
        points = in_units(np.asarray(self.X, dtype=np.float64), self.weights)
        starts = np.asarray(self.starts) > 0
        halves = stays_in_halves(responsibilities, points, self.weights, starts)
        births = badly_explained(responsibilities, natural.T, self.weights, starts)
        return [
            *(("split", "by stays", k, share) for k, share in halves),
            *(("birth", f"in {length} rows", k, share) for length, k, share in births),
        ]

    def part(self, share: Array, smallest: float, **changes: Any) -> Problem:
        """Return the rows of a part by themselves, as rows of a mixture."""
        assert self.mixture_of is not None
        rows = share > smallest
        given: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, **changes}
        return Problem(
            self.mixture_of,
            self.X[rows],
            (self.weights * share)[rows],
            executor=self.executor,
            values=self.values,
            **given,
        )

    def subsample(self, largest: int) -> Problem:
        """Return the same: rows of a sequence belong together."""
        return self

    def _data(self) -> dict[str, Any]:
        return Placed({**super()._data(), "starts": np.asarray(self.starts)})


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
