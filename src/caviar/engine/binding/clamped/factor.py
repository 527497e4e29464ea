"""Factors of globals that are points, as a whole or at some repetitions.

Points as a whole are the factors of EM and MAP-EM. Of a global that is known in part some repetitions are given with
the data and the others are learnt: a known repetition is a point mass inside the factor. Its expected statistics are
those of the value, it has no entropy, and its prior density counts in full. So the objective is a bound of
log p(x, known values), as it is where the whole variable is observed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...._errors import ModelError
from ...._typing import AnyArray, Array, Statistics
from ....families import Categorical, ExponentialFamily, TiedNormalGamma, TiedNormalWishart
from ....families.base.family import MeanPrecision, Seed, Size, draw_shape
from ....families.base.intervals import Intervals
from ....families.base.marginals import Ends, Marginals
from ....language import Label, Variable
from ....numerics.cached import cached_property


@dataclass(frozen=True, eq=False)
class PointMass(Intervals):
    """A factor restricted to a point: its expected statistics are those of the point, and it has no entropy.

    Attributes
    ----------
    family
        Family that the factor would have.
    value
        The point; a named tuple (mean, precision) for the joint families.
    n_categories
        Of labels, how many categories there are.
    """

    family: type[ExponentialFamily]
    value: Any
    n_categories: int | None = None

    @classmethod
    def of(cls, variable: Variable, value: Any) -> PointMass:
        """Return the point mass of a variable at a value."""
        return cls(variable.family, value, variable.categories if isinstance(variable, Label) else None)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Sufficient statistics of the point."""
        if issubclass(self.family, Categorical):
            return self.family.statistics_of(self.value, self.n_categories)
        return self.family.statistics_of(self.value)

    @property
    def learnt(self) -> None:
        """Nothing of it is a distribution."""
        return None

    def each(self, of_learnt: Callable[[Any], Any], of_point: Callable[[PointMass], Any]) -> Any:
        """Return a figure of each repetition, from its point."""
        return of_point(self)

    @property
    def location(self) -> Array:
        """The point, of a joint family its mean."""
        return np.asarray(self.value[0] if isinstance(self.value, tuple) else self.value)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of the repetitions and of one value; of the mean of a joint family."""
        return self.location.shape

    def entropy_about_base(self) -> float:
        """Return minus infinity, or 0 among labels, where a point is a distribution like any other."""
        return -math.inf if self.n_categories is None else 0.0

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the value of every entry: one part, or location and precision of a joint family."""
        if not isinstance(self.value, tuple):
            return [Marginals(np.asarray(self.value))]
        mean, precision = (np.asarray(part) for part in self.value)
        tied = issubclass(self.family, TiedNormalGamma | TiedNormalWishart)
        return [Marginals(mean, part=".mean"), Marginals(precision, part=".precision", is_shared=tied)]

    def _entry_ends(self, ends: Ends) -> list[tuple[Array, Array]]:
        return [(own.mean, own.mean) for own in self.entry_marginals(ends)]

    @property
    def mean(self) -> Any:
        """The point itself."""
        return self.value

    def translate(self, delta: Any) -> PointMass:
        """Return the point moved by ``delta``."""
        if isinstance(self.value, tuple):
            return PointMass(self.family, type(self.value)(self.value[0] + delta, *self.value[1:]))
        return PointMass(self.family, self.value + delta)

    def __getitem__(self, index: Any) -> PointMass:
        """Return the points at an index into the plates."""
        if isinstance(self.value, tuple):
            value = type(self.value)(*(np.asarray(part)[index] for part in self.value))
        else:
            value = np.asarray(self.value)[index]
        return PointMass(self.family, value, self.n_categories)

    def sample(self, size: int | tuple[int, ...] | None = None, seed: Any = None) -> Any:
        """Return the point, ``size`` times."""
        if size is None:
            return self.value
        shape = (size,) if isinstance(size, int) else tuple(size)
        if isinstance(self.value, tuple):
            return type(self.value)(*(np.broadcast_to(part, shape + np.shape(part)) for part in self.value))
        return np.broadcast_to(self.value, shape + np.shape(self.value))

    def __repr__(self) -> str:
        # a number is shown as one, whether or not it is an array without axes
        value = self.value if isinstance(self.value, tuple) else np.asarray(self.value)[()]
        return f"PointMass({self.family.__name__}, {value!r})"


