"""Draws of the exact posterior have its moments, and tell which intervals are too narrow."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from caviar.testing import _exact_draws, check_intervals, exact_draws
from caviar.testing._differential_evolution import chains, split_r_hat

OBS = cv.Plate("obs")
X = np.array([1.1, 0.3, 2.2, 1.0, -0.4, 0.9])


@pytest.mark.slow
def test_mean_and_precision_of_a_joint_factor():
    """The posterior is a Normal-Gamma; the mean has a Student-t distribution."""
    theta = cv.NormalGamma("theta", 0.0, 0.5, 3.0, 2.0)
    posterior = cv.Model(cv.Normal("x", theta, plates=OBS)).fit({"x": X})
    factor, draws = posterior["theta"], exact_draws(posterior, {"x": X}, n_steps=2_000, seed=1)
    mean, precision = draws["theta"]
    shape, rate = factor.shape, factor.rate
    assert precision.mean() == pytest.approx(shape / rate, rel=0.03)
    assert precision.var() == pytest.approx(shape / rate**2, rel=0.08)
    exact = stats.t(2 * shape, factor.mean, np.sqrt(rate / shape / factor.mean_precision))
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(np.mean(mean[:, None] <= exact.ppf(levels), axis=0), levels, atol=0.015)
    report = check_intervals(posterior, {"x": X}, n_steps=1_500)
    assert [check.name for check in report.checks] == ["theta.mean", "theta.precision"]
    assert report.worst == pytest.approx(0.9, abs=0.03)


@pytest.mark.slow
def test_weights_and_chances():
    """Both have a posterior in closed form."""
    counts = np.repeat([0, 1, 2], [5, 2, 1])
    share, chance = cv.Dirichlet("share", np.ones(3)), cv.Beta("chance", 2.0, 1.0)
    model = cv.Model(
        cv.Categorical("kind", share, plates=OBS), cv.Bernoulli("is", chance, plates=cv.Plate("other"))
    )
    data = {"kind": counts, "is": [1, 1, 0, 1]}
    draws = exact_draws(model.fit(data), data, n_steps=2_000)
    concentration = np.array([6.0, 3.0, 2.0])
    np.testing.assert_allclose(draws["share"].sum(axis=1), 1.0)
    np.testing.assert_allclose(draws["share"].mean(axis=0), concentration / 11, atol=0.01)
    sd = np.sqrt(concentration * (11 - concentration) / (11**2 * 12))
    np.testing.assert_allclose(draws["share"].std(axis=0), sd, rtol=0.06)
    assert draws["chance"].mean() == pytest.approx(5 / 7, abs=0.01)


@pytest.mark.slow
def test_a_matrix():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]])
    precision = cv.Wishart("precision", 4.0, np.eye(2))
    data = {"x": rows}
    posterior = cv.Model(cv.MultivariateNormal("x", np.zeros(2), precision, plates=OBS)).fit(data)
    draws = exact_draws(posterior, data, n_steps=2_500, seed=2)["precision"]
    np.testing.assert_allclose(draws, draws.swapaxes(1, 2))
    exact = stats.wishart(13, np.linalg.inv(np.eye(2) + rows.T @ rows))
    np.testing.assert_allclose(draws.mean(axis=0), exact.mean(), rtol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), exact.var(), rtol=0.15)


def test_known_numbers_stay():
    known = np.array([0.5, np.nan, -1.0])
    level = cv.Normal("level", 0.0, 1.0, plates=cv.Plate("group", 3))
    x = cv.Normal("x", level[cv.Data("g", plates=OBS)], 1.0, plates=OBS)
    data = {"x": X, "g": [0, 1, 2, 1, 2, 0], "level": known}
    draws = exact_draws(cv.Model(x).fit(data), data, n_steps=900)["level"]
    np.testing.assert_array_equal(draws[:, [0, 2]], np.broadcast_to([0.5, -1.0], (len(draws), 2)))
    # two rows, 0.3 and 1.0, and a prior of as much weight as a row
    assert draws[:, 1].mean() == pytest.approx(1.3 / 3, abs=0.05)


def coupled():
    level, effect = cv.Normal("level", 0.0, 0.1), cv.Normal("effect", 0.0, 1.0, plates=cv.Plate("group", 2))
    at = level + effect[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("x", at, 4.0, plates=OBS)), {"x": X, "g": [0, 0, 0, 1, 1, 1]}


def test_what_cannot_vary_stays_beside_what_is_hidden():
    """The weights of one category are 1; the precision has a Gamma posterior."""
    share, tau = cv.Dirichlet("share", np.ones(1)), cv.Gamma("tau", 2.0, 1.0)
    model = cv.Model(cv.Categorical("kind", share, plates=OBS), cv.Normal("x", 1.0, tau, plates=OBS))
    data = {"x": X, "kind": np.zeros(len(X), dtype=int)}
    draws = exact_draws(model.fit(data), data, n_steps=600, seed=1)
    exact = stats.gamma(2.0 + len(X) / 2, scale=1 / (1.0 + np.sum((X - 1.0) ** 2) / 2))
    assert draws["tau"].mean() == pytest.approx(exact.mean(), rel=0.06)
    np.testing.assert_array_equal(draws["share"], 1.0)


def test_intervals_that_are_too_narrow_are_found():
    model, data = coupled()
    narrow = model.fit(data, factors="apart", tol=1e-12, uncertainty="mean_field")
    report = check_intervals(narrow, data, n_steps=800)
    # by mean field the level is as if the effects were known
    exact = np.linalg.inv(np.array([[24.1, 12, 12], [12, 13, 0], [12, 0, 13]]))
    ratio = 1 / np.sqrt(24.1) / np.sqrt(exact[0, 0])
    assert report["level"].ratio == pytest.approx(ratio, rel=0.06)
    expected = 2 * stats.norm.cdf(stats.norm.ppf(0.95) * ratio) - 1
    assert report["level"].content == pytest.approx(expected, abs=0.03)
    assert report.worst < 0.7
    assert "level" in repr(report)
    assert "<table>" in report._repr_html_()
    right = check_intervals(model.fit(data, tol=1e-12), data, n_steps=800)
    assert right.worst == pytest.approx(0.9, abs=0.03)
    with pytest.raises(KeyError, match="no interval of 'other'; there are level, effect"):
        right["other"]


def test_links_have_their_exact_density():
    """A grid over an intercept and a slope."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=10), np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    at = cv.Normal("a", 0.0, 0.25) + cv.Normal("b", 0.0, 0.25) * cv.Data("x", plates=OBS)
    data = {"x": x, "y": y}
    posterior = cv.Model(cv.Bernoulli("y", cv.logistic(at), plates=OBS)).fit(data)
    draws = exact_draws(posterior, data, n_steps=900)
    side = np.linspace(-8, 8, 321)
    a, b = side[:, None], side
    logs = -0.125 * (a**2 + b**2)
    for own, answer in zip(x, y, strict=True):
        logs = logs + answer * (a + b * own) - np.logaddexp(0.0, a + b * own)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    for name, values in (("a", a), ("b", b)):
        mean = np.sum(weights * values)
        sd = np.sqrt(np.sum(weights * np.square(values - mean)))
        assert draws[name].mean() == pytest.approx(mean, abs=0.05 * sd)
        assert draws[name].std() == pytest.approx(sd, rel=0.05)


