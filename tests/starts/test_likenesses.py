"""What is like a model: exact evidence of Gaussians, exact messages of chains, and the search that they serve."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.metrics import adjusted_rand_score

import caviar as cv
from caviar.engine.starts.clustering import likenesses
from caviar.engine.starts.clustering.improving import Likely, shares_of
from caviar.engine.starts.clustering.likenesses import Diagonal, Fixed, Full, nearest
from caviar.engine.starts.clustering.orders import InSequence, Unordered
from caviar.engine.starts.clustering.searching import Effort, improved_ends, searched
from caviar.families.chains.markov_chain import smooth

KAPPA, WORTH = likenesses._MEAN_WEIGHT, likenesses._VARIANCE_WEIGHT


def _evidence(likeness, points, labels, size):
    sums = shares_of(labels, size).transpose(0, 2, 1) @ likeness.features(points)
    return likeness.fitted(sums)[1]


def _full(x, spread):
    """Return the log marginal under a Normal-Wishart prior, a point after the other."""
    size, total = x.shape[1], 0.0
    mean, weight, df, scale = np.zeros(size), KAPPA, size + 2.0, (size + 2.0) * spread * np.eye(size)
    for point in x:
        own = df - size + 1
        total += multivariate_t.logpdf(point, mean, scale * (weight + 1) / (weight * own), own)
        away = point - mean
        scale = scale + weight / (weight + 1) * np.outer(away, away)
        mean, weight, df = mean + away / (weight + 1), weight + 1, df + 1
    return total


def _column(x, spread):
    covariance = spread * (np.eye(len(x)) + 1 / KAPPA)
    return multivariate_t.logpdf(x, np.zeros(len(x)), covariance, WORTH) if len(x) else 0.0


def _diagonal(x, spread):
    return sum(_column(column, spread) for column in x.T)


def _fixed(x, spread):
    covariance = spread * (np.eye(len(x)) + 1 / KAPPA)
    return sum(multivariate_normal.logpdf(column, np.zeros(len(x)), covariance) for column in x.T)


@pytest.mark.parametrize(
    ("likeness", "exact"), [(Full(0.3), _full), (Diagonal(0.2), _diagonal), (Fixed(0.4), _fixed)]
)
def test_evidence_of_clusters_is_their_log_marginal(likeness, exact):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2)) * [1.0, 2.0] + 0.5
    labels = np.array([np.arange(12) % 2, np.arange(12) // 6, np.repeat([0, 1, 1], 4)])
    truth = [sum(exact(points[own == k], likeness.spread) for k in (0, 1)) for own in labels]
    found = _evidence(likeness, points, labels, 2)
    np.testing.assert_allclose(np.diff(found), np.diff(truth), rtol=0, atol=1e-9)


@pytest.mark.parametrize("likeness", [Full(0.3), Full(0.3, is_shared=True), Diagonal(0.2, True, True)])
def test_coefficients_are_the_derivative_of_the_evidence(likeness):
    """The expected log density is that of an exponential family at its updated parameters."""
    rng = np.random.default_rng(0)
    features = likeness.features(rng.normal(size=(20, 2)))
    sums = np.stack([features[:8].sum(axis=0), features[8:].sum(axis=0)])[None]
    coefficients = likeness.fitted(sums)[0]
    # of 1 the prior's own normaliser depends on nothing, and the count has a term of each point's density
    for k in (0, 1):
        for place in range(sums.shape[-1]):
            step = np.zeros(sums.shape)
            step[0, k, place] = 1e-5
            slope = (likeness.fitted(sums + step)[1] - likeness.fitted(sums - step)[1])[0] / 2e-5
            assert slope == pytest.approx(coefficients[0, k, place], abs=2e-6, rel=1e-5)


@pytest.mark.parametrize(("n", "tolerance"), [(40, 1e-5), (150, 2e-2)])
def test_messages_are_those_of_each_chain(n, tolerance):
    """Short sequences to the digits of the arithmetic; of long ones margins lose what comes from far away."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, 3, 4)) * 2
    initial = np.log(rng.dirichlet(np.ones(4), 3))
    steps = np.log(np.stack([0.6 * np.eye(4) + 0.4 * rng.dirichlet(np.ones(4), 4) for _ in range(3)]))
    begins = np.zeros(n, dtype=bool)
    begins[[0, 13, 31]] = True
    weights = np.repeat([1.0, 3.0, 2.0], np.diff([0, 13, 31, n]))
    shares, (first, pairs), total = InSequence.of(begins, weights).inferred(
        np.asarray(logits, dtype=np.float32), (initial, steps)
    )
    for m in range(3):
        exact = smooth(logits[:, m], begins, initial[m], steps[m], weights=weights)
        np.testing.assert_allclose(shares[:, m], exact.marginals, rtol=0, atol=tolerance)
        np.testing.assert_allclose(first[m], exact.first, rtol=0, atol=3 * tolerance)
        np.testing.assert_allclose(pairs[m], exact.pairs, rtol=0, atol=n * tolerance)
        assert total[m] == pytest.approx(exact.log_partition, abs=n * tolerance)


