"""Mixtures inside scikit-learn's tools: grid search, cross-validation, metadata routing, joblib, single precision."""

import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
ESTIMATORS = [cv.GaussianMixture, cv.BayesianGaussianMixture]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search_chooses_by_held_out_density(estimator):
    search = GridSearchCV(
        estimator(random_state=0), {"n_components": [1, 2], "covariance_type": ["full", "tied", "diag"]}, cv=3
    ).fit(np.random.default_rng(0).permutation(FAITHFUL))
    assert search.best_params_["n_components"] == 2
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


@pytest.mark.parametrize("estimator", [*ESTIMATORS, cv.KnownVarianceMixture])
def test_a_weight_of_two_in_a_score_is_the_row_twice(estimator):
    X = FAITHFUL[:, :1]
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    mixture = estimator(2, random_state=0).fit(X)
    weighted = mixture.score(X, sample_weight=weights)
    assert weighted == pytest.approx(mixture.score(np.repeat(X, weights, axis=0)), rel=1e-12)
    assert weighted != pytest.approx(mixture.score(X), rel=1e-6)
    far = np.vstack([X, [[1e300]]])
    assert mixture.score(far, sample_weight=[*weights, 0]) == weighted
    for wrong, message in (
        (np.zeros(len(X)), "non-zero"),
        (weights[1:], "sample_weight"),
        (-weights, "egative"),
    ):
        with pytest.raises(ValueError, match=message):
            mixture.score(X, sample_weight=wrong)


def test_weights_are_routed_through_a_search():
    weights = np.random.default_rng(0).integers(0, 3, len(FAITHFUL)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        mixture = cv.BayesianGaussianMixture(2, random_state=0).set_fit_request(sample_weight=True)
        mixture.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), mixture)
        routed = pipeline.fit(FAITHFUL, sample_weight=weights)
        scores = cross_val_score(mixture, FAITHFUL, params={"sample_weight": weights}, cv=3)
    assert np.all(np.isfinite(scores))
    units = StandardScaler().fit(FAITHFUL, sample_weight=weights).transform(FAITHFUL)
    by_hand = cv.BayesianGaussianMixture(2, random_state=0).fit(units, sample_weight=weights)
    np.testing.assert_array_equal(routed[-1].elbo_trace_, by_hand.elbo_trace_)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_weights_are_repetitions_for_every_structure(estimator, structure):
    """A weight of 2 is the row twice, one of 0 no row."""
    repeats = np.random.default_rng(1).integers(0, 3, len(FAITHFUL))
    arguments = {"covariance_type": structure, "random_state": 0, "tol": 1e-12, "max_iter": 3000}
    weighted = estimator(2, **arguments).fit(FAITHFUL, sample_weight=repeats)
    repeated = estimator(2, **arguments).fit(np.repeat(FAITHFUL, repeats, axis=0))
    np.testing.assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-10)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fractional_weights_are_a_share_of_a_row(estimator):
    halves = estimator(2, random_state=0, tol=1e-12, max_iter=3000).fit(
        np.vstack([FAITHFUL, FAITHFUL]), sample_weight=np.full(2 * len(FAITHFUL), 0.5)
    )
    whole = estimator(2, random_state=0, tol=1e-12, max_iter=3000).fit(FAITHFUL)
    np.testing.assert_allclose(halves.elbo_, whole.elbo_, rtol=1e-10)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fits_are_pickled_and_cloned_and_so_is_what_is_to_be_fitted(estimator, structure):
    stated = estimator(2, covariance_type=structure, random_state=0)
    sent = pickle.dumps(stated)
    mixture = stated.fit(FAITHFUL)
    again = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(again.score_samples(FAITHFUL), mixture.score_samples(FAITHFUL))
    np.testing.assert_array_equal(pickle.loads(sent).fit(FAITHFUL).elbo_trace_, mixture.elbo_trace_)
    assert not hasattr(clone(mixture), "weights_")


@pytest.mark.slow
def test_joblib_gives_the_same_bits():
    fits = joblib.Parallel(n_jobs=2)(
        joblib.delayed(cv.BayesianGaussianMixture(2, random_state=seed).fit)(FAITHFUL) for seed in (0, 1)
    )
    for seed, mixture in enumerate(fits):
        here = cv.BayesianGaussianMixture(2, random_state=seed).fit(FAITHFUL)
        np.testing.assert_array_equal(mixture.elbo_trace_, here.elbo_trace_)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_single_precision_stays_so_in_memory_and_sums_are_double(structure):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400_000, 8)) + 4 * rng.integers(0, 2, (400_000, 1))).astype(np.float32)
    mixture = cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0, max_iter=2, tol=0)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        exact = clone(mixture).fit(X.astype(np.float64))
    tracemalloc.start()
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        mixture.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # a copy in double precision alone would take 2 X.nbytes
    assert peak < 1.6 * X.nbytes
    np.testing.assert_allclose(mixture.elbo_, exact.elbo_, rtol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_callback_sees_every_iteration(estimator):
    seen = []
    mixture = estimator(2, random_state=0, verbose=lambda progress: seen.append(progress.elbo)).fit(FAITHFUL)
    assert len(seen) >= mixture.n_iter_
    assert seen == sorted(seen)
