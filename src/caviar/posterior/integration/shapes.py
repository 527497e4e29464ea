"""Quantiles of mixtures: those of the fits given weighted values of some globals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ..._typing import Array
from ...engine.evaluation.given_by_passes import Fits
from ...families.base.marginals import Ends, Marginals
from ..weighted import Weighted

_STEP, _FURTHEST = 0.75, 9.0
"""Log odds between probabilities at which a fit is cut into values, and those of the first and last cut, about."""

_GOLDEN = 0.6180339887498949
"""Its multiples, modulo one, are evenly spread."""

LOGITS = np.linspace(-8.0, 8.0, 33)
"""Log odds of the probabilities of the quantiles."""

_LEVELS, _NEARLY = (0.025, 0.05, 0.95, 0.975), 0.05
"""Ends of intervals that are compared, and by how many standard deviations they differ at most: about half a percent of
the probability beyond them."""

_MOST_FITS, _FEWEST_FITS, _MOST_VALUES = 512, 64, 1_000_000
"""Fits that are mixed, and values of all entries in them: about a tenth of a second."""


def shapes_of(
    factors: Mapping[str, Any],
    fits: Fits,
    weights: Array,
    means: Mapping[str, Array],
    sds: Mapping[str, Array],
) -> dict[str, Array]:
    """Return how far quantiles at ``LOGITS`` are from the means, by name, (G, L).

    Those are left out that are nearly the quantiles of the family with the same moments, which are smooth, joint
    factors of two parts, and all where these are quantiles of many entries.

    Parameters
    ----------
    factors
        Of a fit, by name.
    fits
        Shifts and standard deviations given each of n values, n a power of two.
    weights
        Of the values, (n,).
    means
        Means of all entries in the fit.
    sds
        Standard deviations of all entries in the mixture.
    """
    n_entries = sum(own.shape[1] for own in fits.shifts.values())
    most = _MOST_VALUES * _STEP / (2.0 * _FURTHEST * max(n_entries, 1))
    if most < _FEWEST_FITS:
        return {}
    # the first of evenly spread values are evenly spread, too, if their number is a power of two
    n = min(len(weights), 1 << int(min(most, _MOST_FITS)).bit_length() - 1)
    own, found = weights[:n] / weights[:n].sum(), {}
    for name, shifts in fits.shifts.items():
        if len(factors[name].entry_marginals((0.05, 0.95))) > 1:
            continue
        shape = _shape(factors[name], means[name] + shifts[:n], fits.sds[name][:n], own)
        if not _is_of_family(factors[name], means[name] + own @ shifts[:n], sds[name], shape):
            # what is known has no width
            found[name] = np.where(sds[name][:, None] > 0, shape, 0.0)
    return found


def _shape(factor: Any, means: Array, sds: Array, weights: Array) -> Array:
    # each fit is cut elsewhere, so that fits which are alike do not have the same few values
    cuts = np.arange(-_FURTHEST, _FURTHEST, _STEP) + _STEP * (_GOLDEN * np.arange(len(means)) % 1.0)[:, None]
    ends = np.zeros((len(means), 1)), expit(cuts), np.ones((len(means), 1))
    probabilities = np.concatenate(ends, axis=1)
    shares, middle = np.diff(probabilities), 0.5 * (probabilities[:, 1:] + probabilities[:, :-1])
    # the average slope by log odds between two cuts is that at the value: so no tail is too short
    slopes = np.minimum(shares[:, 1:-1] / _STEP, 0.25)
    middle[:, 1:-1] = 0.5 + np.sign(middle[:, 1:-1] - 0.5) * np.sqrt(0.25 - slopes)
    values = np.stack([_quantiles(factor, means, sds, own) for own in middle.T])
    mixed = Weighted(values.reshape(-1, means.shape[1]), (weights[:, None] * shares).T.ravel())
    return (mixed.quantile(expit(LOGITS)) - weights @ means).T


def _is_of_family(factor: Any, means: Array, sds: Array, shape: Array) -> bool:
    """Whether the ends of intervals are nearly those of a factor's family with these moments."""
    for level in _LEVELS:
        of_family = _quantiles(factor, means[None], sds[None], np.array([level]))[0] - means
        of_mixture = np.array([np.interp(logit(level), LOGITS, own) for own in shape])
        if (np.abs(of_family - of_mixture) > _NEARLY * sds)[sds > 0].any():
            return False
    return True


def _quantiles(factor: Any, means: Array, sds: Array, probabilities: Array) -> Array:
    """Return a quantile of each of n distributions of a factor's family with these moments, (n, G)."""
    (part,) = factor.entry_marginals((0.05, 0.95))
    shape = (len(means), *np.shape(part.mean))
    own: Any = probabilities.reshape(-1, *(1,) * (len(shape) - 1))
    found = factor.family.matched_marginals(Marginals(means.reshape(shape)), sds.reshape(shape), (own, own))
    return np.reshape(np.asarray(found.lower), means.shape)


def at_ends(shape: Array, ends: Ends, mean: Array) -> tuple[Array, Array]:
    """Return the ends of intervals of entries with these means."""
    lower, upper = (
        mean + np.reshape([np.interp(logit(end), LOGITS, own) for own in shape], np.shape(mean))
        for end in ends
    )
    return lower, upper
