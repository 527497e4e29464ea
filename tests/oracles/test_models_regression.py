"""Regressions agree with closed forms, published figures, literal loops and quadrature."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import gamma, multivariate_normal, norm, t

from caviar import models
from caviar._typing import Array

PUBLISHED = (-40.80970, -40.57132, -40.56572, -40.56551)
"""ELBO after each of the first sweeps, of a worked example of this regression."""


def _design(rng: np.random.Generator, n: int, d: int) -> Array:
    return np.column_stack([np.ones(n), rng.normal(size=(n, d - 1))])


def test_known_noise_gives_the_exact_posterior_and_evidence() -> None:
    rng = np.random.default_rng(1)
    X, y = _design(rng, 12, 3), rng.normal(size=12)
    prior_mean, prior_precision = np.array([0.3, -1.0, 0.5]), np.diag([1.0, 2.0, 0.5])
    model = models.linear_regression(
        3, prior_mean=prior_mean, prior_precision=prior_precision, noise_precision=2.0
    )
    posterior = model.fit({"X": X, "y": y})
    covariance = np.linalg.inv(prior_precision + 2.0 * X.T @ X)
    mean = covariance @ (prior_precision @ prior_mean + 2.0 * X.T @ y)
    marginal = X @ np.linalg.inv(prior_precision) @ X.T + np.eye(12) / 2.0
    np.testing.assert_allclose(posterior["w"].covariance, covariance, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(posterior["w"].mean, mean, rtol=1e-10)
    assert posterior.elbo == pytest.approx(multivariate_normal(X @ prior_mean, marginal).logpdf(y), rel=1e-12)


def test_published_elbo_of_each_sweep() -> None:
    x = np.arange(10)
    y = 2 * x + 5 + 2 * np.random.RandomState(42).randn(10)
    model = models.linear_regression(2, prior_precision=1e-6, shape=1e-3, rate=1e-3)
    data = {"X": np.column_stack([np.ones(10), x]), "y": y}
    posterior = model.fit(data, init={"tau": 1.0}, order=["w", "tau"], max_iter=4, tol=0, accelerate=False)
    np.testing.assert_allclose(posterior.elbo_trace[1:], PUBLISHED, rtol=0, atol=6e-6)


def test_one_row_and_a_constant_column() -> None:
    """A single row, and columns that are the same: the prior decides between them."""
    model = models.linear_regression(2, prior_precision=1.0, noise_precision=1.0)
    posterior = model.fit({"X": [[1.0, 1.0]], "y": [3.0]})
    np.testing.assert_allclose(posterior["w"].mean, [1.0, 1.0], rtol=1e-12)
    assert posterior.elbo == pytest.approx(norm(0, np.sqrt(3)).logpdf(3.0), rel=1e-12)


@pytest.mark.parametrize("population", [0.0, [0.4, -0.7]])
def test_varying_coefficients_with_known_precisions_give_the_exact_evidence(population: Array) -> None:
    rng = np.random.default_rng(2)
    X, y, group = _design(rng, 30, 2), rng.normal(size=30), rng.integers(3, size=30)
    model = models.varying_coefficients(
        2, 4, population=population, group_precision=[2.0, 0.5], noise_precision=1.5
    )
    posterior = model.fit({"X": X, "y": y, "group": group})
    same = group[:, None] == group[None, :]
    marginal = same * (X @ np.diag([0.5, 2.0]) @ X.T) + np.eye(30) / 1.5
    exact = multivariate_normal(X @ np.broadcast_to(population, 2), marginal).logpdf(y)
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    # the group without rows keeps its prior
    np.testing.assert_allclose(posterior["w"].mean[3], np.broadcast_to(population, 2), atol=1e-14)


def test_unknown_population_stays_below_the_evidence() -> None:
    rng = np.random.default_rng(3)
    X, y, group = _design(rng, 30, 2), rng.normal(2, 1, size=30), rng.integers(3, size=30)
    model = models.varying_coefficients(
        2, 3, population_precision=0.25, group_precision=[2.0, 0.5], noise_precision=1.5
    )
    posterior = model.fit({"X": X, "y": y, "group": group}, tol=1e-13, factors="apart")
    same = group[:, None] == group[None, :]
    marginal = 4.0 * X @ X.T + same * (X @ np.diag([0.5, 2.0]) @ X.T) + np.eye(30) / 1.5
    exact = multivariate_normal(np.zeros(30), marginal).logpdf(y)
    assert exact - 3.0 < posterior.elbo < exact - 0.01
    # in a Gaussian model the means of coordinate ascent are those of the exact posterior
    expected = 4.0 * X.T @ np.linalg.solve(marginal, y)
    np.testing.assert_allclose(posterior["population"].mean, expected, rtol=1e-4)


def _gamma_divergence(shape: float, rate: float, prior: tuple[float, float]) -> float:
    """Return KL(Gamma(shape, rate) || Gamma(*prior))."""
    a, b = prior
    log_x = digamma(shape) - np.log(rate)
    own = shape * np.log(rate) - gammaln(shape) + (shape - 1) * log_x - shape
    return float(own - (a * np.log(b) - gammaln(a) + (a - 1) * log_x - b * shape / rate))


def _relevance_reference(X: Array, y: Array, n_sweeps: int) -> tuple[float, Array, Array]:
    """Return ELBO and means of w and alpha after sweeps over w, tau, alpha from tau = alpha = 1; all priors 1e-3."""
    n, d = X.shape
    tau, alpha = 1.0, np.ones(d)
    for _ in range(n_sweeps):
        covariance = np.linalg.inv(np.diag(alpha) + tau * X.T @ X)
        mean = tau * covariance @ X.T @ y
        squares = [(y[i] - X[i] @ mean) ** 2 + X[i] @ covariance @ X[i] for i in range(n)]
        shape, rate = 1e-3 + n / 2, 1e-3 + sum(squares) / 2
        tau = shape / rate
        shapes, rates = np.empty(d), np.empty(d)
        for j in range(d):
            shapes[j], rates[j] = 1e-3 + 0.5, 1e-3 + (mean[j] ** 2 + covariance[j, j]) / 2
            alpha[j] = shapes[j] / rates[j]
    elbo = -_gamma_divergence(shape, rate, (1e-3, 1e-3))
    for i in range(n):
        elbo += 0.5 * (digamma(shape) - np.log(rate)) - 0.5 * np.log(2 * np.pi) - 0.5 * tau * squares[i]
    for j in range(d):
        elbo -= _gamma_divergence(shapes[j], rates[j], (1e-3, 1e-3))
        second = mean[j] ** 2 + covariance[j, j]
        elbo += (
            0.5 * (digamma(shapes[j]) - np.log(rates[j])) - 0.5 * np.log(2 * np.pi) - 0.5 * alpha[j] * second
        )
    elbo += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    return float(elbo), mean, alpha.copy()


@pytest.mark.parametrize("n_sweeps", [1, 2, 25])
def test_relevance_regression_agrees_with_a_literal_reference(n_sweeps: int) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(25, 4))
    y = X @ [2.0, 0.0, -1.0, 0.0] + 0.3 * rng.normal(size=25)
    posterior = models.relevance_regression(4).fit(
        {"X": X, "y": y},
        init={"tau": 1.0, "alpha": np.ones(4)},
        order=["w", "tau", "alpha"],
        max_iter=n_sweeps,
        tol=0,
        accelerate=False,
    )
    elbo, mean, alpha = _relevance_reference(X, y, n_sweeps)
    assert posterior.elbo == pytest.approx(elbo, rel=1e-9)
    np.testing.assert_allclose(posterior["w"].mean, mean, rtol=1e-9)
    np.testing.assert_allclose(posterior["alpha"].mean, alpha, rtol=1e-9)


def _robust_reference(X: Array, y: Array, tau: float, weights: Array, n_sweeps: int) -> tuple[float, Array]:
    """Return ELBO and mean of w after sweeps over w, tau, u: w ~ N(0, 4 I), tau ~ Gamma(2, 1.5), nu = 5."""
    n, d = X.shape
    for _ in range(n_sweeps):
        precision, shifted = np.eye(d) / 4, np.zeros(d)
        for i in range(n):
            precision += tau * weights[i] * np.outer(X[i], X[i])
            shifted += tau * weights[i] * X[i] * y[i]
        covariance = np.linalg.inv(precision)
        mean = covariance @ shifted
        squares = np.array([(y[i] - X[i] @ mean) ** 2 + X[i] @ covariance @ X[i] for i in range(n)])
        shape, rate = 2 + n / 2, 1.5 + weights @ squares / 2
        tau = shape / rate
        rates = (5 + tau * squares) / 2
        weights = 3 / rates
    elbo = -_gamma_divergence(shape, rate, (2, 1.5))
    for i in range(n):
        log_precision = digamma(3) - np.log(rates[i]) + digamma(shape) - np.log(rate)
        elbo += 0.5 * log_precision - 0.5 * np.log(2 * np.pi) - 0.5 * tau * weights[i] * squares[i]
        elbo -= _gamma_divergence(3, rates[i], (2.5, 2.5))
    elbo += 0.5 * (np.linalg.slogdet(covariance / 4)[1] + d - np.trace(covariance) / 4 - mean @ mean / 4)
    return float(elbo), mean


@pytest.mark.slow
def test_robust_regression_agrees_with_a_literal_reference() -> None:
    rng = np.random.default_rng(5)
    X = _design(rng, 15, 2)
    y = X @ [1.0, 2.0] + 0.2 * rng.normal(size=15)
    y[3] = 20.0
    model = models.robust_regression(2, df=5.0, prior_precision=0.25, shape=2.0, rate=1.5)
    data = {"X": X, "y": y}
    posterior = model.fit(data, seed=0, order=["w", "tau"], tol=1e-14, max_iter=2000)
    elbo, mean = _robust_reference(X, y, 1.0, np.ones(15), 2000)
    assert posterior.elbo == pytest.approx(elbo, rel=1e-9)
    np.testing.assert_allclose(posterior["w"].mean, mean, rtol=1e-5)
    # least squares without scales follows the row far out
    plain = models.linear_regression(2, prior_precision=0.25).fit(data)
    assert abs(plain["w"].mean[0] - 1.0) > 3 * abs(mean[0] - 1.0)


def test_elbo_of_robust_regression_is_a_bound() -> None:
    """The evidence of three rows, by quadrature over coefficient and noise: rows are Student-t given these."""
    X, y = np.array([[1.0], [0.5], [-1.0]]), np.array([0.9, 0.2, 4.0])
    model = models.robust_regression(1, df=3.0, prior_precision=1.0, shape=2.0, rate=1.0)
    posterior = model.fit({"X": X, "y": y}, seed=0, tol=1e-12)

    # trapezoids over w and log tau: both ends of both vanish, so that the rule converges exponentially
    w, log_tau = np.linspace(-6, 6, 401)[:, None, None], np.linspace(-12, 4, 401)[:, None]
    tau = np.exp(log_tau)
    rows = t(3.0, X[:, 0] * w, 1 / np.sqrt(tau)).logpdf(y).sum(axis=-1)
    joint = np.exp(rows + (norm(0, 1).logpdf(w) + gamma(2.0).logpdf(tau) + log_tau)[..., 0])
    evidence = np.log(joint.sum() * (12 / 400) * (16 / 400))
    assert evidence - 1.0 < posterior.elbo < evidence - 1e-3