@dataclass(frozen=True, eq=False)
class ClampedFactor(Intervals):
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
    def learnt(self) -> ExponentialFamily:
        """Distribution of the repetitions that are learnt."""
        return self.unknown

    def each(self, of_learnt: Callable[[Any], Any], of_point: Callable[[PointMass], Any]) -> Any:
        """Return a figure of each repetition: from its distribution where it is learnt, from its point where not."""
        return self.laid_out(of_learnt(self.unknown), of_point(self.known))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Sizes of the plates."""
        return self.is_known.shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one value of one repetition; of the location of a joint factor."""
        return self.unknown.event_shape

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Sizes of the plates, and the shape of one value; of the location of a joint factor."""
        return self.batch_shape + self.event_shape

    def laid_out(self, of_unknown: Any, of_known: Any, n_leading: int = 0) -> Any:
        """Return figures of all repetitions in the order of the plates, from those of either kind.

        Parameters
        ----------
        of_unknown, of_known
            Shape (leading axes..., n, event...), or a pair of such; one number is for all known repetitions.
        n_leading
            How many axes are before the repetitions.
        """
        if isinstance(of_unknown, tuple):
            pairs = zip(of_unknown, of_known, strict=True)
            parts = tuple(self.laid_out(*pair, n_leading) for pair in pairs)
            return MeanPrecision(*parts) if isinstance(of_unknown, MeanPrecision) else parts
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
        if isinstance(self.unknown, Categorical):
            return self.probabilities
        return self.laid_out(self.unknown.mean, self.known.location)  # type: ignore[attr-defined]

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

    def covariance_of_value(self) -> Array:
        """Return the covariances of the entries of a value of each repetition, 0 where known."""
        return self.laid_out(self.unknown.covariance_of_value(), 0.0)

    def entropy_about_base(self) -> Array:
        """Return the entropy of each repetition about the base measure, 0 where known."""
        return self.laid_out(self.unknown.entropy_about_base(), 0.0)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the figures of every entry of a value: 0 and no width of what is known."""
        known = self.known.entry_marginals(ends)
        if isinstance(self.unknown, Categorical):
            # those of labels are of their probabilities
            known = [Marginals(self.known.expected_statistics[0])]
        return [self._figures(*pair) for pair in zip(self.unknown.entry_marginals(ends), known, strict=True)]

    def _figures(self, unknown: Marginals, known: Marginals) -> Marginals:
        sd, lower, upper = (
            None if array is None else self.laid_out(array, of_known)
            for array, of_known in (
                (unknown.sd, 0.0),
                (unknown.lower, known.mean),
                (unknown.upper, known.mean),
            )
        )
        return Marginals(self.laid_out(unknown.mean, known.mean), sd, lower, upper, unknown.part)

    def _entry_ends(self, ends: Ends) -> list[tuple[Array, Array]]:
        pairs = zip(self.unknown._entry_ends(ends), self.known._entry_ends(ends), strict=True)
        return [tuple(self.laid_out(*own) for own in zip(*pair, strict=True)) for pair in pairs]

    def mode(self) -> Any:
        """Return where the density is largest, the value where known."""
        return self.laid_out(self.unknown.mode(), self.known.value)

    def log_density(self, value: Any) -> Array:
        """Return the log-density of each repetition's value under the factor; 0 where known, which has no density.

        Values may have axes of draws before those of the repetitions, as :meth:`sample` returns them.
        """
        rest, first = ~self.is_known, value[0] if isinstance(value, tuple) else value
        # of labels a value has no axis of its own
        n_leading = np.ndim(first) - self.is_known.ndim - (self.known.location.ndim - 1)
        where = (*(slice(None),) * n_leading, rest)
        chosen = (
            tuple(part[where] for part in value) if isinstance(value, tuple) else np.asarray(value)[where]
        )
        return self.laid_out(self.unknown.log_density(chosen), 0.0, n_leading)

    def sample(self, size: Size = None, seed: Seed = None) -> Any:
        """Return draws, of shape size + plates + event; a known repetition is its value in each."""
        n_leading = len(draw_shape(size, ()))
        return self.laid_out(self.unknown.sample(size, seed), self.known.sample(size), n_leading)

    def translate(self, delta: Any) -> ClampedFactor:
        """Return the factor moved by ``delta``, known values too."""
        wide = np.broadcast_to(delta, self.is_known.shape + self.event_shape)
        rest: Any = self.unknown
        moved = rest.translate(wide[~self.is_known])
        return ClampedFactor(moved, self.known.translate(wide[self.is_known]), self.is_known)

    def everywhere(self) -> ExponentialFamily:
        """Return a distribution for each repetition; at known ones that of another, which must not be read."""
        return self.unknown[np.where(self.is_known, 0, self._numbers)]

    def with_learnt(self, unknown: ExponentialFamily) -> ClampedFactor:
        """Return the factor with another distribution of the repetitions that are learnt."""
        return ClampedFactor(unknown, self.known, self.is_known)

    def replaced(self, where: AnyArray, others: ExponentialFamily) -> ClampedFactor:
        """Return the factor with ``others``, one for each repetition, at the unknown places of ``where``."""
        rest = ~self.is_known
        return ClampedFactor(self.unknown.replaced(where[rest], others[rest]), self.known, self.is_known)

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
        return ClampedFactor(self.unknown[numbers[~is_known]], self.known[numbers[is_known]], is_known)

    def __repr__(self) -> str:
        where = ", ".join(str(tuple(int(i) for i in index)) for index in np.argwhere(self.is_known)[:10])
        more = "" if np.count_nonzero(self.is_known) <= 10 else ", ..."
        return f"ClampedFactor({self.unknown!r}, known at {where}{more}: {self.known.value!r})"


