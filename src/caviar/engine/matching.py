"""Matching: clusters of a start get the numbers of the components whose locations are known and nearest.

K-means numbers its clusters at random. Where the locations of some components come with the data, the component that
is known has to begin with the rows near it: the others have no way to change places with it later.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._typing import AnyArray, Array
from ..language import Indexed, Node, Slot, Variable
from .locals import LocalFactor
from .plan import Plan
from .sample import Sample

__all__ = ["matched"]


def matched(plan: Plan, factor: LocalFactor, labels: AnyArray, sample: Sample) -> AnyArray:
    """Return k-means labels with clusters renumbered so that those of known components are near their locations.

    The sum of squared distances between the known locations and the means of their clusters is least, each coordinate
    in units of its spread. Where no location is known, the labels are returned as they are.

    Parameters
    ----------
    plan
        With the known locations.
    factor
        The local factor whose Categorical chooses them.
    labels
        Cluster of each row of the sample.
    sample
        The rows.
    """
    gate = factor.variables[0]
    n_categories = gate.dimension or 1
    distances = np.zeros((n_categories, n_categories))
    for leaf in plan.compiled.sources:
        if not isinstance(leaf, Variable):
            continue
        slot = leaf.slots.get("mean")
        if slot is not None and slot.index is gate and _is_known(plan, slot.node):
            values = np.moveaxis(plan.compiled.sources[leaf].values(sample.columns[leaf.name]), -1, 0)
            distances += _distances(_locations(plan, leaf, slot), values, labels, sample.row_weights)
    if not distances.any():
        return labels
    components, clusters = linear_sum_assignment(distances)
    number = np.empty(n_categories, dtype=labels.dtype)
    number[clusters] = components
    return number[labels]


def _is_known(plan: Plan, node: Node) -> bool:
    """Whether values of a variable came with the data, of all its repetitions or of some."""
    return isinstance(node, Variable) and (node in plan.binding.known or node in plan.binding.values)


def _locations(plan: Plan, leaf: Variable, slot: Slot) -> Array:
    """Return the known locations as the values of the leaf are measured, NaN where unknown: (K, plates..., event...).

    They have an axis for each plate of the leaf but that of the rows, of length 1 where they do not vary with it.
    """
    variable = slot.node
    assert isinstance(variable, Variable)
    assert isinstance(slot.expression, Indexed)
    reference = plan.frame.of(variable)
    if variable in plan.binding.values:
        whole = np.asarray(plan.binding.values[variable], dtype=np.float64)
    else:
        known = plan.binding.known[variable]
        values = known.value[0] if isinstance(known.value, tuple) else known.value
        whole = np.full(known.is_known.shape + values.shape[1:], np.nan)
        whole[known.is_known] = values
    if reference is not None:
        whole = whole - reference
    others = [plate for plate in leaf.plates if plate is not plan.binding.data_plate]
    shared = [plate for plate in others if plate in variable.plates]
    order = [variable.plates.index(plate) for plate in (slot.expression.plate, *shared)]
    turned = whole.transpose(*order, *range(len(order), whole.ndim))
    return turned[(slice(None), *(slice(None) if plate in shared else None for plate in others))]


def _distances(locations: Array, values: Array, labels: AnyArray, weights: Array) -> Array:
    """Return squared distances of locations, shape (K, ...), and means of clusters of values (n, ...): (K, K).

    Coordinates that are unknown (NaN) count nothing; a cluster without rows is farther than all others.
    """
    share = weights / weights.sum()
    centre = np.tensordot(share, values, 1)
    spread = np.sqrt(np.tensordot(share, (values - centre) ** 2, 1))
    unit = np.where(spread > 0, spread, 1.0)
    counts = np.bincount(labels, weights, minlength=len(locations))
    distances = np.empty((len(locations), len(locations)))
    for cluster, count in enumerate(counts):
        rows = labels == cluster
        mean = (
            np.tensordot(weights[rows], values[rows], 1) / count
            if count > 0
            else np.full(centre.shape, np.nan)
        )
        away = (((locations - mean) / unit) ** 2).reshape(len(locations), -1)
        distances[:, cluster] = np.nansum(away, axis=1) if count > 0 else np.nan
    unknown = np.isnan(locations).reshape(len(locations), -1).all(axis=1)
    distances = np.where(np.isnan(distances), 2 * np.nanmax(distances) + 1, distances)
    distances[unknown] = 0.0
    return distances
