"""Labels of some rows: known ones are kept, the others inferred; and where starts begin."""

import numpy as np
import pytest

import caviar as cv
from caviar.estimators.tables.data_scale import scale_of
from caviar.estimators.tables.labels import starting_labels

FAITHFUL = cv.datasets.load_faithful().values
LONG = (FAITHFUL[:, 0] > 3).astype(int)
SOME = np.where(np.arange(len(FAITHFUL)) % 10 == 0, LONG, -1)
ESTIMATORS = [cv.GaussianMixture, cv.BayesianGaussianMixture]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_known_labels_name_the_components(estimator, structure):
    mixture = estimator(2, covariance_type=structure, semi_supervised=True, random_state=0)
    for y in (SOME, np.where(SOME >= 0, 1 - SOME, -1)):
        mixture.fit(FAITHFUL, y)
        agree = np.mean(mixture.predict(FAITHFUL)[y >= 0] == y[y >= 0])
        assert agree > 0.95


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_labels_known_is_a_fit_to_each_group(estimator):
    mixture = estimator(2, semi_supervised=True, random_state=0).fit(FAITHFUL, LONG)
    if estimator is cv.GaussianMixture:
        for k in (0, 1):
            group = FAITHFUL[k == LONG]
            np.testing.assert_allclose(mixture.means_[k], group.mean(axis=0))
            np.testing.assert_allclose(mixture.covariances_[k], np.cov(group.T, bias=True), rtol=1e-4)
    else:
        np.testing.assert_allclose(mixture.weight_concentration_, 0.5 + np.bincount(LONG))
        np.testing.assert_allclose(mixture.degrees_of_freedom_, 2 + np.bincount(LONG))


def test_no_label_known_is_a_fit_without():
    unknown = np.full(len(FAITHFUL), -1)
    with_labels = cv.BayesianGaussianMixture(2, semi_supervised=True, random_state=0).fit(FAITHFUL, unknown)
    without = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    np.testing.assert_allclose(with_labels.elbo_, without.elbo_, rtol=1e-9)


def test_a_known_label_is_an_observation():
    """With one component for each row's label known, the bound is the evidence of rows and labels."""
    X, y = FAITHFUL[:4], np.array([0, 1, 1, 0])
    prior = {"covariance_prior": "empirical", "mean_precision_prior": 1.0}
    mixture = cv.BayesianGaussianMixture(2, semi_supervised=True, random_state=0, **prior).fit(X, y)
    separate = sum(
        cv.BayesianGaussianMixture(
            1,
            mean_precision_prior=1.0,
            mean_prior=mixture.mean_prior_,
            covariance_prior=mixture.covariance_prior_,
        )
        .fit(X[y == k])
        .elbo_
        for k in (0, 1)
    )
    # Dirichlet(1/2, 1/2) of two and two labels
    from scipy.special import gammaln

    labels = gammaln(1) - gammaln(5) + 2 * (gammaln(2.5) - gammaln(0.5))
    # q(weights) is exact here, for labels are known
    np.testing.assert_allclose(mixture.elbo_, separate + labels, rtol=1e-10)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.full(272, 2), "whole numbers from 0 to 1"),
        (np.full(272, 0.5), "whole numbers from 0 to 1"),
        (np.zeros(5), "one label a row"),
    ],
)
def test_impossible_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        cv.GaussianMixture(2, semi_supervised=True).fit(FAITHFUL, y)


def test_partial_labels_that_are_not_used_are_told():
    with pytest.warns(UserWarning, match="semi_supervised=True"):
        cv.GaussianMixture(2, random_state=0).fit(FAITHFUL, SOME)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warm_starts_go_on_where_the_last_fit_ended(estimator):
    mixture = estimator(2, warm_start=True, random_state=0).fit(FAITHFUL)
    before = mixture.elbo_
    mixture.fit(FAITHFUL)
    assert mixture.n_iter_ <= 2
    np.testing.assert_allclose(mixture.elbo_, before, rtol=1e-6)
    with pytest.raises(ValueError, match="continues a fit of 2 components"):
        mixture.set_params(n_components=3).fit(FAITHFUL)


def test_a_warm_start_with_other_columns_is_refused():
    mixture = cv.BayesianGaussianMixture(2, warm_start=True, random_state=0).fit(FAITHFUL)
    with pytest.raises(ValueError, match="continues a fit of 2 columns, but X has 1"):
        mixture.fit(FAITHFUL[:, :1])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_starts_as_in_scikit_learn(estimator, kind):
    mixture = estimator(2, init_params=kind, n_init=3, max_iter=2000, tol=1e-9, random_state=0).fit(FAITHFUL)
    best = estimator(2, random_state=0).fit(FAITHFUL)
    assert mixture.elbo_ <= best.elbo_ + 1e-3 * abs(best.elbo_)
    again = estimator(2, init_params=kind, n_init=3, max_iter=2000, tol=1e-9, random_state=0).fit(FAITHFUL)
    np.testing.assert_array_equal(again.elbo_trace_, mixture.elbo_trace_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_labels_or_responsibilities_as_a_start(estimator):
    by_labels = estimator(2, init_params=1 - LONG, random_state=0).fit(FAITHFUL)
    by_shares = estimator(2, init_params=np.eye(2)[1 - LONG], random_state=0).fit(FAITHFUL)
    assert by_labels.means_[0, 0] > by_labels.means_[1, 0]
    np.testing.assert_allclose(by_labels.elbo_, by_shares.elbo_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["kmeans", "k-means++", "random_from_data"])
def test_starts_count_rows_by_their_weights(kind):
    """Rows of weight zero draw no centre, however far out they are."""
    rng = np.random.default_rng(0)
    far = np.vstack([FAITHFUL, [100.0, 2000.0] + rng.normal(size=(272, 2)) * [1, 20]])
    weights = np.repeat([1.0, 0.0], 272)
    scale = scale_of(far, weights)
    for seed in range(5):
        labels = starting_labels(kind, far, weights, scale, 2, np.random.default_rng(seed))
        # were the far rows to count, one centre would be theirs and all others would share one label
        assert len(np.unique(labels[:272])) == 2
