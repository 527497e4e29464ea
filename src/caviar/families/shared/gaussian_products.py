"""Moments of numbers that are jointly Gaussian, and of products of pairs of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.base.roots import MatrixRoots

MOST_DEPENDENT = 40
"""Numbers up to which square roots of the covariances of their statistics are found without these covariances."""

_NEARLY_DEPENDENT = 1e-4
"""Smallest eigenvalue of the correlations of all numbers below which that is worth its time."""

_NOTHING = 1e-12
"""Singular value that is rounding, relative to the largest."""


def covariance_of_products(
    mean: Array, covariance: Array, pairs: Iterable[tuple[AnyArray, AnyArray]]
) -> tuple[Array, Array, Array]:
    """Return the covariances of all statistics, (p, p), of these with all numbers, (p, n), and of these, (n, n).

    With deviations u, a product is :math:`x_i x_j = m_i m_j + m_i u_j + m_j u_i + u_i u_j`.

    Parameters
    ----------
    mean, covariance
        Of the numbers, (n,) and (n, n).
    pairs
        Of the entries of each statistic, which two numbers they are the product of; the second is -1 of a number.
    """
    first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
    linear, is_product = _slopes(mean, first, second), second >= 0
    found = linear @ covariance @ linear.T
    k, m = first[is_product], second[is_product]
    quadratic = (
        covariance[np.ix_(k, k)] * covariance[np.ix_(m, m)]
        + covariance[np.ix_(k, m)] * covariance[np.ix_(m, k)]
    )
    found[np.ix_(is_product, is_product)] += quadratic
    return found, linear @ covariance, covariance


def roots_of_all(
    mean: Array, lower: Array, pairs: Iterable[tuple[AnyArray, AnyArray]]
) -> tuple[MatrixRoots, Array] | None:
    """Return the roots of the covariances of statistics, and the covariances of all numbers, (n, n).

    None where the numbers do not nearly determine each other: the covariances of the statistics then have the digits
    for it.

    Parameters
    ----------
    mean, lower, pairs
        As of :func:`roots_of_products`.
    """
    covariance = lower @ lower.T
    sd = np.sqrt(np.diagonal(covariance))
    if np.linalg.eigvalsh(covariance / np.outer(sd, sd))[0] > _NEARLY_DEPENDENT:
        return None
    root, values = roots_of_products(mean, lower, pairs)
    return MatrixRoots([root], [values]), covariance


def roots_of_products(
    mean: Array, lower: Array, pairs: Iterable[tuple[AnyArray, AnyArray]]
) -> tuple[Array, Array]:
    r"""Return a square root of the covariances of all statistics, (p, r).

    With it come the covariances of its coordinates with all numbers, (r, n). With :math:`x = m + L u` the functions
    :math:`u_a`, :math:`u_a u_b` and :math:`(u_a^2 - 1) / \sqrt 2` are orthonormal, and the root is what the statistics
    are of these. Its singular values are the square roots of those of the covariances: where numbers nearly determine
    each other, as an intercept and the slope of a covariate far from 0, it keeps digits that the covariances lack.

    Parameters
    ----------
    mean, lower
        Of the numbers, (n,), and with their covariance L L', (n, d).
    pairs
        As of :func:`covariance_of_products`.
    """
    first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
    n, is_product = lower.shape[1], second >= 0
    a, b = np.triu_indices(n)
    k, m = lower[first[is_product]], lower[second[is_product]]
    root = np.zeros((len(first), n + len(a)))
    root[:, :n] = _slopes(mean, first, second) @ lower
    root[is_product, n:] = (k[:, a] * m[:, b] + k[:, b] * m[:, a]) * np.where(a == b, np.sqrt(0.5), 1.0)
    size = np.linalg.norm(root, axis=1, keepdims=True)
    directions, values, turned = np.linalg.svd(root / np.where(size > 0, size, 1.0), full_matrices=False)
    kept = values > _NOTHING * values.max(initial=0.0)
    return size * directions[:, kept] * values[kept], turned[kept, :n] @ lower.T


def _slopes(mean: Array, first: AnyArray, second: AnyArray) -> Array:
    """Return by how much statistics change with each number, to first order, (p, n)."""
    found = np.zeros((len(first), len(mean)))
    rows, is_product = np.arange(len(first)), second >= 0
    np.add.at(found, (rows, first), np.where(is_product, mean[second], 1.0))
    np.add.at(found, (rows[is_product], second[is_product]), mean[first[is_product]])
    return found
