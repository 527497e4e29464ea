"""Clusters that are clear: no other guess is made, and fits end where searches of many starts do."""

import numpy as np
import pytest
from sklearn import mixture

import caviar as cv
from caviar.engine.starts import from_data
from caviar.engine.starts.clustering.partitions import in_units
from caviar.engine.starts.clustering.regrouping import are_plain

CENTRES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])


def _clusters(rng, n_each=40, centres=CENTRES):
    truth = np.repeat(np.arange(len(centres)), n_each)
    return centres[truth] + rng.normal(size=(len(truth), 2)), truth


def _are_plain(x, labels, size, weights=None):
    weights = np.ones(len(x)) if weights is None else weights
    return are_plain(in_units(x, weights), weights, labels, size)


def test_clusters_far_from_each_other_are_plain_in_any_units_and_order():
    rng = np.random.default_rng(0)
    x, truth = _clusters(rng)
    assert _are_plain(x, truth, 3)
    assert _are_plain(x * (1e3, 1e-6), truth, 3)
    order = rng.permutation(len(x))
    assert _are_plain(x[order], 2 - truth[order], 3)


@pytest.mark.parametrize("case", ["merged", "cut", "near", "crossed", "few", "empty", "passed"])
def test_clusters_are_not_plain_where_another_guess_may_be_better(case):
    rng = np.random.default_rng(0)
    x, truth = _clusters(rng)
    size = 3
    if case == "merged":
        truth = np.where(truth == 2, 1, truth) + 2 * ((truth == 0) & (x[:, 0] > 0))
        truth = np.unique(truth, return_inverse=True)[1]
    elif case == "cut":
        truth, size = truth + 3 * ((truth == 0) & (x[:, 0] > 0)), 4
    elif case == "near":
        x, truth = _clusters(rng, centres=CENTRES / 5)
    elif case == "crossed":
        # two lines that cross, and a cluster beside: the halves of the cross are no Gaussians
        along = rng.normal(size=(80, 1)) * 10
        lines = along * np.where(np.arange(80)[:, None] < 40, [1.0, 0.0], [0.0, 1.0])
        x = np.concatenate([lines + 0.1 * rng.normal(size=(80, 2)), rng.normal(size=(40, 2)) + 30])
        truth = np.where(np.arange(120) < 80, x[:, 0] + x[:, 1] > 0, 2)
    elif case == "few":
        x, truth = np.concatenate([x, [[50.0, 50.0]]]), np.append(truth, 3)
        size = 4
    elif case == "passed":
        # three clusters in two: the middle one may go with the left one or with the right one
        x, _ = _clusters(rng, centres=np.array([[0.0, 0.0], [6.0, 0.0], [14.0, 0.0]]))
        truth, size = (x[:, 0] > 10).astype(int), 2
    else:
        size = 4
    assert not _are_plain(x, truth.astype(int), size)


def test_a_weight_of_two_is_the_point_twice():
    """Near where clusters begin to be plain, so that the counts matter."""
    rng = np.random.default_rng(0)
    told = []
    for far in np.linspace(2.0, 8.0, 25):
        x, truth = _clusters(rng, 12, CENTRES * far / 12)
        n_times = rng.integers(1, 3, len(x))
        once = _are_plain(x, truth, 3, n_times.astype(float))
        assert once == _are_plain(np.repeat(x, n_times, axis=0), np.repeat(truth, n_times), 3)
        told.append(once)
    assert 3 < sum(told) < 22


@pytest.mark.thinned(8)
@pytest.mark.parametrize("fewer", [0, 1])
@pytest.mark.parametrize("model", ["full", "diag", "spherical", "tied"])
def test_of_clear_clusters_one_start_is_made_and_ends_at_the_best(monkeypatch, model, fewer):
    """Of ten restarts; with one component more than there are clusters several starts are made."""
    x, _ = _clusters(np.random.default_rng(1))
    made = []
    start_from = from_data.start_from
    monkeypatch.setattr(
        from_data, "start_from", lambda basis, guess: made.append(guess) or start_from(basis, guess)
    )
    found = cv.BayesianGaussianMixture(3 + fewer, covariance_type=model, random_state=0).fit(x)
    assert (len(made) == 1) == (not fewer)
    best = cv.BayesianGaussianMixture(3 + fewer, covariance_type=model, n_init=10, random_state=1).fit(x)
    assert found.elbo_ > best.elbo_ - 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_three_clusters_in_two_components_end_at_the_best_of_all_pairs(seed):
    """Whichever two of them the seeds put together: the best of the fits that begin at each pair in one."""
    rng = np.random.default_rng(7)
    x, truth = _clusters(rng, 16, centres=np.array([[0.0, 0.0], [7.0, 2.0], [11.0, -3.0]]))
    found = cv.BayesianGaussianMixture(2, random_state=seed).fit(x)
    model = found.posterior_.model
    pairs = [model.fit({"x": x}, init={"z": (truth == alone).astype(int)}).elbo for alone in range(3)]
    assert np.ptp(pairs) > 3
    assert found.elbo_ > max(pairs) - 1e-3


def test_the_likelihood_of_clear_clusters_is_the_best_known():
    """Old Faithful: the best of 20 starts of scikit-learn's."""
    X = cv.datasets.load_faithful().values
    found = cv.GaussianMixture(2, random_state=0).fit(X)
    known = mixture.GaussianMixture(2, n_init=20, random_state=0, tol=1e-10, max_iter=1000).fit(X)
    assert found.score(X) > known.score(X) - 1e-8
