"""Labels for a start: weighted k-means of the observed values whose location a Categorical chooses."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from threadpoolctl import ThreadpoolController

from .._typing import AnyArray, Array
from ..language import Indexed
from .locals import LocalFactor
from .plan import Plan
from .sample import Sample

__all__ = ["cluster", "location_points"]


def location_points(plan: Plan, factor: LocalFactor, sample: Sample) -> Array | None:
    """Return the observed values (n, d), in units of their spread, whose location the factor's Categorical chooses."""
    gate = factor.variables[0]
    if not hasattr(gate, "categories") or gate.plates != (plan.binding.data_plate,):
        return None
    points = []
    for group in plan.frame.groups:
        slots = [slot for v in group.variables for slot in v.slots.values() if slot.role.moves]
        if not any(isinstance(slot.expression, Indexed) and slot.index is gate for slot in slots):
            continue
        for leaf in group.variables:
            if leaf in plan.compiled.sources:
                # missing entries of a vector hold the means of their columns
                values = plan.compiled.sources[leaf].values(sample.columns[leaf.name])
                points.append(
                    _in_units(np.moveaxis(values, -1, 0).reshape(sample.n_rows, -1), sample.row_weights)
                )
    return np.concatenate(points, axis=1) if points else None


def _in_units(values: AnyArray, weights: Array) -> Array:
    """Return columns with mean 0 and variance 1; constant columns become 0. Safe at any scale."""
    largest = np.max(np.abs(values), axis=0)
    scaled = values / np.where(largest > 0, largest, 1.0)
    share = weights / weights.sum()
    centred = scaled - share @ scaled
    spread = np.sqrt(share @ centred**2)
    return centred / np.where(spread > 1e-12, spread, np.inf)


def cluster(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> AnyArray:
    """Return k-means labels of weighted points."""
    if n_clusters == 1:
        return np.zeros(len(points), dtype=np.int64)
    distinct = len(np.unique(points, axis=0)) if len(points) <= 4 * n_clusters else n_clusters + 1
    if distinct <= n_clusters:
        return np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    from sklearn import config_context
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31 - 1))
    # its threads add up sums in the order in which they finish; one thread gives the same bits each time
    with (
        _openmp_controller().limit(limits=1),
        config_context(assume_finite=True, skip_parameter_validation=True),
        warnings.catch_warnings(),
    ):
        # rows that differ by rounding only make fewer clusters: a start with empty components is a start
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(n_clusters, n_init=1, max_iter=100, random_state=seed).fit_predict(
            points, sample_weight=weights
        )


@functools.cache
def _openmp_controller() -> ThreadpoolController:
    """Return the controller of the OpenMP libraries; to be called once scikit-learn is loaded."""
    return ThreadpoolController().select(user_api="openmp")
