"""Binary regressions agree with literal loops, quadrature, Newton's method, and themselves in other units."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_ndtr
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer

import caviar as cv
from caviar import models
from caviar._typing import Array
from oracles.reference.binary_regression import Path, jaakkola_jordan, utilities

LINKS = ["probit", "logistic"]
STATE: dict[str, Callable[..., cv.Model]] = {
    "probit": models.probit_regression,
    "logistic": models.logistic_regression,
}
REFERENCE: dict[str, Callable[..., Path]] = {"probit": utilities, "logistic": jaakkola_jordan}
LOG_PROBABILITY: dict[str, Callable[[Array], Array]] = {"probit": log_ndtr, "logistic": log_expit}


def _rows(seed: int, n: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1))])
    return X, (rng.normal(size=n) < X @ np.linspace(-0.5, 1.0, d)).astype(float)


def _log_likelihood(link: str, w: Array, X: Array, y: Array) -> Array:
    """Return the log-likelihood at each row of w."""
    return LOG_PROBABILITY[link]((2 * y - 1) * (w @ X.T)).sum(axis=-1)


def _evidence(link: str, X: Array, y: Array, sd: float, n: int = 400) -> float:
    """Return the log evidence under w ~ N(0, sd^2 I), by the trapezoid rule in one or two coefficients."""
    grid = np.linspace(-9 * sd, 9 * sd, n)
    d = X.shape[1]
    w = np.stack(np.meshgrid(*[grid] * d, indexing="ij"), axis=-1)
    log_joint = _log_likelihood(link, w, X, y) + norm(0, sd).logpdf(w).sum(axis=-1)
    return float(
        np.log(np.exp(log_joint - log_joint.max()).sum() * (grid[1] - grid[0]) ** d) + log_joint.max()
    )


@pytest.mark.parametrize("link", LINKS)
def test_every_sweep_agrees_with_a_literal_reference(link: str) -> None:
    """The whole path of the ELBO, with every constant."""
    X, y = _rows(1, 30, 3)
    mean, precision = np.array([0.2, -0.1, 0.4]), np.array([[0.6, 0.1, 0], [0.1, 0.9, 0], [0, 0, 2.0]])
    model = STATE[link](3, prior_mean=mean, prior_precision=precision)
    posterior = model.fit({"X": X, "y": y}, init="prior", max_iter=12, tol=0, accelerate=False)
    trace, final_mean, covariance = REFERENCE[link](X, y, mean, precision, 12)
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-9)
    np.testing.assert_allclose(posterior["w"].mean, final_mean, rtol=1e-9)
    np.testing.assert_allclose(posterior["w"].covariance, covariance, rtol=1e-9)


def test_the_logistic_elbo_is_the_bound_of_jaakkola_and_jordan() -> None:
    """At the end it is equation 10.164 of Bishop, in which w is integrated out."""
    X, y = _rows(2, 25, 2)
    data = {"X": X, "y": y}
    posterior = models.logistic_regression(2, prior_precision=0.5).fit(data, seed=0, tol=1e-15)
    xi = posterior.local(data)["y.polya_gamma"].tilt
    width = (expit(xi) - 0.5) / (2 * xi)
    precision = 0.5 * np.eye(2) + 2 * (X.T * width) @ X
    shifted = X.T @ (y - 0.5)
    bound = 0.5 * (np.linalg.slogdet(0.5 * np.linalg.inv(precision))[1])
    bound += 0.5 * shifted @ np.linalg.solve(precision, shifted)
    bound += np.sum(log_expit(xi) - xi / 2 + width * xi**2)
    assert posterior.elbo == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("link", LINKS)
def test_what_an_answer_adds_once_its_hidden_variable_is_at_the_optimum(link: str) -> None:
    """The closed forms in mean and variance of the predictor."""
    X, y = _rows(11, 20, 2)
    posterior = STATE[link](2, prior_precision=0.5).fit({"X": X, "y": y}, seed=0, tol=1e-15)
    q = posterior["w"]
    eta, variance = X @ q.mean, np.einsum("ni,ij,nj->n", X, q.covariance, X)
    added = log_ndtr((2 * y - 1) * eta) - variance / 2
    if link == "logistic":
        added = (y - 0.5) * eta - np.log(2 * np.cosh(np.sqrt(eta**2 + variance) / 2))
    prior = cv.families.MultivariateNormal(np.zeros(2), 0.5 * np.eye(2))
    assert posterior.elbo == pytest.approx(added.sum() - q.kl(prior), rel=1e-12)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("d", [1, 2])
def test_elbo_is_below_the_evidence(link: str, d: int) -> None:
    X, y = _rows(3, 12, d)
    posterior = STATE[link](d, prior_precision=0.25).fit({"X": X, "y": y}, seed=0, tol=1e-12)
    evidence = _evidence(link, X, y, 2.0)
    assert evidence - 3.0 < posterior.elbo < evidence - 1e-3


@pytest.mark.parametrize("y", [[1.0], [0.0], [1.0, 0.0]])
def test_what_the_probit_elbo_lacks_is_the_divergence_of_the_joint(y: list[float]) -> None:
    """The gap to log p(y) is KL(q(w) q(v) || p(w, v | y)), by Gauss rules over the coefficient and the utilities."""
    X = np.array([[1.3], [0.4]])[: len(y)]
    signs = 2 * np.array(y) - 1
    data = {"X": X, "y": y}
    posterior = models.probit_regression(1, prior_precision=0.5).fit(data, seed=0, tol=1e-15)
    sd = 1 / np.sqrt(posterior["w"].precision[0, 0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    w = posterior["w"].mean[0] + sd * nodes
    log_q_w, log_p_w = norm(posterior["w"].mean[0], sd).logpdf(w), norm(0, np.sqrt(2)).logpdf(w)
    divergence = (weights / weights.sum()) @ (log_q_w - log_p_w)
    legendre, share = np.polynomial.legendre.leggauss(200)
    v, step = 6 * (legendre + 1), 6 * share
    for n, sign in enumerate(signs):
        eta = sign * X[n, 0] * posterior["w"].mean[0]
        log_q_v = norm(eta, 1).logpdf(v) - norm.logcdf(eta)
        log_p_v = norm(0, 1).logpdf(v[:, None] - sign * X[n, 0] * w)
        inside = (np.exp(log_q_v) * step) @ (log_q_v[:, None] - log_p_v)
        divergence += inside @ (weights / weights.sum())
    evidence = _evidence("probit", X, np.array(y), np.sqrt(2), 4000)
    # p(w, v | y) = p(w) N(v | s x w, 1) / p(y)
    divergence += evidence
    assert divergence > 1e-3
    assert evidence - posterior.elbo == pytest.approx(divergence, abs=1e-9)


def test_the_logistic_elbo_is_the_evidence_under_its_bounds() -> None:
    """With each logistic replaced by its quadratic bound the integral over w is the ELBO itself, by quadrature."""
    X, y = _rows(4, 10, 1)
    data = {"X": X, "y": y}
    posterior = models.logistic_regression(1, prior_precision=0.25).fit(data, seed=0, tol=1e-15)
    xi = posterior.local(data)["y.polya_gamma"].tilt
    w = np.linspace(-18, 18, 20_001)
    a = w[:, None] * X[:, 0]
    width = np.tanh(xi / 2) / (4 * xi)
    bounds = log_expit(xi) + (y - 0.5) * a - xi / 2 - width * (a**2 - xi**2)
    assert np.all(bounds <= log_expit((2 * y - 1) * a) + 1e-12)
    log_joint = bounds.sum(axis=1) + norm(0, 2).logpdf(w)
    assert posterior.elbo == pytest.approx(np.log(np.exp(log_joint).sum() * (w[1] - w[0])), rel=1e-10)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("prior_precision", [0.7, 0.0])
def test_a_point_mass_is_the_maximum_of_the_exact_posterior(link: str, prior_precision: float) -> None:
    """With q(w) a point the hidden variables are exact: EM climbs log p(w, y), to where Newton's method ends."""
    X, y = _rows(5, 40, 3)
    data = {"X": X, "y": y}
    model = STATE[link](3, prior_precision=prior_precision)
    posterior = model.fit(data, seed=0, point=["w"], tol=1e-16, max_iter=20_000)
    w = _newton(link, X, y, prior_precision)
    np.testing.assert_allclose(posterior["w"].value, w, rtol=1e-5)
    exact = _log_likelihood(link, w, X, y)
    if prior_precision:
        exact = exact + norm(0, prior_precision**-0.5).logpdf(w).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-10)


