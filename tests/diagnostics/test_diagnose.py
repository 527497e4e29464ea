"""Importance weights of q: constant where q is the posterior, heavy-tailed where it is far from it."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from caviar.posterior.diagnostics.diagnosis import Diagnosis
from caviar.posterior.diagnostics.pareto import smoothed


def exact_regression():
    obs, rng = cv.Plate("obs"), np.random.default_rng(0)
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 2.0, plates=obs))
    x = rng.normal(size=(20, 3))
    return model, {"X": x, "y": x @ [1.0, -1.0, 0.5] + rng.normal(0, 0.7, 20)}


def correlated(correlation: float):
    """Return two coefficients with a factor each, whose posterior has this correlation."""
    obs = cv.Plate("obs")
    a, b = cv.Normal("a", 0, 1e-3), cv.Normal("b", 0, 1e-3)
    u, v = cv.Data("u", plates=obs), cv.Data("v", plates=obs)
    model = cv.Model(cv.Normal("y", u * a + v * b, 1.0, plates=obs))
    rng = np.random.default_rng(1)
    u, noise = rng.normal(size=(2, 200))
    noise -= u * (u @ noise) / (u @ u)
    noise *= np.linalg.norm(u) / np.linalg.norm(noise)
    v = -correlation * u + np.sqrt(1 - correlation**2) * noise
    return model, {"u": u, "v": v, "y": u + v + rng.normal(size=200)}


def test_an_exact_posterior_has_equal_weights_and_the_exact_evidence():
    model, data = exact_regression()
    found = model.fit(data).diagnose(data, n_draws=200, seed=0)
    exact = stats.multivariate_normal(np.zeros(20), data["X"] @ data["X"].T + np.eye(20) / 2).logpdf(
        data["y"]
    )
    np.testing.assert_allclose(found.log_weights, exact, rtol=1e-10)
    assert found.pareto_k == 0
    assert found.verdict == "good"
    assert found.log_evidence == pytest.approx(exact, rel=1e-12)
    assert found.effective_draws == pytest.approx(200)


def test_dependent_globals_have_a_heavy_tail():
    poor, better = (
        model.fit(data, max_iter=2000, factors="apart").diagnose(data, seed=0, n_draws=4000)
        for model, data in (correlated(0.98), correlated(0.2))
    )
    assert better.verdict == "good"
    assert poor.verdict == "poor"
    assert poor.pareto_k > 0.7
    assert poor.effective_draws < 0.5 * better.effective_draws
    assert "poor: the posterior of the globals differs from q: means may still be useful" in repr(poor)


@pytest.mark.parametrize(
    ("k", "error", "verdict"),
    [(0.70, 0.17, "unclear"), (0.65, 0.1, "unclear"), (0.9, 0.1, "poor"), (0.7, 0.0, "poor"),
     (0.6, 0.04, "usable"), (0.45, 0.1, "good"), (np.inf, np.nan, "poor"), (0.38, 0.2, "unclear"),
     (0.6, 0.06, "unclear"), (0.75, 0.04, "poor")],
)  # fmt: skip
def test_the_verdict_respects_the_error_of_k(k, error, verdict):
    found = Diagnosis(k, error, np.zeros(100), -1.0, 0.1, 50.0, -1.1)
    assert found.verdict == verdict
    assert ("intervals are likely to be too narrow" in repr(found)) == (verdict in {"unclear", "poor"})
    assert ("more draws, such as n_draws=1000, tell whether" in repr(found)) == (verdict == "unclear")
    assert ("which more draws tell" in repr(found)) == ((k, error) == (0.45, 0.1))


def test_the_evidence_of_an_inexact_posterior_is_that_of_quadrature():
    model, data = correlated(0.5)
    found = model.fit(data, factors="apart").diagnose(data, n_draws=4000, seed=0)
    design = np.stack([data["u"], data["v"]], axis=1)
    exact = stats.multivariate_normal(np.zeros(200), design @ design.T * 1e3 + np.eye(200)).logpdf(data["y"])
    assert abs(found.log_evidence - exact) < 4 * found.log_evidence_error
    assert 0 < found.log_evidence_error < 0.1
    assert found.elbo < exact


def test_labels_are_integrated_out():
    """One unknown mean below labels: p(x) by quadrature over it."""
    obs, rng = cv.Plate("obs"), np.random.default_rng(3)
    mean = cv.Normal("mean", 0, 0.25)
    shift = cv.Constant("shift", [-2.0, 2.0], plates=cv.Plate("component", 2))
    z = cv.Categorical("z", [0.3, 0.7], plates=obs)
    model = cv.Model(cv.Normal("x", mean + shift[z], 1.0, plates=obs))
    x = rng.normal(size=15) + rng.choice([-1.0, 3.0], 15)
    found = model.fit({"x": x}, seed=0).diagnose({"x": x}, n_draws=4000, seed=0)
    grid = np.linspace(-8, 10, 20001)
    density = 0.3 * stats.norm.pdf(x[:, None], grid - 2) + 0.7 * stats.norm.pdf(x[:, None], grid + 2)
    log_joint = np.log(density).sum(axis=0) + stats.norm(0, 2).logpdf(grid)
    exact = np.logaddexp.reduce(log_joint) + np.log(grid[1] - grid[0])
    assert abs(found.log_evidence - exact) < 4 * found.log_evidence_error + 1e-3
    assert found.log_evidence_error < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("k", [-0.5, 0.0, 0.4, 0.9, 1.5])
@pytest.mark.parametrize("n", [30, 100, 1000, 4003])
def test_weights_are_smoothed_as_by_arviz(k, n):
    az = pytest.importorskip("arviz")
    if not hasattr(az, "psislw"):
        pytest.skip("this version of ArviZ has it elsewhere")
    draws = np.log(stats.genpareto(k).rvs(n, random_state=n) + 1e-3)
    weights, shape = smoothed(draws)
    expected, expected_shape = az.psislw(draws.copy())
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-9)
    assert shape == pytest.approx(float(expected_shape), abs=1e-10)


def test_a_tail_without_differences_has_no_shape():
    weights, shape = smoothed(np.zeros(50))
    assert shape == np.inf
    np.testing.assert_allclose(weights, -np.log(50))
    # a single weight that counts: the others underflow
    assert smoothed(np.r_[0.0, np.full(99, -2000.0)])[1] == np.inf


def test_the_tail_that_counts_is_that_of_large_weights():
    heavy = np.random.default_rng(0).exponential(size=2000) * 0.9  # exp of it: a Pareto tail with k = 0.9
    assert smoothed(heavy)[1] == pytest.approx(0.9, abs=0.15)
    assert smoothed(-heavy)[1] < 0
    assert np.exp(smoothed(heavy)[0]).sum() == pytest.approx(1)


def test_points_are_left_where_they_are():
    obs = cv.Plate("obs")
    mean, tau = cv.Normal("mean", 0, 1), cv.Gamma("tau", 2, 2)
    model, data = cv.Model(cv.Normal("x", mean, tau, plates=obs)), {"x": [0.5, 1.5, 1.0, -0.2]}
    posterior = model.fit(data, point=["tau"], tol=0, max_iter=200)
    found = posterior.diagnose(data, n_draws=100, seed=0)
    point = posterior["tau"].value
    given = stats.multivariate_normal(np.zeros(4), np.ones((4, 4)) + np.eye(4) / point).logpdf(data["x"])
    np.testing.assert_allclose(found.log_weights, given + stats.gamma(2, scale=0.5).logpdf(point), rtol=1e-9)
    with pytest.raises(cv.ModelError, match="every global is a point mass"):
        model.fit(data, point=["tau", "mean"]).diagnose(data)


def test_what_is_known_in_part_has_no_density():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0, 1, plates=component)
    model = cv.Model(cv.Normal("x", mean[cv.Data("group", plates=obs)], 1.0, plates=obs))
    data = {"x": [1.0, 2.0, 0.0], "group": [0, 0, 1], "mean": [np.nan, 0.3]}
    found = model.fit(data).diagnose(data, n_draws=100, seed=0)
    exact = stats.multivariate_normal(np.zeros(2), np.ones((2, 2)) + np.eye(2)).logpdf([1, 2])
    exact += stats.norm.logpdf(0.0, 0.3) + stats.norm.logpdf(0.3)
    np.testing.assert_allclose(found.log_weights, exact, rtol=1e-10)


def test_weights_of_rows_and_a_posterior_as_a_prior():
    obs, p = cv.Plate("obs"), cv.Beta("p", 2, 1)
    model = cv.Model(cv.Bernoulli("x", p, plates=obs))
    weighted = model.fit({"x": [1, 0]}, sample_weight=[3.0, 1.0])
    found = weighted.diagnose({"x": [1, 0]}, n_draws=100, seed=0, sample_weight=[3.0, 1.0])
    assert found.log_evidence == pytest.approx(weighted.elbo)
    np.testing.assert_allclose(found.log_weights, weighted.elbo, rtol=1e-10)
    later = model.fit({"x": [1, 1]}).update({"x": [0, 1]})
    found = later.diagnose({"x": [0, 1]}, n_draws=100, seed=0)
    np.testing.assert_allclose(found.log_weights, later.elbo, rtol=1e-10)


def test_what_cannot_be_weighed_is_refused():
    model, data = exact_regression()
    with pytest.raises(cv.ParameterError, match="n_draws of at least 100"):
        model.fit(data).diagnose(data, n_draws=50)
    obs, item = cv.Plate("obs"), cv.Plate("item", 3)
    ability, noise = cv.Normal("ability", 0, 1, plates=obs), cv.Gamma("noise", 1, 1, plates=obs)
    apart = cv.Model(
        cv.Normal("x", ability + cv.Normal("ease", 0, 1, plates=item), noise, plates=[obs, item])
    )
    data = {"x": np.random.default_rng(0).normal(size=(10, 3))}
    with pytest.raises(cv.ModelError, match=r"'ability' and 'noise' depend on each other"):
        apart.fit(data).diagnose(data)
