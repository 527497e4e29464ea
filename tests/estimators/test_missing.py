"""Missing entries in the estimators: the marginal likelihood where it is exact, and what the rest of a row tells."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random(FAITHFUL.shape) < 0.2, np.nan, FAITHFUL)
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]


def marginal_log_likelihood(mixture, X):
    total = 0.0
    for row in X:
        seen = ~np.isnan(row)
        if seen.any():
            densities = [
                w * multivariate_normal(m[seen], c[np.ix_(seen, seen)]).pdf(row[seen])
                for w, m, c in zip(
                    mixture.weights_, mixture.means_, mixture.covariance_matrices(), strict=True
                )
            ]
            total += np.log(np.sum(densities))
    return total


@pytest.mark.thinned(8)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_maximum_likelihood_is_that_of_the_observed_entries(structure):
    mixture = cv.GaussianMixture(2, covariance_type=structure, random_state=0).fit(HOLES)
    np.testing.assert_allclose(mixture.elbo_, marginal_log_likelihood(mixture, HOLES), rtol=1e-9)
    np.testing.assert_allclose(mixture.score_samples(HOLES).sum(), mixture.elbo_, rtol=1e-9)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("estimator", [cv.GaussianMixture, cv.BayesianGaussianMixture])
def test_rows_without_any_entry_change_nothing_and_get_a_prediction(structure, estimator):
    nothing = np.full((50, 2), np.nan)
    with_empty = estimator(2, covariance_type=structure, random_state=0).fit(np.vstack([nothing, HOLES]))
    without = estimator(2, covariance_type=structure, random_state=0).fit(HOLES)
    np.testing.assert_allclose(with_empty.elbo_, without.elbo_, rtol=1e-9)
    order = (with_empty.means_[:, 0].argsort(), without.means_[:, 0].argsort())
    np.testing.assert_allclose(with_empty.means_[order[0]], without.means_[order[1]], rtol=1e-5)
    np.testing.assert_allclose(with_empty.predict_proba(nothing).sum(axis=1), 1)
    np.testing.assert_allclose(with_empty.score_samples(nothing), 0)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("family", ["joint", "independent"])
def test_a_bayesian_fit_is_near_that_of_the_whole_table(structure, family):
    arguments = {"covariance_type": structure, "mean_precision_family": family, "random_state": 0}
    holes = cv.BayesianGaussianMixture(2, **arguments).fit(HOLES)
    whole = cv.BayesianGaussianMixture(2, **arguments).fit(FAITHFUL)
    for name in ("means_", "weights_"):
        ours, theirs = (getattr(mixture, name)[mixture.means_[:, 0].argsort()] for mixture in (holes, whole))
        np.testing.assert_allclose(ours, theirs, rtol=0.15, err_msg=name)
    assert np.all(np.diff(holes.elbo_trace_) > -1e-9 * abs(holes.elbo_))


def test_imputed_values_are_better_than_the_mean_of_the_column():
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(HOLES)
    filled = mixture.impute(HOLES)
    missing = np.isnan(HOLES) & ~np.isnan(HOLES).all(axis=1, keepdims=True)
    for column in (0, 1):
        rows = missing[:, column]
        error = np.sqrt(np.mean((filled[rows, column] - FAITHFUL[rows, column]) ** 2))
        assert error < 0.6 * FAITHFUL[:, column].std()
    np.testing.assert_array_equal(filled[~np.isnan(HOLES)], HOLES[~np.isnan(HOLES)])


def test_a_column_without_values_is_refused_in_words():
    empty = FAITHFUL.copy()
    empty[:, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 is NaN in every row with weight"):
        cv.BayesianGaussianMixture(2).fit(empty)
    frame = pd.DataFrame(empty, columns=["eruptions", "waiting"])
    for estimator in (cv.BayesianGaussianMixture(2), cv.GaussianMixture(2)):
        with pytest.raises(cv.DataError, match="column 'waiting' is NaN in every row with weight"):
            estimator.fit(frame)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_threads_do_not_change_a_bit_with_missing_entries(structure):
    rows = np.vstack([HOLES] * 40)
    one, two = (
        cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0, n_jobs=n).fit(rows)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.elbo_trace_, two.elbo_trace_)