GlobalFactor: TypeAlias = ExponentialFamily | ClampedFactor | PointMass
"""A factor of a global variable. All kinds answer ``family``, ``learnt``, ``each``, ``value_shape``,
``expected_statistics``, ``entropy_about_base``, ``entry_marginals``, ``mean``, ``sample`` and what is at an index."""


@dataclass(frozen=True, eq=False)
class Clamped:
    """Which repetitions of a global variable are known, and their values.

    Attributes
    ----------
    is_known
        Shape (plates...).
    value
        Values of those, shape (n_known, event...); of a joint factor a pair (mean, precision) of such.
    """

    is_known: AnyArray
    value: Any

    @property
    def are_all(self) -> bool:
        """Whether nothing is left to be learnt."""
        return bool(np.all(self.is_known))

    def unknown(self, arrays: Statistics) -> Statistics:
        """Return what belongs to the other repetitions of arrays over the plates, (n_unknown, ...) each."""
        return tuple(array[~self.is_known] for array in arrays)

    def filled(self, arrays: Statistics) -> Statistics:
        """Return arrays over the plates, (plates..., ...) each, with those of an unknown repetition at known ones."""
        return tuple(
            np.where(
                self.is_known.reshape(self.is_known.shape + (1,) * (array.ndim - self.is_known.ndim)),
                array[~self.is_known][0],
                array,
            )
            for array in arrays
        )

    def points(self, variable: Variable, reference: Array | None) -> PointMass:
        """Return the known values, measured from the reference point of their variable: batch (n_known,)."""
        if reference is None:
            return PointMass.of(variable, self.value)
        points = PointMass.of(variable, self.value)
        wide = np.broadcast_to(reference, self.is_known.shape + points.location.shape[1:])
        return points.translate(-wide[self.is_known])

    def factor(self, variable: Variable, unknown: Any, reference: Array | None) -> ClampedFactor | PointMass:
        """Return the factor of all repetitions from that of the unknown ones, a batch of them; a point mass of points.

        Parameters
        ----------
        variable
            Whose repetitions these are.
        unknown
            A member of its family or a point mass, over (n_unknown,); ignored where all are known.
        reference
            Point that locations are measured from, or None.
        """
        points = self.points(variable, reference)
        if self.are_all:
            plates = self.is_known.shape
            return PointMass.of(
                variable, _each(points.value, lambda part: part.reshape(plates + part.shape[1:]))
            )
        if unknown.learnt is not None:
            return ClampedFactor(unknown, points, self.is_known)
        one = unknown.value if isinstance(unknown.value, tuple) else (unknown.value,)
        other = points.value if isinstance(points.value, tuple) else (points.value,)
        both = []
        for of_unknown, of_known in zip(one, other, strict=True):
            whole = np.empty(self.is_known.shape + of_known.shape[1:], np.result_type(of_unknown, of_known))
            whole[~self.is_known], whole[self.is_known] = of_unknown, of_known
            both.append(whole)
        value = MeanPrecision(*both) if isinstance(points.value, tuple) else both[0]
        return PointMass.of(variable, value)

    def over(self, variable: Variable, factor: Any, reference: Array | None) -> ClampedFactor | PointMass:
        """Return a factor of all repetitions with the known ones at their values.

        Raises
        ------
        ModelError
            If other repetitions of it are known already.
        """
        if isinstance(factor, ClampedFactor):
            if not np.array_equal(factor.is_known, self.is_known):
                raise ModelError(
                    f"the data know other repetitions of '{variable.name}' than its factor does; give the values that "
                    f"it was fitted with, or leave '{variable.name}' out"
                )
            return self.factor(variable, factor.unknown, reference)
        return self.factor(variable, factor[~self.is_known], reference)


def _each(value: Any, function: Callable[[Array], Array]) -> Any:
    """Return a function of a value, or of each part of a pair."""
    if isinstance(value, tuple):
        return MeanPrecision(*map(function, value))
    return function(value)
