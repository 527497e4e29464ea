"""Labels of rows: those that a user knows, and those that a start begins with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array, column_or_1d

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ..arguments.checks import as_array
from .data_scale import DataScale

START_KINDS = ("auto", "kmeans", "k-means++", "random", "random_from_data")


def known_labels(y: Any, n_rows: int, n_components: int, name: str = "y") -> Array:
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
            "semi_supervised=True requires y to be passed, but the target y is None: give a label of 0 to K - 1 for "
            "each row, -1 where unknown"
        )
    labels = column_or_1d(check_array(y, ensure_2d=False, dtype="numeric", input_name=name), warn=False)
    labels = as_array(name, labels, (n_rows,), "one label a row, -1 where unknown")
    wrong = (labels < -1) | (labels >= n_components) | (labels != np.floor(labels))
    if wrong.any():
        raise ParameterError(
            f"{name} must hold whole numbers from 0 to {n_components - 1}, or -1 where unknown; got "
            f"{labels[wrong][0]:g} in row {int(np.flatnonzero(wrong)[0])}"
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
    (``"random_from_data"``); to a component at random (``"random"``). Rows are drawn, and count, by their weights. What
    is drawn depends on the weighted distinct rows in the order of their values: neither on the order in which they came
    nor on whether a row of weight 2 came once or twice; equal rows belong together.

    Raises
    ------
    ParameterError
        If there is no such start.
    """
    if not isinstance(given, str):
        shape = (len(X),) if np.ndim(given) == 1 else (len(X), n_components)
        return as_array("init_params", given, shape, "a label or K probabilities a row")
    distinct = _distinct(np.asarray(X, dtype=np.float64), weights)
    labels = np.zeros(len(X), dtype=np.intp)
    labels[distinct.rows] = _labels_of(given, distinct, scale, n_components, generator)[distinct.number]
    return labels


@dataclass(frozen=True, eq=False)
class _Distinct:
    """The rows with weight, equal ones merged.

    Attributes
    ----------
    values
        Of each distinct row, shape (M, D), sorted.
    weights
        Their total weights relative to the largest, shape (M,).
    rows
        Places of the rows with weight among all.
    number
        The distinct row that each of these is.
    """

    values: Array
    weights: Array
    rows: AnyArray
    number: AnyArray


def _distinct(X: Array, weights: Array | None) -> _Distinct:
    rows = np.arange(len(X)) if weights is None else np.flatnonzero(weights)
    # adding 0 makes -0 a 0
    values, counts = X[rows] + 0.0, np.ones(len(rows)) if weights is None else weights[rows]
    missing = np.isnan(values)
    keys = np.hstack([np.where(missing, 0.0, values), missing]) if missing.any() else values
    order = _lexicographic(keys)
    keys = keys[order]
    is_first = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.cumsum(is_first) - 1
    total = np.bincount(number, weights=counts)
    return _Distinct(values[order[is_first]], total / total.max(), rows, number)


def _lexicographic(keys: Array) -> AnyArray:
    """Return the order of rows by their first number, then the second, and so on."""
    order = np.argsort(keys[:, 0], kind="stable")
    first = keys[order, 0]
    equal = first[1:] == first[:-1]
    # the other numbers only matter where the first ones are equal
    tied = np.append(False, equal) | np.append(equal, False)
    rows = order[tied]
    order[tied] = rows[np.lexsort(keys[rows].T[::-1])]
    return order


def _labels_of(
    given: str, distinct: _Distinct, scale: DataScale, n_components: int, generator: np.random.Generator
) -> AnyArray:
    """Return labels of distinct rows, of which there may be fewer than components."""
    if given == "random":
        return generator.integers(n_components, size=len(distinct.values))
    units = (distinct.values - scale.mean) / scale.unit
    np.nan_to_num(units, copy=False, nan=0.0)
    weights, n_centres = distinct.weights, min(n_components, len(units))
    seed = int(generator.integers(2**31 - 1))
    if given == "kmeans":
        return KMeans(n_centres, n_init=1, random_state=seed).fit_predict(units, sample_weight=weights)
    if given == "k-means++":
        centres, _ = kmeans_plusplus(units, n_centres, sample_weight=weights, random_state=seed)
    else:
        shares = weights / weights.sum()
        centres = units[generator.choice(len(units), n_centres, replace=False, p=shares)]
    return pairwise_distances_argmin(units, centres)
