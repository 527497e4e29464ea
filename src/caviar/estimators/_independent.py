"""Means and precisions that are independent under prior and posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model import Model
from .._posterior import Posterior
from .._typing import Array
from ..densities import StudentMixture, whitening_of_shapes
from ..models import gaussian_mixture
from ._arguments import as_positive_definite, require_number
from ._components import Components, MeanPrecisionFamily, MixturePrior
from ._data_scale import DataScale

__all__ = ["Independent"]


class Independent(MeanPrecisionFamily):
    """The prior :math:`N(m_0, S_0)` of a mean whatever its precision, and q(mean) q(precision)."""

    def mean_precision(self, given: Any, scale: DataScale) -> Array:
        """Return the matrix itself, or a number times the inverse covariance of the data."""
        if np.ndim(given):
            size = len(scale.mean)
            return as_positive_definite("mean_precision_prior", given, (size, size), "columns by columns")
        require_number("mean_precision_prior", given, above=0)
        return given * scale.precision

    def state(self, n_features: int, n_components: int, prior: MixturePrior) -> Model:
        """Return the mixture with independent priors."""
        return gaussian_mixture(
            n_features,
            n_components,
            concentration=prior.concentration,
            prior_mean=prior.mean,
            prior_precision=prior.mean_precision,
            df=prior.df,
            inverse_scale=prior.inverse_scale,
        )

    def components(self, posterior: Posterior) -> Components:
        r"""Return the fitted components, and an approximation of the predictive density, which has no closed form.

        With :math:`\nu = a_k + 1 - D`: a Student-t with :math:`\nu` degrees of freedom, location :math:`m_k`
        and shape matrix :math:`B_k/\nu + S_k (\nu - 2)/\nu`, which has the exact mean and covariance; where
        :math:`\nu \le 2` there is no covariance to match, and the shape matrix is :math:`B_k/\nu + S_k`.
        """
        weights, mean, precision = posterior["weights"], posterior["mean"], posterior["precision"]
        nu = precision.df + 1 - mean.mean.shape[-1]
        share = np.where(nu > 2, (nu - 2) / nu, 1.0)
        shapes = precision.inverse_scale / nu[:, None, None] + mean.covariance * share[:, None, None]
        return Components(
            weights=weights.mean,
            means=mean.mean,
            covariances=precision.inverse_scale / precision.df[:, None, None],
            precisions=precision.mean,
            concentration=weights.concentration,
            mean_precision=mean.precision,
            df=precision.df,
            predictive=StudentMixture(weights.mean, mean.mean, whitening_of_shapes(shapes), nu),
        )
