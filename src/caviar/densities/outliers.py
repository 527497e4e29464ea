"""Rows that are less expected than a given share of what the distribution draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._errors import ParameterError
from .._typing import AnyArray, Array
from .conditioning import Conditionable
from .evaluation import log_densities
from .parameters import require_share, require_whole
from .rows import patterns

_FEWEST_ALARMS = 10
"""Draws beyond the threshold below which its rate is hardly known."""


@dataclass(frozen=True)
class OutlierThreshold:
    """A score, and how often a row of the distribution itself exceeds it.

    Attributes
    ----------
    threshold
        Score above which a row is called an outlier, in nats.
    rate
        Expected share of false alarms.
    standard_error
        Standard deviation of the actual share over sets of draws: sqrt(rate (1 - rate) / n_draws).
    """

    threshold: float
    rate: float
    standard_error: float


def threshold(
    mixture: Conditionable, rate: float, rng: np.random.Generator, n_draws: int
) -> OutlierThreshold:
    """Return the threshold of complete rows, from draws."""
    rows, _ = mixture.draw(_enough(rate, n_draws), rng)
    found = _exceeded_by(-log_densities(mixture, rows), rate)
    return OutlierThreshold(found, float(rate), math.sqrt(rate * (1 - rate) / n_draws))


def flagged(
    mixture: Conditionable, X: AnyArray, rate: float, rng: np.random.Generator, n_draws: int
) -> AnyArray:
    """Return which rows exceed the threshold of their pattern of missing entries, (N, D) -> (N,)."""
    drawn, _ = mixture.draw(_enough(rate, n_draws), rng)
    result = np.zeros(len(X), dtype=bool)
    for observed, _, rows in patterns(np.isnan(X)):
        if len(observed):
            part = mixture.select(observed)
            limit = _exceeded_by(-log_densities(part, drawn[:, observed]), rate)
            result[rows] = -log_densities(part, X[np.ix_(rows, observed)]) > limit
    return result


def _enough(rate: float, n_draws: int) -> int:
    require_share("rate", rate)
    require_whole("n_draws", n_draws, 1)
    if n_draws * rate < _FEWEST_ALARMS:
        raise ParameterError(
            f"a rate of {rate:g} takes at least {math.ceil(_FEWEST_ALARMS / rate)} draws; got n_draws={n_draws}"
        )
    return n_draws


def _exceeded_by(scores: Array, rate: float) -> float:
    """Return the score that a further draw exceeds with this probability at most, on average over draws.

    Of n draws a further one exceeds the j-th smallest with probability (n + 1 - j) / (n + 1).
    """
    rank = min(math.ceil((1 - rate) * (len(scores) + 1)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])
