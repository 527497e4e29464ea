"""Predictions of few rows are integrated over the precision of the noise, as summaries are."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

import caviar as cv

X = np.array([0.0, 1.0, 2.0, 3.5])
Y = np.array([1.0, 2.4, 2.5, 5.0])
LEVELS = [0.025, 0.1, 0.5, 0.9, 0.975]


def stated():
    """Return a line with unknown noise, whose two coefficients share a factor."""
    obs = cv.Plate("obs")
    tau, a, b = cv.Gamma("tau", 1.5, 0.5), cv.Normal("a", 0.0, 0.04), cv.Normal("b", 0.5, 0.25)
    return cv.Model(cv.Normal("y", a + b * cv.Data("x", plates=obs), tau, plates=obs))


def fitted(**arguments):
    return stated().fit({"x": X, "y": Y}, **arguments)


@cache
def exact(at):
    """Return quantiles, mean and standard deviation of a new row by quadrature over the noise."""
    design, row = np.c_[np.ones(4), X], np.array([1.0, at])
    prior, centre = np.diag([25.0, 4.0]), np.array([0.0, 0.5])
    taus = np.exp(np.linspace(-8.0, 4.0, 121))
    logs, means, sds = np.empty((3, len(taus)))
    for place, tau in enumerate(taus):
        whole = design @ prior @ design.T + np.eye(4) / tau
        logs[place] = stats.multivariate_normal(design @ centre, whole).logpdf(Y)
        logs[place] += stats.gamma(1.5, scale=2.0).logpdf(tau) + np.log(tau)
        gain = np.linalg.solve(whole, design @ prior @ row)
        means[place] = row @ centre + gain @ (Y - design @ centre)
        sds[place] = np.sqrt(row @ prior @ row - gain @ design @ prior @ row + 1 / tau)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = weights @ means
    ends = np.linspace(mean - 30, mean + 30, 3001)
    below = stats.norm.cdf((ends[:, None] - means) / sds) @ weights
    return np.interp(LEVELS, below, ends), mean, np.sqrt(weights @ (sds**2 + (means - mean) ** 2))


@pytest.mark.parametrize("factors", ["together", "apart"])
def test_it_is_quadrature_over_the_noise(factors):
    """With one vector of coefficients, and with two numbers that share a factor."""
    if factors == "together":
        told = fitted().predict({"x": [5.0]})["y"]
    else:
        obs = cv.Plate("obs")
        w = cv.MultivariateNormal("w", [0.0, 0.5], [[0.04, 0.0], [0.0, 0.25]])
        y = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), cv.Gamma("tau", 1.5, 0.5), plates=obs)
        told = cv.Model(y).fit({"X": np.c_[np.ones(4), X], "y": Y}).predict({"X": [[1.0, 5.0]]})["y"]
    quantiles, mean, sd = exact(5.0)
    np.testing.assert_allclose(told.quantile(LEVELS)[:, 0], quantiles, atol=0.01 * sd)
    np.testing.assert_allclose([told.mean[0], told.sd[0]], [mean, sd], rtol=0.005)
    draws = told.sample(4000, seed=0)
    assert np.mean((draws > quantiles[1]) & (draws < quantiles[3])) == pytest.approx(0.8, abs=0.03)


def test_a_loaded_posterior_predicts_the_same(tmp_path):
    posterior = fitted()
    before = posterior.predict({"x": [5.0, 0.0]})["y"]
    posterior.save(tmp_path / "p.caviar")
    for other in (posterior, cv.load(tmp_path / "p.caviar")):
        after = other.predict({"x": [5.0, 0.0]})["y"]
        np.testing.assert_array_equal(after.sd, before.sd)
        np.testing.assert_array_equal(after.interval(), before.interval())


def test_rows_that_lack_a_value_have_the_same():
    posterior = fitted()
    alone = posterior.predict({"x": [5.0]})["y"]
    beside = posterior.predict({"x": [5.0, 1.0], "y": [np.nan, 2.0]})["y"]
    np.testing.assert_allclose(beside.interval()[:, 0], alone.interval()[:, 0])
    np.testing.assert_allclose(beside.mean, [alone.mean[0], 2.0])
    assert beside.sd[1] == 0.0


def test_mean_field_and_many_rows_have_the_factors():
    """A posterior of 300 rows, and one that was asked for mean field, predict from their factors."""
    many = np.random.default_rng(0).normal(size=(2, 300))
    for posterior in (fitted(uncertainty="mean_field"), stated().fit({"x": many[0], "y": many[1]})):
        told = posterior.predict({"x": [2.0]})["y"]
        shared = posterior._shared.beside(posterior._factors, ())
        np.testing.assert_array_equal(told.sd, posterior._predicted({"x": [2.0]}, shared)["y"].sd)


def test_a_given_precision_is_not_averaged():
    told = fitted().predict({"x": [2.0], "tau": 4.0})["y"]
    assert len(told.parts) == 1
