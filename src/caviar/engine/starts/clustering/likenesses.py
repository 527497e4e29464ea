r"""Likenesses: conjugate Gaussians that take the place of a model's components while many partitions are improved.

Each has a prior about the mean of all points, and gives from sums over clusters the expected log density of a point in
each of them, and the log evidence of the clusters, up to a constant,

.. math:: \sum_k A(\eta_0 + S_k)

Source: Murphy, "Conjugate Bayesian analysis of the Gaussian distribution" (2007), sections 2, 6 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy.special import digamma, gammaln

from ...._typing import Array

_MEAN_WEIGHT = 0.02
"""Points that the prior mean of a cluster is worth."""

_VARIANCE_WEIGHT = 3.0
"""Points that the prior variance of a column is worth."""

_SPREADS, _FINER = (0.001, 0.01, 0.1, 1.0), (3.0, 1.7, 1.3)
"""Variances inside clusters that are tried, in units of those of all points, and factors from each to the next ones."""


class Likeness(Protocol):
    """What takes the place of components."""

    def features(self, points: Array) -> Array:
        """Return what is summed over the points of a cluster, (n, f), the first of it 1."""
        ...

    def fitted(self, sums: Array) -> tuple[Array, Array]:
        """Return the coefficients of the features in expected log densities, (m, k, f), and the log evidence, (m,).

        Parameters
        ----------
        sums
            Of the features over each of k clusters of each of m partitions, (m, k, f).
        """
        ...


def nearest(
    several: Sequence[Array], weights: Array, shares: Array, evidence: Array, most_features: int
) -> tuple[Likeness, Array, float]:
    """Return the likeness whose evidence of some partitions is closest to the given values.

    Parameters
    ----------
    several
        The points in several coordinates, (n, d) each.
    shares
        Of clusters in points, (m, n, k), for m partitions.
    evidence
        Shape (m,), up to a constant.
    most_features
        Likenesses with more features are left out.

    Returns
    -------
    The likeness, its points, and the standard deviation of the difference; infinite if no likeness has evidence of all.
    """
    fits: list[_Fit] = []
    for points in several:
        for kind in _kinds(most_features, points.shape[1]):
            sums = shares.transpose(0, 2, 1) @ (kind(1.0).features(points) * weights[:, None])
            fits += [_Fit(kind, spread, points, sums) for spread in _SPREADS]

    def error(fit: _Fit) -> float:
        found = float(np.std(fit.likeness.fitted(fit.sums)[1] - evidence))
        return found if np.isfinite(found) else np.inf

    best = min(fits, key=error)
    for factor in _FINER:
        best = min((replace(best, spread=best.spread * by) for by in (1.0, 1.0 / factor, factor)), key=error)
    return best.likeness, best.points, error(best)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A kind of likeness with a spread, and the sums over its points."""

    kind: Callable[[float], Likeness]
    spread: float
    points: Array
    sums: Array

    @property
    def likeness(self) -> Likeness:
        return self.kind(self.spread)


def _kinds(most_features: int, size: int) -> Iterator[Callable[[float], Likeness]]:
    """Yield the likenesses with a limited number of features of points, given a spread."""
    yield Diagonal
    yield partial(Diagonal, is_round=True)
    yield partial(Diagonal, is_round=True, is_shared=True)
    yield Fixed
    if 1 + size + size**2 <= most_features:
        yield Full
        yield partial(Full, is_shared=True)


