r"""Values of a Normal predictor, or of an unknown probability, of which a prediction of counts is a mixture.

.. math:: p(y) = \mathrm E_{z \sim N(0, 1)}\, p(y \mid \eta(z)) \approx \sum_j w_j\, p(y \mid \eta(z_j))

by the trapezoidal rule, which for integrands as smooth as these errs by less than 1e-3 with nine nodes. Where counts
given the predictor vary less than the predictor makes their means vary, there are more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr

from ..._typing import Array

_FARTHEST = 4.5
"""Standard deviations of the predictor within which nodes lie: beyond is less than a hundred-thousandth."""

_FEWEST, _MOST = 9, 41


def nodes(ratio: Any) -> Iterator[tuple[float, float]]:
    """Yield values of a standard Normal and their weights, of sum one.

    Parameters
    ----------
    ratio
        Standard deviation of the conditional means over that of a value given its mean, at its largest.
    """
    largest = np.max(ratio, initial=0.0, where=np.isfinite(ratio))
    # as far apart as a value given its mean varies, or closer
    number = int(np.clip(2.0 * np.ceil(_FARTHEST * largest) + 1.0, _FEWEST, _MOST))
    places = np.linspace(-_FARTHEST, _FARTHEST, number)
    weights = np.exp(-0.5 * places**2)
    yield from zip(places.tolist(), (weights / weights.sum()).tolist(), strict=True)


def probability_at(place: float, mean: Array, variance: Array) -> Array:
    """Return the probability from a Beta of this mean and variance at the rank that a standard Normal value has."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = mean * (1.0 - mean) / variance - 1.0
        found = betaincinv(mean * size, (1.0 - mean) * size, ndtr(place))
    return np.where(np.isfinite(found), found, mean)
