"""Indicators of rows: hidden numbers 0 or 1 that multiply something, guessed from clusters of the values below them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....._typing import Array
from .....language import Variable
from ...clustering.kmeans import kmeans
from ..columns import Setting, filled, sampled_values
from .codes import codes_of

_MOST = 3
"""Indicators of a row that are guessed at once: there is a cluster for each combination."""


def indicators_of(setting: Setting, rng: np.random.Generator) -> Iterator[dict[Variable, Array]]:
    """Yield values of the indicators of the rows, none where there are no such.

    Where each adds a vector to the values, the first are those of the vectors that fit best. Then clusters of the
    values are ordered along the line on which they differ most, and the indicators count them in binary digits:
    upwards, and downwards.
    """
    numbers = _indicators(setting)
    codes = codes_of(setting, numbers, rng)
    if codes is not None:
        yield {number: codes[:, place] for place, number in enumerate(numbers)}
    points = _values_below(setting, numbers)
    if not numbers or len(numbers) > _MOST or points is None:
        return
    size = 2 ** len(numbers)
    labels = kmeans(points, setting.sample.row_weights, size, rng)
    centred = points - np.average(points, axis=0, weights=setting.sample.row_weights)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    means = [along[labels == k].mean() if (labels == k).any() else np.inf for k in range(size)]
    ranks = np.argsort(np.argsort(means))[labels]
    for counted in (ranks, size - 1 - ranks):
        yield {number: (counted >> place & 1).astype(np.float64) for place, number in enumerate(numbers)}


def _indicators(setting: Setting) -> list[Variable]:
    """Return the hidden numbers 0 or 1 of rows, with separate factors, that are in a sum or product."""
    bound = setting.problem.bound
    used = {
        slot.node
        for node in bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.role.adds_up
    }
    own = [factor.variables[0] for factor in setting.problem.factors if len(factor.variables) == 1]
    return [v for v in own if v.is_zero_or_one and v in used and v.plates == (bound.data_plate,)]


def _values_below(setting: Setting, numbers: list[Variable]) -> Array | None:
    """Return the values of the variables that indicators are in the mean of, in units of their spread, (N, d)."""
    columns = []
    for leaf in setting.problem.bound.observed:
        if any(slot.node in numbers for slot in leaf.slots.values()):
            found = sampled_values(setting.problem, setting.sample, leaf)
            if found is None:
                return None
            columns.append(found[0].reshape(setting.sample.n_rows, -1))
    if not columns:
        return None
    values = filled(np.concatenate(columns, axis=1))
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    return centred / np.where(spread > 0, spread, 1.0)