def of_chains():
    states = cv.MarkovChain("states", [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], along=OBS)
    level = cv.Normal("level", 0.0, 1.0, plates=cv.Plate("state", 2))
    return cv.Model(cv.Normal("x", level[states], 1.0, plates=OBS)), {"x": X}, {}, "'states' is a MarkovChain"


def of_states():
    states = cv.LinearGaussianChain("states", [0.0], [[1.0]], [[0.5]], [[1.0]], along=OBS)
    model = cv.Model(cv.Normal("x", cv.dot([1.0], states), 1.0, plates=OBS))
    return model, {"x": X}, {}, "no counts or states"


def of_points():
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0.0, 0.1), 1.0, plates=OBS))
    return model, {"x": X}, {"point": ["mean"]}, "'mean' is a point mass"


@pytest.mark.parametrize("case", [of_chains, of_states, of_points])
def test_what_cannot_be_drawn(case):
    model, data, arguments, message = case()
    posterior = model.fit(data, seed=0, **arguments)
    with pytest.raises(cv.ModelError, match=message):
        exact_draws(posterior, data)


def test_few_steps_are_told(monkeypatch):
    model, data = coupled()
    posterior = model.fit(data)
    with pytest.raises(cv.ParameterError, match="n_steps"):
        exact_draws(posterior, data, n_steps=10)
    monkeypatch.setattr(_exact_draws, "_MIXED", 1.0)
    with pytest.warns(cv.CaviarWarning, match="the chains have not mixed after n_steps=200"):
        exact_draws(posterior, data, n_steps=200)


