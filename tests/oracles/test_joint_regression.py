"""Regression with a joint factor of coefficients and noise: exact evidence, exact posterior, and a published figure."""

from itertools import product

import numpy as np
import pytest
from bayespy.nodes import GaussianARD, GaussianGamma, SumMultiply
from scipy.special import logsumexp
from scipy.stats import multivariate_t

import caviar as cv

K0 = np.array([[0.5, 0.1], [0.1, 0.3]])
M0, SHAPE, RATE = np.array([0.4, -1.0]), 1.7, 0.9


def prior(**plates) -> cv.NormalGamma:
    return cv.NormalGamma("theta", M0, K0, SHAPE, RATE, **plates)


def stated(offset=0.0, precision=None) -> cv.Model:
    obs = cv.Plate("obs")
    theta = prior()
    tau = theta.precision if precision is None else cv.Data(precision, plates=obs) * theta.precision
    return cv.Model(cv.Normal("y", offset + cv.dot(cv.Data("X", plates=obs), theta.mean), tau, plates=obs))


def evidence(X, y, noise=None, mean=M0, matrix=K0, shape=SHAPE, rate=RATE) -> float:
    """Return log p(y): a Student-t, as y is Normal with covariance (noise^-1 + X K^-1 X') / tau given tau."""
    if not len(y):
        return 0.0
    noise = np.ones(len(y)) if noise is None else noise
    spread = np.diag(1 / noise) + X @ np.linalg.solve(matrix, X.T)
    return float(multivariate_t(X @ mean, rate / shape * spread, df=2 * shape).logpdf(y))


def draw(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.5, -2.0] + rng.normal(0, 0.7, n)


def test_published_figure_of_the_joint_posterior():
    """A line through ten points, coefficients and noise precision in one factor: exact evidence = bound."""
    x = np.arange(10)
    y = 2 * x + 5 + 2 * np.random.RandomState(42).randn(10)
    model = cv.models.conjugate_regression(2, mean_precision=1e-6, shape=1e-3, rate=1e-3)
    posterior = model.fit({"X": np.stack([np.ones(10), x], axis=1), "y": y})
    assert posterior.elbo == pytest.approx(-41.30423, abs=5e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_elbo_is_the_evidence_and_the_factor_the_posterior(seed):
    X, y = draw(seed)
    posterior = stated().fit({"X": X, "y": y})
    assert posterior.elbo == pytest.approx(evidence(X, y), rel=1e-12)
    matrix, linear = K0 + X.T @ X, K0 @ M0 + X.T @ y
    squares = M0 @ K0 @ M0 + y @ y
    expected = (linear, -0.5 * matrix, SHAPE + len(y) / 2 + 1, -(RATE + 0.5 * squares))
    for found, exact in zip(posterior["theta"].natural, expected, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-12)
    mean = np.linalg.solve(matrix, linear)
    np.testing.assert_allclose(posterior["theta"].mean, mean, rtol=1e-10)
    rate = RATE + 0.5 * (squares - mean @ matrix @ mean)
    assert posterior["theta"].rate == pytest.approx(rate, rel=1e-10)


def test_the_factor_and_the_bound_are_bayespys():
    X, y = draw(11)
    node = GaussianGamma(M0, K0, SHAPE, RATE)
    rows = GaussianARD(SumMultiply("i,i", node, X), 1)
    rows.observe(y)
    node.update()
    posterior = stated().fit({"X": X, "y": y})
    bound = rows.lower_bound_contribution() + node.lower_bound_contribution()
    assert posterior.elbo == pytest.approx(float(bound), rel=1e-12)
    weighted, products, precision, log_precision = node.get_moments()
    expected = (weighted, products, log_precision, precision)
    for found, other in zip(posterior["theta"].expected_statistics, expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_weights_and_missing_entries_leave_the_evidence_exact(seed):
    X, y = draw(seed)
    rng = np.random.default_rng(10 + seed)
    times = rng.integers(0, 4, len(y))
    repeated = evidence(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert stated().fit({"X": X, "y": y}, sample_weight=times).elbo == pytest.approx(repeated, rel=1e-12)
    seen = rng.random(len(y)) < 0.6
    partly = stated().fit({"X": X, "y": np.where(seen, y, np.nan)})
    assert partly.elbo == pytest.approx(evidence(X[seen], y[seen]), rel=1e-12)


def test_an_offset_and_known_relative_precisions():
    X, y = draw(5)
    noise = np.random.default_rng(5).gamma(2, 1, len(y))
    posterior = stated(3.0, "noise").fit({"X": X, "y": y, "noise": noise})
    assert posterior.elbo == pytest.approx(evidence(X, y - 3.0, noise), rel=1e-12)


def test_a_number_times_a_known_column():
    """The parts of a scalar NormalGamma in a predictor: regression through a known point."""
    obs = cv.Plate("obs")
    theta = cv.NormalGamma("theta", 0.3, 0.5, SHAPE, RATE)
    x = cv.Data("x", plates=obs)
    model = cv.Model(cv.Normal("y", 1.0 + 2.0 * theta.mean * x, theta.precision, plates=obs))
    X, y = draw(6)
    exact = evidence(2 * X[:, :1], y - 1.0, mean=np.array([0.3]), matrix=np.array([[0.5]]))
    assert model.fit({"x": X[:, 0], "y": y}).elbo == pytest.approx(exact, rel=1e-12)


def test_a_factor_for_each_known_group():
    obs, group = cv.Plate("obs"), cv.Plate("group", 3)
    theta = prior(plates=group)
    of = cv.Data("group", plates=obs)
    for mean, precision in [(theta[of].mean, theta[of].precision), (theta.mean[of], theta.precision[of])]:
        y = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), mean), precision, plates=obs)
        X, values = draw(7)
        labels = np.arange(12) % 3
        exact = sum(evidence(X[labels == k], values[labels == k]) for k in range(3))
        found = cv.Model(y).fit({"X": X, "y": values, "group": labels}).elbo
        assert found == pytest.approx(exact, rel=1e-12)


