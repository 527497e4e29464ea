"""Predictions of few rows and groups are integrated over the precisions, as summaries are."""

import itertools
from functools import cache, partial

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import ndtr

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


@pytest.mark.thinned(2)
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


def of_groups(n_groups, seed=0, n_rows=4):
    """Return the posterior of a line and groups, the last without rows, and the design and the values of the rows."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n_rows)
    x = rng.normal(size=group.size)
    y = 1 + 0.5 * x + rng.normal(size=n_groups)[group] + 0.7 * rng.normal(size=group.size)
    obs = cv.Plate("obs")
    tau, between = cv.Gamma("tau", 1.5, 0.5), cv.Gamma("between", 1.5, 0.5)
    effect = cv.Normal("effect", 0.0, between, plates=cv.Plate("group", n_groups + 1))
    line = cv.Normal("a", 0.0, 0.04) + cv.Normal("b", 0.0, 0.25) * cv.Data("x", plates=obs)
    model = cv.Model(cv.Normal("y", line + effect[cv.Data("g", plates=obs)], tau, plates=obs))
    design = np.c_[np.ones(len(x)), x, np.eye(n_groups + 1)[group]]
    return model.fit({"x": x, "g": group, "y": y}), design, y


def exact_of_groups(design, y, rows):
    """Return quantiles, means and standard deviations of new rows by quadrature over both precisions."""
    taus, widths = np.exp(np.linspace(-4.0, 4.0, 17)), np.exp(np.linspace(-6.0, 6.0, 25))
    logs, means, sds = [], [], []
    for tau, between in itertools.product(taus, widths):
        prior = np.r_[0.04, 0.25, np.full(design.shape[1] - 2, between)]
        root = np.linalg.cholesky(np.diag(prior) + tau * design.T @ design)
        half = np.linalg.solve(root, tau * design.T @ y)
        log = 0.5 * (len(y) * np.log(tau) - tau * y @ y + half @ half + np.log(prior).sum())
        log += stats.gamma(1.5, scale=2.0).logpdf([tau, between]).sum() + np.log(tau * between)
        new = np.linalg.solve(root, rows.T)
        logs.append(log - np.log(np.diagonal(root)).sum())
        means.append(half @ new)
        sds.append(np.sqrt((new**2).sum(axis=0) + 1 / tau))
    weights, means, sds = np.exp(np.array(logs) - max(logs)), np.array(means), np.array(sds)
    weights /= weights.sum()
    mean = weights @ means
    quantiles = [
        [optimize.brentq(partial(_beyond, level, weights, *own), -60.0, 60.0) for level in LEVELS]
        for own in zip(means.T, sds.T, strict=True)
    ]
    return quantiles, mean, np.sqrt(weights @ (sds**2 + (means - mean) ** 2))


def _beyond(level, weights, means, sds, end):
    return weights @ ndtr((end - means) / sds) - level


@pytest.mark.parametrize("n_groups", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_with_groups_it_is_quadrature_over_both_precisions(n_groups):
    """For a group of the fit, and for a new one, which is as wide as the groups may be."""
    posterior, design, y = of_groups(n_groups)
    x, group = np.array([0.0, 0.0, 2.0]), np.array([0, n_groups, n_groups])
    told = posterior.predict({"x": x, "g": group})["y"]
    quantiles, mean, sd = exact_of_groups(design, y, np.c_[np.ones(3), x, np.eye(n_groups + 1)[group]])
    for own in range(3):
        np.testing.assert_allclose(told.quantile(LEVELS)[:, own], quantiles[own], atol=0.04 * sd[own])
    np.testing.assert_allclose(told.mean, mean, atol=0.005 * sd.max())
    np.testing.assert_allclose(told.sd, sd, rtol=0.01)
    of_factors = posterior._predicted({"x": x, "g": group}, posterior._shared.beside(posterior._factors, ()))
    assert of_factors["y"].sd[1] < 0.98 * sd[1]


@pytest.mark.slow
def test_given_a_precision_matrix_the_effects_are_those_of_linear_algebra():
    """Correlated effects: the natural parameters of the fit, at other values of both precisions."""
    rng = np.random.default_rng(3)
    group, x = np.repeat(np.arange(5), 4), rng.normal(size=20)
    y = x + rng.normal(size=5)[group] * (1 + x) + rng.normal(size=20)
    posterior = cv.MixedModel("y ~ x + (x | g)").fit({"x": x, "y": y, "g": group.astype(str)}).posterior_
    own = posterior._mixed_over.given[7]
    tau, inner = own.known["residual precision"], own.known["precision of x | g"]
    common = next(node for node in posterior.model.nodes if node.name == "common effects")
    spread = common.stated["precision"].value, common.stated["mean"].value
    matrix = np.c_[np.ones(20), x]
    effects = (np.eye(6)[group][:, :, None] * matrix[:, None]).reshape(20, -1)
    design = np.c_[matrix, effects]
    prior = np.zeros((14, 14))
    prior[:2, :2], prior[2:, 2:] = spread[0], np.kron(np.eye(6), inner)
    whole = prior + tau * design.T @ design
    means = np.linalg.solve(whole, tau * design.T @ y + np.r_[spread[0] @ spread[1], np.zeros(12)])
    covariance = np.linalg.inv(whole)
    found = own.factors["x | g"]
    np.testing.assert_allclose(found.mean.ravel(), means[2:], atol=1e-3)
    expected = [covariance[2 + k : 4 + k, 2 + k : 4 + k] for k in range(0, 12, 2)]
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-3)


def of_kinds():
    """Return the posterior of effects whose precisions differ between two kinds, and its data."""
    rng = np.random.default_rng(1)
    row, kind = cv.Plate("row"), cv.Plate("kind", 2)
    effect = cv.Normal(
        "effect", 0.0, cv.Gamma("between", 2, 1, plates=kind), plates=(cv.Plate("group", 4), kind)
    )
    known = [cv.Data(name, plates=row) for name in ("g", "k")]
    mean = cv.Normal("a", 0.0, 0.1) + effect[known[0], known[1]]
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=row))
    group, own = np.repeat(np.arange(4), 4), np.tile([0, 0, 1, 1], 4)
    y = 1 + (1 + 2 * own) * rng.normal(size=(4, 2))[group, own] + 0.5 * rng.normal(size=16)
    return model.fit({"y": y, "g": group, "k": own}), np.c_[np.ones(16), np.eye(8)[2 * group + own]], y


def test_precisions_along_a_plate_are_those_of_linear_algebra(tmp_path):
    """Two spreads between groups: each is a number, not a row of a matrix."""
    posterior, design, y = of_kinds()
    over = posterior._mixed_over
    for own in over.given[::10]:
        tau, between = own.known["tau"], own.known["between"]
        whole = np.diag([0.1, *np.tile(between, 4)]) + tau * design.T @ design
        np.testing.assert_allclose(
            own.factors["effect"].mean.ravel(), np.linalg.solve(whole, tau * design.T @ y)[1:], atol=5e-3
        )
        variances = np.diagonal(np.linalg.inv(whole))
        np.testing.assert_allclose(own.factors["effect"].variance.ravel(), variances[1:], rtol=5e-3)
    new = {"g": [0, 3], "k": [1, 0]}
    told = posterior.predict(new)["y"]
    assert (
        told.sd > posterior._predicted(new, posterior._shared.beside(posterior._factors, ()))["y"].sd
    ).all()
    posterior.save(tmp_path / "p.caviar")
    np.testing.assert_array_equal(cv.load(tmp_path / "p.caviar").predict(new)["y"].sd, told.sd)


def of_means_above(noise, prior=(0.5, 0.04)):
    """Return the posterior of units of regions whose means are unknown, and its data; a unit has no rows."""
    rng = np.random.default_rng(5)
    row, region, unit = cv.Plate("row"), cv.Plate("region", 2), cv.Plate("unit", 3)
    mean = cv.Normal("mean", cv.Normal("level", *prior), 2.0, plates=region)
    effect = cv.Normal("effect", mean, cv.Gamma("between", 2, 1), plates=(region, unit))
    tau = {"constant": 1.5, "data": cv.Data("p", plates=row), "unknown": cv.Gamma("tau", 1, 1)}[noise]
    places = [cv.Data(name, plates=row) for name in ("r", "u")]
    model = cv.Model(cv.Normal("y", effect[places[0], places[1]], tau, plates=row))
    known = np.repeat(np.arange(5), 3)
    y = 1 + 2 * (known > 2) + rng.normal(size=5)[known] + rng.normal(size=15)
    data = {"y": y, "r": known // 3, "u": known % 3, "p": rng.gamma(3.0, 0.5, size=15)}
    return (
        model.fit({name: data[name] for name in ("y", "r", "u", *["p"] * (noise == "data"))}, tol=1e-13),
        data,
        known,
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("noise", ["constant", "data", "unknown"])
def test_effects_with_unknown_means_are_those_of_linear_algebra(noise):
    """Two levels above the units, given values of the precisions."""
    posterior, data, known = of_means_above(noise)
    over = posterior._mixed_over
    assert abs(sum(own.weight for own in over.given) - 1.0) < 1e-12
    levels = np.eye(9)
    levels[1:3, 0] = -1.0
    levels[np.arange(3, 9), 1 + np.arange(6) // 3] = -1.0
    design = np.c_[np.zeros((15, 3)), np.eye(6)[known]]
    for own in over.given[:: len(over.given) // 3]:
        tau = {"constant": 1.5, "data": data["p"], "unknown": own.known.get("tau")}[noise]
        inner = np.r_[0.04, 2.0, 2.0, np.full(6, own.known["between"])]
        whole = levels.T @ (inner[:, None] * levels) + design.T @ (np.broadcast_to(tau, 15)[:, None] * design)
        covariance = np.linalg.inv(whole)
        means = covariance @ (design.T @ (tau * data["y"]) + np.r_[0.04 * 0.5, np.zeros(8)])
        found = [own.factors[name] for name in ("level", "mean", "effect")]
        np.testing.assert_allclose(np.concatenate([np.ravel(each.mean) for each in found]), means, rtol=1e-5)
        variances = np.concatenate([np.ravel(each.variance) for each in found])
        np.testing.assert_allclose(variances, np.diagonal(covariance), rtol=1e-5)


def test_a_flat_mean_above_the_units_adds_nothing():
    posterior, data, known = of_means_above("constant", prior=(0.0, 0.0))
    own = posterior._mixed_over.given[3]
    region = np.arange(6) // 3
    spread = np.eye(6) / own.known["between"] + 0.5 * (region[:, None] == region)
    rows = np.eye(6)[known]
    inner = np.linalg.inv(rows @ spread @ rows.T + np.eye(15) / 1.5)
    level = inner.sum(axis=0) @ data["y"] / inner.sum()
    expected = level + spread @ rows.T @ inner @ (data["y"] - level)
    np.testing.assert_allclose(own.factors["effect"].mean.ravel(), expected, rtol=1e-5)


@pytest.mark.slow
def test_a_mean_above_the_groups_predicts_as_an_intercept_beside_them():
    """Two statements of one model, of which the latter is compared with quadrature above."""
    rng = np.random.default_rng(2)
    g = np.repeat(np.arange(5), 3)
    y = 1.0 + rng.normal(size=5)[g] + 0.7 * rng.normal(size=15)
    told = []
    for is_above in (False, True):
        row = cv.Plate("row")
        level, tau, between = cv.Normal("a", 0.0, 0.04), cv.Gamma("tau", 1.5, 0.5), cv.Gamma("b", 1.5, 0.5)
        effect = cv.Normal("effect", level if is_above else 0.0, between, plates=cv.Plate("group", 6))
        mean = effect[cv.Data("g", plates=row)]
        model = cv.Model(cv.Normal("y", mean if is_above else level + mean, tau, plates=row))
        told.append(model.fit({"y": y, "g": g}).predict({"g": [0, 4, 5]})["y"])
    beside, above = told
    np.testing.assert_allclose(above.mean, beside.mean, atol=0.01)
    np.testing.assert_allclose(above.sd, beside.sd, rtol=0.01)
    np.testing.assert_allclose(above.quantile(LEVELS), beside.quantile(LEVELS), atol=0.04)


def test_effects_whose_mean_needs_data_of_the_groups_are_predicted_from_the_factors():
    """These data are not kept with a posterior."""
    row, group = cv.Plate("row"), cv.Plate("group", 5)
    slope = cv.Normal("slope", 0.0, 0.1)
    effect = cv.Normal("effect", slope * cv.Data("u", plates=group), cv.Gamma("between", 2, 1), plates=group)
    model = cv.Model(cv.Normal("y", effect[cv.Data("g", plates=row)], 1.0, plates=row))
    data = {"y": np.arange(10.0), "g": np.repeat(np.arange(5), 2), "u": np.arange(5.0)}
    assert model.fit(data)._mixed_over is None


@pytest.mark.parametrize("is_above", [False, True])
def test_effects_that_are_known_in_part_are_at_their_values(is_above):
    row, level = cv.Plate("row"), cv.Normal("level", 0.0, 0.1)
    group = cv.Plate("group", 4)
    effect = cv.Normal("effect", level if is_above else 0.0, cv.Gamma("between", 2, 1), plates=group)
    mean = effect[cv.Data("g", plates=row)]
    model = cv.Model(cv.Normal("y", mean if is_above else level + mean, cv.Gamma("tau", 2, 1), plates=row))
    y, g = np.random.default_rng(0).normal(size=12), np.repeat(np.arange(4), 3)
    posterior = model.fit({"y": y, "g": g, "effect": [np.nan, 3.0, np.nan, np.nan]})
    told = posterior.predict({"g": [0, 1]})["y"]
    assert posterior._mixed_over is not None
    expected = 3.0 if is_above else 3.0 + posterior.mean("level")
    assert told.mean[1] == pytest.approx(expected, abs=1e-6 if is_above else 0.02)
    # the figures are those given the known effect: they were integrated as if it were unknown
    assert posterior.mean("effect")[1] == 3.0
    assert posterior.mean("tau") == pytest.approx(posterior["tau"].mean, rel=0.2)
    assert posterior.mean("between") == pytest.approx(posterior["between"].mean, rel=0.2)


@pytest.mark.parametrize("is_above", [False, True])
def test_a_noise_whose_value_came_with_the_data_is_one_that_was_stated(is_above):
    def model(tau):
        row, level = cv.Plate("row"), cv.Normal("level", 0.0, 0.1)
        above, group = level if is_above else 0.0, cv.Plate("group", 4)
        effect = cv.Normal("effect", above, cv.Gamma("between", 2, 1), plates=group)
        mean = effect[cv.Data("g", plates=row)]
        return cv.Model(cv.Normal("y", mean if is_above else level + mean, tau, plates=row))

    data = {"y": np.random.default_rng(0).normal(size=12), "g": np.repeat(np.arange(4), 3)}
    found = model(cv.Gamma("tau", 2, 1)).fit({**data, "tau": 1.3}, tol=1e-12)
    wanted = model(1.3).fit(data, tol=1e-12)
    one, other = found.predict({"g": [0, 2], "tau": 1.3})["y"], wanted.predict({"g": [0, 2]})["y"]
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)
    np.testing.assert_allclose(one.sd, other.sd, rtol=1e-6)
    np.testing.assert_allclose(one.interval(0.9), other.interval(0.9), rtol=1e-6)
