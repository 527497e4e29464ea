"""Densities, entropies and moments are those of SciPy, at ordinary parameters."""

import numpy as np
import pytest
from scipy import stats

from caviar.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    Normal,
    NormalGamma,
    NormalWishart,
    Wishart,
)


def in_scipy(q):
    """Return SciPy's distribution for a single distribution of one variable."""
    match q:
        case Normal():
            return stats.norm(q.mean, 1.0 / np.sqrt(q.precision))
        case MultivariateNormal():
            return stats.multivariate_normal(q.mean, np.linalg.inv(q.precision))
        case Gamma():
            return stats.gamma(q.shape, scale=1.0 / q.rate)
        case Wishart():
            return stats.wishart(float(q.df), np.linalg.inv(q.inverse_scale))
        case Dirichlet():
            return stats.dirichlet(q.concentration)
        case Beta():
            return stats.beta(q.a, q.b)
        case Bernoulli():
            return stats.bernoulli(q.probability)
        case Categorical():
            return stats.rv_discrete(values=(np.arange(q.event_shape[0]), q.probabilities))
    raise AssertionError(q)


def log_density_in_scipy(q, value):
    """Return SciPy's log-density of one value."""
    match q:
        case NormalGamma():
            location, precision = value
            conditional = stats.norm(q.mean, 1.0 / np.sqrt(q.mean_precision * precision))
            return conditional.logpdf(location) + stats.gamma(q.shape, scale=1.0 / q.rate).logpdf(precision)
        case NormalWishart():
            location, precision = value
            conditional = stats.multivariate_normal(q.mean, np.linalg.inv(q.mean_precision * precision))
            wishart = stats.wishart(float(q.df), np.linalg.inv(q.inverse_scale))
            return conditional.logpdf(location) + wishart.logpdf(precision)
        case Bernoulli() | Categorical():
            return in_scipy(q).logpmf(value)
    return in_scipy(q).logpdf(value)


def singles(q):
    return [q[index] for index in np.ndindex(q.batch_shape)] if q.batch_shape else [q]


def test_log_density(q, laws):
    for single in singles(q):
        for seed in range(5):
            value = laws.as_one(laws.draw(single, seed=seed))
            expected = log_density_in_scipy(single, value)
            np.testing.assert_allclose(single.log_density(value), expected, rtol=1e-9, atol=1e-9)


def test_entropy(q):
    for single in singles(q):
        if isinstance(single, (NormalGamma, NormalWishart)):
            size = single.event_shape[0] if single.event_shape else 1
            marginal = single.precision_marginal
            given = 0.5 * size * np.log(2 * np.pi * np.e / single.mean_precision)
            expected = in_scipy(marginal).entropy() + given - 0.5 * marginal.expected_statistics[0]
        else:
            expected = in_scipy(single).entropy()
        np.testing.assert_allclose(single.entropy(), expected, rtol=1e-9, atol=1e-9)


def test_mean_and_variance(q):
    if isinstance(q, (NormalGamma, NormalWishart)):
        pytest.skip("the moments of joint distributions are tested by their draws")
    for single in singles(q):
        reference = in_scipy(single)
        if isinstance(q, Categorical):
            labels = np.arange(q.event_shape[0])
            expected = reference.pmf(labels)
            np.testing.assert_allclose(single.variance, expected * (1 - expected), rtol=1e-12)
        elif isinstance(q, MultivariateNormal):
            expected = reference.mean
            np.testing.assert_allclose(single.covariance, reference.cov, rtol=1e-9)
        else:
            expected = reference.mean()
            np.testing.assert_allclose(single.variance, reference.var(), rtol=1e-9)
        np.testing.assert_allclose(single.mean, expected, rtol=1e-9)


def test_covariance_of_weights():
    q = Dirichlet([1.5, 2.0, 4.0])
    np.testing.assert_allclose(q.covariance, stats.dirichlet([1.5, 2.0, 4.0]).cov(), rtol=1e-12)


def test_variance_of_the_location_given_no_precision():
    q = NormalGamma(0.5, 2.0, 3.0, 1.5)
    student = stats.t(df=6.0, loc=0.5, scale=np.sqrt(1.5 / (3.0 * 2.0)))
    np.testing.assert_allclose(q.variance, student.var(), rtol=1e-12)
    assert NormalGamma(0.0, 1.0, 1.0, 1.0).variance == np.inf
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    joint = NormalWishart([1.0, -1.0], 0.7, 6.0, scale)
    student = stats.multivariate_t([1.0, -1.0], scale / (0.7 * 5.0), df=5.0)
    np.testing.assert_allclose(joint.covariance, student.shape * 5.0 / 3.0, rtol=1e-12)
    assert np.all(NormalWishart([0.0, 0.0], 1.0, 3.0, scale).covariance == np.inf)


@pytest.mark.parametrize(
    ("q", "outside"),
    [
        (Gamma(2.0, 1.0), -1.0),
        (Beta(2.0, 2.0), 1.5),
        (Dirichlet([2.0, 2.0]), [0.5, 0.6]),
        (Dirichlet([2.0, 2.0]), [-0.5, 1.5]),
        (Wishart(3.0, np.eye(2)), -np.eye(2)),
        (NormalGamma(0.0, 1.0, 2.0, 1.0), (0.0, -1.0)),
        (NormalWishart([0.0, 0.0], 1.0, 3.0, np.eye(2)), ([0.0, 0.0], -np.eye(2))),
        (Bernoulli(0.5), 0.5),
    ],
)
def test_values_outside_the_support_have_no_density(q, outside):
    assert q.log_density(outside) == -np.inf


def test_densities_at_the_edge_of_the_support():
    assert Gamma(1.0, 2.0).log_density(0.0) == pytest.approx(np.log(2.0))
    assert Gamma(2.0, 2.0).log_density(0.0) == -np.inf
    assert Gamma(0.5, 2.0).log_density(0.0) == np.inf
    assert Beta(1.0, 3.0).log_density([0.0, 1.0]) == pytest.approx([np.log(3.0), -np.inf])
