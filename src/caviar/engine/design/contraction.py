"""Contractions: a term with its constants folded in, ready to be evaluated or differentiated.

A term is multilinear in its operands, so its derivative with respect to one operand is the contraction of
the others: no automatic differentiation is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from string import ascii_letters
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array
from ...language import Axis
from ...numerics.cached import cached_property
from ...numerics.spread import sum_of_sizes
from ...numerics.sums.matrix_products import as_matrix_product
from .gather import BetweenLabels, Diagonals, Factor, Gather, laid_along, laid_beside

Known: TypeAlias = Sequence[tuple[Array, tuple[Axis, ...]]]
"""Known arrays with their axes."""

Evaluation: TypeAlias = Callable[[Mapping[Hashable, Array]], Any]
"""What finds its operands among arrays by key, and contracts them: one function, made once."""


_NONE = np.zeros(0)
"""In the place of the operand that is left out."""


class Formula:
    """A contraction without the values of its constants: operands, axes, and how it is evaluated.

    Parameters
    ----------
    coefficient
        Scalar in front.
    factors
        The operands whose values change; found by key when the contraction is evaluated.
    constants
        Axes of the known arrays.
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
        constants: Sequence[tuple[Axis, ...]],
        axes: Sequence[Axis],
        size: Callable[[Axis], int],
        gather: Gather | None,
    ) -> None:
        self.factors = tuple(factors)
        self.keys = [factor.key for factor in factors]
        self.size = size
        self.gather = gather
        self._of_constants = tuple(constants)
        if gather is not None:
            constants = [gather.axes(own) for own in constants]
            factors = [Factor(factor.key, gather.axes(factor.axes)) for factor in factors]
        self.looked_up = tuple(factors)
        arrays = [own for own in constants if own]
        of_factors: set[Axis] = set().union(*[factor.axes for factor in factors if factor.axes])
        if axes or arrays or of_factors:
            # in an order that is the same in every fit: einsum sums in that of its letters
            present = dict.fromkeys(axis for own in (*(f.axes for f in factors), *arrays) for axis in own)
            for axis in axes:
                if axis not in present:
                    coefficient *= size(axis)
            self._axes = (*axes, *present)
        self.coefficient = coefficient
        self._arrays = arrays
        self.constant_axes = tuple(
            dict.fromkeys([axis for own in arrays for axis in own if axis in of_factors])
        )
        self.is_scalar = not of_factors and not self.constant_axes
        """Whether all that changes in it are numbers, as is most of a small model; then einsum is not needed."""
        self._made: dict[Hashable, Callable[[Array], Evaluation]] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return its state without functions."""
        own = {name: own for name, own in vars(self).items() if name not in ("value", "_between")}
        return {**own, "_made": {}}

    @cached_property
    def _letter(self) -> dict[Axis, str]:
        return dict(zip(dict.fromkeys(self._axes), ascii_letters, strict=False))

    def _spell(self, axes: Sequence[Axis]) -> str:
        return "".join([self._letter[axis] for axis in axes])

    def _spec(self, operands: Sequence[Sequence[Axis]], out: Sequence[Axis]) -> str:
        return ",".join([self._spell(axes) for axes in operands]) + "->" + self._spell(out)

    @cached_property
    def _folding(self) -> str | None:
        """How arrays are multiplied into one, over the axes that a changing operand shares; None for a single array."""
        if len(self._arrays) == 1 and self.constant_axes == self._arrays[0]:
            return None
        return self._spec(self._arrays, self.constant_axes)

    def folded(self, constants: Sequence[Array], along: Axis | None = None) -> Array:
        """Return the product of known arrays and the coefficient, over :attr:`constant_axes`, or along one axis."""
        coefficient, arrays = self.coefficient, constants
        if self.gather is not None:
            arrays = [self.gather.take(*own) for own in zip(constants, self._of_constants, strict=True)]
        if not self._arrays:
            for array in arrays:
                coefficient *= array.item()
            return np.array(coefficient, dtype=np.float64)
        if len(self._arrays) < len(arrays):
            with_axes = list(zip(arrays, self._of_constants, strict=True))
            for array, own in with_axes:
                if not own:
                    coefficient *= float(array)
            arrays = [array for array, own in with_axes if own]
        spec = self._folding if along is None else self._spec(self._arrays, (along,))
        return coefficient * (arrays[0] if spec is None else np.einsum(spec, *arrays))

    @property
    def known_axes(self) -> Sequence[tuple[Axis, ...]]:
        """Axes of each known array that has some."""
        return self._arrays

    def evaluation(self, positions: Sequence[int], out: Sequence[Axis]) -> Callable[[Array], Evaluation]:
        """Return what makes, of the constant, what contracts some operands over all axes but ``out``.

        Operands are looked up by label where they are. For few numbers ``einsum`` takes longer to read the letters than
        to add. So sums over all entries, inner products and multiples of an array are made without it. Arrays that are
        stretched along an axis of length one need it.
        """
        axes = [self.looked_up[position].axes for position in positions]
        reads = [self._read(position) for position in positions]
        if not reads and self.constant_axes == tuple(out):
            return the_constant
        if not self.constant_axes:
            return self._of_operands(axes, reads, tuple(out))
        if len(reads) == 1 and not axes[0] and self.constant_axes == tuple(out):
            (number,) = reads
            return lambda constant: lambda arrays: number(arrays) * constant
        spec = self._spec([*axes, self.constant_axes], out)
        product = as_matrix_product(spec)
        if product is not None:
            return lambda constant: lambda arrays: product([*[read(arrays) for read in reads], constant])
        if len(reads) != 1:
            return lambda constant: (
                lambda arrays: np.einsum(spec, *[read(arrays) for read in reads], constant)
            )
        (read,) = reads
        if not out and _is_inner(axes[0], self.constant_axes):
            return lambda constant: lambda arrays: _inner(spec, read(arrays), constant)
        laid = laid_beside(axes[0], self.constant_axes, tuple(out))
        if laid is not None:
            (order, index), (own_order, own_index) = laid
            return lambda constant: _times_array(constant.transpose(own_order)[own_index], read, order, index)
        return lambda constant: lambda arrays: np.einsum(spec, read(arrays), constant)

    def _of_operands(
        self, axes: Sequence[tuple[Axis, ...]], reads: Sequence[Evaluation], out: tuple[Axis, ...]
    ) -> Callable[[Array], Evaluation]:
        """Return the same where the constant is a number."""
        if len(reads) == 1 and axes[0] == out:
            return lambda constant: _times(constant.item(), reads[0])
        if len(reads) == 1 and not out and len(set(axes[0])) == len(axes[0]):
            return lambda constant: _times_sum(constant.item(), reads[0])
        spec = self._spec(axes, out)
        if len(reads) == 2 and not out and _is_inner(*axes):
            return lambda constant: _times_inner(constant.item(), spec, *reads)
        laid = laid_beside(axes[0], axes[1], out) if len(reads) == 2 else None
        if laid is not None:
            return lambda constant: _times_each_other(constant.item(), reads, *laid)
        product = as_matrix_product(spec)
        if product is not None:
            return lambda constant: _times_matrix_product(constant.item(), product, reads)
        return lambda constant: _times_product(constant.item(), spec, reads)

    def _read(self, position: int) -> Evaluation:
        """Return what finds an operand among the arrays."""
        read = itemgetter(self.keys[position])
        if self.gather is None:
            return read
        take, axes = self.gather.take, self.factors[position].axes
        return lambda arrays: take(read(arrays), axes)

    @cached_property
    def _between(self) -> BetweenLabels | None:
        if self.gather is None or self.constant_axes:
            return None
        return BetweenLabels.of(self.gather, self.factors, self.size)

    @cached_property
    def value(self) -> Callable[[Array], Callable[[Mapping[Hashable, Array]], float]]:
        """What makes, of the constant, the function that returns the contraction over all axes."""
        keys = self.keys
        if self.is_scalar:
            return lambda constant: partial(multiplied, constant.item(), keys)
        between = self._between
        if between is not None:
            value = between.value
            return lambda constant: lambda arrays: float(constant) * value([arrays[key] for key in keys])
        made = self.evaluation(range(len(keys)), ())
        return lambda constant: _as_float(made(constant))

    def derivative(self, position: int, keep: Axis | None) -> Callable[[Array], Evaluation]:
        """Return what makes, of the constant, the derivative with respect to an operand: see :class:`Derivative`."""
        found = self._made.get((position, keep))
        if found is None:
            found = self._made[position, keep] = self._derivative(position, keep)
        return found

    def _derivative(self, position: int, keep: Axis | None) -> Callable[[Array], Evaluation]:
        kept = () if keep is None else (keep,)
        if self.is_scalar:
            keys = self.keys[:position] + self.keys[position + 1 :]
            if not kept:
                return partial(_number, keys) if keys else the_constant
            ones = (1,) * len(kept)
            return lambda constant: lambda arrays: np.full(ones, multiplied(constant.item(), keys, arrays))
        between = self._between if keep is None else None
        if between is not None:
            every, derivative = self.keys, between.derivative
            return lambda constant: (
                lambda arrays: constant * derivative(position, [arrays.get(key, _NONE) for key in every])
            )
        target = self.looked_up[position]
        places = [place for place in range(len(self.keys)) if place != position]
        present = {axis for place in places for axis in self.looked_up[place].axes}
        present |= set(self.constant_axes)
        if len(places) == 1 and not kept and self.gather is None and present.issubset(target.axes):
            other = self.factors[places[0]]
            if len(set(other.axes)) == len(other.axes):
                return self._multiple(other, target)
        axes = tuple(dict.fromkeys((*kept, *target.axes)))
        made = self.evaluation(places, [axis for axis in axes if axis in present])
        if not present.issuperset(axes):
            # axes that only the target has: the derivative is the same all along them
            stretched = tuple(slice(None) if axis in present else None for axis in axes)
            made = _then(made, lambda found: found[stretched])
        gather, own, ends = self.gather, self.factors[position].axes, target.axes
        if gather is not None and gather.axis is not keep and not gather.labels.keys().isdisjoint(own):
            made, ends = _then(made, partial(gather.put, axes=(*kept, *own), size=self.size)), own
        if len(set(ends)) == len(ends):
            return made
        return _then(made, Diagonals.of(ends, self.size).of_derivative)

    def _multiple(self, other: Factor, target: Factor) -> Callable[[Array], Evaluation]:
        """Return what makes, of the constant, what multiplies one operand by it, where nothing is summed over.

        Along axes that only the target has, all are the same; of a trace, in which it has an axis twice, the constant
        is zero off the diagonal.
        """
        read, known = itemgetter(other.key), self.constant_axes
        if other.axes == target.axes and not known:
            return lambda constant: _times(constant.item(), read)
        axes = tuple(dict.fromkeys(target.axes))
        order, index = laid_along(known, axes)
        alone = np.ones([1 if axis in known or axis in other.axes else self.size(axis) for axis in axes])
        own_order, own_index = laid_along(other.axes, axes)
        if len(set(target.axes)) < len(target.axes):
            diagonals = Diagonals.of(target.axes, self.size)
            alone = diagonals.of_derivative(alone)
            index, own_index = (diagonals.indexed(axes, own) for own in (index, own_index))
        return lambda constant: _times_array(
            constant.transpose(order)[index] * alone, read, own_order, own_index
        )


class Contraction:
    """A coefficient times a product of arrays, summed over all axes: a formula with its constants.

    Parameters
    ----------
    coefficient, factors, axes, size, gather
        Of the :class:`Formula`.
    constants
        Known arrays with their axes; multiplied into one.
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
        formula = Formula(coefficient, factors, [own for _, own in constants], axes, size, gather)
        arrays = [array for array, _ in constants]
        self.formula, self.constant = formula, formula.folded(arrays)
        self.factors, self.keys = formula.factors, formula.keys
        self._known = () if self.keys else tuple(arrays)

    _known: tuple[Array, ...] = ()
    """The known arrays, where nothing else is in it."""

    @classmethod
    def of(cls, formula: Formula, constant: Array) -> Contraction:
        """Return a formula with the product of its constants."""
        contraction = cls.__new__(cls)
        contraction.formula, contraction.constant = formula, constant
        contraction.factors, contraction.keys = formula.factors, formula.keys
        return contraction

    def __getstate__(self) -> dict[str, object]:
        """Return its state without functions."""
        return {name: own for name, own in vars(self).items() if name != "value"}

    def kept_along(self, axis: Axis) -> Evaluation | None:
        """Return what returns the contraction over all axes but one; None if none of its arrays has that."""
        formula = self.formula
        if not any(axis in own for own in (*(f.axes for f in self.factors), *formula.known_axes)):
            return None
        if self.keys:
            return formula.evaluation(range(len(self.keys)), (axis,))(self.constant)
        value = formula.folded(self._known, axis)
        return lambda arrays: value

    @property
    def constant_axes(self) -> tuple[Axis, ...]:
        """Axes of the product of the constants."""
        return self.formula.constant_axes

    @property
    def gather(self) -> Gather | None:
        """Labels by which operands are looked up."""
        return self.formula.gather

    @property
    def size(self) -> Callable[[Axis], int]:
        """What returns the size of an axis."""
        return self.formula.size

    @cached_property
    def value(self) -> Callable[[Mapping[Hashable, Array]], float]:
        """The function that returns the contraction over all axes; it does not know this object."""
        return self.formula.value(self.constant)

    def magnitude(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the sum of the sizes of all products that :meth:`value` adds up: its rounding goes with them."""
        return self.absolute.value({key: np.abs(arrays[key]) for key in self.keys})

    def largest_magnitude(self, sizes: Mapping[Hashable, float]) -> float:
        """Return a number that :meth:`magnitude` does not exceed, from the sum of the sizes of each array."""
        constant = self.constant
        bound = sum_of_sizes(constant) if constant.ndim else abs(constant.item())
        for key in self.keys:
            bound *= sizes[key]
        return bound

    @cached_property
    def absolute(self) -> Contraction:
        """The same contraction with the sizes of its constants."""
        return self.of(self.formula, np.abs(self.constant))

    def along(self, axis: Axis, arrays: Mapping[Hashable, Array]) -> Array | None:
        """Return the contraction over all axes but one, along which it is kept; None if no operand has that one."""
        formula = self.formula
        if axis not in formula.constant_axes and all(axis not in own.axes for own in formula.looked_up):
            return None
        return formula.evaluation(range(len(self.keys)), (axis,))(self.constant)(arrays)

    def replaced(self, position: int, key: Hashable, axis: Axis | None = None) -> Contraction:
        """Return the same contraction with another operand at ``position``; an axis of several comes first in it."""
        formula, factors = self.formula, list(self.factors)
        before = () if axis is None else (axis,)
        factors[position] = Factor(key, (*before, *factors[position].axes))
        return self.with_factors(factors, (), formula.size, formula.gather)

    def with_factors(
        self, factors: Sequence[Factor], constants: Known, size: Callable[[Axis], int], gather: Gather | None
    ) -> Contraction:
        """Return the same sum of other operands: those of variables that share a factor.

        Parameters
        ----------
        factors, size, gather
            Of the new formula.
        constants
            Known arrays with their axes, by which the constant is multiplied.
        """
        known = [(np.asarray(self.constant), self.constant_axes), *constants]
        return Contraction(1.0, factors, known, (), size, gather)

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
        contraction = self._contraction
        return contraction.formula.derivative(self._position, self._keep)(contraction.constant)


def the_constant(constant: Array) -> Evaluation:
    """Return what returns the constant, where a contraction is no more than that."""
    return lambda arrays: constant


def _times(scale: float, read: Evaluation) -> Evaluation:
    return lambda arrays: scale * read(arrays)


def _times_array(
    constant: Array, read: Evaluation, order: Sequence[int], index: tuple[slice | None, ...]
) -> Evaluation:
    if not order:
        return lambda arrays: read(arrays) * constant
    return lambda arrays: read(arrays).transpose(order)[index] * constant


def _times_each_other(scale: float, reads: Sequence[Evaluation], *laid: Any) -> Evaluation:
    (one, other), ((order, index), (own_order, own_index)) = reads, laid

    def product(arrays: Mapping[Hashable, Array]) -> Array:
        found = one(arrays).transpose(order)[index] * other(arrays).transpose(own_order)[own_index]
        return found if scale == 1.0 else scale * found

    return product


def _times_sum(scale: float, read: Evaluation) -> Evaluation:
    return lambda arrays: scale * np.add.reduce(read(arrays), axis=None)


def _times_inner(scale: float, spec: str, first: Evaluation, second: Evaluation) -> Evaluation:
    return lambda arrays: scale * _inner(spec, first(arrays), second(arrays))


def _times_product(scale: float, spec: str, reads: Sequence[Evaluation]) -> Evaluation:
    if scale == 1.0 and len(reads) > 1:
        # of one array alone it may be a view
        return lambda arrays: np.einsum(spec, *[read(arrays) for read in reads])
    return lambda arrays: scale * np.einsum(spec, *[read(arrays) for read in reads])


def _times_matrix_product(
    scale: float, product: Callable[[Sequence[Array]], Array], reads: Sequence[Evaluation]
) -> Evaluation:
    if scale == 1.0:
        return lambda arrays: product([read(arrays) for read in reads])
    return lambda arrays: scale * product([read(arrays) for read in reads])


def _number(keys: Sequence[Hashable], constant: Array) -> Evaluation:
    return partial(_numbers_times, constant.item(), keys)


def _numbers_times(number: float, keys: Sequence[Hashable], arrays: Mapping[Hashable, Array]) -> np.float64:
    for key in keys:
        number *= arrays[key].item()
    return np.float64(number)


def _as_float(evaluation: Evaluation) -> Callable[[Mapping[Hashable, Array]], float]:
    return lambda arrays: float(evaluation(arrays))


def multiplied(number: float, keys: Sequence[Hashable], arrays: Mapping[Hashable, Array]) -> float:
    """Return a constant times numbers, of a contraction that is scalar."""
    for key in keys:
        number *= arrays[key].item()
    return number


def _then(
    made: Callable[[Array], Evaluation], step: Callable[[Array], Array]
) -> Callable[[Array], Evaluation]:
    """Return what makes evaluations that are followed by a step."""

    def followed(constant: Array) -> Evaluation:
        evaluation = made(constant)
        return lambda arrays: step(evaluation(arrays))

    return followed


_FEW = 4_096
"""Numbers of an inner product that BLAS takes in one thread."""


def _is_inner(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    return one == other and len(set(one)) == len(one)


def _inner(spec: str, one: Array, other: Array) -> Any:
    if one.shape == other.shape and one.size < _FEW:
        return one.ravel().dot(other.ravel())
    return np.einsum(spec, one, other)
