"""A fitted mixture as a table: weight, mean and spread of each component, with credible intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import ParameterError
from .._typing import Array
from ..estimators._components import column_names, covariances_of
from ..estimators._uncertainty import mean_marginal, weight_interval

__all__ = ["Component", "Estimate", "column_names", "component_table"]


@dataclass(frozen=True)
class Estimate:
    """A number, and the credible interval that it lies in; without one where the fit gives only a point."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Component:
    """What a fit says about one component.

    Attributes
    ----------
    label
        Its number, as ``predict`` gives it.
    weight
        Share of the rows.
    mean
        For each column.
    standard_deviation
        Of the rows of the component in each column.
    """

    label: int
    weight: Estimate
    mean: tuple[Estimate, ...]
    standard_deviation: tuple[float, ...]


def component_table(estimator: Any, *, level: float = 0.95) -> list[Component]:
    r"""Return a row for each component of a fitted mixture.

    Parameters
    ----------
    estimator
        A fitted ``BayesianGaussianMixture``, ``GaussianMixture`` or ``KnownVarianceMixture``.
    level
        Posterior probability of each interval, between 0 and 1. Intervals are central and marginal: of a weight that of
        its Beta distribution, of a mean that of its Student-t (joint form) or Normal (independent form, known
        variance). Maximum likelihood and MAP give points without intervals.

    Raises
    ------
    ParameterError
        If ``level`` is not between 0 and 1, or the estimator is not fitted.

    Examples
    --------
    >>> import caviar as cv
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(cv.datasets.load_faithful().values)
    >>> rows = sorted(component_table(mixture), key=lambda row: row.weight.value)
    >>> [(round(row.mean[1].low, 1), round(row.mean[1].high, 1)) for row in rows]
    [(53.3, 55.7), (79.1, 80.9)]
    """
    if not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1, such as 0.95; got {level!r}")
    if not hasattr(estimator, "posterior_"):
        raise ParameterError(f"expected a fitted mixture; call fit(X) first on {estimator!r}")
    means = np.reshape(estimator.means_, (len(estimator.weights_), -1))
    marginal = mean_marginal(estimator)
    of_means = None if marginal is None else marginal.interval(level)
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
