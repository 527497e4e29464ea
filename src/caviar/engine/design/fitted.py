r"""Terms of fitted values: products of two dot products with the same known rows, without the matrix X'X.

.. math:: \sum_n \omega_n (x_n'u)(x_n'v) = u' G v, \qquad G = X'\,\mathrm{diag}(\omega)\,X

Vectors of coefficients with zeros enter such terms through their means alone, so that G is only ever multiplied with
vectors: O(N D) each. A product is kept until its vector changes; of many vectors in one sum each update changes one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis
from ...numerics.cached import cached_property
from .contraction import Contraction, Evaluation, Formula, Known
from .gather import Factor, Gather

_BLOCK = 64
"""Columns whose products with each other are kept, for updates of one entry after another."""

_ROWS = 8192
"""Rows that are multiplied at once where they are not in double precision."""

_IN_CACHE, _FEWEST_ROWS = 2**21, 16
"""Bytes of rows in double precision that are still in the cache when they are multiplied again; rows at least."""

_KEPT = 128
"""Products with vectors that are kept."""


class ProductKey(NamedTuple):
    """What the product of G with a statistic is found by."""

    of: Hashable


class Design:
    """Known rows and their weights, as the matrix G of products of columns, which is never formed.

    Parameters
    ----------
    rows
        X, (N, D).
    weights
        Weight of each row, (N,), or None for 1.
    """

    def __init__(self, rows: AnyArray, weights: Array | None, *, are_sizes: bool = False) -> None:
        self.rows, self.weights, self._are_sizes = rows, weights, are_sizes
        self._products: OrderedDict[int, tuple[Array, Array]] = OrderedDict()
        self._blocks: dict[int, Array] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return its state without what is kept."""
        kept = ("sizes", "largest")
        own = {name: value for name, value in vars(self).items() if name not in kept}
        return {**own, "_products": OrderedDict(), "_blocks": {}}

    @property
    def n_columns(self) -> int:
        """Columns, D."""
        return self.rows.shape[1]

    @property
    def _near(self) -> int:
        """Rows of a block that stays in the cache."""
        return max(_IN_CACHE // (8 * max(self.n_columns, 1)), _FEWEST_ROWS)

    def fitted(self, vectors: Array, columns: slice = slice(None)) -> Array:
        """Return X v of each vector (..., D), of some columns, times the weights: (..., N)."""
        flat = vectors.reshape(-1, vectors.shape[-1]).T
        found = np.concatenate([own @ flat for own, _ in self._blocks_of_rows(columns)]).T
        return (found if self.weights is None else found * self.weights).reshape(*vectors.shape[:-1], -1)

    def against(self, values: Array, columns: slice = slice(None)) -> Array:
        """Return X'r of values (..., N) of the rows, for some columns: (..., D)."""
        flat = values.reshape(-1, values.shape[-1])
        total: Any = 0.0
        for own, where in self._blocks_of_rows(columns):
            total = total + (own.T @ flat[:, where].T).T
        return total.reshape(*values.shape[:-1], -1)

    def product(self, vectors: Array) -> Array:
        """Return G v of vectors, (..., D); kept while the same array is asked for again."""
        known = self._products.get(id(vectors))
        if known is not None and known[0] is vectors:
            self._products.move_to_end(id(vectors))
            return known[1]
        found = self._product(vectors)
        self._products[id(vectors)] = vectors, found
        if len(self._products) > _KEPT:
            self._products.popitem(last=False)
        return found

    def _product(self, vectors: Array) -> Array:
        """Return G v, with one pass over the rows: each block is multiplied twice while it is in the cache."""
        if not vectors.any():
            return np.zeros_like(vectors)
        flat = vectors.reshape(-1, vectors.shape[-1]).T
        total = np.zeros((self.n_columns, flat.shape[1]))
        for own, where in self._blocks_of_rows(slice(None), self._near):
            fitted = own @ flat
            total += own.T @ (fitted if self.weights is None else fitted * self.weights[where, None])
        return total.T.reshape(vectors.shape)

    def blocks(self) -> list[slice]:
        """Return ranges of columns whose products with each other are small."""
        return [slice(i, min(i + _BLOCK, self.n_columns)) for i in range(0, self.n_columns, _BLOCK)]

    def among(self, columns: slice) -> Array:
        """Return the products of some columns with each other, which are kept."""
        found = self._blocks.get(columns.start)
        if found is None:
            total: Any = 0.0
            for own, where in self._blocks_of_rows(columns):
                total = total + own.T @ (own if self.weights is None else own * self.weights[where, None])
            found = self._blocks[columns.start] = total
        return found

    @cached_property
    def sizes(self) -> Design:
        """The same of the sizes of all numbers, which are found block by block."""
        return Design(self.rows, None if self.weights is None else np.abs(self.weights), are_sizes=True)

    @cached_property
    def largest(self) -> float:
        """Largest size of an entry of G."""
        total = np.zeros(self.n_columns)
        for own, where in self._blocks_of_rows(slice(None), self._near):
            heavy = own if self.weights is None else own * np.abs(self.weights[where, None])
            total += np.einsum("ij,ij->j", own, heavy)
        return float(np.max(total, initial=0.0))

    def _blocks_of_rows(self, columns: slice, step: int | None = None) -> Iterator[tuple[Array, slice]]:
        """Yield rows in double precision, some columns of them, and where they are.

        ``step`` says how many; left out, it is all of them where they are in double precision.
        """
        is_double = self.rows.dtype == np.float64
        step = step or (max(len(self.rows), 1) if is_double and not self._are_sizes else _ROWS)
        # one place for all blocks: fresh memory for each costs as much as the products
        scratch = (
            None
            if is_double
            else np.empty((min(step, len(self.rows)), len(range(*columns.indices(self.n_columns)))))
        )
        for start in range(0, len(self.rows), step):
            where = slice(start, start + step)
            rows = self.rows[where, columns]
            if scratch is not None:
                scratch[: len(rows)] = rows
                rows = scratch[: len(rows)]
            yield np.abs(rows) if self._are_sizes else rows, where


class Fitted(Contraction):
    """A term with two vectors of coefficients of the same known rows, whose sum over these is a product with G.

    Parameters
    ----------
    coefficient, constants, size
        As of a contraction.
    factors
        The operands; the last axes of two of them are of the columns of the design.
    places
        Which two they are.
    design
        The rows.
    """

    def __init__(
        self,
        coefficient: float,
        factors: Sequence[Factor],
        constants: Sequence[tuple[Array, tuple[Axis, ...]]],
        axes: Sequence[Axis],
        size: Callable[[Axis], int],
        places: tuple[int, int],
        design: Design,
    ) -> None:
        formula = FittedFormula(
            coefficient, factors, [own for _, own in constants], axes, size, places, design
        )
        self.formula, self.constant = formula, formula.folded([array for array, _ in constants])
        self.factors, self.keys = formula.factors, formula.keys

    @property
    def design(self) -> Design:
        """The rows."""
        return self._fitted.design

    @property
    def places(self) -> tuple[int, int]:
        """The positions of the two vectors."""
        return self._fitted.places

    @property
    def _fitted(self) -> FittedFormula:
        assert isinstance(self.formula, FittedFormula)
        return self.formula

    def scale(self, arrays: Mapping[Hashable, Array]) -> Array:
        """Return the factor of G in the message of the term to its first vector, with one axis for the columns."""
        return self._fitted.scale(self.constant)(arrays)

    @property
    def absolute(self) -> Contraction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same with the sizes of all known numbers."""
        formula = self._fitted.with_sizes()
        return Fitted.of(formula, np.abs(self.constant))

    def largest_magnitude(self, sizes: Mapping[Hashable, float]) -> float:
        """Return a number that the sum of the sizes of all products does not exceed."""
        return super().largest_magnitude(sizes) * self.design.largest

    def along(self, axis: Axis, arrays: Mapping[Hashable, Array]) -> Array | None:
        """Return the term over all axes but one; None if no operand has that one."""
        return super().along(axis, self._fitted.with_products(arrays, self.places[1]))

    def with_factors(
        self, factors: Sequence[Factor], constants: Known, size: Callable[[Axis], int], gather: Gather | None
    ) -> Contraction:
        """Return the same sum of other operands, two of which have the columns of the design as their last axis."""
        assert gather is None
        column = self.factors[self.places[0]].axes[-1]
        first, second = (place for place, own in enumerate(factors) if own.axes and own.axes[-1] is column)
        known = [(np.asarray(self.constant), self.constant_axes), *constants]
        return Fitted(1.0, factors, known, (), size, (first, second), self.design)


class FittedFormula(Formula):
    """The formula of such a term: one vector is multiplied with G, then the columns are an axis as any other."""

    def __init__(
        self,
        coefficient: float,
        factors: Sequence[Factor],
        constants: Sequence[tuple[Axis, ...]],
        axes: Sequence[Axis],
        size: Callable[[Axis], int],
        places: tuple[int, int],
        design: Design,
    ) -> None:
        first, second = places
        column, other = factors[first].axes[-1], factors[second].axes[-1]
        along = [
            own if place != second else Factor(own.key, (*own.axes[:-1], column))
            for place, own in enumerate(factors)
        ]
        kept = [axis for axis in axes if axis is not other]
        super().__init__(coefficient, along, constants, kept, size, None)
        self.keys = [factor.key for factor in factors]
        self.places, self.design = places, design
        self._of_product: dict[int, Formula] = {}
        for place in places:
            own = [
                Factor(ProductKey(factor.key), factor.axes) if number == place else factor
                for number, factor in enumerate(along)
            ]
            self._of_product[place] = Formula(coefficient, own, constants, kept, size, None)

    def with_products(self, arrays: Mapping[Hashable, Array], place: int) -> dict[Hashable, Array]:
        """Return arrays with the product of G with the vector at a place."""
        key = self.keys[place]
        return {**arrays, ProductKey(key): self.design.product(arrays[key])}

    def with_sizes(self) -> FittedFormula:
        """Return the formula of the sizes of all numbers."""
        other = FittedFormula.__new__(FittedFormula)
        vars(other).update({name: own for name, own in vars(self).items() if name not in ("value", "_made")})
        other._made, other.design = {}, self.design.sizes
        return other

    @property
    def value(self) -> Callable[[Array], Callable[[Mapping[Hashable, Array]], float]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What makes, of the constant, the function that returns the term."""
        second = self.places[1]
        made = self._of_product[second].value
        return lambda constant: lambda arrays: made(constant)(self.with_products(arrays, second))

    def evaluation(self, positions: Sequence[int], out: Sequence[Axis]) -> Callable[[Array], Evaluation]:
        """Return what contracts all operands over all axes but ``out``; the arrays have the product already."""
        return self._of_product[self.places[1]].evaluation(positions, out)

    def derivative(self, position: int, keep: Axis | None) -> Callable[[Array], Evaluation]:
        """Return what makes, of the constant, the derivative with respect to an operand.

        That of the vector that is multiplied with G is found with the product of the other one: G is symmetric.
        """
        first, second = self.places
        place = first if position == second else second
        made = self._of_product[place].derivative(position, keep)
        return lambda constant: lambda arrays: made(constant)(self.with_products(arrays, place))

    def scale(self, constant: Array) -> Evaluation:
        """Return the derivative with respect to the first vector where the product of G is 1 everywhere."""
        first, second = self.places
        made = self._of_product[second].derivative(first, None)(constant)
        key = self.keys[second]
        return lambda arrays: made({**arrays, ProductKey(key): np.ones_like(arrays[key])})[..., :1]
