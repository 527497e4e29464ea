"""A weight of 2 is the row twice, wherever a fit begins: the start sees weighted distinct rows only."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import caviar as cv

FAITHFUL = cv.datasets.load_faithful().values
ESTIMATORS = [cv.GaussianMixture, cv.BayesianGaussianMixture]
NAMED_STARTS = ["auto", "kmeans", "k-means++", "random", "random_from_data"]
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*max_iter passes:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.first_guess,
]


def repeated(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows as often as they weigh, in another order."""
    return np.random.default_rng(1).permutation(np.repeat(X, weights, axis=0))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("start", NAMED_STARTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scikit_learns_check_of_weights_passes_from_every_start(estimator, start):
    mixture = estimator(3, init_params=start, max_iter=5, random_state=0)
    check_sample_weight_equivalence_on_dense_data(estimator.__name__, mixture)


@pytest.mark.thinned(10)
@pytest.mark.parametrize("start", NAMED_STARTS)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_start_of_every_structure_goes_the_same_way(estimator, structure, start):
    """From the first objective on, with missing entries too."""
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 4, len(FAITHFUL))
    X = np.where(rng.random(FAITHFUL.shape) < 0.05, np.nan, FAITHFUL)
    arguments = {
        "covariance_type": structure,
        "init_params": start,
        "max_iter": 3,
        "n_init": 2,
        "random_state": 3,
    }
    weighted = estimator(4, **arguments).fit(X, sample_weight=weights)
    twice = estimator(4, **arguments).fit(repeated(X, weights))
    np.testing.assert_allclose(weighted.elbo_trace_, twice.elbo_trace_, rtol=1e-9)
    np.testing.assert_allclose(weighted.means_, twice.means_, rtol=1e-6)


