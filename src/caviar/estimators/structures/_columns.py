"""Forms of structures in which the columns of a component are independent: precisions are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Array
from ...densities import MixtureDensity, NormalMixture, ProductStudentMixture, StudentMixture
from ...language import Gamma, Normal, NormalGamma, Plate, Variable
from ..arguments.checks import as_broadcast
from ..priors.known import NORMAL_DF
from ..priors.structure import ComponentPrior, Components, CovarianceStructure, Form, JointForm, Label
from ..tables.data_scale import DataScale


class ColumnStructure(CovarianceStructure):
    """A structure in which the columns of a component are independent."""

    has_independent_columns = True

    def wishart_size(self, n_features: int) -> int:
        """Return 1."""
        return 1

    def variances_of(self, scale: DataScale) -> Array:
        """Return the variances of the data under this structure."""
        return self.covariance_of(scale)

    def covariance_with(self, variances: Array) -> Array:
        """Return the variances themselves."""
        return variances

    def precision_roots(self, precisions: Array) -> Array:
        """Return the roots."""
        return np.sqrt(precisions)

    def invert(self, covariances: Array) -> Array:
        """Return the reciprocals."""
        return 1 / covariances


def _plates(z: Label, n_features: int, component: Plate | None) -> tuple[Plate, Plate]:
    assert z.dimension is not None
    return component or Plate("component", z.dimension), Plate("feature", n_features)


def _widening(q: Any) -> Array:
    return (q.mean_precision + 1) / q.mean_precision


def _half(value: ArrayLike | None) -> Array:
    """Return a parameter of a Wishart for a number as that of the Gamma that it is."""
    return 0.5 * np.asarray(value, dtype=np.float64)


class JointColumns(JointForm):
    r"""The prior :math:`N(m_0, (\kappa\tau)^{-1})` of a mean given its precision, and q(mean, precision) joint.

    Tied, the columns of a component share one precision.
    """

    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows, with Normal-Gammas above them."""
        component, feature = _plates(z, prior.mean.shape[-1], component)
        shape = _half(prior.df)
        theta = NormalGamma(
            "theta",
            prior.mean,
            prior.mean_precision.state_of_columns(),
            shape[:, None] if shape.ndim and not self.is_tied else shape,
            prior.scale.rate(feature),
            plates=(component, feature),
            tied=feature if self.is_tied else None,
        )
        return Normal(name, theta[z], plates=(*z.plates, feature))

    def components(self, factors: Mapping[str, Any]) -> Components:
        r"""Return expectations: :math:`\langle\tau\rangle = a / b`."""
        theta = factors["theta"]
        variances = theta.each(lambda q: q.rate / q.shape, lambda point: 1 / point.value[1])
        return Components(
            theta.each(lambda q: q.mean, lambda point: point.location),
            variances,
            1 / variances,
            theta.each(lambda q: q.mean_precision, lambda point: np.inf),
            theta.each(lambda q: 2 * np.asarray(q.shape), lambda point: np.inf),
        )

    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        r"""Return the exact predictive density given the posterior.

        In each column a Student-t with 2a degrees of freedom and squared scale :math:`b (\kappa + 1) / (a \kappa)`;
        where the columns of a component share their precision these are one multivariate Student-t.
        """
        theta = factors["theta"]
        if self.is_tied:
            shapes = _widening(theta) * (theta.rate / theta.shape)[:, None]
            return StudentMixture(weights, theta.mean, 1 / np.sqrt(shapes), 2 * theta.shape)
        means = theta.each(lambda q: q.mean, lambda point: point.location)
        shapes = theta.each(lambda q: _widening(q) * q.rate / q.shape, lambda point: 1 / point.value[1])
        df = theta.each(lambda q: 2 * q.shape, lambda point: NORMAL_DF)
        return ProductStudentMixture(weights, means, np.sqrt(shapes), np.broadcast_to(df, means.shape))

    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances, each mean given its precision."""
        means, precisions = factors["theta"].sample(n_draws, seed=rng)
        return means, 1 / precisions


class IndependentColumns(Form):
    """The prior :math:`N(m_0, s_0^2)` of a mean whatever its precision, and q(mean) q(precision).

    Tied, the columns of a component share one precision.
    """

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> Array:
        """Return precisions, (D,) or (K, D), or a number times those of the data."""
        size = len(scale.mean)
        if np.ndim(given) == 0:
            return as_broadcast(name, given, (size,), "one number", above=0) / scale.unit**2
        shape = (n_components, size) if np.ndim(given) == 2 else (size,)
        return np.broadcast_to(
            as_broadcast(name, given, shape, "one a column, or components by columns", above=0), shape
        )

    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows, with Normal means and Gamma precisions above them."""
        component, feature = _plates(z, prior.mean.shape[-1], component)
        shape = _half(prior.df)
        mean = Normal("mean", prior.mean, prior.mean_precision.state(), plates=(component, feature))
        precision = Gamma(
            "precision",
            shape[:, None] if shape.ndim and not self.is_tied else shape,
            prior.scale.rate(feature),
            smallest_variance=prior.smallest_variance,
            plates=component if self.is_tied else (component, feature),
        )
        return Normal(name, mean[z], precision[z], plates=(*z.plates, feature))

    def components(self, factors: Mapping[str, Any]) -> Components:
        """Return expectations, or the values of point masses."""
        mean, precision = factors["mean"], factors["precision"]
        return Components(
            mean.mean,
            precision.each(lambda q: q.rate / q.shape, lambda point: 1 / point.value),
            precision.mean,
            mean.each(lambda q: 1 / q.variance, lambda point: np.inf),
            precision.each(lambda q: 2 * np.asarray(q.shape), lambda point: np.inf),
        )

    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        r"""Return the density of a new row: Normal for point masses, else an approximation, for it has no closed form.

        In each column a Student-t with :math:`\nu = 2a` degrees of freedom and squared scale
        :math:`2b/\nu + s^2 (\nu - 2)/\nu`, which has the exact mean and variance; where :math:`\nu \le 2` the squared
        scale is :math:`2b/\nu + s^2`.
        """
        mean, precision = factors["mean"], factors["precision"]
        if mean.learnt is None and precision.learnt is None:
            return NormalMixture(weights, mean.value, np.sqrt(precision.value))
        own = precision.each(lambda q: q.rate / q.shape, lambda point: 1 / point.value)
        df = precision.each(lambda q: 2 * np.asarray(q.shape), lambda point: NORMAL_DF)
        nu = np.broadcast_to(df, own.shape)
        share = np.where(nu > 2, (nu - 2) / nu, 1.0)
        spread = mean.each(lambda q: q.variance, lambda point: np.zeros(point.value.shape))
        if self.is_tied:
            shapes = own[:, None] + spread * share[:, None]
            return StudentMixture(weights, mean.mean, 1 / np.sqrt(shapes), nu)
        return ProductStudentMixture(weights, mean.mean, np.sqrt(own + spread * share), nu)

    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of means and covariances."""
        means = factors["mean"].sample(n_draws, seed=rng)
        return means, 1 / factors["precision"].sample(n_draws, seed=rng)


class KnownColumns(Form):
    """Precisions that are known to be 1; the prior :math:`N(m_0, s_0^2)` of the means is then conjugate."""

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> Array:
        """Return precisions, (D,) or (K, D), or a number times the known precision 1."""
        size = len(scale.mean)
        shape = (n_components, size) if np.ndim(given) == 2 else (size,)
        meaning = "one number, one a column, or components by columns"
        return np.broadcast_to(as_broadcast(name, given, shape, meaning, above=0), shape)

    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows, with Normal means above them."""
        component, feature = _plates(z, prior.mean.shape[-1], component)
        mean = Normal("mean", prior.mean, prior.mean_precision.state(), plates=(component, feature))
        return Normal(name, mean[z], 1.0, plates=(*z.plates, feature))

    def components(self, factors: Mapping[str, Any]) -> Components:
        """Return expectations, or the values of point masses."""
        mean = factors["mean"]
        ones = np.ones(len(mean.mean))
        return Components(mean.mean, ones, ones, mean.each(lambda q: 1 / q.variance, lambda point: np.inf))

    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        r"""Return the exact density of a new row: Normal, with variance :math:`1 + s_k^2`."""
        mean = factors["mean"]
        if mean.learnt is None:
            return NormalMixture(weights, mean.value, np.ones(len(weights)))
        return NormalMixture(weights, mean.mean, 1 / np.sqrt(1 + mean.variance))

    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of the means, and the known covariances."""
        means = factors["mean"].sample(n_draws, seed=rng)
        return means, np.ones(means.shape[:2])
