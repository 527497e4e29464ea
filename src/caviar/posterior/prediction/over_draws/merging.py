"""Mixtures with very many parts, and the same mixtures with few: parts that are alike become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit

from ...._typing import AnyArray, Array
from ..prediction import Prediction

_BY_MEAN = expit(np.arange(-7.0, 7.01, 0.25))
"""Probabilities at which parts in the order of their means are cut into groups: small ones at the ends."""

_BY_SD, _BY_MEAN_TOO = expit([-5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0]), expit(np.arange(-6.0, 6.01, 0.75))
"""The same where standard deviations differ, which tails come from: first by these, and then by means."""

_ALIKE = 1.02
"""Ratio of standard deviations, the largest to the smallest, up to which they are one."""

Parts = tuple[Array, Array, Array]
"""Weights, means and standard deviations of the parts of mixtures, (P, rows...)."""


def mixture(like: Prediction, weights: Array, means: Array, sds: Array, parts: Parts | None) -> Prediction:
    """Return the mixture of predictions.

    Parameters
    ----------
    like
        One that is of the same family, or of labels.
    weights
        Of the predictions, (n,); they sum to one.
    means, sds
        Of the predictions, (n, rows...).
    parts
        All parts of the predictions, their weights those of the predictions, too; None if only moments are known.
    """
    if like.is_label:
        # rounding may leave a probability just above one
        return Prediction.of_probabilities(np.minimum(np.tensordot(weights, means, axes=1), 1.0))
    found = Prediction.of_parts(weights.reshape(-1, *(1,) * (means.ndim - 1)), means, sds)
    if like.by_moments is None or parts is None:
        return replace(found, parts=(), by_moments=like.by_moments)
    few = _one(found) if like.by_moments.is_binary else merged(*parts)
    return replace(found, parts=tuple(zip(*few, strict=True)), by_moments=like.by_moments)


def joined(each: Sequence[Prediction], weights: Sequence[float]) -> Prediction:
    """Return the mixture of predictions of the same rows, with weights that sum to one."""
    if len(each) == 1:
        return each[0]
    shares = np.asarray(weights)
    means, sds = (np.stack([getattr(own, figure) for own in each]) for figure in ("mean", "sd"))
    weighed = [
        (share * own, mean, sd)
        for share, told in zip(weights, each, strict=True)
        for own, mean, sd in told.parts
    ]
    parts = tuple(np.stack(own) for own in zip(*weighed, strict=True))
    return mixture(each[0], shares, means, sds, parts if len(parts) == 3 else None)


def merged(weights: Array, means: Array, sds: Array) -> Parts:
    """Return mixtures with fewer parts, and the same means and variances.

    Parameters
    ----------
    weights, means, sds
        Of the parts, (P, rows...); the weights of each mixture sum to one.
    """
    shape = means.shape[1:]
    weights, means, variances = (own.reshape(len(own), -1) for own in (weights, means, np.square(sds)))
    is_one = not (sds.max(axis=0, initial=0.0) > _ALIKE * sds.min(axis=0, initial=np.inf)).any()
    n_groups, n_cells = (1, len(_BY_MEAN) + 1) if is_one else (len(_BY_SD) + 1, len(_BY_MEAN_TOO) + 1)
    if len(means) <= n_groups * n_cells:
        return weights.reshape(-1, *shape), means.reshape(-1, *shape), sds
    group = np.zeros(means.shape, dtype=np.intp)
    if not is_one:
        group = _cut(variances, group, weights, 1, _BY_SD)
    cell = group * n_cells + _cut(means, group, weights, n_groups, _BY_MEAN if is_one else _BY_MEAN_TOO)
    size, n_rows = n_groups * n_cells, means.shape[1]
    place = (cell * n_rows + np.arange(n_rows)).ravel()

    def summed(values: Array) -> Array:
        # a part without weight adds nothing, not even infinity
        own = np.where(weights > 0, weights * values, 0.0)
        found = np.bincount(place, own.ravel(), size * n_rows)
        return np.asarray(found, dtype=np.float64).reshape(size, n_rows)

    mass = summed(np.ones_like(means))
    safe = np.where(mass > 0, mass, 1.0)
    mean = summed(means) / safe
    spread = summed(variances + np.square(means - np.take_along_axis(mean, cell, axis=0))) / safe
    is_there = (mass > 0).any(axis=1)
    weight, mean, sd = (own[is_there].reshape(-1, *shape) for own in (mass, mean, np.sqrt(spread)))
    return weight, mean, sd


def _one(found: Prediction) -> Parts:
    """Return a mixture of binary outcomes, which is one of them."""
    mean, sd = found.mean[np.newaxis], found.standard_deviation[np.newaxis]
    return np.ones_like(mean), mean, sd


def _cut(values: Array, group: AnyArray, weights: Array, n_groups: int, edges: Array) -> AnyArray:
    """Return in which piece of its group each part is, (P, rows), in the order of values, cut at these shares."""
    order = np.lexsort((values, group), axis=0)
    ordered, groups = np.take_along_axis(weights, order, axis=0), np.take_along_axis(group, order, axis=0)
    until = np.cumsum(ordered, axis=0) - 0.5 * ordered
    within = np.empty_like(until)
    for number in range(n_groups):
        is_own = groups == number
        mass = np.where(is_own, ordered, 0.0).sum(axis=0)
        before = np.where(groups < number, ordered, 0.0).sum(axis=0)
        share = (until - before) / np.where(mass > 0, mass, 1.0)
        within = np.where(is_own, share, within)
    found = np.empty_like(group)
    np.put_along_axis(found, order, np.searchsorted(edges, within), axis=0)
    return found
