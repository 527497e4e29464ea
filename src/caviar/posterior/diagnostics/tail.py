r"""The tail of importance weights: its shape k, how well k is known, and what k leaves unknown of the mean weight.

The largest M of S weights are taken for a threshold u plus a draw of the generalised Pareto distribution of shape k,
whose quantiles are :math:`\sigma (1 - z)^{-k} / k - \sigma / k` (Vehtari et al. 2024, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from .pareto import smoothed

GOOD = 0.5
"""Shape from which on weights have no variance."""

_HEAVIEST = 20.0
"""Largest shape of a tail whose moments are taken: beyond, its quantiles leave the range of numbers."""

_BATCHES = 20
_FINER = 50
"""Quantiles for each weight of the tail, by which its moments are taken: so many times the draws that were made."""


@dataclass(frozen=True, eq=False)
class Tail:
    """The tail of importance weights, as estimated.

    Attributes
    ----------
    k
        Shape of the generalised Pareto distribution.
    error
        Standard error of k, from the draws without each of 20 batches of them.
    log_weights
        Smoothed and normalised log weights, shape (draws,).
    """

    k: float
    error: float
    log_weights: Array


def tail_of(log_weights: Array) -> Tail:
    r"""Return the tail of weights that are not all equal.

    The error of k is the jackknife's over B batches, :math:`\sqrt{(B - 1) / B \sum_b (k_{-b} - \bar k)^2}`. Against the
    spread of k in repeated draws for 150 logistic and probit regressions it is 1.2 times as large.
    """
    weights, k = smoothed(log_weights)
    batch = np.arange(len(log_weights)) % _BATCHES
    without = np.array([smoothed(log_weights[batch != number])[1] for number in range(_BATCHES)])
    error = float(np.sqrt((_BATCHES - 1) * np.var(without))) if np.all(np.isfinite(without)) else float("inf")
    return Tail(k, error, weights)


def log_mean_of(log_weights: Array, tail: Tail) -> tuple[float, float]:
    """Return the log of the mean weight, and its standard error.

    The error is that of weights whose tail is as heavy as it may well be: of the shape k + its error, or 0.5 if that is
    more, for a smaller k is found where the largest weights happen to be missing.
    """
    return log_mean_and_error(log_weights, min(max(GOOD, tail.k + tail.error), _HEAVIEST))


def log_mean_and_error(log_weights: Array, k: float) -> tuple[float, float]:
    """Return the log of the mean weight, and its standard error if the tail has the shape k."""
    largest = float(log_weights.max())
    weights = np.sort(np.exp(log_weights - largest))
    n_tail = int(np.ceil(min(len(weights) / 5, 3 * np.sqrt(len(weights)))))
    body, threshold = weights[:-n_tail], weights[-n_tail - 1]
    tail = threshold + _excesses(k, float(np.median(weights[-n_tail:] - threshold)), _FINER * n_tail)
    first = (body.sum() + n_tail * tail.mean()) / len(weights)
    second = (np.square(body).sum() + n_tail * np.square(tail).mean()) / len(weights)
    mean = float(weights.mean())
    return largest + float(np.log(mean)), float(np.sqrt((second - first**2) / len(weights)) / mean)


def _excesses(k: float, median: float, n: int) -> Array:
    """Return n evenly spread quantiles of the generalised Pareto distribution with this shape and median."""
    logs = -np.log1p(-(np.arange(n) + 0.5) / n)
    if abs(k) < 1e-9:
        return median * logs / np.log(2.0)
    return median * np.expm1(k * logs) / np.expm1(k * np.log(2.0))