def test_chains_of_two_modes_visit_both():
    """Whole differences lead from one mode to the other, in proportion to their weights."""

    def log_density(points):
        at = points[:, 0]
        return np.logaddexp(np.log(0.3) - 0.5 * (at + 6) ** 2, np.log(0.7) - 0.5 * (at - 6) ** 2)

    rng = np.random.default_rng(0)
    start = np.where(rng.random((100, 1)) < 0.5, -6.0, 6.0) + rng.normal(size=(100, 1))
    draws = chains(log_density, start, 4_000, rng)
    assert np.mean(draws < 0) == pytest.approx(0.3, abs=0.05)


def test_r_hat():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(400, 50, 2))
    assert (split_r_hat(mixed) < 1.01).all()
    apart = mixed + np.array([0.0, 1.0]) * rng.normal(size=(50, 1))
    found = split_r_hat(apart)
    # draws of all chains have twice the variance of those of one
    assert found[1] == pytest.approx(np.sqrt(2.0), rel=0.15)
    drifting = mixed + np.array([1.0, 0.0]) * np.linspace(0, 4, 400)[:, None, None]
    assert split_r_hat(drifting)[0] > 1.3


def test_posteriors_of_more_than_the_data_are_refused():
    """Chains know the statement and the data alone: right intervals after an update were said to contain 4%."""
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1), plates=cv.Plate("obs")))
    data = {"x": [1, 1, 0]}
    with pytest.raises(cv.ModelError, match="an earlier posterior"):
        cv.testing.exact_draws(model.fit({"x": [1] * 50}).update(data), data)
    with pytest.raises(cv.ModelError, match="had weights"):
        cv.testing.check_intervals(model.fit(data, sample_weight=[10.0, 10.0, 10.0]), data)


def test_answers_that_are_missing_integrate_to_one():
    """With one missing no chain moved, and a RuntimeWarning came."""
    row = cv.Plate("obs")
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 2, 1), plates=row))
    draws = cv.testing.exact_draws(model.fit({"x": [1, np.nan, 0]}), {"x": [1, np.nan, 0]}, n_steps=600)
    assert draws["p"].mean() == pytest.approx(0.6, abs=0.02)


def test_entries_without_an_interval_are_not_taken_for_intervals_that_contain_nothing():
    """Under its own factor a Wishart has intervals on its diagonal alone."""
    rows = np.random.default_rng(0).normal(size=(20, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    mean = cv.MultivariateNormal("m", np.zeros(2), np.eye(2))
    x = cv.MultivariateNormal("x", mean, cv.Wishart("L", 3.0, np.eye(2)), plates=cv.Plate("obs"))
    posterior = cv.Model(x).fit({"x": rows}, uncertainty="mean_field")
    report = cv.testing.check_intervals(posterior, {"x": rows}, n_steps=500)
    content = report["L"].content
    assert np.isnan([content[0, 1], content[1, 0]]).all()
    assert np.abs(np.diagonal(content) - 0.9).max() < 0.05
    assert abs(report.worst - 0.9) < 0.06
    assert "L[0, 0]" in str(report) or "L[1, 1]" in str(report)
    assert "nan" not in str(report)
