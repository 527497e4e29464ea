"""Factors of globals that are known in part: some repetitions are given with the data, the others are learnt.

A known repetition is a point mass inside the factor: its expected statistics are those of the value, it has no
entropy, and its prior density counts in full. So the objective is a bound of log p(x, known values), as it is where
the whole variable is observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array, Statistics
from ....families import Categorical, ExponentialFamily
from ....families._base import Seed, Size, draw_shape
from .point_mass import PointMass

__all__ = ["PartlyKnown"]


@dataclass(frozen=True, eq=False)
class PartlyKnown:
    """A factor of which some repetitions are known: a batch over the plates of its variable.

    Figures that the family of ``unknown`` has (mean, variance, covariance, probabilities) are those of all repetitions:
    of a known one its value, and variance 0.

    Attributes
    ----------
    unknown
        Distribution of the repetitions that are learnt, in the order of the plates: batch (n_unknown,).
    known
        The values of the others, batch (n_known,).
    is_known
        Which repetitions are known, shape (plates...).
    """

    unknown: ExponentialFamily
    known: PointMass
    is_known: AnyArray

    @property
    def family(self) -> type[ExponentialFamily]:
        """Family of the repetitions that are learnt."""
        return type(self.unknown)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Sizes of the plates."""
        return self.is_known.shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one value of one repetition; of the location of a joint factor."""
        return self.unknown.event_shape

    def laid_out(self, of_unknown: Any, of_known: Any, n_leading: int = 0) -> Any:
        """Return figures of all repetitions in the order of the plates, from those of either kind.

        Parameters
        ----------
        of_unknown, of_known
            Shape (leading axes..., n, event...), or a pair of such; a number stands for all known repetitions.
        n_leading
            How many axes stand before the repetitions.
        """
        if isinstance(of_unknown, tuple):
            parts = zip(of_unknown, of_known, strict=True)
            return type(of_unknown)(*(self.laid_out(*part, n_leading) for part in parts))
        lead, event = np.shape(of_unknown)[:n_leading], np.shape(of_unknown)[n_leading + 1 :]
        result = np.empty((*lead, *self.is_known.shape, *event), np.result_type(of_unknown, of_known))
        before = (slice(None),) * n_leading
        result[(*before, ~self.is_known)] = of_unknown
        result[(*before, self.is_known)] = of_known
        return result

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expectation of each sufficient statistic; of a known repetition its value there."""
        pairs = zip(self.unknown.expected_statistics, self.known.expected_statistics, strict=True)
        return tuple(self.laid_out(*pair) for pair in pairs)

    @cached_property
    def statistics_of_known(self) -> Statistics:
        """Sufficient statistics of the known repetitions, and 0 in the place of the others."""
        return tuple(self.laid_out(np.zeros((1, *t.shape[1:])), t) for t in self.known.expected_statistics)

    @cached_property
    def mean(self) -> Array:
        """Expected values; of a joint factor those of the location, of labels the probabilities."""
        value = self.known.value
        if isinstance(self.unknown, Categorical):
            return self.probabilities
        return self.laid_out(self.unknown.mean, value[0] if isinstance(value, tuple) else value)  # type: ignore[attr-defined]

    @cached_property
    def variance(self) -> Array:
        """Variance of each entry as the family has it, 0 where known."""
        return self.laid_out(self.unknown.variance, 0.0)  # type: ignore[attr-defined]

    @cached_property
    def covariance(self) -> Array:
        """Covariance matrices of vectors, 0 where known."""
        return self.laid_out(self.unknown.covariance, 0.0)  # type: ignore[attr-defined]

    @cached_property
    def probabilities(self) -> Array:
        """Probabilities of labels, 0 and 1 where known."""
        return self.laid_out(self.unknown.probabilities, self.known.expected_statistics[0])  # type: ignore[attr-defined]

    def mode(self) -> Any:
        """Return where the density is largest, the value where known."""
        return self.laid_out(self.unknown.mode(), self.known.value)

    def log_density(self, value: Any) -> Array:
        """Return the log-density of each repetition's value under the factor; 0 where known, which has no density."""
        rest = ~self.is_known
        chosen = tuple(part[rest] for part in value) if isinstance(value, tuple) else np.asarray(value)[rest]
        return self.laid_out(self.unknown.log_density(chosen), 0.0)

    def sample(self, size: Size = None, seed: Seed = None) -> Any:
        """Return draws, of shape size + plates + event; a known repetition is its value in each."""
        n_leading = len(draw_shape(size, ()))
        return self.laid_out(self.unknown.sample(size, seed), self.known.sample(size), n_leading)

    def translate(self, delta: Any) -> PartlyKnown:
        """Return the factor moved by ``delta``, known values too."""
        wide = np.broadcast_to(delta, self.is_known.shape + self.event_shape)
        rest: Any = self.unknown
        moved = rest.translate(wide[~self.is_known])
        return PartlyKnown(moved, self.known.translate(wide[self.is_known]), self.is_known)

    def everywhere(self) -> ExponentialFamily:
        """Return a distribution for each repetition; at known ones that of another, which must not be read."""
        return self.unknown[np.where(self.is_known, 0, self._numbers)]

    @property
    def _numbers(self) -> AnyArray:
        """Which one among those of its kind each repetition is."""
        numbers = np.empty(self.is_known.shape, dtype=np.intp)
        for kind in (self.is_known, ~self.is_known):
            numbers[kind] = np.arange(np.count_nonzero(kind))
        return numbers

    def __getitem__(self, index: Any) -> Any:
        """Return some repetitions: distributions where none of them is known, a point mass where all are."""
        is_known, numbers = self.is_known[index], self._numbers[index]
        if np.all(is_known):
            return self.known[numbers]
        if not np.any(is_known):
            return self.unknown[numbers]
        return PartlyKnown(self.unknown[numbers[~is_known]], self.known[numbers[is_known]], is_known)

    def __repr__(self) -> str:
        where = ", ".join(str(tuple(int(i) for i in index)) for index in np.argwhere(self.is_known)[:10])
        more = "" if np.count_nonzero(self.is_known) <= 10 else ", ..."
        return f"PartlyKnown({self.unknown!r}, known at {where}{more}: {self.known.value!r})"