def test_points_without_an_order_have_weights():
    rng = np.random.default_rng(0)
    logits, logs, weights = (
        rng.normal(size=(6, 2, 3)),
        np.log(rng.dirichlet(np.ones(3), 2)),
        np.arange(1.0, 7.0),
    )
    shares, (counts,), total = Unordered(weights).inferred(logits, (logs,))
    np.testing.assert_allclose(shares, softmax(logits + logs, axis=2), atol=1e-12)
    np.testing.assert_allclose(counts, np.einsum("n,nmk->mk", weights, shares), atol=1e-12)
    np.testing.assert_allclose(
        total, weights @ np.log(np.exp(logits + logs).sum(axis=2)), rtol=1e-12, atol=1e-12
    )


def _likely(points, weights, size, likeness, begins=None):
    order = Unordered(weights) if begins is None else InSequence.of(begins, weights)
    return Likely(likeness, order, points, weights, size, 1.0)


@pytest.mark.parametrize("is_chain", [False, True])
def test_bounds_rise(is_chain):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 2)) + 2.0 * (np.arange(50) // 25)[:, None]
    begins = np.arange(50) == 0 if is_chain else None
    likely = _likely(points, np.ones(50), 3, Full(0.3), begins)
    labels = rng.integers(3, size=(1, 50))
    bounds = [likely.improved(labels, n)[1][0] for n in range(1, 12)]
    assert np.diff(bounds).min() > -1e-3
    assert bounds[-1] > bounds[0] + 1.0


def test_a_weight_of_two_is_the_point_twice():
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 2)), rng.integers(3, size=(4, 30))
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    twice = np.repeat(np.arange(30), weights.astype(int))
    one = _likely(points, weights, 3, Diagonal(0.3)).improved(labels, 5)
    other = _likely(points[twice], np.ones(40), 3, Diagonal(0.3)).improved(labels[:, twice], 5)
    np.testing.assert_allclose(one[1], other[1], atol=1e-3)
    np.testing.assert_array_equal(one[0][:, twice], other[0])


@pytest.mark.parametrize("likeness", [Full(0.1), Full(0.1, is_shared=True), Diagonal(0.3), Fixed(0.05)])
def test_the_likeness_is_the_one_whose_evidence_is_given(likeness):
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(60, 2)) @ [[1.0, 0.5], [0.0, 0.8]], np.ones(60)
    labels = np.array([np.argsort(points @ rng.normal(size=2)).argsort() * 3 // 60 for _ in range(8)])
    shares = shares_of(labels, 3)
    given = _evidence(likeness, points, labels, 3) + 7.0
    found, of_points, error = nearest([points], weights, shares, given, 100)
    assert of_points is points
    assert isinstance(found, Full | Diagonal | Fixed)
    assert type(found) is type(likeness)
    assert found.spread == pytest.approx(likeness.spread, rel=0.2)
    assert error < 0.15 * given.std()


def test_two_moves_that_are_needed_together_are_found():
    """Twice two clusters in one, and twice one in two: the first move leaves one of either."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(6), 25)
    points = np.array([0.0, 3.0, 10.0, 13.0, 22.0, 32.0])[truth, None] + 0.5 * rng.normal(size=(150, 1))
    points = (points - points.mean()) / points.std()
    cut = np.arange(150) % 25 >= 12
    labels = np.array([0, 0, 1, 1, 2, 4])[truth] + (cut & (truth >= 4))
    likely = _likely(points, np.ones(150), 6, Diagonal(0.01))
    own = improved_ends(likely, labels[None])
    assert adjusted_rand_score(truth, own[0].labels) < 0.8
    effort = Effort(moves=20, ends=3, steps=3)
    ends = searched(likely, [points], own, effort)
    assert adjusted_rand_score(truth, ends[0].labels) == 1.0
    assert ends[0].bound > own[0].bound + 10


def test_what_is_no_number_is_left_out():
    likely = _likely(np.full((10, 1), np.nan), np.ones(10), 2, Diagonal(0.1))
    assert improved_ends(likely, np.zeros((1, 10), dtype=int)) == []


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("make", "size", "n", "distance", "seed"),
    [
        (lambda: cv.models.gaussian_mixture(2, 4, concentration=0.1), 4, 120, 5.0, [7, 1, 2253]),
        (lambda: cv.models.normal_wishart_mixture(2, 8), 8, 400, 4.0, [7, 2, 1394]),
    ],
)
def test_default_fits_of_overlapping_clusters_end_where_the_truth_leads(make, size, n, distance, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(size, n, p=rng.dirichlet(np.full(size, 2.0)))
    centres = distance * rng.normal(size=(size, 2))
    widths = rng.normal(size=(size, 2, 2)) / np.sqrt(2)
    x = centres[labels] + np.einsum("nij,nj->ni", widths[labels], rng.normal(size=(n, 2)))
    model = make()
    good = model.fit({"x": x}, init={"z": labels}, seed=0).elbo
    ends = [model.fit({"x": x}, seed=seed).elbo for seed in range(3)]
    assert min(ends) > good - 0.01 * n


def test_clusters_whose_squares_rounding_has_lost_have_no_evidence_and_leave_that_of_others():
    kind = Full(1.0)
    plain = np.random.default_rng(0).normal(size=(8, 2))
    lost = 1e9 * np.repeat([[1.0, 1.0], [-1.0, -1.0]], 4, axis=0)
    sums = np.stack([kind.features(points).sum(axis=0) for points in (plain, lost)])[:, None]
    found = kind.fitted(sums)[1]
    assert found[0] == kind.fitted(sums[:1])[1][0]
    assert np.isnan(found[1])
