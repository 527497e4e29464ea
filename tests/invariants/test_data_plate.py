"""The plate that runs over rows: which one it is, and that a posterior remembers it."""

import numpy as np
import pytest

import caviar as cv


def _model(rows, columns):
    first, second = cv.Plate("first", rows), cv.Plate("second", columns)
    mean = cv.Normal("mean", 0.0, 0.1, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", [0.5, 0.5], plates=(first, second))
    return cv.Model(cv.Normal("y", mean[z], 1.0, plates=(first, second)))


def _data(rows, columns):
    return np.random.default_rng(0).normal(size=(rows, columns)) + np.where(np.arange(columns) % 2, 3.0, -3.0)


def test_a_posterior_remembers_the_data_plate():
    y, weights = _data(6, 6), np.array([1.0, 5.0, 1.0, 5.0, 1.0, 5.0])
    posterior = _model(6, 6).fit({"y": y}, seed=0, data_plate="second", sample_weight=weights, tol=1e-12)
    assert posterior.elbo_at({}, {"y": y}, sample_weight=weights) == pytest.approx(posterior.elbo, rel=1e-10)


def test_local_factors_come_with_the_rows_first():
    y = _data(5, 6)
    posterior = _model(5, 6).fit({"y": y}, seed=0, data_plate="second")
    assert posterior.local({"y": y})["z"].probabilities.shape == (6, 5, 2)


def test_of_plates_with_declared_sizes_the_largest_holds_the_rows():
    group, obs = cv.Plate("group", 3), cv.Plate("obs", 40)
    mean = cv.Normal("mean", 0, 1e-2, plates=group)
    y = np.random.default_rng(0).normal(size=(3, 40))
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=(group, obs))).fit({"y": y})
    precision = 1e-2 + 40
    np.testing.assert_allclose(posterior["mean"].mean, y.sum(axis=1) / precision, rtol=1e-12)


def test_what_is_local_is_listed():
    y = _data(5, 6)
    assert "z: one for each row, see posterior.local(data)" in repr(_model(5, 6).fit({"y": y}, seed=0))
