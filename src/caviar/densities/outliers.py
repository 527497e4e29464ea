"""Rows that are less expected than a given share of what the distribution draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.arguments import require_share, require_whole
from .conditioning import Conditionable
from .evaluation import log_densities
from .rows import patterns

_FEWEST_ALARMS = 10
"""Draws beyond the threshold below which its rate is hardly known."""


@dataclass(frozen=True)
class OutlierThreshold:
    """An outlier score, and how often rows of the distribution itself exceed it.

    Attributes
    ----------
    threshold
        Score above which a row is called an outlier, in nats.
    rate
        Expected rate of false alarms.
    standard_error
        Standard error of the rate, because the threshold is estimated from draws: sqrt(rate (1 - rate) / n_draws).
    """

    threshold: float
    rate: float
    standard_error: float


def threshold(
    mixture: Conditionable, rate: float, rng: np.random.Generator, n_draws: int
) -> OutlierThreshold:
    """Return the threshold of complete rows, from draws."""
    rows, _ = mixture.draw(enough(rate, n_draws), rng)
    return threshold_of(-log_densities(mixture, rows), rate)


def threshold_of(scores: Array, rate: float) -> OutlierThreshold:
    """Return the threshold of complete rows, from the scores of draws, (n,)."""
    error = math.sqrt(rate * (1 - rate) / len(scores))
    return OutlierThreshold(_exceeded_by(scores, rate), float(rate), error)


def flagged(
    mixture: Conditionable, X: AnyArray, rate: float, rng: np.random.Generator, n_draws: int
) -> AnyArray:
    """Return which rows exceed the threshold of their pattern of missing entries, (N, D) -> (N,)."""
    drawn, _ = mixture.draw(enough(rate, n_draws), rng)

    def scores(rows: AnyArray, observed: AnyArray) -> Array:
        return -log_densities(mixture.select(observed), rows[:, observed])

    return flagged_by(scores, drawn, X, rate)


def flagged_by(
    scores: Callable[[AnyArray, AnyArray], Array], drawn: AnyArray, X: AnyArray, rate: float
) -> AnyArray:
    """Return which rows exceed the threshold of their pattern of missing entries, (N, D) -> (N,).

    Parameters
    ----------
    scores
        Returns how unexpected the observed columns of rows are: rows (n, D), places of the columns -> (n,).
    drawn
        Rows of the distribution, (n, D), without missing entries.
    X
        Rows, NaN where an entry is missing; those without any entry are not outliers.
    rate
        Share of rows of the distribution that exceed the threshold.
    """
    result = np.zeros(len(X), dtype=bool)
    for observed, _, rows in patterns(np.isnan(X)):
        if len(observed):
            result[rows] = scores(X[rows], observed) > _exceeded_by(scores(drawn, observed), rate)
    return result


def enough(rate: float, n_draws: int) -> int:
    """Return a number of draws, of which enough exceed the threshold.

    Raises
    ------
    ParameterError
        If too few do.
    """
    require_share("rate", rate)
    require_whole("n_draws", n_draws, 1)
    if n_draws * rate < _FEWEST_ALARMS:
        raise ParameterError(
            f"a rate of {rate:g} needs at least {math.ceil(_FEWEST_ALARMS / rate)} draws; got n_draws={n_draws}"
        )
    return n_draws


def _exceeded_by(scores: Array, rate: float) -> float:
    """Return the score that a further draw exceeds with this probability at most, on average over draws.

    Of n draws a further one exceeds the j-th smallest with probability (n + 1 - j) / (n + 1).
    """
    rank = min(math.ceil((1 - rate) * (len(scores) + 1)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])
