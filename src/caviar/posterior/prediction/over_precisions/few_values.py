"""A few values of precisions in the place of many weighted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from ...._typing import AnyArray, Array

_STEP, _FURTHEST = 0.5, 9.0
"""Log odds between the probabilities at which the values of the precisions are cut into groups, and of the last cut."""

_CUTS = 2
"""How often groups of values of several precisions are cut in two: values may divide the same variance otherwise."""


def few_values(
    values: Mapping[str, Array], inverses: Mapping[str, Callable[[Any], Any]], weights: Array
) -> tuple[Array, list[dict[str, Any]]]:
    """Return a few values of the precisions with their weights, which sum to one.

    All values are cut into groups by the variance that they say of a row, and those of several numbers are cut again.
    The last groups are small: the tails of a prediction come from them. Each group has the mean variance of its values,
    so that of the noise is kept.

    Parameters
    ----------
    values
        Of each precision, by name, (n, plates..., event...).
    inverses
        What returns the covariances that values of each precision say.
    weights
        Of the values, (n,).
    """
    covariances = {name: inverses[name](own) for name, own in values.items()}
    variances = np.concatenate(
        [_variances(own, is_matrix=inverses[name] is np.linalg.inv) for name, own in covariances.items()],
        axis=1,
    )
    order = np.argsort(variances.sum(axis=1))[::-1]
    n_cuts, step = (0, _STEP) if variances.shape[1] == 1 else (_CUTS, 2.0 * _STEP)
    edges = expit(np.arange(-_FURTHEST, _FURTHEST + step, step))
    group = np.searchsorted(edges, np.cumsum(weights[order]) - 0.5 * weights[order])
    cells = [
        cell
        for own in np.unique(group)
        for cell in _cells(order[group == own], np.log(variances), weights, n_cuts)
    ]
    found = []
    for cell in cells:
        shares = weights[cell] / weights[cell].sum()
        found.append(
            {
                name: inverses[name](np.einsum("n,n...->...", shares, own[cell]))
                for name, own in covariances.items()
            }
        )
    masses = np.array([weights[cell].sum() for cell in cells])
    return masses / masses.sum(), found


def _variances(covariances: Array, *, is_matrix: bool) -> Array:
    """Return all variances of n values, (n, numbers)."""
    own = np.diagonal(covariances, axis1=-2, axis2=-1) if is_matrix else covariances
    return own.reshape(len(own), -1)


def _cells(places: AnyArray, logs: Array, weights: Array, n_cuts: int) -> Iterator[AnyArray]:
    """Yield places cut in two halves of equal weight, where they differ most, again and again."""
    if not n_cuts or len(places) < 2:
        yield places
        return
    own = logs[places]
    order = np.argsort(own[:, np.ptp(own, axis=0).argmax()])
    below = np.cumsum(weights[places[order]])
    cut = min(max(int(np.searchsorted(below, 0.5 * below[-1])), 1), len(places) - 1)
    for half in (order[:cut], order[cut:]):
        yield from _cells(places[half], logs, weights, n_cuts - 1)
