"""One look at the rows with few responsibilities: the restricted optimum, beside enumeration and beside all of them."""

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv
from truncated.looking import looks

K, N = 12, 700


def clusters(seed: int = 0, dimension: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, N)
    return 2.5 * rng.normal(size=(K, dimension))[labels] + rng.normal(size=(N, dimension)), labels


def gaussian(**changes):
    X, labels = clusters()
    return cv.models.normal_wishart_mixture(3, K), {"x": X}, labels, changes


def weighted():
    return gaussian(weights=np.random.default_rng(1).choice([0.0, 0.5, 2.0], N))


def missing():
    X, labels = clusters()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    return cv.models.normal_wishart_mixture(3, K), {"x": X}, labels, {}


def far_apart():
    X, labels = clusters()
    return cv.models.normal_wishart_mixture(3, K), {"x": X + 1e6 * (labels == 3)[:, None]}, labels, {}


def categories():
    obs, z_plate = cv.Plate("obs"), cv.Plate("component", K)
    rng = np.random.default_rng(3)
    labels = rng.integers(0, K, N)
    p = cv.Dirichlet("p", np.full(24, 0.5), plates=z_plate)
    weights = cv.Dirichlet("weights", np.ones(K))
    z = cv.Categorical("z", weights, plates=obs)
    mean = cv.Normal("mean", 0, 0.01, plates=z_plate)
    leaves = cv.Categorical("word", p[z], plates=obs), cv.Normal("y", mean[z], 1.0, plates=obs)
    words = (2 * labels + rng.integers(0, 3, N)) % 24
    return cv.Model(*leaves), {"word": words, "y": labels + rng.normal(size=N)}, labels, {}


CASES = {own.__name__: own for own in (gaussian, weighted, missing, far_apart, categories)}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", CASES)
def test_a_look_is_the_optimum_within_the_sets(name, n, passes):
    """Among all factors of a label that are zero outside its set, the best one is the softmax there."""
    model, data, labels, changes = CASES[name]()
    found = looks(model, data, labels, n, passes=passes, **changes)
    assert found.supports.sizes.mean() <= n
    logits = np.where(found.is_member, found.logits, -np.inf)
    best = logsumexp(logits, axis=0)
    np.testing.assert_allclose(found.few.log_partition[found.key], best @ found.weights, rtol=1e-12)
    shares = np.exp(logits - best) * found.weights
    counts = found.few.fused[found.key][:, 0] if name != "categories" else None
    if counts is not None:
        np.testing.assert_allclose(counts, shares.sum(axis=1), rtol=1e-9, atol=1e-9)
    assert found.few.log_partition[found.key] <= found.every.log_partition[found.key]
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = np.where(found.is_member, rng.gamma(0.3, size=logits.shape), 0.0)
        other = 0.9 * shares / np.maximum(found.weights, 1e-300) + 0.1 * other / other.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(other > 0, other * (found.logits - np.log(other)), 0.0)
        value = np.where(found.weights > 0, terms.sum(axis=0), 0.0) @ found.weights
        assert value <= found.few.log_partition[found.key] + 1e-9 * abs(value)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", CASES)
def test_a_set_of_all_components_gives_what_all_do(name):
    model, data, labels, changes = CASES[name]()
    for passes in (1, 3):
        found = looks(model, data, labels, K, passes=passes, **changes)
        few, every = (own.fused[found.key] for own in (found.few, found.every))
        np.testing.assert_allclose(few, every, rtol=1e-9, atol=1e-12 * np.abs(every).max())
        log_partitions = (own.log_partition[found.key] for own in (found.few, found.every))
        np.testing.assert_allclose(*log_partitions, rtol=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["gaussian", "missing"])
def test_passes_with_the_same_globals_never_lower_the_objective(name):
    model, data, labels, _ = CASES[name]()
    values = [looks(model, data, labels, 2, passes=n).few.log_partition["z"] for n in (1, 2, 3, 4, 6, 9, 12)]
    assert np.all(np.diff(values) >= -1e-9 * abs(values[0]))
