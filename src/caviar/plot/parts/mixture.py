"""The parts of a fitted mixture of Gaussians that plots draw, and rows beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...densities import MixtureDensity
from ...estimators.mixtures.components import column_names, covariances_of
from ...estimators.mixtures.uncertainty import MeanMarginal, mean_marginal
from ...estimators.tables.given_tables import is_coded
from .colours import colours_of

NEGLIGIBLE = 0.005
"""Weight below which a component is not drawn: it has (almost) no rows."""


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture of Gaussians in K components and D columns.

    Attributes
    ----------
    estimator
        The estimator.
    names
        Of the columns, as they are written at the axes.
    weights
        Shape (K,).
    means
        Shape (K, D).
    covariances
        Of the rows of each component, shape (K, D, D).
    marginal
        How well the means are known; None for points.
    """

    estimator: Any
    names: tuple[str, ...]
    weights: Array
    means: Array
    covariances: Array
    marginal: MeanMarginal | None

    @property
    def predictive(self) -> MixtureDensity:
        """Density of a new row."""
        return self.estimator._predictive

    @property
    def colours(self) -> Array:
        """A colour for each component, shape (K, 3)."""
        return colours_of(len(self.weights))

    @property
    def drawn(self) -> list[int]:
        """Components with rows, the heaviest first."""
        return [int(k) for k in np.argsort(-self.weights, kind="stable") if self.weights[k] > NEGLIGIBLE]

    def responsibilities(self, rows: Array) -> Array:
        """Return those of rows, shape (N, K), under q; of rows with errors those that the predictive density gives."""
        estimator = self.estimator
        if "true" in estimator.posterior_.model.variables:
            return self.predictive.responsibilities(rows)
        return estimator.posterior_.local({"x": estimator._values(rows)})["z"].probabilities


def is_gaussian_mixture(fitted: Any) -> bool:
    """Whether this is a fitted mixture of Gaussians."""
    return hasattr(fitted, "posterior_") and hasattr(fitted, "means_") and hasattr(fitted, "weights_")


def mixture_of(fitted: Any, names: Sequence[str] | None) -> Mixture:
    """Return what is drawn of a fitted mixture.

    Raises
    ------
    ParameterError
        If it is not a mixture, not fitted, or has another number of columns than names.
    """
    if not is_gaussian_mixture(fitted):
        raise ParameterError(
            "expected a fitted mixture of Gaussians: a BayesianGaussianMixture, GaussianMixture or "
            f"KnownVarianceMixture after fit(X); got {type(fitted).__name__}. Of any other model, forest draws the "
            "global variables and responsibilities the hidden labels"
        )
    own = column_names(fitted)
    shown = own if names is None else tuple(map(str, names))
    if len(shown) != len(own):
        raise ParameterError(f"names= takes a name for each of the {len(own)} columns; got {len(shown)}")
    weights = np.asarray(fitted.weights_)
    return Mixture(
        fitted,
        shown,
        weights,
        np.reshape(fitted.means_, (len(weights), -1)),
        covariances_of(fitted),
        mean_marginal(fitted),
    )


def rows_of(mixture: Mixture, X: Any) -> Array:
    """Return rows as an array, (N, D): of a table the columns that the mixture was fitted to, found by their names.

    Raises
    ------
    DataError
        If columns are missing, or there is another number of them.
    """
    own = column_names(mixture.estimator)
    if hasattr(X, "columns") and hasattr(mixture.estimator, "feature_names_in_"):
        missing = [name for name in own if name not in list(map(str, X.columns))]
        if missing:
            raise DataError(
                f"the table lacks the columns {', '.join(missing)}, which the mixture was fitted to"
            )
        X = X.values[:, [X.columns.index(name) for name in own]] if is_coded(X) else X[list(own)]
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected rows of numbers, shape (N, {len(own)}): {error}") from None
    if rows.ndim == 1 and len(own) == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2 or rows.shape[1] != len(own) or len(rows) == 0:
        raise DataError(
            f"expected rows with the columns {', '.join(own)}; got an array of shape {rows.shape}"
        )
    return rows


def thinned(rows: AnyArray, most: int) -> AnyArray:
    """Return all rows, or a fixed random choice of them in order, up to a number."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]
