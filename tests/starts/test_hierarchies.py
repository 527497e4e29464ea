"""Locations of groups with an unknown mean: as many sweeps as a sensible mean would need, and the same end."""

import numpy as np
import pytest

import caviar as cv


def _simulated(mean, spread, width, n_groups, n_times):
    rng = np.random.default_rng(1)
    size = len(mean)
    own = np.array(mean) + np.array(spread) * rng.normal(size=(n_groups, size))
    group = np.repeat(np.arange(n_groups), n_times)
    time = np.tile(np.arange(n_times), n_groups)
    columns = np.stack([time**power for power in range(size)], axis=1).astype(float)
    y = np.einsum("nd,nd->n", columns, own[group]) + width * rng.normal(size=len(group))
    return {"y": y, "u": columns, "group": group}


def _model(n_groups, size):
    obs, group = cv.Plate("obs"), cv.Plate("g", n_groups)
    mean = cv.MultivariateNormal("m", np.zeros(size), 1e-6 * np.eye(size))
    precision = cv.Wishart("l", size + 1.0, np.eye(size))
    effects = cv.MultivariateNormal("beta", mean, precision, plates=group)
    predictor = cv.dot(effects[cv.Data("group", plates=obs)], cv.Data("u", plates=obs))
    return cv.Model(cv.Normal("y", predictor, cv.Gamma("t", 1e-3, 1e-3), plates=obs))


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("mean", "spread", "width", "n_groups", "n_times"),
    [
        ((250.0, 10.0), (25.0, 6.0), 25.0, 18, 10),
        ((240.0, 6.0), (14.0, 0.5), 6.0, 30, 5),
        ((-40.0, 3.0), (2.0, 1.0), 1.0, 40, 4),
    ],
    ids=["reaction times", "growth", "far from zero"],
)
def test_correlated_effects_do_not_begin_at_their_prior(mean, spread, width, n_groups, n_times):
    """From the prior these take 250 to 1,200 sweeps."""
    data, model = _simulated(mean, spread, width, n_groups, n_times), _model(n_groups, len(mean))
    posterior = model.fit(data, seed=0, factors="apart")
    given = model.fit(data, init={"m": list(mean)}, max_iter=3_000, factors="apart")
    assert posterior.n_iter <= 44
    assert posterior.elbo >= given.elbo - 0.01 * len(data["y"])


def test_groups_without_data_are_at_the_population():
    """A group that no row belongs to has the mean of the population, and does not widen it."""
    data = _simulated((50.0, 2.0), (5.0, 1.0), 2.0, 12, 6)
    full = _model(12, 2).fit(data, seed=0)
    posterior = _model(15, 2).fit(data, seed=0)
    np.testing.assert_allclose(posterior["beta"].mean[12:], np.tile(posterior["m"].mean, (3, 1)), rtol=1e-3)
    np.testing.assert_allclose(posterior["m"].mean, full["m"].mean, rtol=0.02)


@pytest.mark.parametrize("order", ["groups first", "groups last"])
@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_of_crossed_effects_those_with_an_unknown_mean_take_the_level(order, link):
    """Whichever is stated first: the others, of mean 0, would take the level of all data, and keep it."""
    rng = np.random.default_rng(0)
    n_rows, far = (400, 500.0) if link == "identity" else (1000, 4.0)
    g, h = rng.integers(15, size=n_rows), rng.integers(10, size=n_rows)
    level = far + 0.8 * rng.normal(size=15)[g] + rng.normal(size=10)[h]
    obs = cv.Plate("obs")
    mean = cv.Normal("m", 0.0, 1e-4)
    a = cv.Normal("a", mean, cv.Gamma("of_a", 1.0, 1.0), plates=cv.Plate("g", 15))[cv.Data("g", plates=obs)]
    b = cv.Normal("b", 0.0, cv.Gamma("of_b", 1.0, 1.0), plates=cv.Plate("h", 10))[cv.Data("h", plates=obs)]
    total = a + b if order == "groups first" else b + a
    if link == "identity":
        leaf = cv.Normal("y", total, cv.Gamma("t", 1.0, 1.0), plates=obs)
        y = level + 0.3 * rng.normal(size=n_rows)
    else:
        leaf = cv.Bernoulli("y", cv.logistic(total), plates=obs)
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-level))).astype(int)
    data = {"y": y, "g": g, "h": h}
    given = cv.Model(leaf).fit(data, init={"m": far, "a": np.full(15, far)}, max_iter=3_000)
    posterior = cv.Model(leaf).fit(data, seed=0)
    assert posterior.elbo >= given.elbo - 0.01 * n_rows
