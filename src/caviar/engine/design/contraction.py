"""Contractions: a term with its constants folded in, ready to be evaluated or differentiated.

A term is multilinear in its operands, so its derivative with respect to one operand is the contraction of
the others: no automatic differentiation is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from operator import itemgetter
from string import ascii_letters
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.sparse import csc_array, csr_array

from ..._typing import AnyArray, Array
from ...language import Axis
from ...numerics.cached import cached_property
from ...numerics.spread import spread
from ...numerics.sums_by_label import sums_by_label

Evaluation: TypeAlias = Callable[[Mapping[Hashable, Array]], Any]
"""What finds its operands among arrays by key, and contracts them: one function, made once."""


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
    """Return what tells the sizes of axes, and of one more."""
    return lambda other: n if other is axis else size(other)


_NONE = np.zeros(0)
"""In the place of the operand that is left out."""


class _BetweenLabels:
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


def _filled(matrix: Any, entries: Array) -> Any:
    """Return a sparse matrix of the same layout with other entries."""
    filled = copy(matrix)
    filled.data = entries
    return filled


class Contraction:
    """A coefficient times a product of arrays, summed over all axes.

    Parameters
    ----------
    coefficient
        Scalar in front.
    factors
        The operands whose values change; found by key when the contraction is evaluated.
    constants
        Known arrays with their axes; multiplied into one.
    axes
        Every axis that is summed over, each once. Those that no operand has multiply the coefficient by their size.
    size
        Returns the size of an axis.
    gather
        Labels by which operands are looked up, or None. ``axes`` have that of the combinations in the place of theirs.
    """

    def __init__(
        self,
        coefficient: float,
        factors: Sequence[Factor],
        constants: Sequence[tuple[Array, tuple[Axis, ...]]],
        axes: Sequence[Axis],
        size: Callable[[Axis], int],
        gather: Gather | None = None,
    ) -> None:
        self.factors = tuple(factors)
        self.keys = [factor.key for factor in factors]
        self.size = size
        self.gather = gather
        if gather is not None:
            constants = [(gather.take(array, own), gather.axes(own)) for array, own in constants]
            factors = [Factor(factor.key, gather.axes(factor.axes)) for factor in factors]
        self._looked_up = tuple(factors)
        arrays = [constant for constant in constants if constant[1]]
        of_factors: set[Axis] = set().union(*[factor.axes for factor in factors if factor.axes])
        if axes or arrays or of_factors:
            present = of_factors.union(*[own for _, own in arrays])
            for axis in axes:
                if axis not in present:
                    coefficient *= size(axis)
            self._axes = (*axes, *present)
        for array, own in constants:
            if not own:
                coefficient *= float(array)
        self.constant, self.constant_axes = self._fold(coefficient, arrays, of_factors)
        self.is_scalar = not of_factors and not self.constant_axes
        """Whether all that changes in it are numbers, as is most of a small model; then einsum is not needed."""

    def __getstate__(self) -> dict[str, object]:
        """Return its state without functions; with the sizes of its axes, for what tells them may hold all the data."""
        sizes = {axis: self.size(axis) for factor in self.factors for axis in factor.axes}
        own = {name: value for name, value in vars(self).items() if name != "value"}
        return {**own, "size": sizes.__getitem__}

    @cached_property
    def _letter(self) -> dict[Axis, str]:
        return dict(zip(dict.fromkeys(self._axes), ascii_letters, strict=False))

    def _spell(self, axes: Sequence[Axis]) -> str:
        return "".join([self._letter[axis] for axis in axes])

    def _fold(
        self,
        coefficient: float,
        arrays: Sequence[tuple[Array, tuple[Axis, ...]]],
        shared: Set[Axis],
    ) -> tuple[Array, tuple[Axis, ...]]:
        """Multiply the constants into one array, over the axes that a changing operand shares."""
        if not arrays:
            return np.asarray(float(coefficient)), ()
        kept = tuple(dict.fromkeys([axis for _, axes in arrays for axis in axes if axis in shared]))
        if len(arrays) == 1 and kept == arrays[0][1]:
            return coefficient * arrays[0][0], kept
        spec = self._spec([axes for _, axes in arrays], kept)
        return coefficient * np.einsum(spec, *[array for array, _ in arrays]), kept

    def _spec(self, operands: Sequence[Sequence[Axis]], out: Sequence[Axis]) -> str:
        return ",".join([self._spell(axes) for axes in operands]) + "->" + self._spell(out)

    def _evaluation(self, positions: Sequence[int], out: Sequence[Axis]) -> Evaluation:
        """Return what contracts some operands, looked up by label where they are, over all axes but ``out``.

        For few numbers ``einsum`` takes longer to read the letters than to add. So sums over all entries, inner
        products and multiples of an array are made without it. Arrays that are stretched along an axis of length one
        need it.
        """
        axes = [self._looked_up[position].axes for position in positions]
        reads = [self._read(position) for position in positions]
        if not self.constant_axes:
            return self._of_operands(axes, reads, tuple(out))
        constant = self.constant
        if not reads and self.constant_axes == tuple(out):
            return lambda arrays: constant
        if len(reads) == 1 and not axes[0] and self.constant_axes == tuple(out):
            (number,) = reads
            return lambda arrays: number(arrays) * constant
        spec = self._spec([*axes, self.constant_axes], out)
        if len(reads) != 1:
            return lambda arrays: np.einsum(spec, *[read(arrays) for read in reads], constant)
        (read,) = reads
        if not out and _is_inner(axes[0], self.constant_axes):
            return lambda arrays: _inner(spec, read(arrays), constant)
        return lambda arrays: np.einsum(spec, read(arrays), constant)

    def _of_operands(
        self, axes: Sequence[tuple[Axis, ...]], reads: Sequence[Evaluation], out: tuple[Axis, ...]
    ) -> Evaluation:
        """Return the same where the constant is a number."""
        constant = self.constant
        if not reads:
            return lambda arrays: constant
        scale, first = constant.item(), reads[0]
        if len(reads) == 1 and axes[0] == out:
            return lambda arrays: scale * first(arrays)
        if len(reads) == 1 and not out and len(set(axes[0])) == len(axes[0]):
            return lambda arrays: scale * np.add.reduce(first(arrays), axis=None)
        spec = self._spec(axes, out)
        if len(reads) == 2 and not out and _is_inner(*axes):
            second = reads[1]
            return lambda arrays: scale * _inner(spec, first(arrays), second(arrays))
        if scale == 1.0 and len(reads) > 1:
            # of one array alone it may be a view
            return lambda arrays: np.einsum(spec, *[read(arrays) for read in reads])
        return lambda arrays: scale * np.einsum(spec, *[read(arrays) for read in reads])

    def _read(self, position: int) -> Evaluation:
        """Return what finds an operand among the arrays."""
        read = itemgetter(self.keys[position])
        if self.gather is None:
            return read
        take, axes = self.gather.take, self.factors[position].axes
        return lambda arrays: take(read(arrays), axes)

    @cached_property
    def _between(self) -> _BetweenLabels | None:
        if self.gather is None or self.constant_axes:
            return None
        return _BetweenLabels.of(self.gather, self.factors, self.size)

    @cached_property
    def value(self) -> Callable[[Mapping[Hashable, Array]], float]:
        """The function that returns the contraction over all axes."""
        if self.is_scalar:
            # the function does not know this object, which would keep itself alive, and the data with it
            return partial(_product, self.constant.item(), self.keys)
        between = self._between
        if between is not None:
            scale, keys = float(self.constant), self.keys
            return lambda arrays: scale * between.value([arrays[key] for key in keys])
        contracted = self._evaluation(range(len(self.keys)), ())
        return lambda arrays: float(contracted(arrays))

    def magnitude(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the sum of the sizes of all products that :meth:`value` adds up: its rounding goes with them."""
        return self.absolute.value({key: np.abs(arrays[key]) for key in self.keys})

    def largest_magnitude(self, sizes: Mapping[Hashable, float]) -> float:
        """Return a number that :meth:`magnitude` does not exceed, from the sum of the sizes of each array."""
        bound = float(np.abs(self.constant).sum()) if self.constant.ndim else abs(float(self.constant))
        for key in self.keys:
            bound *= sizes[key]
        return bound

    @cached_property
    def absolute(self) -> Contraction:
        """The same contraction with the sizes of its constants."""
        other = copy(self)
        other.constant = np.abs(self.constant)
        return other

    def along(self, axis: Axis, arrays: Mapping[Hashable, Array]) -> Array | None:
        """Return the contraction over all axes but one, along which it is kept; None if no operand has that one."""
        if axis not in self.constant_axes and all(axis not in factor.axes for factor in self._looked_up):
            return None
        return self._evaluation(range(len(self.keys)), (axis,))(arrays)

    def derivative(self, position: int, keep: Axis | None = None) -> Derivative:
        """Return the compiled derivative with respect to the operand at ``position``: see :class:`Derivative`."""
        return Derivative(self, position, keep)


