"""Examples of BayesPy: its published bounds, and evidence by one Normal, sums over labels or quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import published
from scipy.special import gammaln, logsumexp
from scipy.stats import bernoulli, gamma, multivariate_normal, norm

import caviar as cv

from .exact import normal_evidence, over_grid

OBS = cv.Plate("obs")
RNG = np.random.default_rng(0)


def test_linear_regression():
    w, tau = cv.MultivariateNormal("w", np.zeros(2), 1e-6 * np.eye(2)), cv.Gamma("tau", 1e-3, 1e-3)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), tau, plates=OBS))
    data = {"X": published.REGRESSION_DESIGN, "y": published.REGRESSION_Y}
    found = model.fit(data, tol=1e-13).elbo
    assert found == pytest.approx(published.REGRESSION_MEAN_FIELD_BOUNDS[-1], abs=2e-5)


def test_gaussian_mixture():
    """Old Faithful by two components: the bound that BayesPy 0.6.6 ends at, from the same labels and from none."""
    rows, k = cv.datasets.load_faithful().values, cv.Plate("k", 2)
    mean = cv.MultivariateNormal("mean", np.zeros(2), 0.01 * np.eye(2), plates=k)
    precision = cv.Wishart("precision", 3, np.eye(2), plates=k)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))
    for arguments in ({"init": {"z": (rows[:, 0] > 3).astype(int)}}, {"seed": 0}):
        found = model.fit({"x": rows}, tol=1e-12, **arguments).elbo
        assert found == pytest.approx(-1224.733241, abs=2e-6)


def test_multinomial():
    row, p = cv.Plate("row"), published.DIRICHLET_MULTINOMIAL_CONCENTRATION
    model = cv.Model(cv.Multinomial("x", None, cv.Dirichlet("p", p, plates=row), plates=row))
    found = model.fit({"x": published.DIRICHLET_MULTINOMIAL_COUNTS}).elbo
    assert found == pytest.approx(published.DIRICHLET_MULTINOMIAL_LOG_EVIDENCE, abs=1e-5)


def test_multi_output_regression():
    x, output = RNG.normal(size=(7, 2)), cv.Plate("output", 3)
    y = RNG.normal(size=(7, 3))
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=output)
    mean = cv.dot(cv.Data("X", plates=OBS), w)
    posterior = cv.Model(cv.Normal("y", mean, 2.0, plates=(OBS, output))).fit({"X": x, "y": y})
    exact = sum(normal_evidence(own, 0.0, x @ x.T, np.eye(7) / 2) for own in y.T)
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("kind", ["Gaussian", "Bernoulli", "categorical"])
def test_mixtures(kind):
    """Known components: the sum over the label of each row."""
    k, column = cv.Plate("k", 2), cv.Plate("column", 2)
    z = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    if kind == "Gaussian":
        x, means = RNG.normal(size=(6, 2)), np.array([[0.0, 0.0], [1.0, -1.0]])
        leaf = cv.MultivariateNormal("x", cv.Constant("mean", means, plates=k)[z], np.eye(2), plates=OBS)
        each = np.stack([multivariate_normal(own).logpdf(x) for own in means], axis=1)
    elif kind == "Bernoulli":
        x, p = RNG.random((6, 2)) < 0.5, np.array([[0.9, 0.2], [0.3, 0.6]])
        leaf = cv.Bernoulli("x", cv.Constant("p", p, plates=(k, column))[z], plates=(OBS, column))
        each = bernoulli.logpmf(x[:, None, :], p).sum(axis=2)
    else:
        x, p = RNG.integers(3, size=6), np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
        leaf = cv.Categorical("x", cv.Constant("p", p, plates=k)[z], plates=OBS)
        each = np.log(p[:, x].T)
    exact = logsumexp(np.log([0.3, 0.7]) + each, axis=1).sum()
    assert cv.Model(leaf).fit({"x": x}).elbo == pytest.approx(exact, rel=1e-11)


def test_gaussian_process_with_a_fixed_kernel():
    """All function values are one vector."""
    at, y = np.linspace(0, 3, 8), RNG.normal(size=8)
    kernel = np.exp(-0.5 * np.subtract.outer(at, at) ** 2 / 0.3) + 1e-6 * np.eye(8)
    f = cv.MultivariateNormal("f", np.zeros(8), np.linalg.inv(kernel))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("which", plates=OBS), f), 4.0, plates=OBS))
    posterior = model.fit({"y": y, "which": np.eye(8)})
    assert posterior.elbo == pytest.approx(normal_evidence(y, 0.0, kernel, np.eye(8) / 4), rel=1e-7)


def test_principal_components_of_known_loadings():
    loadings, y = RNG.normal(size=(4, 2)), RNG.normal(size=(6, 4))
    column = cv.Plate("column", 4)
    f = cv.MultivariateNormal("f", np.zeros(2), np.eye(2), plates=OBS)
    mean = cv.dot(cv.Constant("W", loadings, plates=column), f)
    posterior = cv.Model(cv.Normal("y", mean, 2.0, plates=(OBS, column))).fit({"y": y})
    exact = multivariate_normal(np.zeros(4), loadings @ loadings.T + np.eye(4) / 2).logpdf(y).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_gamma_shape():
    """The tabulated factor of one unknown shape is its posterior: quadrature."""
    x, shape = RNG.gamma(3.0, 0.5, 9), cv.Gamma("shape", 2.0, 0.5)
    posterior = cv.Model(cv.Gamma("x", shape, 2.0, plates=OBS)).fit({"x": x}, tol=1e-13)
    grid = np.linspace(1e-3, 20, 40_001)
    log_p = gamma.logpdf(x[:, None], grid, scale=0.5).sum(axis=0) + gamma(2.0, scale=2.0).logpdf(grid)
    exact, (mean,) = over_grid(log_p, grid)
    assert posterior.elbo == pytest.approx(exact, abs=1e-6)
    assert posterior["shape"].mean == pytest.approx(mean, rel=1e-6)


def test_concentration():
    """One number for all categories of a known vector of probabilities."""
    p = RNG.dirichlet(np.full(3, 2.0), 5)
    alpha = cv.Gamma("alpha", 2.0, 0.5)
    posterior = cv.Model(cv.Dirichlet("p", alpha, categories=3, plates=OBS)).fit({"p": p}, tol=1e-13)
    grid = np.linspace(1e-3, 25, 40_001)
    log_p = 5 * (gammaln(3 * grid) - 3 * gammaln(grid)) + (grid - 1) * np.log(p).sum()
    exact, (mean,) = over_grid(log_p + gamma(2.0, scale=2.0).logpdf(grid), grid)
    assert posterior.elbo == pytest.approx(exact, abs=1e-6)
    assert posterior["alpha"].mean == pytest.approx(mean, rel=1e-6)


def test_stochastic_inference():
    """Steps from batches end near the factor of all rows, and the ELBO is that of all."""
    x = RNG.normal(1.0, 1.0, 400)
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0.0, 0.1), 1.0, plates=OBS))
    some = model.fit({"x": x}, schedule=cv.Stochastic(50), max_iter=200, seed=0)
    exact = norm(x.sum() / 400.1, 400.1**-0.5)
    assert some["mu"].mean == pytest.approx(exact.mean(), abs=0.02)
    assert some.elbo == pytest.approx(model.fit({"x": x}).elbo, abs=0.1)


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@pytest.mark.slow
def test_switching_state_space():
    """All parameters unknown: the default fit ends where the one begun at the truth does, and finds the modes."""
    rng, n = np.random.default_rng(1), 120
    transition, z = np.stack([0.98 * turned(0.5), 0.95 * turned(-0.3)]), np.arange(n) // 40 % 2
    x = np.zeros((n, 2))
    x[0] = 2.0, 0.0
    for t in range(1, n):
        x[t] = transition[z[t]] @ x[t - 1] + 0.2 * rng.normal(size=2)
    y = x + 0.1 * rng.normal(size=x.shape)

    time, mode, entry = cv.Plate("time"), cv.Plate("mode", 2), cv.Plate("entry", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("moves", [1.0, 1.0], plates=mode), along=time)
    a = cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=(mode, entry))
    q = cv.Gamma("q", 1.0, 0.1, plates=(mode, entry))
    state = cv.LinearGaussianChain("x", np.zeros(2), np.eye(2), a[s], cv.diagonal(q[s]), along=time)
    model = cv.Model(cv.MultivariateNormal("y", state, 100 * np.eye(2), plates=time))
    posterior, begun = model.fit({"y": y}, seed=0), model.fit({"y": y}, init={"a": transition})
    assert posterior.elbo > begun.elbo - 0.01
    found = posterior.local({"y": y})["s"].mode()
    assert max((found == z).mean(), (found != z).mean()) > 0.95


@pytest.mark.slow
def test_drifting_state_space():
    """A turn whose speed changes: the angle of the expected transition follows the one that made the data."""
    rng, n = np.random.default_rng(2), 150
    angle = 0.3 + 0.2 * np.sin(2 * np.pi * np.arange(n) / n)
    x = np.zeros((n, 2))
    x[0] = 3.0, 0.0
    for t in range(1, n):
        x[t] = turned(angle[t]) @ x[t - 1] + 0.05 * rng.normal(size=2)
    y = x + 0.05 * rng.normal(size=x.shape)
    time = cv.Plate("time")
    speed = cv.LinearGaussianChain("speed", [1.0, 0.0], np.eye(2), np.eye(2), 1e3 * np.eye(2), along=time)
    parts = cv.weighted_sum(speed, np.stack([np.eye(2), turned(np.pi / 2)]))
    q = cv.Gamma("q", 1.0, 0.01, plates=cv.Plate("entry", 2))
    state = cv.LinearGaussianChain("x", np.zeros(2), np.eye(2) / 10, parts, cv.diagonal(q), along=time)
    posterior = cv.Model(cv.MultivariateNormal("y", state, 400 * np.eye(2), plates=time)).fit({"y": y})
    mean = posterior.local({"y": y})["speed"].mean
    np.testing.assert_allclose(np.arctan2(mean[1:, 1], mean[1:, 0]), angle[1:], atol=0.08)
