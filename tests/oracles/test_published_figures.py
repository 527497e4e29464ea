"""The references reproduce the figures that others published, to their printed digits."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import multivariate_t, norm

from oracles import published
from oracles.reference import dirichlet_counts, known_precision_mixture, normal_unknown, wishart

pytestmark = pytest.mark.starts_of_users


def test_normal_with_unknown_mean_and_precision() -> None:
    prior = normal_unknown.Factorised(
        published.NORMAL_PRIOR_MEAN,
        published.NORMAL_PRIOR_VARIANCE,
        published.NORMAL_PRIOR_SHAPE,
        published.NORMAL_PRIOR_RATE,
    )
    q = normal_unknown.factorised_fixed_point(published.NORMAL_X, prior)
    bound = normal_unknown.factorised_elbo(published.NORMAL_X, prior, q)
    assert bound == pytest.approx(published.NORMAL_BOUND, abs=5e-8)
    moments = [q.shape / q.rate, digamma(q.shape) - np.log(q.rate), q.mean, q.mean**2 + q.variance]
    expected = [
        published.NORMAL_EXPECTED_PRECISION,
        published.NORMAL_EXPECTED_LOG_PRECISION,
        published.NORMAL_EXPECTED_MEAN,
        published.NORMAL_EXPECTED_SQUARED_MEAN,
    ]
    np.testing.assert_allclose(moments, expected, rtol=0, atol=published.NORMAL_TOLERANCE)


def test_mixture_of_two_with_known_precision() -> None:
    model = known_precision_mixture.Model(
        published.TWO_MEANS_CONCENTRATION,
        published.TWO_MEANS_PRIOR_MEANS,
        published.TWO_MEANS_PRIOR_VARIANCES,
        published.TWO_MEANS_PRECISION,
    )
    q = known_precision_mixture.run(published.TWO_MEANS_X, model, 500)
    bound = known_precision_mixture.elbo(published.TWO_MEANS_X, model, q)
    assert bound == pytest.approx(published.TWO_MEANS_BOUND, abs=5e-9)
    of_prior_means = norm.logpdf(published.TWO_MEANS_PRIOR_MEANS, 3.0, np.sqrt(0.5)).sum()
    assert np.float32(bound + of_prior_means) == np.float32(published.TWO_MEANS_BOUND_WITH_PRIOR_MEANS)
    for ours, theirs in [
        (q.responsibilities[0], published.TWO_MEANS_RESPONSIBILITIES),
        (q.means, published.TWO_MEANS_EXPECTED_MEANS),
        (wishart.expected_log_weights(q.concentration), published.TWO_MEANS_EXPECTED_LOG_WEIGHTS),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=published.TWO_MEANS_TOLERANCE)


def test_dirichlet_multinomial() -> None:
    prior = published.DIRICHLET_MULTINOMIAL_CONCENTRATION
    evidence, elbo = 0.0, 0.0
    for counts in published.DIRICHLET_MULTINOMIAL_COUNTS:
        coefficient = dirichlet_counts.log_multinomial_coefficient(counts)
        evidence += coefficient + dirichlet_counts.log_evidence(prior, counts)
        elbo += coefficient + dirichlet_counts.elbo(prior, counts, prior + counts)
    assert evidence == pytest.approx(published.DIRICHLET_MULTINOMIAL_LOG_EVIDENCE, abs=5e-6)
    assert elbo == pytest.approx(evidence, abs=1e-11)


def test_dirichlet_categorical() -> None:
    prior = published.DIRICHLET_CATEGORICAL_CONCENTRATION
    counts = np.eye(4)[published.DIRICHLET_CATEGORICAL_DRAW]
    elbo = dirichlet_counts.elbo(prior, counts, prior + counts)
    assert elbo == pytest.approx(published.DIRICHLET_CATEGORICAL_BOUND, abs=5e-8)
    assert elbo == pytest.approx(dirichlet_counts.log_evidence(prior, counts), abs=1e-13)


def test_joint_regression_is_a_multivariate_student_t() -> None:
    """The rows have the density t_{2a}(0, b/a (I + X X' / 1e-6)) with a = b = 1e-3."""
    design = published.REGRESSION_DESIGN
    shape = np.eye(10) + design @ design.T / 1e-6
    log_evidence = multivariate_t.logpdf(published.REGRESSION_Y, np.zeros(10), shape, df=2e-3)
    assert float(log_evidence) == pytest.approx(published.REGRESSION_JOINT_LOG_EVIDENCE, abs=5e-6)


def test_regression_with_separate_factors() -> None:
    """The four bounds: b ~ N(0, 1e6 I), tau ~ Gamma(1e-3, 1e-3), b updated first from <tau> = 1."""
    design, y = published.REGRESSION_DESIGN, published.REGRESSION_Y
    tau_mean, bounds = 1.0, []
    for _ in range(4):
        covariance = np.linalg.inv(1e-6 * np.eye(2) + tau_mean * design.T @ design)
        mean = covariance @ (tau_mean * design.T @ y)
        errors = sum((y - design @ mean) ** 2) + np.trace(design @ covariance @ design.T)
        q = normal_unknown.Factorised(0.0, 1.0, 1e-3 + 5.0, 1e-3 + errors / 2)
        tau_mean, log_tau = q.shape / q.rate, float(digamma(q.shape)) - np.log(q.rate)
        prior = normal_unknown.Factorised(0.0, 1.0, 1e-3, 1e-3)
        bound = 5 * log_tau - 5 * np.log(2 * np.pi) - tau_mean * errors / 2
        bound += np.log(1e-6) - 0.5e-6 * (mean @ mean + np.trace(covariance))
        bound += 1 + 0.5 * wishart.log_det(covariance)
        bound += normal_unknown.expected_log_gamma(prior, tau_mean, log_tau)
        bound -= normal_unknown.expected_log_gamma(q, tau_mean, log_tau)
        bounds.append(bound)
    np.testing.assert_allclose(bounds, published.REGRESSION_MEAN_FIELD_BOUNDS, rtol=0, atol=5.1e-6)


def test_categorical_hidden_markov_model() -> None:
    observed = published.HMM_OBSERVED
    total, marginals = 0.0, np.zeros((3, 2))
    for path in product((0, 1), repeat=3):
        p = published.HMM_INITIAL[path[0]]
        for previous, state in pairwise(path):
            p *= published.HMM_TRANSITION[previous, state]
        for state, symbol in zip(path, observed, strict=True):
            p *= published.HMM_EMISSION[state, symbol]
        total += p
        marginals[np.arange(3), path] += p
    assert np.log(total) == pytest.approx(published.HMM_LOG_EVIDENCE, abs=5e-8)
    np.testing.assert_allclose(marginals / total, published.HMM_POSTERIORS, rtol=0, atol=5.1e-6)