def _newton(link: str, X: Array, y: Array, prior_precision: float) -> Array:
    """Return the mode of the posterior of w, by Newton's method."""
    w = np.zeros(X.shape[1])
    for _ in range(100):
        slope, curvature = _derivatives(link, w, X, y, prior_precision)
        w = w + np.linalg.solve(curvature, slope)
    assert np.abs(_derivatives(link, w, X, y, prior_precision)[0]).max() < 1e-9
    return w


def _derivatives(link: str, w: Array, X: Array, y: Array, prior_precision: float) -> tuple[Array, Array]:
    """Return the slope of log p(w, y) and minus its second derivative."""
    sign = 2 * y - 1
    a = sign * (X @ w)
    if link == "logistic":
        first, second = expit(-a), expit(a) * expit(-a)
    else:
        first = np.exp(norm.logpdf(a) - log_ndtr(a))
        second = first * (first + a)
    curvature = (X.T * second) @ X + prior_precision * np.eye(len(w))
    return X.T @ (sign * first) - prior_precision * w, curvature


@pytest.mark.thinned(2)
@pytest.mark.parametrize("link", LINKS)
def test_real_data_agree_with_laplace(link: str) -> None:
    """Tumours of the breast, 30 standardised columns: means lie within two of the posterior's standard deviations."""
    bunch = load_breast_cancer()
    X = np.column_stack([np.ones(569), (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)])
    y = bunch.target.astype(float)
    posterior = STATE[link](31, prior_precision=1.0).fit({"X": X, "y": y}, seed=0, tol=1e-9, max_iter=3000)
    assert posterior.converged
    mode = _newton(link, X, y, 1.0)
    covariance = np.linalg.inv(_derivatives(link, mode, X, y, 1.0)[1])
    sd = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(posterior["w"].mean - mode) < 2 * sd)
    # mean field is narrower than the posterior, and of one mind with it about the answers
    assert np.all(np.sqrt(np.diagonal(posterior["w"].covariance)) < 1.2 * sd)
    agree = (X @ posterior["w"].mean > 0) == (X @ mode > 0)
    assert agree.mean() > 0.99
    laplace = _log_likelihood(link, mode, X, y) + norm.logpdf(mode).sum()
    laplace += 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    # the data are nearly separated, where mean field between coefficients and utilities is loosest
    assert laplace - 50 < posterior.elbo < laplace


