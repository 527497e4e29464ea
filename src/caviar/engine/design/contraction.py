"""Contractions: a term with its constants folded in, ready to be evaluated or differentiated.

A term is multilinear in its operands, so its derivative with respect to one operand is the contraction of
the others: no automatic differentiation is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from itertools import permutations
from string import ascii_letters
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.sparse import csc_array, csr_array

from ..._typing import AnyArray, Array
from ...language import Axis
from ...numerics.cached import cached_property
from ...numerics.spread import spread
from ...numerics.sums_by_label import sums_by_label

_Evaluation: TypeAlias = Callable[[Sequence[Array]], Array]


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
        self._evaluations: dict[str, _Evaluation] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return its state with the sizes of its axes, in the place of a function that may hold all the data."""
        sizes = {axis: self.size(axis) for factor in self.factors for axis in factor.axes}
        return {**vars(self), "size": sizes.__getitem__, "_evaluations": {}}

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
        kept = tuple(dict.fromkeys(axis for _, axes in arrays for axis in axes if axis in shared))
        spec = ",".join(self._spell(axes) for _, axes in arrays) + "->" + self._spell(kept)
        return coefficient * np.einsum(spec, *(array for array, _ in arrays)), kept

    @cached_property
    def _value_spec(self) -> str:
        return self._spec(self._looked_up, ())

    def _spec(self, factors: Sequence[Factor], out: Sequence[Axis]) -> str:
        operands = [self._spell(factor.axes) for factor in factors]
        if self.constant_axes:
            operands.append(self._spell(self.constant_axes))
        return ",".join(operands) + "->" + self._spell(out)

    def _arrays(self, positions: Sequence[int], arrays: Mapping[Hashable, Array]) -> list[Array]:
        """Return the arrays of some operands, looked up by label where they are."""
        if self.gather is None:
            return [arrays[self.keys[position]] for position in positions]
        return [
            self.gather.take(arrays[self.keys[position]], self.factors[position].axes)
            for position in positions
        ]

    def _product(self, keys: Sequence[Hashable], arrays: Mapping[Hashable, Array]) -> float:
        """Return the constant times numbers, of a contraction that is scalar."""
        product = self.constant.item()
        for key in keys:
            product *= arrays[key].item()
        return product

    def _contract(self, spec: str, arrays: Sequence[Array]) -> Array:
        evaluation = self._evaluations.get(spec)
        if evaluation is None:
            evaluation = _evaluation(spec, len(arrays), self.constant, self.constant_axes)
            self._evaluations[spec] = evaluation
        return evaluation(arrays)

    @cached_property
    def _between(self) -> _BetweenLabels | None:
        if self.gather is None or self.constant_axes:
            return None
        return _BetweenLabels.of(self.gather, self.factors, self.size)

    def value(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the contraction over all axes."""
        if self.is_scalar:
            return self._product(self.keys, arrays)
        if self._between is not None:
            return float(self.constant) * self._between.value([arrays[key] for key in self.keys])
        return float(self._contract(self._value_spec, self._arrays(range(len(self.keys)), arrays)))

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
        other.constant, other._evaluations = np.abs(self.constant), {}
        return other

    def along(self, axis: Axis, arrays: Mapping[Hashable, Array]) -> Array | None:
        """Return the contraction over all axes but one, along which it is kept; None if no operand has that one."""
        if axis not in self.constant_axes and all(axis not in factor.axes for factor in self._looked_up):
            return None
        every = self._arrays(range(len(self.keys)), arrays)
        return self._contract(self._spec(self._looked_up, (axis,)), every)

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
        self._kept = () if keep is None else (keep,)
        self._position = position
        self._keys = contraction.keys[:position] + contraction.keys[position + 1 :]
        if contraction.is_scalar:
            return
        self._between = contraction._between if keep is None else None
        if self._between is not None:
            return
        target = contraction._looked_up[position]
        gather, own = contraction.gather, contraction.factors[position].axes
        is_put = gather is not None and gather.axis is not keep and not gather.labels.keys().isdisjoint(own)
        self._put_axes = (*self._kept, *own) if is_put else None
        self._others = [i for i in range(len(contraction.keys)) if i != position]
        others = [contraction._looked_up[i] for i in self._others]
        present = {axis for factor in others for axis in factor.axes} | set(contraction.constant_axes)
        axes = tuple(dict.fromkeys((*self._kept, *target.axes)))
        self._spec = contraction._spec(others, [axis for axis in axes if axis in present])
        # axes that only the target has: the derivative is the same all along them
        self._expand = tuple(slice(None) if axis in present else None for axis in axes)
        self._is_full = None not in self._expand
        repeated = [axis for axis in axes if target.axes.count(axis) > 1]
        self._repeated = axes.index(repeated[0]) if repeated else None
        self._repeats = contraction.size(repeated[0]) if repeated else 1

    def __call__(self, arrays: Mapping[Hashable, Array]) -> Array:
        """Return the derivative, with length-one axes where it does not vary."""
        if self._contraction.is_scalar:
            product = np.float64(self._contraction._product(self._keys, arrays))
            return product.reshape((1,) * len(self._kept)) if self._kept else product  # type: ignore[return-value]
        if self._between is not None:
            operands = [arrays.get(key, _NONE) for key in self._contraction.keys]
            return self._contraction.constant * self._between.derivative(self._position, operands)
        result = self._contraction._contract(self._spec, self._contraction._arrays(self._others, arrays))
        if not self._is_full:
            result = result[self._expand]
        if self._put_axes is not None:
            assert self._contraction.gather is not None
            result = self._contraction.gather.put(result, self._put_axes, self._contraction.size)
        if self._repeated is None:
            return result
        # of a trace, the sum over a repeated axis: zero off the diagonal
        size = self._repeats
        diagonal = np.eye(size).reshape(size, size, *(1,) * (result.ndim - self._repeated - 1))
        return np.expand_dims(result, self._repeated + 1) * diagonal


_FEW = 4_096
"""Numbers of an inner product that BLAS takes in one thread."""


def _evaluation(spec: str, n_arrays: int, constant: Array, constant_axes: Sequence[Axis]) -> _Evaluation:
    """Return what evaluates a contraction of so many arrays that is spelled like this, from these.

    For few numbers ``einsum`` takes longer to read the letters than to add. So sums over all entries, inner products
    and multiples of an array are made without it. Arrays that are stretched along an axis of length one need it.
    """
    operands, _, out = spec.partition("->")
    letters = operands.split(",")
    if constant_axes:
        if out == "" and len(letters) == 2 and _is_inner(*letters):
            return lambda arrays: _inner(spec, arrays[0], constant)
        return lambda arrays: np.einsum(spec, *arrays, constant)
    if not n_arrays:
        return lambda arrays: constant
    scale = constant.item()
    if letters == [out]:
        return lambda arrays: scale * arrays[0]
    if out == "" and len(letters) == 1 and len(set(letters[0])) == len(letters[0]):
        return lambda arrays: scale * np.add.reduce(arrays[0], axis=None)
    if out == "" and len(letters) == 2 and _is_inner(*letters):
        return lambda arrays: scale * _inner(spec, arrays[0], arrays[1])
    if scale == 1.0 and len(letters) > 1:
        # of one array alone it may be a view
        return lambda arrays: np.einsum(spec, *arrays)
    return lambda arrays: scale * np.einsum(spec, *arrays)


def _is_inner(one: str, other: str) -> bool:
    return one == other and len(set(one)) == len(one)


def _inner(spec: str, one: Array, other: Array) -> Any:
    if one.shape == other.shape and one.size < _FEW:
        return np.vdot(one, other)
    return np.einsum(spec, one, other)