class Derivative:
    """The contraction of all operands of a term but one, over the axes of that one.

    Parameters
    ----------
    contraction
        The term.
    position
        Of the operand that is left out.
    keep
        An axis that is not summed over, or None: it comes first, of length one where nothing varies with it. As the
        axis of the rows it gives what each of them says. Where operands are looked up along that axis, what is said is
        said to those that each of its entries looks up.
    """

    def __init__(self, contraction: Contraction, position: int, keep: Axis | None = None) -> None:
        self._contraction = contraction
        self._position = position
        self._keep = keep

    def __getstate__(self) -> dict[str, object]:
        """Return its state without the function that is made of it."""
        return {name: own for name, own in vars(self).items() if name != "function"}

    def __call__(self, arrays: Mapping[Hashable, Array]) -> Array:
        """Return the derivative, with length-one axes where it does not vary."""
        return self.function(arrays)

    @cached_property
    def function(self) -> Evaluation:
        """The function that returns it."""
        contraction, position = self._contraction, self._position
        kept = () if self._keep is None else (self._keep,)
        if contraction.is_scalar:
            keys = contraction.keys[:position] + contraction.keys[position + 1 :]
            constant = contraction.constant.item()
            if not kept:
                return lambda arrays: np.float64(_product(constant, keys, arrays))
            ones = (1,) * len(kept)
            return lambda arrays: np.full(ones, _product(constant, keys, arrays))
        between = contraction._between if self._keep is None else None
        if between is not None:
            scale, keys = contraction.constant, contraction.keys
            return lambda arrays: (
                scale * between.derivative(position, [arrays.get(key, _NONE) for key in keys])
            )
        target = contraction._looked_up[position]
        places = [place for place in range(len(contraction.keys)) if place != position]
        present = {axis for place in places for axis in contraction._looked_up[place].axes}
        present |= set(contraction.constant_axes)
        if len(places) == 1 and not kept and contraction.gather is None and present.issubset(target.axes):
            (other,) = (contraction.factors[place] for place in places)
            if len(set(other.axes)) == len(other.axes):
                return _multiple(contraction, other, target)
        axes = tuple(dict.fromkeys((*kept, *target.axes)))
        evaluation = contraction._evaluation(places, [axis for axis in axes if axis in present])
        if not present.issuperset(axes):
            # axes that only the target has: the derivative is the same all along them
            stretched = tuple(slice(None) if axis in present else None for axis in axes)
            evaluation = _then(evaluation, lambda found: found[stretched])
        gather, own = contraction.gather, contraction.factors[position].axes
        if gather is not None and gather.axis is not self._keep and not gather.labels.keys().isdisjoint(own):
            evaluation = _then(evaluation, partial(gather.put, axes=(*kept, *own), size=contraction.size))
        repeated = [axis for axis in axes if target.axes.count(axis) > 1]
        if repeated:
            place = axes.index(repeated[0])
            diagonal = _diagonal(axes[place:], contraction.size)
            of_trace = partial(_on_diagonal, place - len(axes), diagonal)
            evaluation = _then(evaluation, of_trace)
        return evaluation