@pytest.mark.parametrize("link", LINKS)
def test_separated_answers_under_a_proper_prior(link: str) -> None:
    """A column that tells all answers apart: the prior keeps its coefficient finite."""
    x = np.linspace(-2, 2, 20)
    X, y = np.column_stack([np.ones(20), x]), (x > 0) * 1.0
    posterior = STATE[link](2, prior_precision=1.0).fit({"X": X, "y": y}, seed=0, max_iter=2000)
    assert posterior.converged
    assert posterior["w"].mean[1] > 1.0
    assert posterior.elbo < _evidence(link, X, y, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
def test_separated_answers_under_a_flat_prior_do_not_converge(link: str) -> None:
    """There is no posterior: the coefficient drifts, the status says that it has not settled, every number is one.

    (Accelerated, it drifts to where the objective no longer changes within these iterations.)
    """
    x = np.linspace(-2, 2, 20)
    X, y = np.column_stack([np.ones(20), x]), (x > 0) * 1.0
    with pytest.warns(cv.ConvergenceWarning, match="has not converged after 500 iterations"):
        posterior = STATE[link](2, prior_precision=0.0).fit({"X": X, "y": y}, seed=0, accelerate=False)
    assert posterior.status.value == "max_iter"
    assert np.all(np.isfinite(posterior.elbo_trace[1:]))
    assert np.all(np.isfinite(posterior["w"].mean))
    longer = STATE[link](2, prior_precision=0.0).fit(
        {"X": X, "y": y}, seed=0, max_iter=1000, accelerate=False
    )
    assert longer["w"].mean[1] > 1.1 * posterior["w"].mean[1]


@pytest.mark.parametrize("link", LINKS)
def test_units_of_the_columns_do_not_matter(link: str) -> None:
    """Columns in units of 1e-6 and 1e6, with the prior in theirs, are the same regression."""
    X, y = _rows(6, 50, 3)
    units = np.array([1.0, 1e6, 1e-6])
    arguments: dict[str, Any] = {"init": "prior", "max_iter": 30, "tol": 0}
    plain = STATE[link](3, prior_precision=np.eye(3)).fit({"X": X, "y": y}, **arguments)
    scaled = STATE[link](3, prior_precision=np.diag(units**2.0)).fit({"X": X * units, "y": y}, **arguments)
    np.testing.assert_allclose(scaled.elbo_trace, plain.elbo_trace, rtol=1e-10)
    np.testing.assert_allclose(scaled["w"].mean * units, plain["w"].mean, rtol=1e-7)


@pytest.mark.parametrize("link", LINKS)
def test_predictors_of_a_million_stay_numbers(link: str) -> None:
    """A prior so broad that predictors begin at 1e6 and answers on the wrong side: the bound holds and rises."""
    x = np.array([-2.0, -1.0, 1.0, 1.5, 3.0])
    X, y = 1e6 * x[:, None], np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    posterior = STATE[link](1, prior_precision=1.0).fit(
        {"X": X, "y": y}, init={"w": cv.families.MultivariateNormal([-1.0], [[1.0]])}, max_iter=3000
    )
    assert np.all(np.isfinite(posterior.elbo_trace))
    assert np.all(np.diff(posterior.elbo_trace) > -1e-12 * np.abs(posterior.elbo_trace[0]))
    w = np.linspace(-4e-5, 4e-5, 40_001)[:, None]
    log_joint = _log_likelihood(link, w, X, y) + norm.logpdf(w)[:, 0]
    evidence = np.log(np.exp(log_joint - log_joint.max()).sum() * (w[1, 0] - w[0, 0])) + log_joint.max()
    assert evidence - 30 < posterior.elbo < evidence
