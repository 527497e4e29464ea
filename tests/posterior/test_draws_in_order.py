"""Weighted draws of mixtures: components in the order of the fit, however near they are."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv
from caviar.posterior.evidence.relabelling import Relabelling
from caviar.testing import check_intervals

OBS = cv.Plate("obs")
KIND = cv.Plate("kind", 2)
SIDE = np.linspace(0.02, 22.0, 500)


def counts(x):
    """Two Poissons of even weights: a grid of both rates tells everything."""
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    rate = cv.Gamma("rate", 2.0, 0.5, plates=KIND)
    one = stats.poisson.logpmf(np.array(x)[:, None], SIDE)
    prior = stats.gamma.logpdf(SIDE, 2, scale=2)
    each = np.logaddexp(one[:, :, None], one[:, None]) - np.log(2.0)
    return cv.Model(cv.Poisson("x", rate[z], plates=OBS)), {"x": x}, each.sum(axis=0) + prior[:, None] + prior


@pytest.mark.parametrize("x", [[1, 0, 7, 2, 9, 1, 6, 3], [1, 3, 5, 2, 4]])
def test_the_evidence_is_that_of_one_order_however_near_components_are(x):
    model, data, logs = counts(x)
    posterior = model.fit(data, seed=0)
    found = posterior.evidence(data, method="importance_sampling", n_draws=2_000)
    exact = logsumexp(logs) + 2 * np.log(SIDE[1] - SIDE[0])
    assert found.value + found.log_orders == pytest.approx(exact, abs=max(0.01, 4 * found.error))
    assert found.error < 0.03
    assert "which may be numbered in any: add log K! = 0.693 nats" in found.remark


def test_the_smaller_and_the_larger_rate_have_their_moments():
    model, data, logs = counts([1, 0, 5, 2, 6, 1, 4, 3])
    sample = model.fit(data, seed=0).importance_sample(data, n_draws=4_000)
    density = np.exp(logs - logsumexp(logs))
    weights, rates = sample.weights, sample.draws["rate"]
    assert sample.effective_draws > 2_000
    for exact, values in (
        (np.minimum(SIDE[:, None], SIDE), rates.min(axis=1)),
        (np.maximum(SIDE[:, None], SIDE), rates.max(axis=1)),
    ):
        mean = np.sum(density * exact)
        sd = np.sqrt(np.sum(density * np.square(exact - mean)))
        assert weights @ values == pytest.approx(mean, abs=0.06 * sd)
        assert np.sqrt(weights @ np.square(values - weights @ values)) == pytest.approx(sd, rel=0.06)


def test_components_that_a_fit_does_not_tell_apart_are_in_any_order():
    rng = np.random.default_rng(0)
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0, 1.0]), plates=OBS)
    mean = cv.Normal("mean", 0.0, 1.0, plates=cv.Plate("three", 3))
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS))
    drawn = {"mean": rng.normal([0.0, 0.0, 9.0], size=(4_000, 3)), "w": rng.dirichlet([9, 9, 9], 4_000)}
    found = Relabelling.of(model.variables, {"x"}, drawn)(drawn)
    np.testing.assert_array_equal(found["mean"][:, 2], drawn["mean"][:, 2])
    is_same = found["mean"][:, 0] == drawn["mean"][:, 0]
    assert is_same.mean() == pytest.approx(0.5, abs=0.05)


def experts():
    """A logistic regression in each of two components."""
    rng = np.random.default_rng(1114)
    u = rng.normal(size=20)
    z = cv.Categorical("z", cv.Dirichlet("w", [2.0, 2.0]), plates=OBS)
    a, b = (cv.Normal(name, 0.0, 0.3, plates=KIND) for name in "ab")
    y = (rng.logistic(size=20) < 2 * rng.choice([-1, 1], 20) * u).astype(int)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(a[z] + b[z] * cv.Data("u", plates=OBS)), plates=OBS))
    return model, {"u": u, "y": y}


@pytest.mark.slow
def test_logistic_regressions_by_label_show_weighted_draws():
    """Linear response has a weight of which the standard deviation is three times too large."""
    model, data = experts()
    posterior = model.fit(data, seed=0)
    assert posterior.uncertainty == "importance_sampling"
    assert "doubt" not in posterior.interval_remark
    report = check_intervals(posterior, data, n_steps=1_200, seed=1)
    assert report.worst == pytest.approx(0.9, abs=0.06)
    assert max(np.abs(own.shift).max() for own in report.checks) < 0.2


@pytest.mark.slow
def test_a_mixture_with_a_common_precision_shows_weighted_draws():
    """Integrated over the precision, means were off by 0.6 standard deviations without a word."""
    rng = np.random.default_rng(782)
    x = (rng.integers(0, 2, 23) - 0.5) * 1.5 + rng.normal(size=23)
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    mean = cv.Normal("m", 0.0, 0.05, plates=KIND)
    data = {"x": x}
    posterior = cv.Model(cv.Normal("x", mean[z], cv.Gamma("t", 2.0, 2.0), plates=OBS)).fit(data, seed=0)
    report = check_intervals(posterior, data, n_steps=1_200, seed=1)
    assert report.worst == pytest.approx(0.9, abs=0.04)
    assert max(np.abs(own.shift).max() for own in report.checks) < 0.15
