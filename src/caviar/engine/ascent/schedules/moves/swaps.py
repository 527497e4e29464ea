r"""Swaps: two components of a mixture are merged, and a third one is cut in two.

A fit with two components in one cluster and one component in two clusters cannot improve by small steps: each lowers
the objective. So a few passes over some of the rows show what each merge would lose and each cut would gain.
Components can take any part of the rows in an update of theirs, so K pairs, or K halves, are found in one update, each
in the place of a component. With natural parameters l of a row's label and responsibilities r, components j in the
place of others, S, change the objective by about

.. math:: \sum_n \log \Bigl( 1 - \sum_{k \in S} r_{nk} + \sum_j e^{l'_{nj} - \log \sum_k e^{l_{nk}}} \Bigr).

Source: Ueda, Nakano, Ghahramani and Hinton, "SMEM algorithm for mixture models" (Neural Computation, 2000), whose
criteria are others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....._typing import AnyArray, Array
from .....numerics.cached import cached_property
from .....numerics.records import replaced
from ....local.categorical import softmax_inplace
from ....rows.row_map import Look
from ...problem import Problem
from ...state import AscentState, after_look, begin, updated_globals
from .components import Components, points_of
from .halves import halves

_NEIGHBOURS = 2
"""Components that each may be merged with."""

_CUTS = 2
"""Cuts of each component."""

_STEPS = 2
"""Updates of the halves of a component, given what is theirs."""

_SURE = 0.5
"""Responsibility from which on a row is among those that are cut."""

_EMPTY = 0.5
"""Weight of rows below which a component has none."""

_LARGEST = 50.0
"""Logarithm of the largest number that is added up."""


@dataclass(frozen=True, eq=False)
class Merge:
    """A component taken into another one: by how much the objective changes, and the logits of both together, (n,)."""

    taken: int
    into: int
    gain: float
    natural: Array


@dataclass(frozen=True, eq=False)
class Cut:
    """A component, or two together, in two halves: their places, what they gain, and the logits of both, (2, n)."""

    places: tuple[int, int]
    gain: float
    natural: Array


@dataclass(frozen=True, eq=False)
class Swap:
    """Two components merged and another one cut in two, or the two themselves cut anew."""

    merge: Merge | None
    cut: Cut

    @property
    def gain(self) -> float:
        """By how much the objective changes, about."""
        return self.cut.gain + (0.0 if self.merge is None else self.merge.gain)

    @property
    def halves(self) -> list[int]:
        """The components in whose places the halves are."""
        return [self.cut.places[0], self.cut.places[1] if self.merge is None else self.merge.taken]

    @property
    def touched(self) -> frozenset[int]:
        """The components that are others afterwards."""
        return frozenset((*self.halves, *(() if self.merge is None else (self.merge.into,))))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture where it is, on some rows.

    Attributes
    ----------
    state
        Its globals, and the sums over these rows.
    components
        What it is made of.
    cost
        State -> what each component costs by itself, (K,), which gains then count; swaps keep the number of components,
        and do without.
    """

    state: AscentState
    components: Components
    cost: Callable[[AscentState], Array] | None = None

    @cached_property
    def weights(self) -> Array:
        """Weights of the rows, (n,)."""
        source = self.state.rows.source
        own, found = source.weights(0, source.n_rows), np.ones(source.n_rows)
        if own is not None:
            found[source.places(0, source.n_rows)] = own
        return found

    @cached_property
    def natural(self) -> Array:
        """Logits of the label of each row, (K, n)."""
        return self._natural(self.state)

    @cached_property
    def _softmax(self) -> tuple[Array, Array]:
        shares = self.natural.copy()
        return shares, softmax_inplace(shares)

    @property
    def shares(self) -> Array:
        """Responsibilities, (K, n)."""
        return self._softmax[0]

    @cached_property
    def counts(self) -> Array:
        """Weight of the rows of each component, (K,)."""
        return self.shares @ self.weights

    def merges(self) -> list[Merge]:
        """Return merges of components that are near each other, the best first."""
        pairs = self._near()
        if not pairs:
            return []
        taken, into = np.array(pairs).T
        both = self.shares[taken] + self.shares[into]
        natural, costs = self._taking(both, into)
        gains = self._changes(1.0 - both, natural[None]) + self.costs[taken] + self.costs[into] - costs
        found = [
            Merge(*pair, float(gain), own) for pair, gain, own in zip(pairs, gains, natural, strict=True)
        ]
        return sorted(found, key=lambda own: -own.gain)

    def deletions(self) -> list[tuple[int, float]]:
        """Return each component with what it gains to delete it and leave the others as they are, the best first."""
        left = np.maximum(1.0 - self.shares, np.finfo(float).tiny)
        gains = np.log(left) @ self.weights + self.costs
        return [(int(k), float(gains[k])) for k in np.argsort(-gains, kind="stable")]

    def cuts(self, each: int = _CUTS, some: Sequence[int] | None = None) -> list[Cut]:
        """Return components in halves, the best first: so many of each at the most, of some components or of all."""
        chosen = range(self.components.size) if some is None else some
        return self._halved([((k, k), self.shares[k]) for k in chosen], each, together=some is not None)

    def further(self, cuts: Sequence[Cut], steps: int, *, together: bool = False) -> list[Cut]:
        """Return cuts after more updates of their halves, which are found together as :meth:`_settled` says."""
        begun = []
        for own in cuts:
            first = _first_of(own.natural)
            whole = self.shares[list(set(own.places))].sum(axis=0)
            begun.append(replace(own, natural=np.stack([whole * first, whole * (1 - first)])))
        return sorted(self._settled(begun, steps, together), key=lambda own: -own.gain)

    def recuts(self, merges: Sequence[Merge]) -> list[Cut]:
        """Return pairs of components cut into other halves, the best first."""
        pairs = ((own.into, own.taken) for own in merges)
        return self._halved([(pair, self.shares[pair[0]] + self.shares[pair[1]]) for pair in pairs])

    def _halved(
        self, wholes: Sequence[tuple[tuple[int, int], Array]], each: int = _CUTS, *, together: bool = False
    ) -> list[Cut]:
        """Return halves, the best first, of what is cut: the places of both halves, and the rows that they take."""
        found: list[Cut] = []
        for places, share in wholes:
            inside = np.flatnonzero((share > _SURE) & (self.weights > 0))
            for half in halves(self._points[inside], self.weights[inside], each):
                first = np.full(len(share), 0.5)
                first[inside] = half
                found.append(Cut(places, 0.0, np.stack([first * share, (1 - first) * share])))
        return sorted(self._settled(found, _STEPS, together), key=lambda own: -own.gain) if found else []

    def swapped(self, swaps: Sequence[Swap]) -> AscentState:
        """Return the state after swaps of different components: what rows say then, and the globals after that."""
        natural = self.natural.copy()
        for swap in swaps:
            if swap.merge is not None:
                natural[swap.merge.into] = swap.merge.natural
            natural[swap.halves] = swap.cut.natural
        softmax_inplace(natural)
        # a precision waits for its mean, and the mean for it
        moved = updated_globals(updated_globals(self._given(self.state, natural)))
        return begin(moved.problem, moved.q, moved.rows)

    def _settled(self, cuts: Sequence[Cut], steps: int, together: bool = False) -> list[Cut]:
        """Return cuts whose rows are given to the halves, after a few updates of these.

        An update takes as long for a half in one place as for one in each. So of components that are alike, halves of a
        few can be found ``together``, in the places of all. From a point that is far from them a few digits are lost,
        which does not matter for what they gain.
        """
        places = np.array([own.places for own in cuts]).T.ravel()
        if together:
            places = np.arange(len(places)) % self.components.size
        taken = np.stack([own.natural for own in cuts], axis=1)
        whole, natural, costs = taken.sum(axis=0), taken, np.zeros(places.shape)
        for step in range(steps):
            if step:
                first = _first_of(natural)
                np.multiply(whole, first, out=taken[0])
                np.multiply(whole, 1 - first, out=taken[1])
            natural, costs = self._taking(taken.reshape(-1, taken.shape[-1]), places)
            natural = natural.reshape(taken.shape)
        before = [self.costs[list(set(own.places))].sum() for own in cuts]
        gains = self._changes(1.0 - whole, natural) + before - costs.reshape(2, -1).sum(axis=0)
        return [
            replace(own, gain=float(gains[i]), natural=natural[:, i].copy()) for i, own in enumerate(cuts)
        ]

    def _near(self) -> list[tuple[int, int]]:
        """Return pairs of components, the smaller one first: those that most rows of one would go to without it."""
        best = np.argpartition(-self.natural, 1, axis=0)[:2]
        is_turned = (
            self.natural[best[1], np.arange(best.shape[1])] > self.natural[best[0], np.arange(best.shape[1])]
        )
        first, second = np.where(is_turned, best[::-1], best)
        shared = np.zeros((self.components.size, self.components.size))
        np.add.at(shared, (first, second), self.weights)
        found: dict[frozenset[int], tuple[int, int]] = {}
        for k, own in enumerate(shared):
            # nothing is lost of a component without rows, whatever takes it
            own[int(np.argmax(self.counts))] += _EMPTY if self.counts[k] < _EMPTY else 0.0
            for other in np.argsort(-own, kind="stable")[:_NEIGHBOURS].tolist():
                if own[other] > 0 and other != k:
                    pair = (k, other) if self.counts[k] <= self.counts[other] else (other, k)
                    found.setdefault(frozenset(pair), pair)
        return list(found.values())

    def _taking(self, taken: Array, places: AnyArray) -> tuple[Array, Array]:
        """Return the logits of components that take so much of each row, (m, n), and what they cost, (m,).

        Parameters
        ----------
        taken
            Shape (m, n).
        places
            Components in whose places they are found, (m,), from whose points they are measured: they have their prior
            probabilities in proportion to the rows they take.
        """
        found, costs = np.empty_like(taken), np.zeros(len(taken))
        every = np.empty_like(self.natural)
        left = np.arange(len(taken))
        while left.size:
            # one for each place in an update
            now, here = np.unique(places[left], return_index=True)
            some = left[here]
            every[...] = self.shares
            every[now] = taken[some]
            state = self.given_components(every)
            costs[some] = 0.0 if self.cost is None else self.cost(state)[now]
            found[some] = self._natural(replaced(state, problem=self.state.problem))[now]
            left = np.delete(left, here)
        shares = (taken @ self.weights + _EMPTY) / (self.counts[places] + _EMPTY)
        found += np.log(shares)[:, None]
        return found, costs

    def given_components(self, shares: Array) -> AscentState:
        """Return the state with the globals of the components updated to shares of the rows, (K, n)."""
        state = self._given(replaced(self.state, problem=self._of_components), shares)
        for _ in range(min(len(self.components.own), 2)):
            state = updated_globals(state)
        return state

    @cached_property
    def costs(self) -> Array:
        """What each component costs where the mixture is, (K,)."""
        return np.zeros(self.components.size) if self.cost is None else self.cost(self.state)

    @cached_property
    def _of_components(self) -> Problem:
        return self.state.problem.updating(self.components.own)

    @cached_property
    def _points(self) -> Array:
        return points_of(self.components.table, self.state.rows)

    def _natural(self, state: AscentState) -> Array:
        found = np.empty((self.components.size, state.rows.source.n_rows))
        for rows, own in state.rows.by_block(state.problem.rows.coefficients(state.arrays)):
            found[:, rows.where] = own[self.components.key]
        return found

    def _given(self, state: AscentState, shares: Array) -> AscentState:
        """Return a state with the sums over rows that these shares of the components leave."""
        key, coefficients = self.components.key, state.problem.rows.coefficients(state.arrays)
        summary = state.rows.sum_given(lambda rows: {key: shares[:, rows.where].copy()}, coefficients)
        return after_look(replaced(state, warm={}, by_batch=None), Look(summary, {}))

    def _changes(self, left: Array, natural: Array) -> Array:
        """Return by how much the objective changes, (m,).

        Parameters
        ----------
        left
            Responsibilities of the components that stay, (m, n).
        natural
            Of those in the place of the others, (j, m, n).
        """
        total = np.maximum(left, 0.0)
        for own in natural:
            total += np.exp(np.minimum(own - self._softmax[1], _LARGEST))
        return np.log(np.maximum(total, np.finfo(float).tiny)) @ self.weights


def _first_of(natural: Array) -> Array:
    """Return the share of the first half in each row of logits of both, (2, ...)."""
    return 1 / (1 + np.exp(np.clip(natural[1] - natural[0], -_LARGEST, _LARGEST)))
