"""Labels of a start: k-means against its definition, agglomeration against a literal search over all pairs."""

import numpy as np
import pytest

from caviar.engine.starts.clustering.agglomeration import agglomerated
from caviar.engine.starts.clustering.kmeans import _seeds, kmeans
from caviar.engine.starts.clustering.partitions import in_units, partitions

pytestmark = pytest.mark.starts_of_users


def _cost(points, weights, labels):
    means = [np.average(points[labels == k], axis=0, weights=weights[labels == k]) for k in np.unique(labels)]
    return sum(
        float(weights[labels == k] @ ((points[labels == k] - mean) ** 2).sum(axis=1))
        for k, mean in zip(np.unique(labels), means, strict=True)
    )


@pytest.mark.parametrize("seed", range(5))
def test_each_point_is_with_the_nearest_weighted_mean(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(200, 3)), rng.uniform(0.1, 5, 200)
    labels = kmeans(points, weights, 7, rng)
    means = np.stack(
        [np.average(points[labels == k], axis=0, weights=weights[labels == k]) for k in range(7)]
    )
    distances = ((points[:, None] - means) ** 2).sum(axis=-1)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))


def test_the_cost_is_that_of_scikit_learn():
    """The median over seeds of what both minimise, each from one start."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(500, 2)) + rng.choice([-4, 0, 4], (500, 2)), rng.uniform(0.5, 2, 500)
    ours = [
        _cost(points, weights, kmeans(points, weights, 9, np.random.default_rng(seed))) for seed in range(15)
    ]
    theirs = [
        KMeans(9, n_init=1, random_state=seed).fit(points, sample_weight=weights).inertia_
        for seed in range(15)
    ]
    assert min(ours) == pytest.approx(min(theirs), rel=1e-3)
    assert np.median(ours) < 1.1 * np.median(theirs)


def test_weight_two_is_the_point_twice_and_many_points_are_thinned():
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [8.0, 8.0], [9.0, 8.0]], 50, axis=0)
    labels = kmeans(points, np.ones(200), 2, np.random.default_rng(0), most_points=64)
    assert len(set(labels[:100])) == len(set(labels[100:])) == 1
    assert labels[0] != labels[-1]
    heavy = kmeans(np.array([[0.0], [1.0], [10.0]]), np.array([1.0, 1.0, 100.0]), 1, np.random.default_rng(0))
    assert list(heavy) == [0, 0, 0]


def test_seeds_are_drawn_in_proportion_to_the_weights():
    """Two heavy places and 200 light points farther out: only with weights are the first seeds the heavy ones."""
    rng = np.random.default_rng(0)
    light = 50 * rng.normal(size=(200, 2))
    points = np.concatenate([[[0.0, 0.0], [10.0, 0.0]], light])
    weights = np.concatenate([[1.0, 1.0], np.full(200, 1e-9)])
    for seed in range(20):
        labels = kmeans(points, weights, 2, np.random.default_rng(seed), max_iter=0)
        assert labels[0] != labels[1]
        # the seeds are these two points: every other is with the nearer one
        nearer = np.square(points[:, None] - points[:2]).sum(axis=2).argmin(axis=1)
        assert len(np.unique(np.stack([labels, nearer]), axis=1).T) == 2


def test_the_first_seed_follows_the_weights():
    """One cluster, one seed: of points on a line, drawn as often as their weights say and the best of two kept."""
    points, weights = np.array([[-1.0], [0.0], [1.0]]), np.array([0.05, 0.9, 0.05])
    chosen = [_seeds(points, weights, 1, np.random.default_rng(seed))[0, 0] for seed in range(400)]
    # the middle is the better of two draws whenever it is among them
    assert np.mean(np.array(chosen) == 0.0) == pytest.approx(1 - 0.1**2, abs=0.02)


def test_a_later_seed_follows_the_weights_times_squares():
    """Given the first seed, each draw is one of the others in proportion to weight times squared distance."""
    points = np.array([[0.0], [1.0], [-2.0]])
    weights = np.array([1e6, 8.0, 1.0])
    draws = [_seeds(points, weights, 2, np.random.default_rng(seed))[1, 0] for seed in range(600)]
    # shares 8 : 4; with both drawn the heavier one is kept, which leaves the smaller cost
    assert np.mean(np.array(draws) == 1.0) == pytest.approx(1 - (1 / 3) ** 2, abs=0.05)


def _literal_gain(points, weights, prior):
    """Return the classification likelihood of one cluster with the covariance that its definition gives."""
    size, count = points.shape[1], weights.sum()
    mean = weights @ points / count
    scatter = sum(w * np.outer(x - mean, x - mean) for w, x in zip(weights, points, strict=True))
    covariance = (scatter + prior) / (count + size + 2)
    return count * np.log(count) - 0.5 * count * np.log(np.linalg.det(covariance))


@pytest.mark.parametrize("seed", range(4))
def test_agglomeration_is_the_literal_greedy_search(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 2, 60)
    pieces = rng.integers(0, 8, 60)
    pieces[:8] = np.arange(8)
    scaled = weights * 60 / weights.sum()
    prior = 4 * 0.3 * 8 ** (-2 / 2) * np.eye(2)
    groups = [{k} for k in range(8)]
    while len(groups) > 3:

        def gain(group):
            rows = np.isin(pieces, list(group))
            return _literal_gain(points[rows], scaled[rows], prior)

        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(
            pairs,
            key=lambda pair: sum(gain(groups[i]) for i in pair) - gain(groups[pair[0]] | groups[pair[1]]),
        )
        groups[b] = groups[a] | groups[b]
        del groups[a]
    labels = agglomerated(points, weights, pieces, 3)
    found = {frozenset(int(k) for k in pieces[labels == label]) for label in range(3)}
    assert found == {frozenset(group) for group in groups}


def test_partitions_of_degenerate_points():
    """Equal points, fewer points than clusters, collinear and constant columns: labels, whatever they are worth."""
    rng = np.random.default_rng(1)
    line = np.outer(rng.normal(size=90), [1.0, 1.0, 0.0])
    for points in (np.zeros((50, 2)), rng.normal(size=(3, 2)), line, rng.normal(size=(90, 1))):
        for labels in partitions(points, np.ones(len(points)), 4, rng, many=True):
            assert labels.shape == (len(points),)
            assert labels.min() >= 0
            assert labels.max() < 4


def test_points_are_the_same_bits_in_other_units():
    """What rounding makes of an origin, a unit, or a mean over rows in another order, decides nothing after that."""
    values, weights = np.random.default_rng(0).normal(3.0, 2.0, (60, 4)), np.ones(60)
    points = in_units(values, weights)
    np.testing.assert_allclose(points, (values - values.mean(axis=0)) / values.std(axis=0), atol=1e-9)
    for factor, shift in ((1.0, -values.mean(axis=0)), (0.3, 0.7), (1e150, 0.0)):
        np.testing.assert_array_equal(in_units(factor * values + shift, weights), points)
