r"""Moments of products of independent operands.

With operands of mean m and covariance C, two products that share the operands k have the covariance

.. math:: \prod_k (m_k m_k' + C_k) - \prod_k m_k m_k' = \sum_k \prod_{l<k} (m_l m_l' + C_l)\, C_k \prod_{l>k} m_l m_l'

times the means of what they do not share: sums of what is small, without the difference of large numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array
from ...language.nodes.algebra import Addend

Operand = tuple[int, Array, "Array | None", str]


def covariance(one: Sequence[Operand], other: Sequence[Operand]) -> Array:
    """Return the covariance of two products of operands; see the head of this file."""
    theirs = {key: (mean, letter.upper()) for key, mean, _, letter in other}
    shared = [(key, m, c, letter) for key, m, c, letter in one if c is not None and key in theirs]
    keys = {key for key, *_ in shared}
    rest = [(m, letter) for key, m, _, letter in one if key not in keys]
    rest += [(m, letter.upper()) for key, m, _, letter in other if key not in keys]
    total = np.zeros(())
    for k, (key, _, covariance, letter) in enumerate(shared):
        parts = [*rest, (covariance, letter + theirs[key][1])]
        for before_key, mean, before, mine in shared[:k]:
            parts.append((outer(mean, bool(mine)) + before, mine + theirs[before_key][1]))
        for after_key, mean, _, mine in shared[k + 1 :]:
            parts += [(mean, mine), theirs[after_key]]
        total = total + contracted(parts)
    return total


Product: TypeAlias = dict[Any, tuple[Array, Array]]
"""Mean and variance of each number of a product, by what tells it apart; its coefficient is under ""."""


def mean_of(product: Product) -> Array:
    """Return the mean of a product."""
    return math.prod((mean for mean, _ in product.values()), start=np.ones(()))


def moments_of_sum(products: Sequence[Product]) -> tuple[Array, Array]:
    """Return mean and variance of a sum of products of independent numbers, some of which they share."""
    mean, variance = np.asarray(sum(mean_of(product) for product in products)), np.zeros(())
    for i, one in enumerate(products):
        variance = variance + covariance_of(one, one)
        for other in products[:i]:
            if len(one.keys() & other.keys()) > 1:
                variance = variance + 2.0 * covariance_of(one, other)
    return mean, variance


def covariance_of(one: Product, other: Product) -> Array:
    """Return the covariance of two products of independent numbers, some of which they share."""
    means, covariance = one[""][0] * other[""][0], np.zeros(())
    for key, (mean, variance) in {**one, **other}.items():
        if key == "":
            continue
        if key in one and key in other:
            square = np.square(mean)
            means, covariance = means * square, covariance * (square + variance) + means * variance
        else:
            means, covariance = means * mean, covariance * mean
    return covariance


def outer(mean: Array, is_vector: bool) -> Array:
    """Return the square of a number, or the product of a vector with itself."""
    return mean[..., :, None] * mean[..., None, :] if is_vector else np.square(mean)


def contracted(parts: Sequence[tuple[Any, str]]) -> Array:
    """Return the product of arrays, summed over their event letters; plates are the leading axes."""
    if not parts:
        return np.ones(())
    subscripts = ",".join(f"...{letters}" for _, letters in parts)
    return np.einsum(f"{subscripts}->...", *(array for array, _ in parts), optimize="greedy")


def of_entries(mean: Array, covariance: Array | None, *, is_vector: bool) -> tuple[Array, Array | None]:
    """Return mean and variance of each entry of a vector; of a number the same for all entries."""
    if is_vector:
        return mean, None if covariance is None else np.diagonal(covariance, axis1=-2, axis2=-1)
    return mean[..., None], None if covariance is None else covariance[..., None]


def with_letters(addend: Addend) -> Iterator[tuple[Any, str]]:
    """Yield the operands of a product with their event letter: one for each dot product, none for numbers."""
    for number in addend.numbers:
        yield number, ""
    for letter, pair in zip(ascii_lowercase, addend.dots, strict=False):
        for vector in pair:
            yield vector, letter
