"""Labels of rows: those that a user knows, and those that a start begins with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array, column_or_1d

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ._arguments import as_array
from ._data_scale import DataScale

__all__ = ["START_KINDS", "known_labels", "starting_labels"]

START_KINDS = ("auto", "kmeans", "k-means++", "random", "random_from_data")
_FARTHEST = 1e100
"""Deviations beyond which a row counts as that far."""


def known_labels(y: Any, n_rows: int, n_components: int) -> Array:
    """Return labels of which some are known, shape (N,): NaN where ``y`` is -1.

    Raises
    ------
    ParameterError
        If ``y`` does not hold one whole number of -1 to K - 1 for each row.

    Examples
    --------
    >>> known_labels([0, -1, 1], 3, 2)
    array([ 0., nan,  1.])
    """
    if y is None:
        raise ParameterError(
            "semi_supervised=True needs y: a label of 0 to K - 1 for each row, -1 where unknown"
        )
    labels = column_or_1d(check_array(y, ensure_2d=False, dtype="numeric", input_name="y"), warn=False)
    labels = as_array("y", labels, (n_rows,), "one label a row, -1 where unknown")
    wrong = (labels < -1) | (labels >= n_components) | (labels != np.floor(labels))
    if wrong.any():
        raise ParameterError(
            f"y must hold whole numbers from 0 to {n_components - 1}, or -1 where unknown; got {labels[wrong][0]:g} "
            f"in row {int(np.flatnonzero(wrong)[0])}"
        )
    return np.where(labels < 0, np.nan, labels)


def warn_if_partial(y: Any, name: str) -> None:
    """Warn where ``y`` looks like labels of which some are known, but is not used."""
    values = np.asarray(y)
    if values.ndim == 1 and values.dtype.kind in "if" and np.any(values == -1) and np.any(values >= 0):
        warnings.warn(
            f"{name}: y has labels of -1, but is ignored; pass semi_supervised=True to use the known ones",
            UserWarning,
            stacklevel=3,
        )


def starting_labels(
    given: Any,
    X: AnyArray,
    weights: Array | None,
    scale: DataScale,
    n_components: int,
    generator: np.random.Generator,
) -> AnyArray:
    """Return labels, (N,), or responsibilities, (N, K), that a start begins with.

    Columns are taken in units of their spread, and missing entries at their mean. Rows belong to the nearest of the
    centres that k-means ends with (``"kmeans"``), that k-means++ draws (``"k-means++"``), or of rows drawn at random
    (``"random_from_data"``); to a component at random (``"random"``). Rows are drawn, and count, by their weights.

    Raises
    ------
    ParameterError
        If there is no such start.
    """
    if not isinstance(given, str):
        shape = (len(X),) if np.ndim(given) == 1 else (len(X), n_components)
        return as_array("init_params", given, shape, "a label or K probabilities a row")
    if given == "random":
        return generator.integers(n_components, size=len(X))
    units = (np.asarray(X, dtype=np.float64) - scale.mean) / scale.unit
    np.nan_to_num(units, copy=False, nan=0.0)
    # rows without weight may be anywhere; distances to them are squared
    np.clip(units, -_FARTHEST, _FARTHEST, out=units)
    counts = np.ones(len(units)) if weights is None else weights / weights.max()
    n_counting = int(np.count_nonzero(counts))
    if n_counting < n_components:
        raise ParameterError(
            f"init_params={given!r} needs at least {n_components} rows with weight; got {n_counting}"
        )
    seed = int(generator.integers(2**31 - 1))
    if given == "kmeans":
        return KMeans(n_components, n_init=1, random_state=seed).fit_predict(units, sample_weight=counts)
    if given == "k-means++":
        centres, _ = kmeans_plusplus(units, n_components, sample_weight=counts, random_state=seed)
    else:
        shares = counts / counts.sum()
        centres = units[generator.choice(len(units), n_components, replace=False, p=shares)]
    return pairwise_distances_argmin(units, centres)
