"""Conditioning, imputation, outliers, credible intervals and draws of parameters of fitted mixtures."""

import numpy as np
import pandas
import polars
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]


def fitted(structure="full", **arguments):
    return cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0, **arguments).fit(FAITHFUL)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_conditional_is_the_joint_over_the_marginal(structure):
    mixture = fitted(structure)
    rows = FAITHFUL[:5]
    for row in rows:
        conditional = mixture.condition({0: row[0]}).log_density([row[1:]])
        expected = mixture.score_samples([row]) - mixture.marginal([0]).log_density([row[:1]])
        np.testing.assert_allclose(conditional, expected, rtol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_missing_entry_is_scored_by_the_marginal_and_imputed_by_the_conditional_mean(structure):
    mixture = fitted(structure)
    row = np.array([[2.0, np.nan]])
    np.testing.assert_allclose(mixture.score_samples(row), mixture.marginal(0).log_density([[2.0]]))
    np.testing.assert_allclose(mixture.impute(row)[0, 1], mixture.condition({0: 2.0}).mean[0])
    np.testing.assert_allclose(
        mixture.predict_columns([[2.0]], targets=1, given=0).mean, mixture.condition({0: 2.0}).mean
    )
    draws = mixture.impute(np.repeat(row, 4000, axis=0), n_draws=1, random_state=0)[0, :, 1]
    assert abs(draws.mean() - mixture.impute(row)[0, 1]) < 5 * draws.std() / np.sqrt(len(draws))
    assert np.all(mixture.impute(FAITHFUL) == FAITHFUL)


def test_regression_by_a_mixture_covers_what_it_says():
    train, test = FAITHFUL[::2], FAITHFUL[1::2]
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(train)
    prediction = mixture.predict_columns(test, targets=1, level=0.9)
    inside = np.mean((prediction.lower <= test[:, 1]) & (test[:, 1] <= prediction.upper))
    assert 0.82 < inside < 0.97
    residual = np.std(test[:, 1] - prediction.mean)
    assert residual < 0.5 * test[:, 1].std()


@pytest.mark.thinned(6)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_false_alarms_come_at_the_stated_rate(structure):
    mixture = fitted(structure)
    rows, _ = mixture.sample(20_000, random_state=1)
    alarms = mixture.is_outlier(rows, rate=0.02, random_state=2).mean()
    assert abs(alarms - 0.02) < 5 * np.sqrt(0.02 / 20_000 + 0.02 / 100_000)
    threshold = mixture.outlier_threshold(0.02, random_state=2)
    np.testing.assert_array_equal(
        mixture.outlier_scores(rows) > threshold.threshold, mixture.is_outlier(rows, 0.02, random_state=2)
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("family", ["joint", "independent"])
def test_intervals_are_the_quantiles_of_draws(structure, family):
    mixture = fitted(structure, mean_precision_family=family, uncertainty="mean_field")
    intervals = mixture.credible_intervals(0.9)
    draws = mixture.sample_parameters(40_000, random_state=3)
    for ends, drawn in ((intervals.weights, draws.weights), (intervals.means, draws.means)):
        for end, level in zip(ends, (0.05, 0.95), strict=True):
            np.testing.assert_allclose(np.mean(drawn <= end, axis=0), level, atol=0.008)
    assert intervals.covariances.shape == (2, *mixture.covariances_.shape)
    assert np.all(intervals.covariances[0] <= intervals.covariances[1])
    if structure == "spherical" and family == "joint":
        df = mixture.degrees_of_freedom_
        exact = stats.invgamma(df / 2, scale=mixture.covariances_ * df / 2).interval(0.9)
        np.testing.assert_allclose(intervals.covariances, exact, rtol=0.02)


def test_draws_of_means_have_the_moments_of_the_posterior():
    mixture = fitted()
    draws = mixture.sample_parameters(20_000, random_state=0)
    np.testing.assert_allclose(draws.weights.mean(axis=0), mixture.weights_, atol=0.002)
    np.testing.assert_allclose(draws.means.mean(axis=0), mixture.means_, rtol=1e-3)
    n = mixture.degrees_of_freedom_
    # the mean of an inverse Wishart
    expected = mixture.covariances_ * (n / (n - 3))[:, None, None]
    np.testing.assert_allclose(draws.covariances.mean(axis=0), expected, rtol=0.02)


def test_points_have_no_credible_intervals():
    with pytest.raises(ValueError, match="fit a BayesianGaussianMixture"):
        cv.GaussianMixture(2, random_state=0).fit(FAITHFUL).credible_intervals()


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_columns_are_known_by_name(frame):
    table = frame({"eruptions": FAITHFUL[:, 0], "waiting": FAITHFUL[:, 1]})
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    assert mixture.feature_names_in_.tolist() == ["eruptions", "waiting"]
    assert mixture.condition({"eruptions": 2.0}).feature_names == ("waiting",)
    np.testing.assert_allclose(mixture.marginal("waiting").mean, mixture.marginal(1).mean)
    prediction = mixture.predict_columns(table, targets="waiting")
    assert prediction.mean.shape == (272,)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_a_mixture_is_a_step_of_a_pipeline_with_named_outputs(output):
    pipeline = make_pipeline(StandardScaler(), cv.BayesianGaussianMixture(2, random_state=0))
    table = pipeline.set_output(transform=output).fit_transform(FAITHFUL)
    assert list(table.columns) == ["bayesiangaussianmixture0", "bayesiangaussianmixture1"]
    np.testing.assert_allclose(np.asarray(table).sum(axis=1), 1)
