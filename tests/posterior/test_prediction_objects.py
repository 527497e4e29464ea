"""A prediction has intervals, quantiles, draws and a table, whatever is predicted; SciPy has the same figures."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv

OBS = cv.Plate("obs")


def counts():
    """Return predictions of new counts, and the negative binomial that they follow exactly."""
    rate = cv.Gamma("rate", 2, 1)
    posterior = cv.Model(cv.Poisson("x", rate, plates=OBS)).fit({"x": [3, 1, 4]})
    shape, own = float(posterior["rate"].shape), float(posterior["rate"].rate)
    return posterior.predict({})["x"], stats.nbinom(shape, own / (own + 1))


def test_counts_have_the_quantiles_of_the_negative_binomial():
    found, exact = counts()
    shares = [0.025, 0.3, 0.5, 0.9, 0.975]
    np.testing.assert_array_equal(found.quantile(shares)[:, 0], exact.ppf(shares))
    np.testing.assert_array_equal(found.interval(0.9)[:, 0], exact.ppf([0.05, 0.95]))


def test_draws_of_counts_are_distributed_like_them():
    found, exact = counts()
    drawn = found.sample(4000, seed=0)[:, 0]
    observed = np.bincount(drawn.astype(int), minlength=9)[:8]
    expected = exact.pmf(range(8)) * 4000
    assert (
        stats.chisquare(
            np.append(observed, 4000 - observed.sum()), np.append(expected, 4000 - expected.sum())
        ).pvalue
        > 1e-3
    )


def test_a_mixture_of_real_numbers_inverts_its_distribution_function():
    parts = np.array([[0.3], [0.7]]), np.array([[0.0], [4.0]]), np.array([[1.0], [0.5]])
    found = cv.Prediction.of_parts(*parts)

    def below(x):
        return 0.3 * stats.norm.cdf(x) + 0.7 * stats.norm.cdf(x, 4, 0.5)

    assert [float(below(found.quantile(q)[0])) for q in (0.1, 0.5, 0.9)] == pytest.approx([0.1, 0.5, 0.9])
    draws = found.sample(4000, seed=1)[:, 0]
    assert stats.kstest(draws, below).pvalue > 1e-3
    assert found.mean == pytest.approx([2.8])
    assert found.sd**2 == pytest.approx([0.3 + 0.7 * 0.25 + 0.3 * 2.8**2 + 0.7 * 1.2**2])


@pytest.mark.parametrize(
    ("variance", "exact"),
    [(4.0, stats.poisson(4)), (9.0, stats.nbinom(16 / 5, 4 / 9)), (2.0, stats.binom(8, 0.5))],
)
def test_counts_by_their_moments(variance, exact):
    one = np.ones((1, 1))
    found = cv.Prediction.of_parts(one, 4.0 * one, np.sqrt(variance) * one, by_moments=counts()[0].by_moments)
    shares = [0.01, 0.2, 0.5, 0.8, 0.99]
    np.testing.assert_array_equal(found.quantile(shares)[:, 0], exact.ppf(shares))
    drawn = found.sample(4000, seed=0)
    assert drawn.mean() == pytest.approx(4.0, abs=0.2)
    assert drawn.var() == pytest.approx(variance, rel=0.15)


def test_binary_outcomes_and_labels():
    p = cv.Beta("p", 2, 1)
    binary = cv.Model(cv.Bernoulli("x", p, plates=OBS)).fit({"x": [1, 1, 0]}).predict({})["x"]
    assert binary.quantile([0.2, 0.5]).tolist() == [[0.0], [1.0]]
    assert set(binary.sample(50, seed=0).ravel()) == {0.0, 1.0}
    pi = cv.Dirichlet("pi", np.ones(3), names=["a", "b", "c"])
    label = cv.Model(cv.Categorical("x", pi, plates=OBS)).fit({"x": ["a", "a", "c"]}).predict({})["x"]
    assert label.to_frame().columns.tolist() == ["label", "probability_a", "probability_b", "probability_c"]
    assert label.to_frame()["label"].tolist() == ["a"]
    shares = np.bincount(label.sample(6000, seed=0).ravel(), minlength=3) / 6000
    np.testing.assert_allclose(shares, label.mean[0], atol=0.03)
    with pytest.raises(cv.ModelError, match="no quantiles: mean has the probability of each category"):
        label.interval()


def test_steps_ahead_of_a_chain_have_intervals():
    model = cv.models.gaussian_hidden_markov_model(1, 2)
    x = np.repeat([[0.0], [5.0], [0.0], [5.0]], 10, axis=0) + np.random.default_rng(0).normal(size=(40, 1))
    found = model.fit({"x": x}, seed=0).predict({"x": np.vstack([x, np.full((3, 1), np.nan)])})["x"]
    lower, upper = found.interval(0.95)[:, -3:, 0]
    # of two states far apart, the interval has both
    assert np.all(lower < 0.5)
    assert np.all(upper > 4.5)
    parts = [[float(array[-1].ravel()[0]) for array in part] for part in found.parts]
    below = sum(weight * stats.norm.cdf(upper[-1], mean, sd) for weight, mean, sd in parts)
    assert below == pytest.approx(0.975)


def test_a_table_has_names_and_the_index_of_the_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.1, 1.9, 3.2]}, index=["a", "b", "c"])
    w = cv.Normal("w", 0, 1)
    posterior = cv.Model(cv.Normal("y", cv.Data("x", plates=OBS) * w, 4.0, plates=OBS)).fit(frame)
    table = posterior.predict(frame[["x"]])["y"].to_frame(level=0.5)
    assert table.index.tolist() == ["a", "b", "c"]
    half = stats.norm.ppf(0.75) * table["sd"]
    np.testing.assert_allclose(table["upper"] - table["mean"], half)
    assert "<td>a</td>" in posterior.predict(frame[["x"]])["y"]._repr_html_()


def test_what_is_refused():
    found, _ = counts()
    with pytest.raises(cv.ParameterError, match="q must lie between 0 and 1"):
        found.quantile(1.0)
    with pytest.raises(cv.ParameterError, match="whole number of at least 1"):
        found.sample(0)


def test_residuals_are_values_minus_what_the_known_columns_say():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 2))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, -2.0] + rng.normal(size=30)})
    frame.loc[4, "y"] = np.nan
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), names=["a", "b"])
    mean = cv.dot(cv.Data("X", plates=OBS), w)
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit(frame.set_index(frame.index + 100))
    found = posterior.residuals(frame.set_index(frame.index + 100))
    seen = frame.dropna()
    design = seen[["a", "b"]].to_numpy()
    covariance = np.linalg.inv(np.eye(2) + design.T @ design)
    coefficients = covariance @ design.T @ seen["y"].to_numpy()
    expected = frame["y"] - x @ coefficients
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    sd = np.sqrt(1 + np.einsum("ni,ij,nj->n", x, covariance, x))
    np.testing.assert_allclose(found.standardised, expected / sd, atol=1e-9)
    assert found.to_frame().index[0] == 100
    assert np.isnan(found.values[4])
    with pytest.raises(cv.ModelError, match="residuals need the name of an observed variable, 'y'; got 'w'"):
        posterior.residuals(frame, "w")


def test_what_is_not_known_of_a_precision_gives_the_tails_of_a_student_t():
    """Of a joint factor of numbers and of vectors, of scales of each row, and of a product: against SciPy's."""
    rng = np.random.default_rng(0)
    obs, levels = cv.Plate("obs"), np.array([0.6, 0.9, 0.99])

    def found_of(x, data):
        told = cv.Model(x).fit(data, tol=1e-12).predict({})["x"]
        return told, told.quantile(levels)

    theta = cv.NormalGamma("theta", mean=0, mean_precision=0.1, shape=2, rate=2)
    data = {"x": rng.normal(1, 2, 4)}
    model = cv.Model(cv.Normal("x", theta, plates=obs))
    own = model.fit(data)["theta"]
    told, found = found_of(cv.Normal("x", theta, plates=obs), data)
    scale = np.sqrt(own.rate / own.shape * (1 + 1 / own.mean_precision))
    exact = stats.t(2 * own.shape, own.mean, scale)
    np.testing.assert_allclose(found[:, 0], exact.ppf(levels), rtol=1e-5)
    assert told.log_density(np.array([6.0])) == pytest.approx(exact.logpdf(6.0), rel=1e-4)
    np.testing.assert_allclose(np.mean(told.sample(40_000, 0) > exact.ppf(0.9)), 0.1, atol=0.006)

    width = cv.Gamma("width", 1.0, 2.0, plates=obs)
    told, found = found_of(cv.Normal("x", 3.0, width, plates=obs), {"x": [1.0, 2.0]})
    assert np.isinf(told.sd).all()
    np.testing.assert_allclose(found[:, 0], stats.t(2, 3.0, np.sqrt(2)).ppf(levels), rtol=2e-3)

    joint = cv.NormalWishart("both", np.zeros(2), 0.5, 4.0, [[2.0, 0.5], [0.5, 1.0]])
    vectors = cv.MultivariateNormal("x", joint, plates=obs)
    data = {"x": rng.normal(size=(3, 2))}
    own = cv.Model(vectors).fit(data)["both"]
    df = own.df - 1
    shape = own.inverse_scale * (1 + 1 / own.mean_precision) / df
    exact = stats.t(df, own.mean, np.sqrt(np.diagonal(shape)))
    np.testing.assert_allclose(
        found_of(vectors, data)[1][:, 0], exact.ppf(levels[:, None]), rtol=1e-4, atol=1e-5
    )


def test_products_of_precisions_have_nearly_the_tails_of_their_mixture():
    """A scale of each row times the noise of all: against draws of both."""
    rng = np.random.default_rng(1)
    obs = cv.Plate("obs")
    tau = cv.Gamma("tau", 3, 3)
    x = cv.Normal("x", 0.0, tau * cv.Gamma("scale", 2, 2, plates=obs), plates=obs)
    posterior = cv.Model(x).fit({"x": rng.standard_t(4, 10)}, tol=1e-12)
    q = posterior["tau"]
    precisions = rng.gamma(q.shape, 1 / q.rate, 400_000) * rng.gamma(2.0, 0.5, 400_000)
    drawn = rng.normal(size=400_000) / np.sqrt(precisions)
    found = posterior.predict({})["x"].quantile([0.9, 0.975, 0.995])[:, 0]
    np.testing.assert_allclose(found, np.quantile(drawn, [0.9, 0.975, 0.995]), rtol=0.04)
    np.testing.assert_allclose(found[:2], np.quantile(drawn, [0.9, 0.975]), rtol=0.015)
