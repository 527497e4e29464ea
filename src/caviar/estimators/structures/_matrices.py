"""Forms of structures whose precisions are matrices: one for each component, or one for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...densities import (
    MixtureDensity,
    NormalMixture,
    StudentMixture,
    whitening_of_precisions,
    whitening_of_shapes,
)
from ...language import MultivariateNormal, NormalWishart, Plate, Variable, Wishart
from ...numerics.linalg import cholesky, inverse
from ..arguments.checks import as_positive_definite, require_number
from ..priors.known import NORMAL_DF
from ..priors.structure import ComponentPrior, Components, CovarianceStructure, Form, JointForm, Label
from ..tables.data_scale import DataScale


class MatrixStructure(CovarianceStructure):
    """A structure whose covariances are matrices."""

    def wishart_size(self, n_features: int) -> int:
        """Return D."""
        return n_features

    def covariance_of(self, scale: DataScale) -> Array:
        """Return the covariance matrix of the data, (D, D)."""
        return scale.covariance

    def variances_of(self, scale: DataScale) -> Array:
        """Return the variances of the columns, (D,)."""
        return scale.unit**2

    def _variances_of_each(self, means: Array, units: Array, counts: AnyArray) -> Array:
        return units**2

    def covariance_with(self, variances: Array) -> Array:
        """Return the diagonal matrix, (D, D)."""
        return np.diag(variances)

    def precision_roots(self, precisions: Array) -> Array:
        """Return upper triangular P with P P' equal to each matrix."""
        # a lower root of the matrix with rows and columns reversed is an upper one of the matrix
        return cholesky(precisions[..., ::-1, ::-1])[..., ::-1, ::-1]

    def invert(self, covariances: Array) -> Array:
        """Return the inverse matrices."""
        return inverse(covariances)


def _inverse_of_expectation(q: Any) -> Array:
    r"""Return :math:`B / \nu`, the inverse of the expected precision."""
    return q.inverse_scale / np.asarray(q.df)[..., None, None]


def _locations(theta: Any) -> Array:
    """Return the expected means of joint factors, or those of points."""
    return theta.each(lambda q: q.mean, lambda point: point.location)


def _component(z: Label) -> Plate:
    assert z.dimension is not None
    return Plate("component", z.dimension)


class JointMatrices(JointForm):
    r"""The prior :math:`N(m_0, (\kappa\Lambda)^{-1})` of a mean given its precision, and q(mean, precision) joint.

    Tied, all components share one precision matrix.
    """

    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows, with a Normal-Wishart above them."""
        component = component or _component(z)
        theta = NormalWishart(
            "theta",
            prior.mean,
            prior.mean_precision.state(),
            prior.df,
            prior.scale.matrix(),
            plates=component,
            tied=component if self.is_tied else None,
        )
        return MultivariateNormal(name, theta[z], plates=z.plates)

    def components(self, factors: Mapping[str, Any]) -> Components:
        r"""Return expectations: :math:`\langle\Lambda_k\rangle = \nu_k B_k^{-1}`."""
        theta = factors["theta"]
        df = theta.each(lambda q: np.asarray(q.df), lambda point: np.inf)
        kappa = theta.each(lambda q: q.mean_precision, lambda point: np.inf)
        covariances = theta.each(_inverse_of_expectation, lambda point: inverse(point.value[1]))
        return Components(_locations(theta), covariances, inverse(covariances), kappa, df)

    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        r"""Return the exact predictive density given the posterior.

        A mixture of Student-t distributions with :math:`\nu_k + 1 - D` degrees of freedom and shape matrices
        :math:`B_k (\kappa_k + 1) / (\kappa_k (\nu_k + 1 - D))`.
        """
        theta = factors["theta"]
        locations = _locations(theta)
        size = locations.shape[-1]
        nu = theta.each(lambda q: q.df + 1.0 - size, lambda point: NORMAL_DF)

        def shapes_of(q: Any) -> Array:
            kappa = q.mean_precision
            widening = (kappa + 1) / (kappa * (q.df + 1.0 - size))
            return q.inverse_scale * widening[:, None, None]

        shapes = theta.each(shapes_of, lambda point: inverse(point.value[1]))
        df = np.broadcast_to(nu, len(weights))
        return StudentMixture(weights, locations, whitening_of_shapes(shapes), df)

    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances, each mean given its precision."""
        means, precisions = factors["theta"].sample(n_draws, seed=rng)
        return means, inverse(precisions)


class IndependentMatrices(Form):
    """The prior :math:`N(m_0, S_0)` of a mean whatever its precision, and q(mean) q(precision).

    Tied, all components share one precision matrix.
    """

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> Array:
        """Return the matrix itself, or a number times the inverse covariance of the data."""
        if np.ndim(given) == 0:
            require_number(name, given, above=0)
            return given * scale.precision
        size = len(scale.mean)
        shapes = [(size, size), (n_components, size, size)]
        return as_positive_definite(name, given, shapes, "columns by columns, or such a matrix a component")

    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows, with Normal means and Wishart precisions above them."""
        component = component or _component(z)
        mean = MultivariateNormal("mean", prior.mean, prior.mean_precision.state(), plates=component)
        precision = Wishart(
            "precision",
            prior.df,
            prior.scale.matrix(),
            smallest_variance=prior.smallest_variance,
            plates=() if self.is_tied else component,
        )
        return MultivariateNormal(name, mean[z], precision if self.is_tied else precision[z], plates=z.plates)

    def components(self, factors: Mapping[str, Any]) -> Components:
        """Return expectations, or the values of point masses."""
        mean, precision = factors["mean"], factors["precision"]
        covariances = precision.each(_inverse_of_expectation, lambda point: inverse(point.value))
        return Components(
            mean.mean,
            covariances,
            precision.each(lambda q: inverse(_inverse_of_expectation(q)), lambda point: point.value),
            mean.each(lambda q: q.precision, lambda point: np.inf),
            precision.each(lambda q: np.asarray(q.df), lambda point: np.inf),
        )

    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        r"""Return the density of a new row: Normal for point masses, else an approximation, for it has no closed form.

        With :math:`\nu = a_k + 1 - D`: a Student-t with :math:`\nu` degrees of freedom, location :math:`m_k`
        and shape matrix :math:`B_k/\nu + S_k (\nu - 2)/\nu`, which has the exact mean and covariance; where
        :math:`\nu \le 2` there is no covariance to match, and the shape matrix is :math:`B_k/\nu + S_k`.
        """
        mean, precision = factors["mean"], factors["precision"]
        if mean.learnt is None and precision.learnt is None:
            whitening = whitening_of_precisions(precision.value)
            return NormalMixture(weights, mean.value, whitening[None] if self.is_tied else whitening)
        size = mean.mean.shape[-1]
        df = precision.each(lambda q: np.asarray(q.df + 1.0 - size), lambda point: NORMAL_DF)
        nu = np.broadcast_to(df, len(weights))
        share = np.where(nu > 2, (nu - 2) / nu, 1.0)
        spread = mean.each(lambda q: q.covariance, lambda point: 0.0) * share[:, None, None]

        def own(q: Any) -> Array:
            return q.inverse_scale / np.asarray(q.df + 1.0 - size)[..., None, None]

        shapes = precision.each(own, lambda point: inverse(point.value)) + spread
        return StudentMixture(weights, mean.mean, whitening_of_shapes(shapes), nu)

    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances."""
        means = factors["mean"].sample(n_draws, seed=rng)
        return means, inverse(factors["precision"].sample(n_draws, seed=rng))
