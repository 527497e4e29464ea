"""Normals with an unknown precision as mixtures of Normals, for the tails of predictions."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from .._typing import Array
from ..families._scale_mixtures import gamma_nodes, shape_of_log_variance
from .expected_slots import ExpectedSlots

_LARGEST = 1e6
"""Shape from which a precision is as good as known."""


def with_precisions(
    slots: ExpectedSlots, mean: Array, variance: Array, *, is_joint: bool
) -> list[tuple[Array, Array, Array]]:
    """Return weights, means and variances of the Normals for some values of a precision.

    The precision, or the product of several, is taken as the Gamma with the mean and variance of its logarithm, which
    is exact for a single one.

    Parameters
    ----------
    mean, variance
        Of a value: what is not known of its mean, and the noise.
    is_joint
        Whether the variance of the mean is in proportion to that of the noise, as in a joint factor.
    """
    told = slots.log_precision("precision")
    if told is None:
        return [(np.ones(()), mean, variance)]
    shape = np.minimum(shape_of_log_variance(told[1]), _LARGEST)
    noise = slots.inverse("precision")[0]
    if is_joint and not np.isfinite(noise).all():
        return [(np.ones(()), mean, variance)]
    weights, nodes = gamma_nodes(shape)
    rate = np.exp(digamma(shape) - told[0])
    if len(weights) == 1:
        return [(np.ones(()), mean, variance)]
    location = None if is_joint else slots.location()[1]
    return [
        (weight, mean, variance * (rate / node) / noise if location is None else location + rate / node)
        for weight, node in zip(weights, nodes, strict=True)
    ]
