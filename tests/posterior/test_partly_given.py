"""Missing entries of a vector are predicted from the observed ones, under all that is not known of the parameters."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

OBS = cv.Plate("obs")
COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 2.0]])


def known():
    """Return the posterior of a model in which nothing of note is unknown: its mean has a tiny variance."""
    mean = cv.MultivariateNormal("mean", [1.0, 2.0, 3.0], 1e10 * np.eye(3))
    x = cv.MultivariateNormal("x", mean, np.linalg.inv(COVARIANCE), plates=OBS, names=["a", "b", "c"])
    return cv.Model(x).fit({"x": [[1.0, 2.0, 3.0], [1.5, 2.5, 2.0]]})


@pytest.mark.slow
def test_with_known_parameters_it_is_the_conditional_normal():
    rows = np.array([[2.0, np.nan, np.nan], [np.nan, 1.0, 5.0], [np.nan] * 3, [1.0, 2.0, 3.0]])
    told = known().predict({"x": rows})["x"]
    mean = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(told.mean[0], [2.0, 2.0 + 0.8, 3.0], atol=1e-3)
    np.testing.assert_allclose(told.sd[0], [0.0, 0.6, np.sqrt(2.0)], atol=1e-3)
    o = np.ix_([1, 2], [1, 2])
    weights = np.linalg.solve(COVARIANCE[o], COVARIANCE[[1, 2], 0])
    assert told.mean[1, 0] == pytest.approx(1.0 + weights @ (np.array([1.0, 5.0]) - mean[1:]), abs=1e-3)
    assert told.sd[1, 0] == pytest.approx(np.sqrt(1.0 - weights @ COVARIANCE[[1, 2], 0]), abs=1e-3)
    np.testing.assert_allclose(told.mean[2], mean, atol=1e-3)
    np.testing.assert_array_equal(told.mean[3], rows[3])
    np.testing.assert_array_equal(told.sd[3], 0)
    low, high = told.interval(0.9)
    np.testing.assert_allclose([low[0, 1], high[0, 1]], 2.8 + 0.6 * np.array([-1.645, 1.645]), atol=2e-3)


def test_labels_of_the_rows_weigh_the_components():
    """The prediction is a mixture: its weights are those of the observed entry under each component."""
    rng = np.random.default_rng(0)
    group = rng.random(2000) < 0.5
    X = np.where(group[:, None], [5.0, -5.0], [0.0, 0.0]) + rng.normal(size=(2000, 2))
    posterior = cv.models.gaussian_mixture(2, 2).fit({"x": X}, seed=0)
    rows = np.array([[2.3, np.nan], [5.0, np.nan]])
    told = posterior.predict({"x": rows})["x"]
    shares = posterior.local({"x": rows})["z"].probabilities
    expected = shares @ posterior["mean"].mean[:, 1]
    np.testing.assert_allclose(told.mean[:, 1], expected, atol=0.5)
    assert told.sd[0, 1] > 2
    assert told.sd[1, 1] < 1.3


def test_what_is_not_known_of_the_parameters_widens_it():
    """With few rows the prediction is wider than with the parameters at their means; draws tell by how much."""
    rng = np.random.default_rng(1)
    X = multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]]).rvs(8, random_state=rng)
    mean, precision = cv.MultivariateNormal("mean", [0, 0], np.eye(2)), cv.Wishart("precision", 4, np.eye(2))
    posterior = cv.Model(cv.MultivariateNormal("x", mean, precision, plates=OBS)).fit({"x": X})
    told = posterior.predict({"x": np.array([[3.0, np.nan]])})["x"]
    draws = posterior.sample(20_000, 1)
    slopes = -draws["precision"][:, 1, 0] / draws["precision"][:, 1, 1]
    ahead = draws["mean"][:, 1] + slopes * (3.0 - draws["mean"][:, 0])
    spread = np.sqrt(ahead.var() + (1 / draws["precision"][:, 1, 1]).mean())
    assert told.mean[0, 1] == pytest.approx(ahead.mean(), abs=0.2)
    assert told.sd[0, 1] == pytest.approx(spread, rel=0.15)


def test_a_frame_has_names_and_the_index_of_the_rows():
    table = pd.DataFrame({"a": [2.0, np.nan], "b": [np.nan, 1.0], "c": [3.0, 3.0]}, index=["north", "south"])
    frame = known().predict({"x": table}).to_frame()
    assert list(frame.columns[:2]) == ["x_a_mean", "x_a_sd"]
    assert frame.loc["north", "x_b_mean"] == pytest.approx(2.8, abs=1e-3)


def test_whole_vectors_leave_nothing_to_predict():
    with pytest.raises(cv.DataError, match="nothing is left to predict"):
        known().predict({"x": [[1.0, 2.0, 3.0]]})["x"]
