"""Common effects where columns are zero, of a fit that measures columns far from zero from their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._typing import Array
from ...families.base.marginals import Marginals
from .design import COMMON, INTERCEPT


def at_zero(names: Sequence[str], centres: Mapping[str, Mapping[str, float]]) -> Array | None:
    """Return what the common effects of a fit are multiplied with, (p, p), to have the intercept at zero.

    Parameters
    ----------
    names
        Of the effects, (p,).
    centres
        From where columns are measured, by the name of a term.

    Returns
    -------
    Array or None
        None if no column is measured from elsewhere than zero.
    """
    moved = centres.get(COMMON, {})
    if not moved:
        return None
    found = np.eye(len(names))
    found[list(names).index(INTERCEPT)] -= [moved.get(name, 0.0) for name in names]
    return found


def means_of(posterior: Any, names: Sequence[str], centres: Mapping[str, Mapping[str, float]]) -> Array:
    """Return the means of the common effects where columns are zero, (p,)."""
    mean, change = posterior.mean(COMMON), at_zero(names, centres)
    return mean if change is None else change @ mean


def figures_of(
    posterior: Any, names: Sequence[str], centres: Mapping[str, Mapping[str, float]], level: float
) -> Marginals:
    """Return means, standard deviations and intervals of the common effects where columns are zero.

    The intercept there is a sum of effects: their correlations are those of the factor.
    """
    (own,) = posterior.marginals(COMMON, level)
    change = at_zero(names, centres)
    if change is None:
        return own
    covariance = np.asarray(posterior[COMMON].covariance)
    wide = np.asarray(own.sd) / np.sqrt(np.diagonal(covariance))
    mean = change @ np.asarray(own.mean)
    sd = np.sqrt(np.diagonal(change @ (covariance * np.outer(wide, wide)) @ change.T))
    half = ndtri(0.5 + 0.5 * level) * sd
    return Marginals(mean, sd, mean - half, mean + half)
