"""Densities are densities: they integrate to one, agree with SciPy, and are what ``sample`` draws from."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
GALAXIES = cv.datasets.load_galaxies().values

MULTIVARIATE = {
    "em": cv.GaussianMixture(2, random_state=0),
    "joint": cv.BayesianGaussianMixture(2, random_state=0),
    "independent": cv.BayesianGaussianMixture(2, mean_precision_family="independent", random_state=0),
    "more components than the rows need": cv.BayesianGaussianMixture(4, random_state=0),
}
UNIVARIATE = {
    **MULTIVARIATE,
    "known variance": cv.KnownVarianceMixture(3, variance=2.0, random_state=0),
    "known variance, flat prior": cv.KnownVarianceMixture(2, prior_variance=np.inf, random_state=0),
}


def stretched(reach, step):
    """Return points sinh(t) and weights cosh(t) dt: on them the trapezoidal rule is exact, for heavy tails too."""
    t = np.arange(-reach, reach + step, step)
    return np.sinh(t), np.cosh(t) * step


@pytest.mark.parametrize("name", UNIVARIATE)
def test_the_density_of_one_column_integrates_to_one(name):
    estimator = UNIVARIATE[name].fit(GALAXIES)
    points, weights = stretched(reach=25.0, step=0.001)
    density = np.exp(estimator.score_samples(20 + 5 * points[:, None]))
    assert abs(5 * weights @ density - 1) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", MULTIVARIATE)
def test_the_density_of_two_columns_integrates_to_one(name):
    estimator = MULTIVARIATE[name].fit(FAITHFUL)
    points, weights = stretched(reach=12.0, step=0.02)
    grid = np.stack(np.meshgrid(3.5 + points, 70 + 13 * points, indexing="ij"), axis=-1)
    density = np.exp(estimator.score_samples(grid.reshape(-1, 2))).reshape(len(points), -1)
    assert abs(13 * weights @ density @ weights - 1) < 1e-6


def test_few_rows_leave_a_density_with_heavy_tails_that_integrates_to_one():
    estimator = cv.BayesianGaussianMixture(2, random_state=0).fit([[0.0], [1.0], [5.0]])
    points, weights = stretched(reach=32.0, step=0.002)
    assert abs(weights @ np.exp(estimator.score_samples(points[:, None])) - 1) < 1e-6


def test_the_joint_form_predicts_a_mixture_of_student_t():
    estimator = cv.BayesianGaussianMixture(3, random_state=0).fit(FAITHFUL)
    theta, weights = estimator.posterior_["theta"], estimator.posterior_["weights"].mean
    expected = 0.0
    for k in range(3):
        df = theta.df[k] - 1
        shape = theta.inverse_scale[k] * (theta.mean_precision[k] + 1) / (theta.mean_precision[k] * df)
        expected += weights[k] * multivariate_t(theta.mean[k], shape, df).pdf(FAITHFUL)
    np.testing.assert_allclose(estimator.score_samples(FAITHFUL), np.log(expected), rtol=1e-12)


def test_the_independent_form_has_the_mean_and_covariance_of_the_exact_predictive():
    """Of each component: E x = m, Cov x = E[Lambda^-1] + S = B / (a - D - 1) + S."""
    estimator = cv.BayesianGaussianMixture(2, mean_precision_family="independent", random_state=0).fit(
        FAITHFUL
    )
    mean, precision = estimator.posterior_["mean"], estimator.posterior_["precision"]
    expected = 0.0
    for k in range(2):
        df = precision.df[k] - 1
        covariance = precision.inverse_scale[k] / (precision.df[k] - 3) + mean.covariance[k]
        student = multivariate_t(mean.mean[k], covariance * (df - 2) / df, df)
        expected += estimator.weights_[k] * student.pdf(FAITHFUL)
    np.testing.assert_allclose(estimator.score_samples(FAITHFUL), np.log(expected), rtol=1e-12)


def test_the_density_of_em_is_the_plain_mixture_of_gaussians():
    estimator = cv.GaussianMixture(3, random_state=0).fit(FAITHFUL)
    expected = sum(
        weight * multivariate_normal(mean, covariance).pdf(FAITHFUL)
        for weight, mean, covariance in zip(
            estimator.weights_, estimator.means_, estimator.covariances_, strict=True
        )
    )
    np.testing.assert_allclose(estimator.score_samples(FAITHFUL), np.log(expected), rtol=1e-11)


def test_known_variance_adds_the_uncertainty_of_the_means():
    estimator = cv.KnownVarianceMixture(2, variance=4.0, weights=[0.3, 0.7], random_state=0).fit(GALAXIES)
    expected = sum(
        weight * multivariate_normal(mean, 4.0 + variance).pdf(GALAXIES[:, 0])
        for weight, mean, variance in zip(
            [0.3, 0.7], estimator.means_, estimator.mean_variances_, strict=True
        )
    )
    np.testing.assert_allclose(estimator.score_samples(GALAXIES), np.log(expected), rtol=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", UNIVARIATE)
def test_samples_follow_the_density(name):
    estimator = UNIVARIATE[name].fit(GALAXIES)
    n = 100_000
    rows, labels = estimator.sample(n, random_state=1)
    points, weights = stretched(reach=25.0, step=0.001)
    x = 20 + 5 * points
    distribution = np.cumsum(5 * weights * np.exp(estimator.score_samples(x[:, None])))
    empirical = np.searchsorted(np.sort(rows[:, 0]), x) / n
    assert np.abs(empirical - distribution).max() < 1.95 / np.sqrt(n)  # Kolmogorov-Smirnov, level 0.001
    np.testing.assert_allclose(
        np.bincount(labels, minlength=len(estimator.weights_)) / n, estimator.weights_, atol=0.008
    )


@pytest.mark.parametrize("name", ["em", "joint"])
def test_samples_of_two_columns_have_the_right_moments(name):
    estimator = MULTIVARIATE[name].fit(FAITHFUL)
    rows, labels = estimator.sample(200_000, random_state=0)
    covariances = estimator.covariances_
    if name == "joint":
        # of the predictive Student-t: wider than the expected covariance, by what is not known of mean and precision
        theta = estimator.posterior_["theta"]
        widened = (1 + 1 / theta.mean_precision) / (theta.df - 3)
        covariances = widened[:, None, None] * theta.inverse_scale
    for k in range(2):
        own = rows[labels == k]
        np.testing.assert_allclose(own.mean(axis=0), estimator.means_[k], rtol=0.01)
        np.testing.assert_allclose(np.cov(own.T), covariances[k], rtol=0.03)


def test_rows_far_away_have_finite_densities():
    far = np.array([[1e150, -1e150], [0.0, 0.0]])
    for estimator in MULTIVARIATE.values():
        log_density = estimator.fit(FAITHFUL).score_samples(far)
        assert np.all(np.isfinite(log_density))
        assert log_density[0] < log_density[1]
