"""Means and precisions with a joint Normal-Wishart posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model import Model
from .._posterior import Posterior
from ..densities import StudentMixture, whitening_of_shapes
from ..models import normal_wishart_mixture
from ._arguments import require_number
from ._components import Components, MeanPrecisionFamily, MixturePrior
from ._data_scale import DataScale

__all__ = ["Joint"]


class Joint(MeanPrecisionFamily):
    r"""The prior :math:`N(m_0, (\kappa\Lambda)^{-1})` of a mean given its precision, and q(mean, precision) joint."""

    def mean_precision(self, given: Any, scale: DataScale) -> float:
        """Return the number itself: it counts in units of the component's own precision."""
        require_number("mean_precision_prior", given, above=0)
        return given

    def state(self, n_features: int, n_components: int, prior: MixturePrior) -> Model:
        """Return the mixture with the joint prior."""
        return normal_wishart_mixture(
            n_features,
            n_components,
            concentration=prior.concentration,
            prior_mean=prior.mean,
            mean_precision=prior.mean_precision,
            df=prior.df,
            inverse_scale=prior.inverse_scale,
        )

    def components(self, posterior: Posterior) -> Components:
        r"""Return the fitted components, and the exact predictive density of rows given their posterior.

        A mixture of Student-t distributions with :math:`\nu_k + 1 - D` degrees of freedom and shape matrices
        :math:`B_k (\kappa_k + 1) / (\kappa_k (\nu_k + 1 - D))`.
        """
        weights, theta = posterior["weights"], posterior["theta"]
        nu = theta.df + 1 - theta.mean.shape[-1]
        shapes = (
            theta.inverse_scale * ((theta.mean_precision + 1) / (theta.mean_precision * nu))[:, None, None]
        )
        return Components(
            weights=weights.mean,
            means=theta.mean,
            covariances=theta.inverse_scale / theta.df[:, None, None],
            precisions=theta.precision_marginal.mean,
            concentration=weights.concentration,
            mean_precision=theta.mean_precision,
            df=theta.df,
            predictive=StudentMixture(weights.mean, np.asarray(theta.mean), whitening_of_shapes(shapes), nu),
        )
