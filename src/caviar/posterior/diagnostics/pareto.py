r"""Pareto-smoothed importance weights (PSIS): a generalised Pareto distribution in the place of the largest weights.

Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR 25(72), section 3; the fit is
that of Zhang and Stephens (2009), with the prior on the shape of appendix C of the former.
"""

from __future__ import annotations

import numpy as np

from ..._typing import Array

_FEWEST = 5
"""Weights of a tail to which a shape is fitted."""
_SMALLEST_LOG = float(np.log(np.finfo(np.float64).tiny))
_PRIOR_OF_SCALES, _PRIOR_ROWS, _PRIOR_SHAPE = 3, 10, 0.5


def smoothed(log_weights: Array) -> tuple[Array, float]:
    """Return Pareto-smoothed, normalised log weights and the estimated shape k of their tail.

    Parameters
    ----------
    log_weights
        Of each draw, shape (draws,), up to a common constant.

    Notes
    -----
    The tail has at most a fifth of the S draws, and at most 3 sqrt(S). With fewer than five weights k is infinite, and
    nothing is smoothed.

    Examples
    --------
    >>> weights, k = smoothed(np.zeros(100))
    >>> k, float(weights[0].round(6))
    (inf, -4.60517)
    """
    logs = log_weights - log_weights.max()
    n_draws = len(logs)
    n_tail = int(np.ceil(min(n_draws / 5, 3 * np.sqrt(n_draws))))
    cut = max(float(np.sort(logs)[-n_tail - 1]), _SMALLEST_LOG)
    tail = np.flatnonzero(logs > cut)
    tail = tail[np.argsort(logs[tail])]
    shape = np.inf
    if len(tail) >= _FEWEST:
        shape, scale = fitted_pareto(np.exp(logs[tail]) - np.exp(cut))
        if np.isfinite(shape):
            # no smoothed weight is larger than the largest of the draws, so it may overflow
            with np.errstate(over="ignore"):
                quantiles = pareto_quantiles((np.arange(len(tail)) + 0.5) / len(tail), shape, scale)
            logs[tail] = np.minimum(np.log(quantiles + np.exp(cut)), 0.0)
    return logs - np.logaddexp.reduce(logs), float(shape)


def fitted_pareto(excesses: Array) -> tuple[float, float]:
    r"""Return shape k and scale of a generalised Pareto distribution, from sorted positive values.

    The posterior mean of :math:`b = -k / \sigma` over a grid, under a weak prior, gives both; k is then drawn to 0.5 as
    by ten more values.

    Examples
    --------
    >>> k, scale = fitted_pareto(pareto_quantiles((np.arange(1000) + 0.5) / 1000, 0.4, 2.0))
    >>> round(k, 2), round(scale, 1)
    (0.4, 2.0)
    """
    n = len(excesses)
    size = 30 + int(np.sqrt(n))
    grid = 1 - np.sqrt(size / (np.arange(1, size + 1) - 0.5))
    grid = grid / (_PRIOR_OF_SCALES * excesses[int(n / 4 + 0.5) - 1]) + 1 / excesses[-1]
    shapes = np.log1p(-grid[:, np.newaxis] * excesses).mean(axis=1)
    profile = n * (np.log(-grid / shapes) - shapes - 1)
    # differences that overflow belong to points without weight
    with np.errstate(over="ignore"):
        weights = 1 / np.exp(profile - profile[:, np.newaxis]).sum(axis=1)
    kept = weights >= 10 * np.finfo(np.float64).eps
    b = float(np.sum(grid[kept] * weights[kept]) / weights[kept].sum())
    shape = float(np.log1p(-b * excesses).mean())
    return (n * shape + _PRIOR_ROWS * _PRIOR_SHAPE) / (n + _PRIOR_ROWS), -shape / b


def pareto_quantiles(probabilities: Array, shape: float, scale: float) -> Array:
    """Return quantiles of a generalised Pareto distribution that begins at 0.

    Examples
    --------
    >>> pareto_quantiles(np.array([0.5]), 1.0, 2.0)
    array([2.])
    """
    logs = -np.log1p(-probabilities)
    return scale * (logs if abs(shape) < np.finfo(np.float64).eps else np.expm1(shape * logs) / shape)
