"""Sums of products of several arrays as one matrix product, where they are one.

``numpy.einsum`` of three arrays adds up number by number. If one of them only scales another, as in
``ac,bc,c->ab``, it is multiplied in first, and the rest is a matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np

from ..._typing import Array

_FEW = 4_096
"""Numbers of the larger operand below which ``einsum`` is as fast."""


@dataclass(frozen=True)
class MatrixProduct:
    """A sum of products, as ``numpy.einsum`` writes it, that is one matrix product of scaled arrays.

    Attributes
    ----------
    spec
        As ``einsum`` reads it.
    letters
        Of each operand.
    left, right
        Places of the operands that are multiplied as matrices.
    scales
        Place of each other operand, and of the one of these two that it is multiplied into.
    rows, summed, columns
        Letters of the left one alone, of both, and of the right one alone.
    order
        Axes of the result among rows and columns.
    """

    spec: str
    letters: tuple[str, ...]
    left: int
    right: int
    scales: tuple[tuple[int, int], ...]
    rows: str
    summed: str
    columns: str
    order: tuple[int, ...]

    def __call__(self, operands: Sequence[Array]) -> Array:
        """Return the sum of products; of few numbers, or arrays that are stretched along a summed axis, by einsum."""
        left, right = operands[self.left], operands[self.right]
        if left.size < _FEW and right.size < _FEW:
            return np.einsum(self.spec, *operands)
        for place, target in self.scales:
            scale = self._laid_along(operands[place], place, target)
            if target == self.left:
                left = left * scale
            else:
                right = right * scale
        left = left.transpose([self.letters[self.left].index(own) for own in self.rows + self.summed])
        right = right.transpose([self.letters[self.right].index(own) for own in self.summed + self.columns])
        n_rows = len(self.rows)
        summed, n_summed = left.shape[n_rows:], len(self.summed)
        if summed != right.shape[:n_summed]:
            return np.einsum(self.spec, *operands)
        length = math.prod(summed)
        product = left.reshape(-1, length) @ right.reshape(length, -1)
        return product.reshape(*left.shape[:n_rows], *right.shape[n_summed:]).transpose(self.order)

    def _laid_along(self, operand: Array, place: int, target: int) -> Array:
        """Return an operand with axes of length one where the target has axes that it lacks."""
        own, others = self.letters[place], self.letters[target]
        operand = operand.transpose([own.index(letter) for letter in others if letter in own])
        return operand[tuple([slice(None) if letter in own else None for letter in others])]


@cache
def as_matrix_product(spec: str) -> Callable[[Sequence[Array]], Array] | None:
    """Return a function that evaluates a sum of products as a matrix product; None if that is not possible.

    Parameters
    ----------
    spec
        As ``numpy.einsum`` reads it, with the axes of the result.

    Examples
    --------
    >>> product = as_matrix_product("ac,bc,c->ab")
    >>> product([np.ones((1, 3)), np.ones((2, 3)), np.arange(3.0)])
    array([[3., 3.]])
    >>> as_matrix_product("ab,b->ab") is None
    True
    """
    inputs, _, out = spec.partition("->")
    letters = tuple(inputs.split(","))
    if any(len(set(own)) < len(own) for own in letters):
        return None
    pairs = permutations(range(len(letters)), 2)
    return next(filter(None, (_pair(spec, letters, out, *pair) for pair in pairs)), None)


def _pair(spec: str, letters: tuple[str, ...], out: str, left: int, right: int) -> MatrixProduct | None:
    """Return the product with two of the operands as the matrices; None where they cannot be."""
    one, other = letters[left], letters[right]
    summed = "".join(own for own in one if own in other)
    rows, columns = ("".join(own for own in matrix if own not in summed) for matrix in (one, other))
    if not (rows and summed and columns) or sorted(rows + columns) != sorted(out):
        return None
    scales = []
    for place, own in enumerate(letters):
        if place in (left, right):
            continue
        into = next((target for target in (right, left) if set(own) <= set(letters[target])), None)
        if into is None:
            return None
        scales.append((place, into))
    order = tuple((rows + columns).index(own) for own in out)
    return MatrixProduct(spec, letters, left, right, tuple(scales), rows, summed, columns, order)
