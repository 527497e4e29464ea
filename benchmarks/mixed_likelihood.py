r"""The log-likelihood of a mixed model at given parameters, group effects integrated out by Laplace's approximation.

.. math:: \log p(y) \approx \max_u \big[ \log p(y \mid X \beta + Z u) - \tfrac12 u' D^{-1} u \big]
          - \tfrac12 \log |D| - \tfrac12 \log |D^{-1} + Z' W Z|

That is what lme4 calls the log-likelihood: exact for Normal outcomes, Laplace's approximation for binary ones. It
shares no code with caviar. ``benchmarks/mixed_models.py`` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import block_diag, csc_array, csr_array, hstack, identity, kron
from scipy.sparse.linalg import splu

STEPS = 30
"""Of Newton's method, at most."""


def effects_of(group: np.ndarray, columns: np.ndarray) -> csr_array:
    """Return Z of one grouping factor, (rows, levels times columns), for the columns (rows, c) that vary by group."""
    _, number = np.unique(group, return_inverse=True)
    n, c = columns.shape
    places = (number[:, None] * c + np.arange(c)).ravel()
    return csr_array((columns.ravel(), places, np.arange(0, n * c + 1, c)), shape=(n, (number.max() + 1) * c))


def log_likelihood(
    y: np.ndarray,
    fixed: np.ndarray,
    effects: Sequence[csr_array],
    covariances: Sequence[np.ndarray],
    residual: float | None,
) -> float:
    """Return log p(y) in nats.

    Parameters
    ----------
    y, fixed
        Outcomes, and the part of the predictor that is the same in all groups, (rows,) each.
    effects, covariances
        Z of each grouping factor, and the covariance (c, c) of the effects of one of its groups.
    residual
        Standard deviation of Normal outcomes; None of binary ones with a logistic link.
    """
    z = csc_array(hstack(effects))
    levels = [own.shape[1] // len(covariance) for own, covariance in zip(effects, covariances, strict=True)]
    pairs = list(zip(levels, covariances, strict=True))
    precision = csc_array(block_diag([kron(identity(n), np.linalg.inv(own)) for n, own in pairs]))
    log_determinant = sum(n * np.linalg.slogdet(own)[1] for n, own in pairs)
    u, hessian = np.zeros(z.shape[1]), splu(precision)
    for _ in range(STEPS):
        eta = fixed + z @ u
        if residual is None:
            p = 1.0 / (1.0 + np.exp(-eta))
            slope, weight = y - p, p * (1.0 - p)
        else:
            slope, weight = (y - eta) / residual**2, np.full(len(y), residual**-2)
        hessian = splu(csc_array(precision + z.T @ (z * weight[:, None])), permc_spec="MMD_AT_PLUS_A")
        step = hessian.solve(z.T @ slope - precision @ u)
        if np.abs(step).max() < 1e-9:
            break
        u = u + step
    eta = fixed + z @ u
    if residual is None:
        value = float(y @ eta - np.logaddexp(0.0, eta).sum())
    else:
        value = float(-0.5 * (np.square((y - eta) / residual) + np.log(2.0 * np.pi * residual**2)).sum())
    curvature = np.log(np.abs(hessian.U.diagonal())).sum()
    return value - 0.5 * float(u @ (precision @ u)) - 0.5 * float(log_determinant + curvature)
