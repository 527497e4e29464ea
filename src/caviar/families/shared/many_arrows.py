r"""Joint Gaussian distributions of many numbers at many natural parameters, the largest part eliminated.

With the precision :math:`\begin{pmatrix} D & B \\ B' & C \end{pmatrix}`, D block diagonal, and the Schur complement
:math:`S = C - B' D^{-1} B`, the log-partition is

.. math:: A = \tfrac12 \left( h' m - \log |D| - \log |S| + d \log 2 \pi \right)

and the variances are the diagonals of :math:`S^{-1}` and :math:`D^{-1} + T S^{-1} T'`, :math:`T = D^{-1} B`.

Numbers u that do not count have nothing observed below them: the natural parameters have their densities given the
others, which integrate to one. So the log-partition of the others is A less that of u where the others are 0.

Of numbers k that are known at the values v, the others have :math:`h_u - P_{uk} v` in the place of :math:`h_u`, and
:math:`h_k' v - \tfrac12 v' P_{kk} v` is added to the log-partition. A known number is kept beside them, by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..._typing import AnyArray, Array
from ...numerics.linalg import cholesky, inverse, log_determinant, lower_roots
from ..base.family import LOG_TWO_PI
from .coupled_normals import CoupledLayout

_MOST_NUMBERS = 4_000_000
"""Numbers of B at all natural parameters that are held together."""


class Moments(NamedTuple):
    """What n Gaussian distributions of d numbers are: log-partitions (n,), means and variances (n, d)."""

    log_partition: Array
    mean: Array
    variance: Array


class ManyArrows:
    """Gaussian distributions with the same places of entries in their precisions.

    Parameters
    ----------
    layout
        Which numbers there are, and which of them appear together.
    counts
        Which numbers are in the log-partition, (d,). Nothing of the others is known but their densities given these.
    values
        Of all numbers, (d,), of which those count that the layout says are known.
    """

    def __init__(self, layout: CoupledLayout, counts: AnyArray, values: Array) -> None:
        first, second = (np.concatenate(each) for each in zip(*layout.pairs_of_statistics(), strict=True))
        known = np.zeros(layout.pattern.size, dtype=bool) if layout.known is None else layout.known
        self._known, self._values = known, np.where(known, values, 0.0)
        sizes = [count * width for count, width in layout.pattern.parts]
        largest = max(range(len(sizes)), key=lambda part: layout.pattern.parts[part])
        self._own = layout.place(largest)
        _, self._width = layout.pattern.parts[largest]
        self._size, self._counts = layout.pattern.size, counts
        others = np.ones(self._size, dtype=bool)
        others[self._own] = False
        self._rest = np.flatnonzero(others)
        where = np.empty(self._size, dtype=np.intp)
        where[self._own], where[self._rest] = np.arange(sizes[largest]), np.arange(len(self._rest))
        is_linear, is_own = second < 0, ~others
        i, j, width, n_rest = where[first], where[second], self._width, len(self._rest)
        # of a number by itself the second is -1, the last
        learnt = ~known[first] & (is_linear | ~known[second])
        own, crossed = is_own[first] & is_own[second], is_own[first] != is_own[second]
        rows, columns = np.where(is_own[first], i, j), np.where(is_own[first], j, i)
        among = ~is_linear & ~is_own[first] & ~is_own[second]
        self._linear = _added(is_linear & learnt, first, self._size)
        for one, other in ((first, second), (second, first)):
            met = ~is_linear & ~known[one] & known[other]
            self._linear += _added(met, one, self._size, self._values[other])
        self._among_known = np.concatenate(
            [np.ravel(own) for own in layout.statistics_of_numbers(self._values)]
        )
        self._blocks = _added(~is_linear & own & learnt, i * width + j % width, sizes[largest] * width)
        self._between = _added(
            ~is_linear & crossed & learnt, rows * n_rest + columns, sizes[largest] * n_rest
        )
        self._square = _added(among & learnt, i * n_rest + j, n_rest * n_rest)
        self._units = (
            _units(known[self._own].reshape(-1, width)),
            np.diag(known[self._rest].astype(np.float64)),
        )

    @property
    def operations(self) -> float:
        """Operations at one natural parameter, about."""
        rest = float(len(self._rest))
        own = float(self._own.stop - self._own.start)
        return own * (self._width**2 + rest**2) + rest**3 + 20.0 * self._linear.shape[0]

    def at(self, natural: Array) -> Moments:
        """Return the distributions with natural parameters (n, p); NaN where these are improper."""
        each = max(1, int(_MOST_NUMBERS / (self._between.shape[1] + self._size + 1)))
        parts = list(self._portions(natural, each))
        return Moments(*(np.concatenate(own) for own in zip(*parts, strict=True)))

    def _portions(self, natural: Array, each: int) -> Iterator[Moments]:
        for start in range(0, len(natural), each):
            yield self._at(natural[start : start + each])

    @np.errstate(all="ignore")
    def _at(self, natural: Array) -> Moments:
        n, width, n_rest = len(natural), self._width, len(self._rest)
        linear = natural @ self._linear + self._values
        blocks = -(natural @ self._blocks).reshape(n, -1, width, width)
        between = -(natural @ self._between).reshape(n, -1, width, n_rest)
        square = -(natural @ self._square).reshape(n, n_rest, n_rest)
        of_own, of_rest = self._units
        whole = _Arrow(
            blocks + blocks.swapaxes(-1, -2) + of_own,
            between,
            square + square.swapaxes(1, 2) + of_rest,
            linear[:, self._own].reshape(n, -1, width, 1),
            linear[:, self._rest, None],
        )
        log_partition, own, rest, of_own, of_rest = whole.solved()
        if not self._counts.all():
            left_out = ~self._counts[self._own].reshape(-1, width)[:, 0], ~self._counts[self._rest]
            log_partition = log_partition - whole.among(*left_out).solved()[0]
        mean, variance = np.empty((2, n, self._size))
        mean[:, self._rest], variance[:, self._rest] = rest, of_rest
        mean[:, self._own], variance[:, self._own] = own, of_own
        if self._known.any():
            log_partition = log_partition + natural @ self._among_known
            variance[:, self._known] = 0.0
        return Moments(log_partition, mean, variance)


class _Arrow(NamedTuple):
    """D (n, L, q, q), B (n, L, q, r) and C (n, r, r) of n precisions, and h: (n, L, q, 1) and (n, r, 1)."""

    blocks: Array
    between: Array
    square: Array
    own: Array
    rest: Array

    def among(self, own: AnyArray, rest: AnyArray) -> _Arrow:
        """Return the parts of some of the numbers."""
        among_rest = self.square[:, rest][:, :, rest]
        return _Arrow(
            self.blocks[:, own],
            self.between[:, own][..., rest],
            among_rest,
            self.own[:, own],
            self.rest[:, rest],
        )

    def solved(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the log-partition, the means of both parts, and their variances."""
        n, n_own, width, n_rest = self.between.shape
        roots = _roots(self.blocks)
        inverse_roots = inverse(np.where(np.isfinite(roots), roots, np.eye(width)), is_lower=True)
        inverses = inverse_roots.swapaxes(-1, -2) @ inverse_roots
        turned, means = inverses @ self.between, inverses @ self.own
        own_first = n, n_own * width, n_rest
        flat, crossed = turned.reshape(own_first), self.between.reshape(own_first).swapaxes(1, 2)
        schur = self.square - crossed @ flat
        lower = lower_roots(0.5 * (schur + schur.swapaxes(1, 2)))
        covariance = inverse(np.where(np.isfinite(lower), schur, np.eye(n_rest)))
        at_rest = covariance @ (self.rest - crossed @ means.reshape(n, n_own * width, 1))
        at_own = means.reshape(n, n_own * width, 1) - flat @ at_rest
        within = np.diagonal(inverses, axis1=2, axis2=3).reshape(n, n_own * width)
        variance = within + ((flat @ covariance) * flat).sum(axis=2)
        squares = (self.own.reshape(n, n_own * width) * at_own[..., 0]).sum(axis=1)
        squares += (self.rest * at_rest)[..., 0].sum(axis=1)
        log_partition = squares - log_determinant(roots).sum(axis=1) - log_determinant(lower)
        log_partition += (n_own * width + n_rest) * LOG_TWO_PI
        of_rest = np.diagonal(covariance, axis1=1, axis2=2)
        return 0.5 * log_partition, at_own[..., 0], at_rest[..., 0], variance, of_rest


def _roots(blocks: Array) -> Array:
    """Return the lower Cholesky factors of blocks (n, L, q, q); NaN of those that are not positive definite."""
    try:
        return cholesky(blocks)
    except np.linalg.LinAlgError:
        return lower_roots(blocks.reshape(-1, *blocks.shape[-2:])).reshape(blocks.shape)


def _units(known: AnyArray) -> Array:
    """Return the blocks that are 1 on the diagonal for known numbers (L, q), and 0 elsewhere, (L, q, q)."""
    return known[:, :, None] * np.eye(known.shape[1])


def _added(chosen: AnyArray, places: AnyArray, size: int, weights: Array | None = None) -> csr_array:
    """Return the matrix that adds the chosen ones of p numbers, times their weights, at places, (p, size)."""
    which = np.flatnonzero(chosen)
    own = np.ones(len(which)) if weights is None else weights[which]
    return csr_array((own, (which, places[which])), shape=(len(chosen), size))
