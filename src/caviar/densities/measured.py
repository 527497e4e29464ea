"""Rows that are measured with errors of known covariance: the density of what is seen."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from .._typing import Array
from ..numerics.linalg import cholesky
from .components.component import Components

_BLOCK_ROWS = 2048


def measured_log_density(mixture: Components, X: Array, covariances: Array) -> Array:
    r"""Return :math:`\log \sum_k \pi_k N(x_n; m_k, \Sigma_k + S_n)` of each row of a mixture of Normals, (N,).

    Parameters
    ----------
    X
        Rows, shape (N, D).
    covariances
        :math:`S_n`, variances (N, D) or matrices (N, D, D).
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    result = np.empty(len(X))
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        logs = [
            _log_normal(X[rows] - location, shape + _as_matrices(covariances[rows]))
            for location, shape in zip(mixture.locations, mixture.component_shapes(), strict=True)
        ]
        result[rows] = logsumexp(log_weights[:, None] + np.stack(logs), axis=0)
    return result


def _as_matrices(covariances: Array) -> Array:
    if covariances.ndim == 3:
        return covariances
    return covariances[:, :, None] * np.eye(covariances.shape[1])


def _log_normal(deviations: Array, covariances: Array) -> Array:
    """Return log densities of deviations (B, D) from the mean, each under its own covariance (B, D, D)."""
    root = cholesky(covariances)
    whitened = np.linalg.solve(root, deviations[:, :, None])[:, :, 0]
    log_determinants = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    size = deviations.shape[1]
    return -0.5 * (np.square(whitened).sum(axis=1) + log_determinants + size * np.log(2 * np.pi))