def mixture() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = prior(plates=component)
    z = cv.Categorical("z", [0.4, 0.6], plates=obs)
    mean = cv.dot(cv.Data("X", plates=obs), theta[z].mean)
    return cv.Model(cv.Normal("y", mean, theta[z].precision, plates=obs))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_of_regressions_is_below_its_enumerated_evidence(seed):
    X, y = draw(seed, 8)
    y[::2] -= 8 * X[::2, 0]
    exact = logsumexp(
        [
            np.log(np.array([0.4, 0.6])[list(z)]).sum()
            + sum(evidence(X[np.array(z) == k], y[np.array(z) == k]) for k in range(2))
            for z in product(range(2), repeat=8)
        ]
    )
    posterior = mixture().fit({"X": X, "y": y}, seed=0, n_restarts=8)
    assert exact - 2.0 < posterior.elbo < exact
    assert np.diff(posterior.elbo_trace).min() > -1e-11


def test_both_parts_by_themselves_are_the_whole():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2)) + rng.choice([-3, 3], (40, 1))
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    number = cv.NormalGamma("theta", 0, 0.1, 1, 1, plates=component)
    vector = cv.NormalWishart("theta", np.zeros(2), 0.1, 3, np.eye(2), plates=component)
    for leaf, theta, x in [(cv.Normal, number, X[:, 0]), (cv.MultivariateNormal, vector, X)]:
        whole = cv.Model(leaf("x", theta[z], plates=obs)).fit({"x": x}, seed=0)
        for parts in [(theta[z].mean, theta[z].precision), (theta.mean[z], theta.precision[z])]:
            assert cv.Model(leaf("x", *parts, plates=obs)).fit({"x": x}, seed=0).elbo == whole.elbo


def test_the_flat_prior_gives_least_squares():
    X, y = draw(9, 30)
    obs = cv.Plate("obs")
    theta = cv.NormalGamma("theta", np.zeros(2), np.zeros((2, 2)), 0, 0)
    model = cv.Model(
        cv.Normal("y", cv.dot(cv.Data("X", plates=obs), theta.mean), theta.precision, plates=obs)
    )
    q = model.fit({"X": X, "y": y})["theta"]
    estimate, squares, *_ = np.linalg.lstsq(X, y)
    np.testing.assert_allclose(q.mean, estimate, rtol=1e-10)
    np.testing.assert_allclose([q.shape, q.rate], [len(y) / 2, squares[0] / 2], rtol=1e-10)
    point = model.fit({"X": X, "y": y}, point=["theta"])["theta"].value
    np.testing.assert_allclose(point.mean, estimate, rtol=1e-10)
    assert point.precision == pytest.approx(len(y) / squares[0], rel=1e-10)
