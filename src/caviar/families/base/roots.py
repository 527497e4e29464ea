r"""Square roots L of the covariances of sufficient statistics, V = L L', of a batch of R repetitions.

The coordinates z of a repetition are uncorrelated with variance one, and its statistics are t = E[t] + L z to first
order. Those of a Normal vector have a closed form: with :math:`x = m + L u` and u standard Normal, the functions
:math:`u_i`, :math:`u_i u_j` and :math:`(u_i^2 - 1) / \sqrt 2` are orthonormal, and

.. math:: x x' = m m' + m (L u)' + (L u) m' + L u u' L'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from caviar._typing import AnyArray, Array

_MOST_DENSE = 20_000
"""Numbers of a block-diagonal matrix up to which a dense product takes less than the calls of a sparse one."""

_MOST_WRITTEN = 200_000
"""Numbers of roots with a closed form up to which the matrices are formed: their products take fewer passes."""


class Roots(ABC):
    """Square roots of the covariances of the statistics of R repetitions."""

    @property
    @abstractmethod
    def ranks(self) -> Sequence[int]:
        """Coordinates of each repetition."""

    @property
    @abstractmethod
    def values(self) -> Sequence[Array]:
        """For each repetition the covariances of its coordinates with the entries of its value, (rank, G)."""

    @abstractmethod
    def times(self, coordinates: Array) -> Array:
        """Return the statistics of all repetitions, (R p, n), from their coordinates, (r, n)."""

    @abstractmethod
    def transposed(self, natural: Array) -> Array:
        """Return what natural parameters of all repetitions, (R p, n), are in coordinates, (r, n): L' times these."""


@dataclass(frozen=True, eq=False)
class MatrixRoots(Roots):
    """Square roots as matrices.

    Attributes
    ----------
    matrices
        Of each repetition, (p, rank).
    of_values
        Of each repetition the covariances of its coordinates with the entries of its value, (rank, G).
    """

    matrices: Sequence[Array]
    of_values: Sequence[Array]

    @property
    def ranks(self) -> Sequence[int]:
        return [root.shape[1] for root in self.matrices]

    @property
    def values(self) -> Sequence[Array]:
        return self.of_values

    @cached_property
    def _stacked(self) -> Array | None:
        """All of them, (R, p, rank), where they are of one shape; None elsewhere."""
        shapes = {root.shape for root in self.matrices}
        return np.stack(self.matrices) if len(shapes) == 1 else None

    @cached_property
    def _whole(self) -> csc_array | Array:
        """All of them, block diagonal; dense if they are small."""
        n_rows, n_columns = (sum(root.shape[axis] for root in self.matrices) for axis in (0, 1))
        if n_rows * n_columns <= _MOST_DENSE:
            dense = np.zeros((n_rows, n_columns))
            row = column = 0
            for root in self.matrices:
                below, beside = row + root.shape[0], column + root.shape[1]
                dense[row:below, column:beside] = root
                row, column = below, beside
            return dense
        rows, columns, entries = [], [], []
        row = column = 0
        for root in self.matrices:
            i, j = np.indices(root.shape)
            rows.append(row + i.ravel())
            columns.append(column + j.ravel())
            entries.append(root.ravel())
            row, column = row + root.shape[0], column + root.shape[1]
        triples = (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns)))
        return csc_array(triples, shape=(row, column))

    def times(self, coordinates: Array) -> Array:
        stacked = self._stacked
        return np.asarray(self._whole @ coordinates) if stacked is None else _each(stacked, coordinates)

    def transposed(self, natural: Array) -> Array:
        stacked = self._stacked
        if stacked is None:
            return np.asarray(self._whole.T @ natural)
        return _each(stacked.swapaxes(1, 2), natural)


def _each(matrices: Array, columns: Array) -> Array:
    """Return the products of each of R matrices, (R, a, b), with its own rows of columns, (R b, n), shape (R a, n)."""
    n_matrices, n_rows, n_own = matrices.shape
    n = columns.shape[1]
    return (matrices @ columns.reshape(n_matrices, n_own, n)).reshape(n_matrices * n_rows, n)


@dataclass(frozen=True, eq=False)
class NormalRoots(Roots):
    """Those of Normal vectors, whose statistics are x and xx', without a matrix of the statistics.

    The coordinates of a repetition are D of the vector, and D (D + 1) / 2 of the pairs i <= j.

    Attributes
    ----------
    mean
        Shape (R, D).
    lower
        With the covariance L L', (R, D, D).
    """

    mean: Array
    lower: Array

    @property
    def _pairs(self) -> tuple[AnyArray, AnyArray]:
        return np.triu_indices(self.mean.shape[1])

    @property
    def ranks(self) -> Sequence[int]:
        n, d = self.mean.shape
        return [d + d * (d + 1) // 2] * n

    @property
    def values(self) -> Sequence[Array]:
        n, d = self.mean.shape
        found = np.zeros((n, d + d * (d + 1) // 2, d))
        found[:, :d] = self.lower.swapaxes(1, 2)
        return list(found)

    @cached_property
    def _matrices(self) -> Array | None:
        """The matrices of the statistics, (R, p, rank), if these are small."""
        n, d = self.mean.shape
        rank = d + d * (d + 1) // 2
        if n * (d + d * d) * rank > _MOST_WRITTEN:
            return None
        return self._times(np.tile(np.eye(rank), (n, 1))).reshape(n, d + d * d, rank)

    def times(self, coordinates: Array) -> Array:
        matrices = self._matrices
        return self._times(coordinates) if matrices is None else _each(matrices, coordinates)

    def transposed(self, natural: Array) -> Array:
        matrices = self._matrices
        return self._transposed(natural) if matrices is None else _each(matrices.swapaxes(1, 2), natural)

    def _times(self, coordinates: Array) -> Array:
        n, d = self.mean.shape
        i, j = self._pairs
        own = np.moveaxis(coordinates.reshape(n, -1, coordinates.shape[1]), 2, 1)
        lower = self.lower[:, None]
        products = np.zeros((*own.shape[:2], d, d))
        products[..., i, j] = own[..., d:] * np.where(i == j, np.sqrt(2.0), 1.0)
        products[..., j, i] = products[..., i, j]
        location = own[..., :d] @ self.lower.swapaxes(1, 2)
        moved = self.mean[:, None, :, None] * location[..., None, :]
        square = lower @ products @ lower.swapaxes(2, 3) + moved + moved.swapaxes(2, 3)
        whole = np.concatenate([location, square.reshape(*own.shape[:2], d * d)], axis=2)
        return np.moveaxis(whole, 1, 2).reshape(-1, coordinates.shape[1])

    def _transposed(self, natural: Array) -> Array:
        n, d = self.mean.shape
        i, j = self._pairs
        own = np.moveaxis(natural.reshape(n, -1, natural.shape[1]), 2, 1)
        square = own[..., d:].reshape(*own.shape[:2], d, d)
        square = square + square.swapaxes(2, 3)
        linear = own[..., :d] + (square @ self.mean[:, None, :, None])[..., 0]
        lower = self.lower[:, None]
        products = (lower.swapaxes(2, 3) @ square @ lower)[..., i, j]
        pairs = products * np.where(i == j, np.sqrt(0.5), 1.0)
        whole = np.concatenate([linear @ self.lower, pairs], axis=2)
        return np.moveaxis(whole, 1, 2).reshape(-1, natural.shape[1])
