"""A mixture of Student-t distributions as a proposal, for densities with several modes or bends.

Components of a mixture model that overlap depend on each other beyond any one covariance, and may have further modes.
Each round of weighted draws moves all parts by a step of expectation maximisation. One part is as wide as all the
others together and more, so that no region is left without draws.

Source: Cappé, Douc, Guillin, Marin and Robert, "Adaptive importance sampling in general mixture classes" (Statistics
and Computing, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from .student import Student

_PARTS = 12
"""Of a mixture, the wide one among them."""

_WIDE, _WIDER = 0.15, 6.0
"""Share of the wide part, and its covariance over that of all draws."""

_FIRST, _NARROWER = 0.4, 0.5
"""Share of the part that was the whole proposal, among the parts that are not wide; and the covariance of the others,
which begin at draws, over its own."""

_EQUAL = 0.1
"""Share that is split equally among the parts that are not wide, so that none is lost."""

_KEPT = 0.1
"""Share of the wide part's earlier covariance."""

_NOTHING = 1e-6
"""Weight of the draws of a part below which it stays as it is."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixture of Student-t distributions.

    Attributes
    ----------
    parts
        The wide one first.
    shares
        Of each, (parts,); they sum to one.
    """

    parts: Sequence[Student]
    shares: Array

    @classmethod
    def about(cls, whole: Student, vectors: Array, weights: Array, rng: np.random.Generator) -> Mixed:
        """Return a mixture with parts at some weighted draws, besides a whole proposal.

        Parameters
        ----------
        vectors, weights
            Draws, (n, d), and their normalised weights.
        """
        at = vectors[rng.choice(len(vectors), _PARTS - 2, p=weights / weights.sum())]
        others = [Student(own, _NARROWER * whole.scale, whole.df) for own in at]
        wide = Student(whole.location, _WIDER * whole.scale, whole.df)
        shares = np.array([_FIRST, *[(1.0 - _FIRST) / len(others)] * len(others)])
        return cls((wide, whole, *others), np.array([_WIDE, *(1.0 - _WIDE) * shares]))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return draws, (n, d)."""
        numbers = rng.multinomial(n, self.shares)
        drawn = [own.sample(int(number), rng) for own, number in zip(self.parts, numbers, strict=True)]
        return rng.permutation(np.concatenate(drawn))

    def log_density(self, vectors: Array) -> Array:
        """Return the log densities at vectors (n, d)."""
        return np.logaddexp.reduce(self._each(vectors))

    def moved(self, vectors: Array, weights: Array) -> Mixed:
        """Return the mixture that is nearer to weighted draws, (n, d) and (n,): a step of expectation maximisation."""
        each = self._each(vectors)
        belongs = np.exp(each - np.logaddexp.reduce(each)) * weights
        numbers = belongs.sum(axis=1)
        if not numbers[1:].sum() > _NOTHING:
            return self
        parts = [
            own.moved(vectors, mine / number) if number > _NOTHING else own
            for own, mine, number in zip(self.parts[1:], belongs[1:], numbers[1:], strict=True)
        ]
        wide = self.parts[0].moved(vectors, weights)
        deviations = vectors - weights @ vectors
        covariance = (deviations * weights[:, None]).T @ deviations
        scale = (1.0 - _KEPT) * _WIDER * covariance + _KEPT * wide.scale
        shares = (1.0 - _EQUAL) * numbers[1:] / numbers[1:].sum() + _EQUAL / len(parts)
        moved = (Student(wide.location, scale, wide.df), *parts)
        return Mixed(moved, np.array([_WIDE, *(1.0 - _WIDE) * shares]))

    def _each(self, vectors: Array) -> Array:
        """Return the log densities of the parts times their shares, (parts, n)."""
        densities = [own.log_density(vectors) for own in self.parts]
        return np.log(self.shares)[:, np.newaxis] + np.stack(densities)
