"""Forms of structures whose precisions are matrices: one for each component, or one for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._linalg import cholesky, inverse
from ..._posterior import Posterior
from ..._typing import Array
from ...densities import (
    MixtureDensity,
    NormalMixture,
    StudentMixture,
    whitening_of_precisions,
    whitening_of_shapes,
)
from ...language import Categorical, MultivariateNormal, NormalWishart, Plate, Variable, Wishart
from .._arguments import as_broadcast, as_positive_definite, require_number
from .._data_scale import DataScale
from .._structure import ComponentPrior, Components, CovarianceStructure, Form

__all__ = ["IndependentMatrices", "JointMatrices", "MatrixStructure"]


class MatrixStructure(CovarianceStructure):
    """A structure whose covariances are matrices."""

    def wishart_size(self, n_features: int) -> int:
        """Return D."""
        return n_features

    def covariance_of(self, scale: DataScale) -> Array:
        """Return the covariance matrix of the data, (D, D)."""
        return scale.covariance

    def precision_roots(self, precisions: Array) -> Array:
        """Return upper triangular P with P P' equal to each matrix."""
        # a lower root of the matrix with rows and columns reversed is an upper one of the matrix
        return cholesky(precisions[..., ::-1, ::-1])[..., ::-1, ::-1]

    def invert(self, covariances: Array) -> Array:
        """Return the inverse matrices."""
        return inverse(covariances)


def _component(z: Categorical) -> Plate:
    assert z.dimension is not None
    return Plate("component", z.dimension)


class JointMatrices(Form):
    r"""The prior :math:`N(m_0, (\kappa\Lambda)^{-1})` of a mean given its precision, and q(mean, precision) joint.

    Parameters
    ----------
    is_tied
        Whether all components share one precision matrix.
    """

    def __init__(self, *, is_tied: bool) -> None:
        self.is_tied = is_tied

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> ArrayLike:
        """Return the number itself, or (K,): it counts in units of the component's own precision."""
        return as_broadcast(name, given, (n_components,), "one number, or one a component", above=0)

    def observe(
        self, name: str, z: Categorical, prior: ComponentPrior, smallest_variance: ArrayLike | None = None
    ) -> Variable:
        """Return the rows, with a Normal-Wishart above them."""
        component = _component(z)
        theta = NormalWishart(
            "theta",
            prior.mean,
            prior.mean_precision,
            prior.df,
            prior.inverse_scale,
            plates=component,
            tied=component if self.is_tied else None,
        )
        return MultivariateNormal(name, theta[z], plates=z.plates)

    def components(self, posterior: Posterior) -> Components:
        r"""Return expectations: :math:`\langle\Lambda_k\rangle = \nu_k B_k^{-1}`."""
        theta = posterior["theta"]
        df = np.asarray(theta.df)
        covariances = theta.inverse_scale / df[..., None, None]
        return Components(theta.mean, covariances, inverse(covariances), theta.mean_precision, df)

    def predictive(self, posterior: Posterior, weights: Array) -> MixtureDensity:
        r"""Return the exact predictive density given the posterior.

        A mixture of Student-t distributions with :math:`\nu_k + 1 - D` degrees of freedom and shape matrices
        :math:`B_k (\kappa_k + 1) / (\kappa_k (\nu_k + 1 - D))`.
        """
        theta = posterior["theta"]
        kappa = theta.mean_precision
        nu = np.broadcast_to(theta.df + 1.0 - theta.mean.shape[-1], kappa.shape)
        shapes = theta.inverse_scale * ((kappa + 1) / (kappa * nu))[:, None, None]
        return StudentMixture(weights, theta.mean, whitening_of_shapes(shapes), nu)

    def draw(self, posterior: Posterior, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances, each mean given its precision."""
        means, precisions = posterior["theta"].sample(n_draws, seed=rng)
        return means, inverse(precisions)


class IndependentMatrices(Form):
    """The prior :math:`N(m_0, S_0)` of a mean whatever its precision, and q(mean) q(precision).

    Parameters
    ----------
    is_tied
        Whether all components share one precision matrix.
    """

    def __init__(self, *, is_tied: bool) -> None:
        self.is_tied = is_tied

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> Array:
        """Return the matrix itself, or a number times the inverse covariance of the data."""
        if np.ndim(given) == 0:
            require_number(name, given, above=0)
            return given * scale.precision
        size = len(scale.mean)
        shapes = [(size, size), (n_components, size, size)]
        return as_positive_definite(name, given, shapes, "columns by columns, or such a matrix a component")

    def observe(
        self, name: str, z: Categorical, prior: ComponentPrior, smallest_variance: ArrayLike | None = None
    ) -> Variable:
        """Return the rows, with Normal means and Wishart precisions above them."""
        component = _component(z)
        mean = MultivariateNormal("mean", prior.mean, prior.mean_precision, plates=component)
        precision = Wishart(
            "precision",
            prior.df,
            prior.inverse_scale,
            smallest_variance=smallest_variance,
            plates=() if self.is_tied else component,
        )
        return MultivariateNormal(name, mean[z], precision if self.is_tied else precision[z], plates=z.plates)

    def components(self, posterior: Posterior) -> Components:
        """Return expectations, or the values of point masses."""
        mean, precision = posterior["mean"], posterior["precision"]
        if hasattr(precision, "value"):
            return Components(mean.value, inverse(precision.value), precision.value)
        df = np.asarray(precision.df)
        covariances = precision.inverse_scale / df[..., None, None]
        return Components(mean.mean, covariances, precision.mean, mean.precision, df)

    def predictive(self, posterior: Posterior, weights: Array) -> MixtureDensity:
        r"""Return the density of a new row: Normal for point masses, else an approximation, for it has no closed form.

        With :math:`\nu = a_k + 1 - D`: a Student-t with :math:`\nu` degrees of freedom, location :math:`m_k`
        and shape matrix :math:`B_k/\nu + S_k (\nu - 2)/\nu`, which has the exact mean and covariance; where
        :math:`\nu \le 2` there is no covariance to match, and the shape matrix is :math:`B_k/\nu + S_k`.
        """
        mean, precision = posterior["mean"], posterior["precision"]
        if hasattr(precision, "value"):
            whitening = whitening_of_precisions(precision.value)
            return NormalMixture(weights, mean.value, whitening[None] if self.is_tied else whitening)
        nu = np.broadcast_to(precision.df + 1.0 - mean.mean.shape[-1], len(weights))
        share = np.where(nu > 2, (nu - 2) / nu, 1.0)
        shapes = precision.inverse_scale / nu[:, None, None] + mean.covariance * share[:, None, None]
        return StudentMixture(weights, mean.mean, whitening_of_shapes(shapes), nu)

    def draw(self, posterior: Posterior, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances."""
        means = posterior["mean"].sample(n_draws, seed=rng)
        return means, inverse(posterior["precision"].sample(n_draws, seed=rng))
