"""Values that some rows lack are predicted there, as if they were left out of the data; others are as observed."""

import numpy as np
import pandas as pd
import pytest

import caviar as cv

OBS = cv.Plate("obs")


def regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    frame = pd.DataFrame(
        {"x": x, "y": 2.0 * x + 0.3 * rng.normal(size=40)}, index=[f"r{i}" for i in range(40)]
    )
    slope, noise = cv.Normal("slope", 0, 0.1), cv.Gamma("noise", 1, 1)
    model = cv.Model(cv.Normal("y", cv.Data("x", plates=OBS) * slope, noise, plates=OBS))
    return model.fit(frame), frame


def test_missing_numbers_are_predicted_and_observed_ones_are_kept():
    posterior, frame = regression()
    some = frame.copy()
    some.loc[["r3", "r7"], "y"] = np.nan
    told, whole = posterior.predict(some)["y"], posterior.predict(frame.drop(columns="y"))["y"]
    np.testing.assert_array_equal(told.mean[[3, 7]], whole.mean[[3, 7]])
    np.testing.assert_array_equal(told.sd[[3, 7]], whole.sd[[3, 7]])
    np.testing.assert_array_equal(told.interval(0.9)[:, [3, 7]], whole.interval(0.9)[:, [3, 7]])
    others = np.setdiff1d(np.arange(40), [3, 7])
    np.testing.assert_array_equal(told.mean[others], frame["y"].iloc[others])
    np.testing.assert_array_equal(told.sd[others], 0)
    np.testing.assert_allclose(told.interval(0.9)[:, others], np.tile(frame["y"].iloc[others], (2, 1)))
    table = posterior.predict(some).to_frame()
    assert list(table.columns) == ["y_mean", "y_sd"]
    assert table.loc["r3", "y_sd"] > 0.2


def test_a_column_without_any_value_is_left_out():
    posterior, frame = regression()
    told = posterior.predict(frame.assign(y=np.nan))["y"]
    np.testing.assert_array_equal(told.mean, posterior.predict(frame.drop(columns="y"))["y"].mean)


def test_counts_and_binary_outcomes_keep_their_values():
    x = np.linspace(-1, 1, 30)
    rate = cv.Gamma("rate", 1, 1)
    counts = cv.Model(cv.Poisson("k", rate, plates=OBS)).fit({"k": np.arange(30) % 5})
    told = counts.predict({"k": [3.0, np.nan, 0.0]})["k"]
    np.testing.assert_array_equal(told.mean[[0, 2]], [3, 0])
    np.testing.assert_array_equal(told.interval(0.9)[:, [0, 2]], [[3, 0], [3, 0]])
    np.testing.assert_array_equal(np.unique(told.sample(50, 0)[:, 0]), 3)
    weight = cv.Normal("weight", 0, 1)
    outcome = cv.Bernoulli("outcome", cv.logistic(cv.Data("x", plates=OBS) * weight), plates=OBS)
    binary = cv.Model(outcome).fit({"x": x, "outcome": (x > 0).astype(int)})
    told = binary.predict({"x": [1.0, 1.0], "outcome": [0.0, np.nan]})["outcome"]
    assert told.mean[0] == 0
    assert told.mean[1] == pytest.approx(binary.predict({"x": [1.0]})["outcome"].mean[0])


def test_missing_labels_have_probabilities():
    shares = cv.Dirichlet("shares", np.ones(3), names=["low", "middle", "high"])
    model = cv.Model(cv.Categorical("grade", shares, plates=OBS))
    posterior = model.fit({"grade": ["low", "high", "high", "middle"]})
    told = posterior.predict({"grade": ["high", None, "low"]})
    np.testing.assert_array_equal(told["grade"].mean[[0, 2]], [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(told["grade"].mean[1], np.array([2, 2, 3]) / 7)
    assert told.to_frame()["grade"].tolist() == ["high", "high", "low"]


def test_missing_cells_of_a_table_are_predicted_from_the_others_of_their_row():
    """With known loadings the table is one Normal: the conditional one of the missing cells given the others."""
    rng = np.random.default_rng(0)
    W, tau = rng.normal(size=(4, 2)), np.array([1.0, 2.0, 3.0, 4.0])
    x = rng.normal(size=(8, 2)) @ W.T + rng.normal(size=(8, 4)) / np.sqrt(tau)
    column = cv.Plate("column", 4)
    z = cv.MultivariateNormal("z", np.zeros(2), np.eye(2), plates=OBS)
    location = cv.dot(cv.Constant("W", W, plates=column), z) + cv.Normal("level", 0.0, 1e9)
    table = cv.Normal("x", location, cv.Constant("tau", tau, plates=column), plates=(OBS, column))
    posterior = cv.Model(table).fit({"x": x})
    some = x.copy()
    some[0, :2] = some[1, 3] = some[2] = np.nan
    told, covariance = posterior.predict({"x": some})["x"], W @ W.T + np.diag(1 / tau)
    for row in range(3):
        gap = np.isnan(some[row])
        within, across = covariance[np.ix_(gap, gap)], covariance[np.ix_(gap, ~gap)]
        weights = np.linalg.solve(covariance[np.ix_(~gap, ~gap)], across.T).T
        np.testing.assert_allclose(told.mean[row, gap], weights @ some[row, ~gap], atol=1e-6)
        np.testing.assert_allclose(told.sd[row, gap] ** 2, np.diag(within - weights @ across.T), rtol=1e-6)
    seen = ~np.isnan(some)
    np.testing.assert_array_equal(told.mean[seen], some[seen])
    np.testing.assert_array_equal(told.sd[seen], 0)
    assert "x_3_sd" in posterior.predict({"x": some}).to_frame()


def test_missing_answers_are_predicted_from_the_class_that_the_others_tell():
    chance, question = np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.6]]), cv.Plate("question", 3)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    right = cv.Constant("chance", chance, plates=(cv.Plate("class", 2), question))
    shift = cv.Normal("shift", 0.0, 1.0)
    answer = cv.Bernoulli("answer", right[z], plates=(OBS, question))
    posterior = cv.Model(answer, cv.Normal("time", shift, 1.0, plates=OBS)).fit(
        {"answer": [[1, 1, 0]], "time": [0.0]}
    )
    told = posterior.predict({"answer": [[1.0, np.nan, 0.0], [np.nan] * 3], "time": [0.0, 0.0]})["answer"]
    shares = np.array([0.4, 0.6]) * chance[:, 0] * (1 - chance[:, 2])
    np.testing.assert_allclose(told.mean[0], [1, shares @ chance[:, 1] / shares.sum(), 0], rtol=1e-12)
    np.testing.assert_allclose(told.mean[1], [0.4, 0.6] @ chance, rtol=1e-12)


def test_nothing_to_predict_is_refused():
    posterior, frame = regression()
    with pytest.raises(cv.DataError, match="nothing is left to predict"):
        posterior.predict(frame)
