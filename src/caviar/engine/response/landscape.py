r"""The updates and the evidence to second order at many natural parameters of the globals at once.

With the coordinates of the fit, :math:`V_0 = L L'`, the covariances elsewhere are :math:`V = L R R' L'`, so that

.. math:: \log |I - V H| = \log |I - R' K R|, \qquad K = L' H L.

Where no row hides anything and at most two statistics meet in a term, H is the same everywhere: then a visit takes no
contraction, only the families' own functions of all natural parameters together. If moreover the largest factor s says
nothing to itself, it is eliminated: to the K of the others comes :math:`L_o' H_{os} V_s H_{so} L_o`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...numerics.linalg import lower_roots
from ..ascent.state import AscentState, at_natural, joined
from .factor_batches import FactorBatch, batch_of
from .operator import ResponseOperator
from .solution import FLAT


class Landscape(ABC):
    """What surrounds a fit.

    Parameters
    ----------
    state, operator
        The fit, and how its updates respond.
    """

    def __init__(self, state: AscentState, operator: ResponseOperator) -> None:
        self.state, self.operator = state, operator
        self.fit = joined(state.problem, state.natural)
        self.root, self.matrix = operator.times(np.eye(operator.size)), operator.matrix()
        self.inverse = left_inverse(self.root)
        """By natural parameters that change each coordinate by one, (r, P)."""
        self.images = self.inverse.T @ self.matrix
        """By how much the natural parameters of all updates change with each coordinate, (P, r)."""

    @abstractmethod
    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        """Return the natural parameters of all updates at some natural parameters (n, P), and the n places.

        Those of the updates are NaN where there are no factors.
        """

    @abstractmethod
    def corrections(self, places: Sequence[Any]) -> Array:
        """Return the correction of the ELBO at some places, (n,); NaN where there is none."""

    def batches(self, natural: Array) -> list[FactorBatch]:
        """Return all factors at the natural parameters of the fit, and after these at others, (n, P)."""
        every = np.concatenate([self.fit[None], natural])
        problem, at_fit = self.state.problem, self.operator.natural
        return [batch_of(problem, own, at_fit[own.variable], every) for own in self.operator.factors]

    def roots(self, batches: Mapping[int, FactorBatch]) -> Array:
        """Return R of the coordinates of some factors by their numbers, (n, r, r), without those of the fit."""
        operator, roots = self.operator, []
        for number, batch in batches.items():
            factor, start = operator.factors[number], operator.coordinates[number].start
            for place, (places, rank) in enumerate(zip(factor.places, factor.roots.ranks, strict=True)):
                inverse = self.inverse[start : start + rank, places]
                roots.append(lower_roots(inverse @ batch.covariances[1:, place] @ inverse.T))
                start += rank
        size, start = sum(own.shape[-1] for own in roots), 0
        found = np.zeros((len(roots[0]), size, size))
        for own in roots:
            stop = start + own.shape[-1]
            found[:, start:stop, start:stop] = own
            start = stop
        return found


def landscape_of(state: AscentState, operator: ResponseOperator) -> Landscape:
    """Return what surrounds a fit, with as few contractions as its terms allow."""
    return (Straight if operator.is_straight else Curved)(state, operator)


class Straight(Landscape):
    """The landscape where H is the same everywhere: the updates are linear in the expected statistics."""

    def __init__(self, state: AscentState, operator: ResponseOperator) -> None:
        super().__init__(state, operator)
        self.silent = operator.silent
        others = [own for number, own in enumerate(operator.coordinates) if number != self.silent]
        self.others = np.concatenate([np.arange(0), *(np.arange(own.start, own.stop) for own in others)])
        self.update = joined(state.problem, operator.natural)

    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        batches = self.batches(natural)
        moved = np.zeros((len(natural), len(self.fit)))
        for factor, batch in zip(self.operator.factors, batches, strict=True):
            moved[:, factor.places] = batch.expected[1:] - batch.expected[:1]
        updates = self.update + (moved @ self.inverse.T) @ self.images.T
        is_proper = np.all([batch.is_proper[1:] for batch in batches], axis=0)
        return np.where(is_proper[:, None], updates, np.nan), natural

    def corrections(self, places: Sequence[Any]) -> Array:
        if not len(self.others):
            # a single factor, which is exact
            return np.zeros(len(places))
        batches = dict(enumerate(self.batches(np.stack(places))))
        met = self.matrix[np.ix_(self.others, self.others)]
        if self.silent is not None:
            said = self.images[:, self.others][self.operator.factors[self.silent].places]
            met = met + batches.pop(self.silent).squares(said)[1:]
        return corrections_of(met, self.roots(batches))


class Curved(Landscape):
    """The landscape where H has to be found at each place: where rows hide something, or three statistics meet."""

    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        problem, found = self.state.problem, np.full(natural.shape, np.nan)
        states = [at_natural(self.state, own) for own in natural]
        for own, state in zip(found, states, strict=True):
            if state is not None:
                told = {each: problem.updates[each].natural(state.arrays) for each in problem.order}
                own[:] = joined(problem, told)
        return found, states

    def corrections(self, places: Sequence[Any]) -> Array:
        matrices = np.stack([self.operator.moved_to(state).matrix() for state in places])
        batches = self.batches(np.stack([joined(state.problem, state.natural) for state in places]))
        kept = np.ix_(np.arange(len(places)), self.operator.counts, self.operator.counts)
        return corrections_of(matrices[kept], self.roots(dict(enumerate(batches)))[kept])


def corrections_of(matrices: Array, roots: Array) -> Array:
    """Return -1/2 log |I - R' K R| of m pairs, (m,); NaN where this is not positive definite."""
    whole = np.eye(roots.shape[-1]) - roots.swapaxes(-1, -2) @ matrices @ roots
    pivots = np.diagonal(lower_roots(whole), axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = -np.log(pivots).sum(axis=-1)
        return np.where((pivots**2 >= FLAT).all(axis=-1), found, np.nan)


def left_inverse(root: Array) -> Array:
    """Return a left inverse of L, (r, P), whatever the units of the statistics are."""
    sizes = np.sqrt((root * root).sum(axis=1))
    units = np.where(sizes > 0, sizes, 1.0)
    scaled = root / units[:, None]
    is_square = scaled.shape[0] == scaled.shape[1]
    return (np.linalg.inv(scaled) if is_square else np.linalg.pinv(scaled)) / units
