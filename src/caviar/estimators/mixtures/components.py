"""The figures of a fitted mixture for tables and plots: names of its columns, its components, and their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from .uncertainty import mean_interval, weight_interval


@dataclass(frozen=True)
class Estimate:
    """A number and its credible interval; without an interval if the fit gives a point estimate."""

    value: float
    low: float | None = None
    high: float | None = None


def estimates_of(mean: Any, lower: Any, upper: Any) -> list[Any]:
    """Return means with the ends of their intervals, if they have any, in lists as deep as the array of means.

    Examples
    --------
    >>> estimates_of(np.array([1.0]), None, None)
    [Estimate(value=1.0, low=None, high=None)]
    """
    if np.ndim(mean) > 1:
        nothing = [None] * len(mean)
        ends = (nothing, nothing) if lower is None or upper is None else (lower, upper)
        return [estimates_of(own, low, high) for own, low, high in zip(mean, *ends, strict=True)]
    if lower is None or upper is None:
        return [Estimate(float(value)) for value in mean]
    return [Estimate(*map(float, own)) for own in zip(mean, lower, upper, strict=True)]


@dataclass(frozen=True)
class Component:
    """One fitted component.

    Attributes
    ----------
    label
        Number of the component, as ``predict`` returns it.
    weight
        Share of the rows.
    mean
        Mean of each column; None for columns of categories.
    standard_deviation
        Standard deviation of each column within the component; None for columns of categories.
    probabilities
        For each column of categories, the probability of each value; None for other columns. Empty if all columns have
        numbers.
    """

    label: int
    weight: Estimate
    mean: tuple[Estimate | None, ...]
    standard_deviation: tuple[float | None, ...]
    probabilities: tuple[Mapping[str, Estimate] | None, ...] = ()


def components_of_gaussians(estimator: Any, level: float) -> list[Component]:
    """Return what the fit of a mixture of Gaussians says about each component."""
    means = means_of(estimator)
    of_means = mean_interval(estimator, level)
    of_weights = weight_interval(estimator, level)
    spreads = np.sqrt(np.diagonal(covariances_of(estimator), axis1=1, axis2=2))
    return [
        Component(
            label=k,
            weight=_estimate(estimator.weights_, of_weights, k),
            mean=tuple(_estimate(means, of_means, (k, j)) for j in range(means.shape[1])),
            standard_deviation=tuple(spreads[k].tolist()),
        )
        for k in range(len(means))
    ]


def _estimate(values: Array, interval: tuple[Array, Array] | None, index: Any) -> Estimate:
    ends = () if interval is None else (float(end[index]) for end in interval)
    return Estimate(float(values[index]), *ends)


def means_of(estimator: Any) -> Array:
    """Return the mean of the rows of each component, (K, D)."""
    return np.reshape(estimator.means_, (len(estimator.weights_), -1))


def telling_columns(estimator: Any, most: int) -> list[int]:
    """Return the columns in which the components differ most, in units of their spread; all if they are few."""
    weights, means = np.asarray(estimator.weights_), means_of(estimator)
    between = weights @ np.square(means - weights @ means)
    within = weights @ np.diagonal(covariances_of(estimator), axis1=1, axis2=2)
    telling = np.divide(between, within, out=np.zeros_like(between), where=within > 0)
    return sorted(np.argsort(-telling, kind="stable")[:most].tolist())


def told_by(components: Sequence[Component], column: int) -> float:
    """Return how far components differ in a column, from 0 to 1: the share of its variation that they explain.

    The variation of a category is that of the indicators of its values.
    """
    weights = np.array([own.weight.value for own in components])
    weights = weights / weights.sum()
    shares = [told for own in components if own.probabilities and (told := own.probabilities[column])]
    if shares:
        means = np.array([[share.value for share in own.values()] for own in shares])
        variances = means * (1.0 - means)
    else:
        # a column of numbers has both
        means = np.array([[own.mean[column].value] for own in components])  # type: ignore[union-attr]
        variances = np.square([[own.standard_deviation[column]] for own in components])  # type: ignore[arg-type]
    between = float((weights @ np.square(means - weights @ means)).sum())
    total = between + float((weights @ variances).sum())
    return between / total if total > 0 else 0.0


def covariances_of(estimator: Any) -> Array:
    """Return the covariance matrix of the rows of each component, (K, D, D)."""
    if hasattr(estimator, "covariances_"):
        return estimator.covariance_matrices()
    return np.full((len(estimator.weights_), 1, 1), float(estimator.variance))


def column_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted to, or the words of topics; x0, x1, ... of none."""
    if getattr(estimator, "vocabulary", None) is not None:
        return tuple(map(str, estimator.vocabulary))
    if hasattr(estimator, "feature_names_in_"):
        return tuple(map(str, estimator.feature_names_in_))
    told = getattr(estimator, "about_", {}).get("columns")
    if isinstance(told, list) and len(told) == estimator.n_features_in_:
        return tuple(map(str, told))
    return tuple(f"x{number}" for number in range(estimator.n_features_in_))