@dataclass(frozen=True)
class Full:
    """A covariance for each cluster, or one for all.

    Attributes
    ----------
    spread
        Variance that the Wishart prior of the precision expects in each column.
    is_shared
        Whether the clusters share their covariance.
    """

    spread: float
    is_shared: bool = False

    def features(self, points: Array) -> Array:
        n_points, size = points.shape
        squares = (points[:, :, None] * points[:, None, :]).reshape(n_points, size * size)
        return np.concatenate([np.ones((n_points, 1)), points, squares], axis=1)

    def fitted(self, sums: Array) -> tuple[Array, Array]:
        size = int(np.sqrt(sums.shape[-1]))
        count, total = sums[..., 0], sums[..., 1 : size + 1]
        weight = _MEAN_WEIGHT + count
        mean = total / weight[..., None]
        scatter = sums[..., size + 1 :].reshape(*count.shape, size, size)
        scatter = scatter - weight[..., None, None] * mean[..., :, None] * mean[..., None, :]
        if self.is_shared:
            scatter, count = scatter.sum(axis=1, keepdims=True), count.sum(axis=1, keepdims=True)
        degrees = size + 2.0 + count
        inverse_scale = scatter + (size + 2.0) * self.spread * np.eye(size)
        sign, log_determinant = np.linalg.slogdet(inverse_scale)
        if not (sign > 0).all():
            # of points on a line, far from each other, rounding leaves nothing beside it: no evidence
            log_determinant = np.where(sign > 0, log_determinant, np.nan)
            inverse_scale = np.where((sign > 0)[..., None, None], inverse_scale, np.eye(size))
        precision = degrees[..., None, None] * np.linalg.inv(inverse_scale)
        halves = 0.5 * (degrees[..., None] - np.arange(size))
        expected_log = digamma(halves).sum(axis=-1) - log_determinant + size * np.log(2.0)
        linear = (precision @ mean[..., None])[..., 0]
        constant = 0.5 * (expected_log - size / weight - (mean * linear).sum(axis=-1))
        evidence = gammaln(halves).sum(axis=-1) + 0.5 * degrees * (size * np.log(2.0) - log_determinant)
        evidence = evidence.sum(axis=1) - 0.5 * size * np.log(weight).sum(axis=1)
        quadratic = np.broadcast_to(
            -0.5 * precision.reshape(*count.shape, size * size), (*weight.shape, size * size)
        )
        return np.concatenate([constant[..., None], linear, quadratic], axis=-1), evidence


@dataclass(frozen=True)
class Diagonal:
    """A variance for each column of each cluster, or shared by columns, or by clusters.

    Attributes
    ----------
    spread
        Variance that the Gamma prior of the precision expects.
    is_round
        Whether the columns of a cluster share their variance.
    is_shared
        Whether the clusters do.
    """

    spread: float
    is_round: bool = False
    is_shared: bool = False

    def features(self, points: Array) -> Array:
        return np.concatenate([np.ones((len(points), 1)), points, points**2], axis=1)

    def fitted(self, sums: Array) -> tuple[Array, Array]:
        size = (sums.shape[-1] - 1) // 2
        count, total = sums[..., 0], sums[..., 1 : size + 1]
        weight = _MEAN_WEIGHT + count
        mean = total / weight[..., None]
        scatter = sums[..., size + 1 :] - weight[..., None] * mean**2
        numbers = np.broadcast_to(count[..., None], scatter.shape)
        if self.is_round:
            scatter, numbers = scatter.sum(axis=-1, keepdims=True), numbers.sum(axis=-1, keepdims=True)
        if self.is_shared:
            scatter, numbers = scatter.sum(axis=1, keepdims=True), numbers.sum(axis=1, keepdims=True)
        shape = 0.5 * (_VARIANCE_WEIGHT + numbers)
        rate = 0.5 * (_VARIANCE_WEIGHT * self.spread + scatter)
        evidence = (gammaln(shape) - shape * np.log(rate)).reshape(len(sums), -1).sum(axis=1)
        evidence -= 0.5 * size * np.log(weight).sum(axis=1)
        precision = np.broadcast_to(shape / rate, mean.shape)
        expected_log = np.broadcast_to(digamma(shape) - np.log(rate), mean.shape)
        linear = precision * mean
        constant = 0.5 * (expected_log - 1.0 / weight[..., None] - linear * mean).sum(axis=-1)
        return np.concatenate([constant[..., None], linear, -0.5 * precision], axis=-1), evidence


@dataclass(frozen=True)
class Fixed:
    """One known variance of all columns and clusters; of counts too, whose roots have nearly the same variance.

    Attributes
    ----------
    spread
        That variance.
    """

    spread: float

    def features(self, points: Array) -> Array:
        squares = (points**2).sum(axis=1, keepdims=True)
        return np.concatenate([np.ones((len(points), 1)), points, squares], axis=1)

    def fitted(self, sums: Array) -> tuple[Array, Array]:
        size = sums.shape[-1] - 2
        weight = _MEAN_WEIGHT + sums[..., 0]
        mean = sums[..., 1:-1] / weight[..., None]
        scatter = sums[..., -1] - weight * (mean**2).sum(axis=-1)
        evidence = -0.5 * (scatter / self.spread + size * np.log(weight)).sum(axis=1)
        constant = -0.5 * ((mean**2).sum(axis=-1) / self.spread + size / weight)[..., None]
        quadratic = np.full(constant.shape, -0.5 / self.spread)
        return np.concatenate([constant, mean / self.spread, quadratic], axis=-1), evidence
