"""What contractions look up: an operand's entries for each combination of labels, sums over these, and diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csc_array, csr_array

from ..._typing import AnyArray, Array
from ...language import Axis
from ...numerics.spread import spread
from ...numerics.sums.by_label import sums_by_label


class Factor(NamedTuple):
    """One operand of a contraction: where its array is found, and what its axes mean."""

    key: Hashable
    axes: tuple[Axis, ...]


@dataclass(frozen=True, eq=False)
class Gather:
    """Labels by which operands are looked up: an entry for each combination of labels that occurs.

    Attributes
    ----------
    axis
        Of the combinations.
    labels
        Axis that is looked up -> its label in each combination, (C,).
    """

    axis: Axis
    labels: Mapping[Axis, AnyArray]

    def axes(self, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        """Return axes with that of the combinations, as the last, in the place of those that are looked up."""
        kept = tuple([axis for axis in axes if axis not in self.labels])
        return kept if len(kept) == len(axes) else (*kept, self.axis)

    def take(self, array: Array, axes: Sequence[Axis]) -> Array:
        """Return an array over such axes, looked up."""
        places = [place for place, axis in enumerate(axes) if axis in self.labels]
        if not places:
            return array
        if array.ndim == 1:
            return array.take(self.labels[axes[0]], mode="clip")
        sizes = [array.shape[place] for place in places]
        last = np.moveaxis(array, places, range(-len(places), 0))
        labels = (self.labels[axes[place]] for place in places)
        # along an axis of length one all are the same
        return last[(..., *(own if n > 1 else 0 * own for own, n in zip(labels, sizes, strict=True)))]

    def put(self, looked_up: Array, axes: Sequence[Axis], size: Callable[[Axis], int]) -> Array:
        """Return the sums of what was looked up, (..., C), by label: an array over ``axes``."""
        places = [place for place, axis in enumerate(axes) if axis in self.labels]
        own = [axes[place] for place in places]
        shape = tuple(size(axis) for axis in own)
        labels = [self.labels[axis] for axis in own]
        where = labels[0] if len(labels) == 1 else np.ravel_multi_index(labels, shape)
        total = sums_by_label(looked_up.reshape(-1, looked_up.shape[-1]), where, math.prod(shape))
        return np.moveaxis(total.reshape(*looked_up.shape[:-1], *shape), range(-len(places), 0), places)


def with_axis(size: Callable[[Axis], int], axis: Axis, n: int) -> Callable[[Axis], int]:
    """Return a function that gives the sizes of axes, and of one more."""
    return lambda other: n if other is axis else size(other)


class BetweenLabels:
    """The term a_i b_j S_c of two operands that each combination c of labels (i, j) looks up: a' S b, S sparse.

    It reads each entry of S once. Looking up, multiplying and adding by label would read them three times.

    Parameters
    ----------
    places
        Of a, b and S among the operands.
    labels
        i and j of each combination, sorted by i, (C,) each.
    shape
        Numbers of labels.
    """

    def __init__(
        self, places: tuple[int, int, int], labels: tuple[AnyArray, AnyArray], shape: tuple[int, int]
    ) -> None:
        self._places, self._shape = places, shape
        rows, columns = labels
        self._counts = np.bincount(rows, minlength=shape[0])
        ends = np.concatenate([[0], np.cumsum(self._counts)])
        layout = (np.zeros(len(columns)), columns, ends)
        self._matrix = csr_array(layout, shape=shape)
        self._transpose = csc_array(layout, shape=shape[::-1])

    @classmethod
    def of(cls, gather: Gather, factors: Sequence[Factor], size: Callable[[Axis], int]) -> Self | None:
        """Return the term where its operands are these, with labels in the order of the combinations; else None."""
        if len(gather.labels) != 2 or len(factors) != 3:
            return None
        places = {factor.axes: place for place, factor in enumerate(factors)}
        for i, j in permutations(gather.labels):
            is_sorted = bool((np.diff(gather.labels[i]) >= 0).all())
            if is_sorted and places.keys() == {(i,), (j,), (gather.axis,)}:
                found = places[i,], places[j,], places[gather.axis,]
                return cls(found, (gather.labels[i], gather.labels[j]), (size(i), size(j)))
        return None

    def value(self, operands: Sequence[Array]) -> float:
        """Return the contraction of all operands."""
        first = self._places[0]
        return float(np.vdot(spread(operands[first], self._shape[:1]), self.derivative(first, operands)))

    def derivative(self, position: int, operands: Sequence[Array]) -> Array:
        """Return the contraction of the operands but the one at a position."""
        first, second, entries = (operands[place] for place in self._places)
        if position == self._places[0]:
            return _filled(self._matrix, entries) @ spread(second, self._shape[1:])
        if position == self._places[1]:
            return _filled(self._transpose, entries) @ spread(first, self._shape[:1])
        chosen = second.take(self._matrix.indices, mode="clip")
        chosen *= np.repeat(spread(first, self._shape[:1]), self._counts)
        return chosen


@dataclass(frozen=True)
class Diagonals:
    """What a derivative is multiplied with if axes of its operand are repeated, as in a trace: zero off the diagonals.

    Attributes
    ----------
    axes
        Axes of the operand, from the first that is repeated on.
    index
        Index that gives an axis of length one to the derivative wherever an axis is repeated.
    ones
        Product of the identities along each pair of repeated axes.
    """

    axes: tuple[Axis, ...]
    index: tuple[slice | None, ...]
    ones: Array

    @classmethod
    def of(cls, axes: Sequence[Axis], size: Callable[[Axis], int]) -> Diagonals:
        """Return the diagonals of an operand with these axes, of which some are repeated."""
        first = min(place for place, axis in enumerate(axes) if axes.count(axis) > 1)
        own, ones = tuple(axes[first:]), np.ones(())
        for place, axis in enumerate(own):
            before = own.index(axis)
            if before < place:
                shape = [size(axis) if other in (before, place) else 1 for other in range(len(own))]
                ones = ones * np.eye(size(axis)).reshape(shape)
        index = tuple([slice(None) if own.index(axis) == n else None for n, axis in enumerate(own)])
        return cls(own, index, ones)

    def of_derivative(self, derivative: Array) -> Array:
        """Return the derivative with respect to the operand, of one in which each axis is once."""
        return derivative[(..., *self.index)] * self.ones

    def indexed(self, axes: Sequence[Axis], index: tuple[slice | None, ...]) -> tuple[slice | None, ...]:
        """Return an index along single axes with axes of length one where these are repeated."""
        first = axes.index(self.axes[0])
        own = iter(index[first:])
        return (*index[:first], *(None if at is None else next(own) for at in self.index))


def _filled(matrix: Any, entries: Array) -> Any:
    """Return a sparse matrix of the same layout with other entries."""
    filled = copy(matrix)
    filled.data = entries
    return filled


def laid_along(own: Sequence[Axis], axes: Sequence[Axis]) -> tuple[list[int], tuple[slice | None, ...]]:
    """Return the order of its own axes among others, and the index that gives an array length one along these."""
    order = [own.index(axis) for axis in axes if axis in own]
    return order, tuple([slice(None) if axis in own else None for axis in axes])


def laid_beside(one: tuple[Axis, ...], other: tuple[Axis, ...], out: tuple[Axis, ...]) -> Any:
    """Return how each of two arrays is laid along the axes of their product; None if something is summed over."""
    if set(out) != {*one, *other} or len(set(one)) < len(one) or len(set(other)) < len(other):
        return None
    return laid_along(one, out), laid_along(other, out)
