"""Moments of numbers that are jointly Gaussian, and of products of pairs of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from caviar._typing import AnyArray, Array


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
    n = len(mean)
    first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
    linear = np.zeros((len(first), n))
    rows, is_product = np.arange(len(first)), second >= 0
    np.add.at(linear, (rows, first), np.where(is_product, mean[second], 1.0))
    np.add.at(linear, (rows[is_product], second[is_product]), mean[first[is_product]])
    found = linear @ covariance @ linear.T
    k, m = first[is_product], second[is_product]
    quadratic = (
        covariance[np.ix_(k, k)] * covariance[np.ix_(m, m)]
        + covariance[np.ix_(k, m)] * covariance[np.ix_(m, k)]
    )
    found[np.ix_(is_product, is_product)] += quadratic
    return found, linear @ covariance, covariance