NOISE = np.random.default_rng(4).uniform(0.01, 0.1, FAITHFUL.shape)
CASES = {
    "automatic": (cv.BayesianGaussianMixture("auto"), {}),
    "process": (cv.BayesianGaussianMixture(4, weight_concentration_prior_type="dirichlet_process"), {}),
    "independent": (cv.BayesianGaussianMixture(3, mean_precision_family="independent"), {}),
    "weights alone": (cv.GaussianMixture(3, weights_init=[0.5, 0.3, 0.2], init_params="random"), {}),
    "precisions alone": (cv.GaussianMixture(2, precisions_init=[np.eye(2), 9 * np.eye(2)]), {}),
    "MAP": (cv.GaussianMixture(3, prior={"covariance": np.diag([1.0, 50.0])}, init_params="k-means++"), {}),
    "fixed": (
        cv.GaussianMixture(2, fixed={"means": [[2.0, 54.0], [np.nan, np.nan]]}, init_params="kmeans"),
        {},
    ),
    "noise": (cv.GaussianMixture(2, init_params="random_from_data"), {"noise_covariance": NOISE}),
    "labels": (cv.GaussianMixture(2, semi_supervised=True), {"y": np.where(FAITHFUL[:, 0] > 4, 1, -1)}),
    "known variance": (cv.KnownVarianceMixture(3), {}),
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_fit_and_update_goes_the_same_way(case):
    mixture, more = CASES[case]
    X = FAITHFUL[:, :1] if case == "known variance" else FAITHFUL
    weights = np.random.default_rng(5).integers(0, 3, len(X))
    order = np.random.default_rng(6).permutation(np.repeat(np.arange(len(X)), weights))
    arguments = {"random_state": 0, "tol": 1e-9}
    weighted = clone(mixture).set_params(**arguments).fit(X, sample_weight=weights, **more)
    again = {name: value[order] for name, value in more.items()}
    twice = clone(mixture).set_params(**arguments).fit(X[order], **again)
    assert weighted.elbo_ == pytest.approx(twice.elbo_, rel=1e-9)
    if not more:
        weighted.partial_fit(X[:100], sample_weight=weights[:100])
        twice.partial_fit(np.repeat(X[:100], weights[:100], axis=0))
        assert weighted.elbo_ == pytest.approx(twice.elbo_, rel=1e-9)


@pytest.mark.parametrize("start", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts_still_differ_with_the_seed_and_follow_units(start):
    """They are no less random than before, and the same in other units of the columns."""
    first, other, same = (
        cv.BayesianGaussianMixture(5, init_params=start, max_iter=0, random_state=seed).fit(X).elbo_
        for seed, X in ((0, FAITHFUL), (1, FAITHFUL), (0, FAITHFUL * [60.0, 0.25] + [7.0, -1.0]))
    )
    assert first != pytest.approx(other, abs=1e-3)
    shift = len(FAITHFUL) * np.log(60.0 * 0.25)
    assert first == pytest.approx(same + shift, rel=1e-9)


@pytest.mark.parametrize("start", ["kmeans", "k-means++", "random_from_data"])
def test_fewer_distinct_rows_than_components(start):
    X = np.repeat([[0.0, 0.0], [5.0, 1.0]], 6, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = cv.BayesianGaussianMixture(4, init_params=start, random_state=0).fit(X)
    assert len(set(mixture.predict(X))) == 2


@pytest.mark.filterwarnings("ignore::caviar.CollapseWarning")
def test_rows_that_weigh_enough_are_enough():
    """Three rows of weight 2 are six rows, as many as components ask for."""
    X, weights = np.array([[0.0], [4.0], [9.0]]), np.array([2.0, 2.0, 2.0])
    weighted = cv.GaussianMixture(4, random_state=0, max_iter=2, reg_covar=0.1).fit(X, sample_weight=weights)
    twice = cv.GaussianMixture(4, random_state=0, max_iter=2, reg_covar=0.1).fit(np.repeat(X, 2, axis=0))
    assert weighted.lower_bound_ == pytest.approx(twice.lower_bound_, rel=1e-9)
    with pytest.raises(cv.DataError, match="4 components need at least as many rows"):
        cv.GaussianMixture(4).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
@pytest.mark.parametrize("arguments", [{}, {"learning_method": "online", "batch_size": 1_000}])
def test_documents_weigh_what_they_are_repeated(check, arguments):
    for topics in (2, 4):
        lda = cv.LatentDirichletAllocation(topics, max_iter=5, random_state=topics, **arguments)
        check("LatentDirichletAllocation", lda)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [{"learning_method": "incremental"}, {"learning_method": "online", "batch_size": 8}]
)
def test_methods_with_batches_depend_on_who_shares_one_as_they_say(arguments):
    """Which documents share a batch differs; were it ever not so, the docstring would be wrong."""
    lda = cv.LatentDirichletAllocation(3, max_iter=5, random_state=0, **arguments)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_sample_weight_equivalence_on_dense_data("LatentDirichletAllocation", lda)
    assert "may depend on which documents share a batch" in " ".join(
        cv.LatentDirichletAllocation.__doc__.split()
    )


@pytest.mark.parametrize(
    "fit",
    [
        cv.GaussianMixture(1).fit,
        cv.BayesianGaussianMixture(1).fit,
        cv.BayesianGaussianMixture(1).partial_fit,
        cv.MixedMixture(1).fit,
        cv.LatentDirichletAllocation(1, max_iter=200).fit,
        cv.MixedModel("a ~ b").fit,
    ],
)
def test_weights_with_the_index_in_another_order_are_refused(fit):
    """They were taken by position, so that rows had the weights of others."""
    counts = np.random.default_rng(0).poisson(3.0, (20, 2)).astype(float)
    table = pd.DataFrame(counts, columns=["a", "b"], index=[f"row {n}" for n in range(20)])
    weights = pd.Series(np.arange(1.0, 21.0), index=table.index)
    with pytest.raises(cv.DataError, match="sample_weight have the index of X in another order"):
        fit(table, sample_weight=weights[::-1])
    fit(table, sample_weight=weights)