def _multiple(contraction: Contraction, other: Factor, target: Factor) -> Evaluation:
    """Return what multiplies one operand by a constant, where nothing is summed over.

    Along axes that only the target has, all are the same; of a trace, in which it has an axis twice, the constant is
    zero off the diagonal.
    """
    read, constant, own = itemgetter(other.key), contraction.constant, contraction.constant_axes
    if other.axes == target.axes and not own:
        scale = constant.item()
        return lambda arrays: scale * read(arrays)
    axes = tuple(dict.fromkeys(target.axes))
    if own != axes:
        order, index = _laid_along(own, axes)
        constant = constant.transpose(order)[index]
        alone = [1 if axis in own or axis in other.axes else contraction.size(axis) for axis in axes]
        constant = constant * np.ones(alone)
    order, index = _laid_along(other.axes, axes)
    for place, axis in enumerate(axes):
        if target.axes.count(axis) > 1:
            constant = _on_diagonal(place - len(axes), _diagonal(axes[place:], contraction.size), constant)
            index = (*index[: place + 1], None, *index[place + 1 :])
            break
    if not other.axes:
        return lambda arrays: read(arrays) * constant
    return lambda arrays: read(arrays).transpose(order)[index] * constant


def _laid_along(own: Sequence[Axis], axes: Sequence[Axis]) -> tuple[list[int], tuple[slice | None, ...]]:
    """Return the order of its own axes among others, and the index that gives an array length one along these."""
    order = [own.index(axis) for axis in axes if axis in own]
    return order, tuple([slice(None) if axis in own else None for axis in axes])


def _diagonal(axes: Sequence[Axis], size: Callable[[Axis], int]) -> Array:
    """Return the identity of the size of the first axis, with axes of length one for the others."""
    return np.eye(size(axes[0])).reshape(size(axes[0]), size(axes[0]), *(1,) * (len(axes) - 1))


def _product(constant: float, keys: Sequence[Hashable], arrays: Mapping[Hashable, Array]) -> float:
    """Return a constant times numbers, of a contraction that is scalar."""
    product = constant
    for key in keys:
        product *= arrays[key].item()
    return product


def _then(evaluation: Evaluation, step: Callable[[Array], Array]) -> Evaluation:
    return lambda arrays: step(evaluation(arrays))


def _on_diagonal(place: int, diagonal: Array, derivative: Array) -> Array:
    """Return the derivative of a trace, in which an axis is repeated: zero off the diagonal."""
    return np.expand_dims(derivative, place) * diagonal


_FEW = 4_096
"""Numbers of an inner product that BLAS takes in one thread."""


def _is_inner(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    return one == other and len(set(one)) == len(one)


def _inner(spec: str, one: Array, other: Array) -> Any:
    if one.shape == other.shape and one.size < _FEW:
        return one.ravel().dot(other.ravel())
    return np.einsum(spec, one, other)
