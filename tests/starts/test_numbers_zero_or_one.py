"""Starts of hidden numbers 0 or 1 that multiply something, beside fits that begin at the values of a simulation."""

import numpy as np
import pytest

import caviar as cv

ROW, COLUMN = cv.Plate("row"), cv.Plate("column", 8)
NEAR = 1e-3
"""Nats a row."""


def _features(seed, n_features, has_level):
    """Rows that are sums of the vectors of the features that they have."""
    rng = np.random.default_rng(seed)
    has, vectors = rng.random((150, n_features)) < 0.5, 2 * rng.normal(size=(n_features, 8))
    level = 3 * rng.normal(size=8) * has_level
    y = level + has @ vectors + 0.3 * rng.normal(size=(150, 8))
    addends = [
        cv.Bernoulli(f"has{k}", cv.Beta(f"share{k}", 1, 1), plates=ROW)
        * cv.Normal(f"vector{k}", 0, 0.25, plates=COLUMN)
        for k in range(n_features)
    ]
    if has_level:
        addends.append(1.0 * cv.Normal("level", 0, 0.1, plates=COLUMN))
    mean = sum(addends[1:], start=addends[0])
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=(ROW, COLUMN)))
    init = {"tau": 10.0, **{f"vector{k}": own for k, own in enumerate(vectors)}}
    return model, {"y": y}, {**init, "level": level} if has_level else init


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", [100, 102])
@pytest.mark.parametrize("n_features", [2, 3, 4])
def test_features_of_rows_are_found(seed, n_features):
    """Fits ended 4 to 14 nats a row lower: clusters counted in binary digits say nothing of several vectors."""
    model, data, init = _features(seed, n_features, has_level=False)
    assert model.fit(data).elbo > model.fit(data, init=init).elbo - 150 * NEAR


@pytest.mark.parametrize("seed", [101, 103])
def test_features_beside_a_level_are_found(seed):
    """Fits ended 6 nats a row lower. A feature and its absence may change places: the level's prior says which."""
    model, data, init = _features(seed, 3, has_level=True)
    assert model.fit(data).elbo > model.fit(data, init=init).elbo - 150 * NEAR


def test_features_of_rows_are_found_where_values_are_missing():
    """A column without any value gave NumPy's warning about the mean of an empty slice."""
    model, data, init = _features(100, 2, has_level=False)
    missing = np.random.default_rng(0).random((150, 8)) < 0.2
    missing[:, 3] = True
    data = {"y": np.where(missing, np.nan, data["y"])}
    assert model.fit(data).elbo > model.fit(data, init=init).elbo - 150 * NEAR


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(101, 105))
def test_a_learnt_probability_of_weights_lets_them_be_absent(seed):
    """Fits ended 11 to 13 nats lower, with all ten weights present."""
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(120, 10)), np.zeros(10)
    weights[[1, 4, 7]] = 2.0, -1.5, 1.0
    share, precision = cv.Beta("share", 1, 1), cv.Gamma("precision", 1, 1)
    addends = [
        cv.Bernoulli(f"in{d}", share) * cv.Normal(f"w{d}", 0, precision) * cv.Data(f"x{d}", plates=ROW)
        for d in range(10)
    ]
    model = cv.Model(cv.Normal("y", sum(addends[1:], start=addends[0]), cv.Gamma("tau", 1, 1), plates=ROW))
    data = {"y": x @ weights + 0.5 * rng.normal(size=120), **{f"x{d}": x[:, d] for d in range(10)}}
    init = {f"w{d}": own for d, own in enumerate(weights)} | {
        f"in{d}": float(own != 0) for d, own in enumerate(weights)
    }
    posterior = model.fit(data)
    assert posterior.elbo > model.fit(data, init=init).elbo - 120 * NEAR
    assert [round(float(posterior[f"in{d}"].mean)) for d in range(10)] == list(weights != 0)


@pytest.mark.parametrize("seed", [101, 102, 104])
def test_slopes_of_groups_may_be_absent(seed):
    """Fits ended 20 nats lower, with a slope in each group."""
    rng = np.random.default_rng(seed)
    group, groups = np.repeat(np.arange(30), 8), cv.Plate("groups", 30)
    has, slope, x = (rng.random(30) < 0.4) * 1.0, 2 * rng.normal(size=30), rng.normal(size=240)
    own = cv.Data("group", plates=ROW)
    present = cv.Bernoulli("has", cv.Beta("share", 1, 1), plates=groups)[own]
    mean = cv.Normal("level", 0, 0.1) + present * cv.Normal("slope", 0, 0.25, plates=groups)[own] * cv.Data(
        "x", plates=ROW
    )
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=ROW))
    data = {"y": 1 + (has * slope)[group] * x + 0.5 * rng.normal(size=240), "x": x, "group": group}
    init = {"level": 1.0, "has": has, "slope": slope, "share": 0.4, "tau": 4.0}
    assert model.fit(data).elbo > model.fit(data, init=init).elbo - 240 * NEAR


@pytest.mark.parametrize("seed", [105, 106, 108])
def test_loadings_may_be_absent(seed):
    """No start knew the scores beside loadings that may be absent: fits ended up to 4 nats a row lower."""
    rng = np.random.default_rng(seed)
    has, loading = (rng.random(8) < 0.5) * 1.0, 2 * rng.normal(size=8)
    y = rng.normal(size=(150, 1)) * has * loading + 0.5 * rng.normal(size=(150, 8))
    present = cv.Bernoulli("has", cv.Beta("share", 1, 1), plates=COLUMN)
    mean = present * cv.Normal("loading", 0, 0.25, plates=COLUMN) * cv.Normal("score", 0, 1, plates=ROW)
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=(ROW, COLUMN)))
    elbo = model.fit({"y": y}, init={"has": has, "loading": loading, "share": 0.5, "tau": 4.0}).elbo
    assert model.fit({"y": y}).elbo > elbo - 150 * NEAR
