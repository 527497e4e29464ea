"""Samples, completions of rows and rates of false alarms are those that the density states."""

import numpy as np
import pytest

import caviar as cv
from densities.registry import LINE, THREE_COLUMNS

N = 40_000
KOLMOGOROV = 1.95 / np.sqrt(N)  # level 0.001


def distance(draws, mixture):
    """Return the Kolmogorov-Smirnov distance of draws from a distribution."""
    ends = mixture.cdf(np.sort(draws))
    steps = np.arange(len(draws) + 1) / len(draws)
    return max(np.abs(ends - steps[1:]).max(), np.abs(ends - steps[:-1]).max())


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", LINE)
def test_samples_follow_the_distribution_function(name):
    rows, labels = LINE[name].sample(N, 0)
    assert distance(rows[:, 0], LINE[name]) < KOLMOGOROV
    assert abs(labels.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / N)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_samples_of_several_columns_follow_marginals_and_conditionals(name):
    """Projections on a column by their marginal, and the probability transform of one column given the others."""
    mixture = THREE_COLUMNS[name]
    rows, _ = mixture.sample(N, 1)
    for column in range(3):
        assert distance(rows[:, column], mixture.marginal(column)) < KOLMOGOROV
    found = mixture.predict(rows[:4000], targets=1, level=0.5)
    inside = np.mean((rows[:4000, 1] > found.lower) & (rows[:4000, 1] < found.upper))
    assert abs(inside - 0.5) < 4 * np.sqrt(0.25 / 4000)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_completions_are_draws_of_the_conditional(name):
    mixture = THREE_COLUMNS[name]
    rows = np.array([[0.5, np.nan, -1.0], [np.nan, np.nan, 2.0], [1.0, 2.0, 3.0], [np.nan, np.nan, np.nan]])
    draws = mixture.impute(rows, n_draws=N, rng=2)
    assert draws.shape == (N, 4, 3)
    seen = ~np.isnan(rows)
    assert np.array_equal(draws[:, seen], np.broadcast_to(rows[seen], (N, seen.sum())))
    assert distance(draws[:, 0, 1], mixture.condition({0: 0.5, 2: -1.0})) < KOLMOGOROV
    conditional = mixture.condition({2: 2.0})
    for column in (0, 1):
        assert distance(draws[:, 1, column], conditional.marginal(column)) < KOLMOGOROV
    for column in range(3):
        assert distance(draws[:, 3, column], mixture.marginal(column)) < KOLMOGOROV
    # that columns belong together: of products of draws that are cut off, so that heavy tails do not count
    fresh, _ = conditional.sample(N, 5)
    both = np.tanh(draws[:, 1, 0]) * np.tanh(draws[:, 1, 1]), np.tanh(fresh[:, 0]) * np.tanh(fresh[:, 1])
    assert abs(both[0].mean() - both[1].mean()) < 4 * np.sqrt((both[0].var() + both[1].var()) / N)


def test_completions_have_the_conditional_moments():
    mixture = THREE_COLUMNS["normal, full"]
    draws = mixture.impute([[0.5, np.nan, np.nan]], n_draws=N, rng=0)[:, 0, 1:]
    conditional = mixture.condition({0: 0.5})
    deviations = np.sqrt(np.diag(conditional.covariance))
    assert np.all(np.abs(draws.mean(axis=0) - conditional.mean) < 4 * deviations / np.sqrt(N))
    np.testing.assert_allclose(np.cov(draws.T), conditional.covariance, atol=0.05)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_false_alarms_come_at_the_rate_asked_for(name, rate):
    mixture = THREE_COLUMNS[name]
    limit = mixture.outlier_threshold(rate, rng=0, n_draws=N)
    assert limit.standard_error == pytest.approx(np.sqrt(rate * (1 - rate) / N))
    fresh, _ = mixture.sample(N, 1)
    alarms = np.mean(mixture.outlier_scores(fresh) > limit.threshold)
    assert abs(alarms - rate) < 4 * np.sqrt(2) * limit.standard_error
    # rows with holes have the rate of their own pattern
    fresh[:, 1] = np.nan
    alarms = np.mean(mixture.is_outlier(fresh, rate, rng=2, n_draws=N))
    assert abs(alarms - rate) < 4 * np.sqrt(2) * limit.standard_error


def test_the_threshold_of_one_normal_is_known():
    """Two columns of a standard Normal: the squared distance exceeds -2 log(rate) at that rate."""
    mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 0.0]], [1.0])
    limit = mixture.outlier_threshold(0.05, rng=0, n_draws=200_000)
    share_above = np.exp(-(limit.threshold - np.log(2 * np.pi)))
    assert abs(share_above - 0.05) < 4 * limit.standard_error


def test_what_is_far_out_is_an_outlier_and_what_is_not_observed_is_none():
    mixture = THREE_COLUMNS["student, full"]
    rows = np.array([[1e12, 0.0, 0.0], [np.nan, np.nan, -1e12], [np.nan] * 3, [1.5, 0.5, 3.0]])
    assert mixture.is_outlier(rows, 0.001, rng=0).tolist() == [True, True, False, False]


def test_the_same_seed_gives_the_same_draws():
    mixture = THREE_COLUMNS["product"]
    rows = [[np.nan, 1.0, np.nan]]
    assert np.array_equal(
        mixture.impute(rows, 5, rng=7), mixture.impute(rows, 5, rng=np.random.default_rng(7))
    )
    assert not np.array_equal(mixture.impute(rows, 5, rng=7), mixture.impute(rows, 5, rng=8))
