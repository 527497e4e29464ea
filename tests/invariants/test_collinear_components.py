"""The objective of components that are narrow in one direction is that of the factors which are returned.

A factor's entropy does not depend on its location; taken as log-partition minus <natural, expected>, it does in
doubles, by the condition number of the covariance.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import caviar as cv
from caviar import families


def _two_ridges(rows, width):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * rows, 1)) @ [[1.0, 1.0]] + width * rng.normal(size=(2 * rows, 2))
    x[:rows] += [0.3, -0.3]
    x[rows:] -= [0.3, -0.3]
    return x


@pytest.mark.parametrize(("rows", "width"), [(100, 1e-4), (2000, 1e-4), (2000, 1e-3)])
def test_the_objective_is_that_of_the_returned_factors_and_never_falls(rows, width):
    x = _two_ridges(rows, width)
    mixture = cv.BayesianGaussianMixture(
        2,
        mean_precision_family="independent",
        covariance_prior=np.eye(2) * width**2,
        random_state=0,
        tol=1e-9,
        max_iter=60,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(x)
    posterior = mixture.posterior_
    assert posterior.elbo_at({}, {"x": x}) == pytest.approx(posterior.elbo, rel=1e-9)
    assert np.diff(posterior.elbo_trace).min() > -1e-7 * abs(posterior.elbo)


def test_the_entropy_of_a_factor_does_not_depend_on_where_it_is():
    ridge = np.linalg.inv(np.ones((2, 2)) + 1e-8 * np.eye(2)) * 100
    here = families.MultivariateNormal.from_natural((np.zeros(2), -0.5 * ridge))
    there = families.MultivariateNormal.from_natural((ridge @ np.array([0.3, -0.3]), -0.5 * ridge))
    assert_allclose(there.entropy_about_base(), here.entropy_about_base(), rtol=1e-9)


def test_the_entropy_about_the_base_is_the_log_partition_minus_the_inner_product():
    rng = np.random.default_rng(0)
    matrix = np.cov(rng.normal(size=(3, 10)))
    for factor in (
        families.Normal(0.3, 2.0),
        families.MultivariateNormal(rng.normal(size=3), matrix),
        families.NormalGamma(0.3, 2.0, 3.0, 1.5),
        families.NormalWishart(rng.normal(size=3), 2.0, 5.0, matrix),
        families.Gamma(2.0, 3.0),
        families.Wishart(5.0, matrix),
        families.Dirichlet([1.0, 2.0, 3.0]),
        families.Beta(2.0, 3.0),
    ):
        pairs = zip(factor.natural, factor.expected_statistics, strict=True)
        inner = sum(float(np.vdot(eta, mean)) for eta, mean in pairs)
        assert_allclose(factor.entropy_about_base(), factor.log_partition - inner, rtol=1e-10, atol=1e-12)
