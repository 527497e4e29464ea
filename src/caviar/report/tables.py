"""A fitted mixture as a table: weight, mean and spread of each component, with credible intervals."""

from __future__ import annotations

from typing import Any

from .._errors import ParameterError
from ..estimators.mixtures.components import Component
from ..numerics.arguments import require_share


def component_table(estimator: Any, *, level: float = 0.95) -> list[Component]:
    r"""Return the weight, means and standard deviations of each component of a fitted mixture, with intervals.

    Parameters
    ----------
    estimator
        A fitted ``BayesianGaussianMixture``, ``GaussianMixture``, ``KnownVarianceMixture`` or ``MixedMixture``.
    level
        Posterior probability of each interval, between 0 and 1. Intervals are central and marginal. Weights and
        probabilities of categories have Beta distributions, means a Student-t (joint family, mixed columns) or a Normal
        (independent family, known variance), and expected counts a Gamma. Maximum likelihood and MAP estimates have no
        intervals.

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
    level = require_share("level", level)
    if not hasattr(estimator, "posterior_"):
        raise ParameterError(f"expected a fitted mixture; call fit(X) first on {estimator!r}")
    return estimator._components(level)
