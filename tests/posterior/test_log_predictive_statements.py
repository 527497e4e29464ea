"""The log predictive density of rows whatever stands in the slots: known arrays, other axes, groups, products."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

OBS, FEATURE, COMPONENT = cv.Plate("obs"), cv.Plate("feature", 2), cv.Plate("component", 2)
RNG = np.random.default_rng(0)
X = RNG.normal(size=30) + RNG.choice([-3.0, 3.0], 30)
PAIRS = np.stack([X, 5.0 - 2.0 * X], axis=1)


def student(q, x):
    """Return the density of a number whose mean and precision have this factor."""
    return stats.t(2 * q.shape, q.mean, np.sqrt(q.rate * (1 + 1 / q.mean_precision) / q.shape)).logpdf(x)


def joint(*plates):
    return cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=plates)


def test_weights_of_known_groups():
    group = cv.Plate("group", 3)
    weights = cv.Dirichlet("weights", np.ones(2), plates=group)
    z = cv.Categorical("z", weights[cv.Data("group", plates=OBS)], plates=OBS)
    data = {"x": X, "group": RNG.integers(0, 3, 30)}
    posterior = cv.Model(cv.Normal("x", joint(COMPONENT)[z], plates=OBS)).fit(data, seed=0)
    log_weights = np.log(posterior["weights"].mean[data["group"]])
    each = [log_weights[:, k] + student(posterior["theta"][k], X) for k in range(2)]
    np.testing.assert_allclose(posterior.log_predictive(data), logsumexp(each, axis=0), rtol=1e-11)


@pytest.mark.parametrize("rows_first", [True, False])
def test_rows_and_components_may_stand_on_any_axis(rows_first):
    z = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    own = (COMPONENT, FEATURE) if rows_first else (FEATURE, COMPONENT)
    leaf = cv.Normal("x", joint(*own)[z], plates=(OBS, FEATURE) if rows_first else (FEATURE, OBS))
    data = {"x": PAIRS if rows_first else PAIRS.T}
    posterior = cv.Model(leaf).fit(data, seed=0, data_plate=OBS)
    q = posterior["theta"]
    each = []
    for k, weight in enumerate([0.3, 0.7]):
        columns = [q[k, j] if rows_first else q[j, k] for j in range(2)]
        each.append(np.log(weight) + sum(student(columns[j], PAIRS[:, j]) for j in range(2)))
    np.testing.assert_allclose(posterior.log_predictive(data), logsumexp(each, axis=0), rtol=1e-11)


def test_a_known_mean_of_each_row():
    data = {"x": X, "mean": 0.5 * X}
    leaf = cv.Normal("x", cv.Data("mean", plates=OBS), cv.Gamma("tau", 2, 1), plates=OBS)
    posterior = cv.Model(leaf).fit(data)
    q = posterior["tau"]
    expected = stats.t(2 * q.shape, 0.5 * X, np.sqrt(q.rate / q.shape)).logpdf(X)
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-11)


def test_a_known_diagonal_precision():
    precision = cv.diagonal(cv.Constant("precision", [1.0, 4.0], plates=FEATURE))
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2))
    posterior = cv.Model(cv.MultivariateNormal("x", mean, precision, plates=OBS)).fit({"x": PAIRS})
    q = posterior["mean"]
    expected = stats.multivariate_normal(q.mean, q.covariance + np.diag([1, 0.25])).logpdf(PAIRS)
    np.testing.assert_allclose(posterior.log_predictive({"x": PAIRS}), expected, rtol=1e-11)


def test_a_matrix_times_a_known_number_of_each_row():
    u = RNG.gamma(2, 1, 30)
    precision = cv.Data("u", plates=OBS) * cv.Wishart("W", 4, np.eye(2))
    data = {"x": PAIRS, "u": u}
    posterior = cv.Model(cv.MultivariateNormal("x", [1.0, 0.0], precision, plates=OBS)).fit(data)
    q = posterior["W"]
    df = q.df - 1
    rows = zip(PAIRS, u, strict=True)
    expected = [stats.multivariate_t([1.0, 0.0], q.inverse_scale / df / v, df=df).logpdf(x) for x, v in rows]
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-11)


def test_what_is_observed_once_is_no_part_of_a_row():
    theta = joint()
    model = cv.Model(cv.Normal("x", theta, plates=OBS), cv.Normal("once", theta))
    posterior = model.fit({"x": X, "once": 0.5})
    found = posterior.log_predictive({"x": X, "once": 7.0})
    np.testing.assert_allclose(found, student(posterior["theta"], X), rtol=1e-11)
