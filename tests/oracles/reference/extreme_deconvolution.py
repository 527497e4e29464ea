r"""Extreme deconvolution by EM: Bovy, Hogg and Roweis (2011), equations 15 and 16 with unit projections, literally.

.. math::

    \log L = \sum_n \log \sum_k \pi_k N(x_n \mid m_k, V_k + S_n)
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import multivariate_normal

from caviar._typing import Array


@dataclass(frozen=True)
class Mixture:
    """pi_k (K,), m_k (K, D) and V_k (K, D, D)."""

    weights: Array
    means: Array
    covariances: Array


def joint_densities(x: Array, errors: Array, mixture: Mixture) -> Array:
    """Return pi_k N(x_n | m_k, V_k + S_n), shape (N, K), by SciPy."""
    return np.array(
        [
            [
                w * multivariate_normal.pdf(row, m, v + s)
                for w, m, v in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
            ]
            for row, s in zip(x, errors, strict=True)
        ]
    )


def log_likelihood(x: Array, errors: Array, mixture: Mixture) -> float:
    """Return log L in nats."""
    return float(np.log(joint_densities(x, errors, mixture).sum(axis=1)).sum())


def step(x: Array, errors: Array, mixture: Mixture) -> Mixture:
    """Return the mixture after one step of EM."""
    q = joint_densities(x, errors, mixture)
    q /= q.sum(axis=1, keepdims=True)
    means, covariances = np.empty_like(mixture.means), np.empty_like(mixture.covariances)
    for k, (m, v) in enumerate(zip(mixture.means, mixture.covariances, strict=True)):
        expected, within = np.empty_like(x), np.empty((len(x), *v.shape))
        for n, (row, s) in enumerate(zip(x, errors, strict=True)):
            gain = v @ np.linalg.inv(v + s)
            expected[n], within[n] = m + gain @ (row - m), v - gain @ v
        means[k] = q[:, k] @ expected / q[:, k].sum()
        total = np.zeros_like(v)
        for r, b, c in zip(q[:, k], expected, within, strict=True):
            total += r * (np.outer(b - means[k], b - means[k]) + c)
        covariances[k] = total / q[:, k].sum()
    return Mixture(q.mean(axis=0), means, covariances)
