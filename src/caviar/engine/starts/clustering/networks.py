"""Points of members of a network, where records name two of them whose labels meet: leading singular vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse.linalg import svds

from ...._typing import AnyArray, Array
from ....language import Variable
from ...ascent.problem import Problem
from ...design.keys import ColumnKey
from ...rows.subsample import Sample

_FEW = 400
"""Members up to which all singular vectors are found at once."""


def pairs_of(
    problem: Problem, sample: Sample, gate: Variable
) -> Iterator[tuple[Variable, AnyArray, AnyArray]]:
    """Yield the observed variables of pairs of members, and the two that each record of the sample names."""
    for leaf in problem.bound.observed:
        second = leaf.second_labels.get(gate)
        if second is None:
            continue
        records = (leaf.chosen_by[gate].through, second.chosen.through)
        sides = [sample.columns.get(ColumnKey(own.by.name)) for own in records if own is not None]
        if all(isinstance(own, np.ndarray) for own in sides):
            first, other = (np.asarray(own).astype(np.intp) for own in sides)
            yield leaf, first, other


def points_in_network(
    values: Array, weights: Array, pair: tuple[AnyArray, AnyArray], n_members: int, size: int
) -> Iterator[Array]:
    r"""Yield points of members, (members, 2 size): of the matrix of pairs less its mean, and of one even in degrees.

    Of a block model the mean of the first is a matrix of rank ``size`` whose rows and columns are those of the
    communities. The second tells communities apart whose members differ in how many others they meet.

    Parameters
    ----------
    values, weights
        Of the records, (N,); NaN where missing.
    pair
        The two members of each.
    """
    average, mean = _averages(values, weights, pair, (n_members, n_members))
    yield np.concatenate(_embedded(average - mean, size), axis=1)
    if average.min() >= 0 and mean > 0:
        sends, gets = (average.sum(axis=axis) + mean * n_members for axis in (1, 0))
        yield np.concatenate(_embedded(average / np.sqrt(sends[:, None] * gets), size), axis=1)


def points_of_sides(
    values: Array, weights: Array, pair: tuple[AnyArray, AnyArray], sizes: tuple[int, int], size: int
) -> tuple[Array, Array]:
    """Return points of what records name on either side, (sizes[0], size) and (sizes[1], size).

    Parameters
    ----------
    values, weights
        Of the records, (N,); NaN where missing.
    pair
        What each of them names, such as a person and a question.
    """
    average, mean = _averages(values, weights, pair, sizes)
    return _embedded(average - mean, size)


def _averages(
    values: Array, weights: Array, pair: tuple[AnyArray, AnyArray], sizes: tuple[int, int]
) -> tuple[Array, float]:
    """Return the average of the records of each pair, the mean where there are none, and the mean."""
    seen = ~np.isnan(values)
    total, count = (np.zeros(sizes) for _ in range(2))
    np.add.at(total, pair, np.where(seen, values * weights, 0.0))
    np.add.at(count, pair, np.where(seen, weights, 0.0))
    mean = total.sum() / max(count.sum(), np.finfo(float).tiny)
    return np.divide(total, count, out=np.full_like(total, mean), where=count > 0), mean


def _embedded(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the leading singular vectors of either side times their singular values."""
    if max(matrix.shape) <= max(_FEW, 2 * size) or min(matrix.shape) <= size:
        left, scale, right = np.linalg.svd(matrix, full_matrices=False)
        left, scale, right = left[:, :size], scale[:size], right[:size].T
    else:
        left, scale, right = svds(matrix, size, v0=np.ones(min(matrix.shape)))
        left, scale, right = left[:, ::-1], scale[::-1], right[::-1].T
    return left * scale, right * scale
