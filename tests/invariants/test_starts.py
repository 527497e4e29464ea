"""What a start must find, and what it must not depend on, in small tables and in those larger than its subsample."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts import trials

K = 4


def _stripes(rng, n, angle):
    """Return parallel stripes fifty times as long as they are wide, and which of them each row is from."""
    labels = rng.integers(0, K, n)
    along, across = 50 * rng.normal(size=n), rng.normal(size=n) + 8.0 * labels
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.column_stack([along, across]) @ turn.T, labels


@pytest.mark.thinned(12)
@pytest.mark.parametrize("angle", [0.0, 0.5, np.pi / 4])
@pytest.mark.parametrize("n", [400, 3_000, 20_000])
def test_parallel_stripes_are_found(n, angle):
    """K-means cuts across them; the fit ends where one from the true labels does."""
    found = 0
    for seed in range(3):
        x, labels = _stripes(np.random.default_rng(seed), n, angle)
        mixture = cv.BayesianGaussianMixture(K, random_state=seed).fit(x)
        one_hot = np.eye(K)[labels]
        overlap = one_hot.T @ mixture.predict_proba(x) / n
        found += overlap.max(axis=1).sum() > 0.98
    assert found >= 2


def _mixture():
    obs, component = cv.Plate("obs"), cv.Plate("component", 5)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 3.5, np.eye(2), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(5)), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


@pytest.fixture
def small_samples(monkeypatch):
    """Subsamples of 300 rows, so that tables need not be large to be larger than these."""
    monkeypatch.setattr(trials, "SAMPLE_ROWS", 300)


def _draw(rng, n):
    return rng.normal(size=(n, 2)) * [1, 0.4] + 5 * rng.integers(-2, 3, (n, 1)) * [0.3, 1.0]


def test_a_table_larger_than_the_sample_is_its_weighted_rows(small_samples):
    """Order, repetition and weights do not matter where the start is brought near its optimum on a subsample."""
    rng = np.random.default_rng(0)
    x = _draw(rng, 2_000)
    times = rng.integers(1, 4, 2_000)
    order = rng.permutation(2_000)
    arguments = {"seed": 0, "max_iter": 5}
    one = _mixture().fit({"x": x}, sample_weight=times, **arguments)
    permuted = _mixture().fit({"x": x[order]}, sample_weight=times[order], **arguments)
    repeated = _mixture().fit({"x": np.repeat(x, times, axis=0)}, **arguments)
    for other in (permuted, repeated):
        np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-8)
        np.testing.assert_allclose(other["theta"].mean, one["theta"].mean, rtol=1e-5, atol=1e-5)


def test_passes_over_all_rows_begin_near_an_optimum(small_samples):
    """The first bound is within a small part of a nat a row of the last; from labels alone it is far below."""
    x = _draw(np.random.default_rng(1), 5_000)
    posterior = _mixture().fit({"x": x}, seed=0)
    risen = (posterior.elbo - posterior.elbo_trace[0]) / 5_000
    assert 0 <= risen < 0.1
    assert posterior.n_iter < 30


def test_the_same_seed_is_the_same_bits_and_threads_do_not_matter(small_samples):
    x = _draw(np.random.default_rng(2), 3_000)
    fits = [_mixture().fit({"x": x}, seed=3, max_iter=4, executor=executor) for executor in (1, 2, 1)]
    for other in fits[1:]:
        assert np.array_equal(other.elbo_trace, fits[0].elbo_trace)


def test_models_without_clusters_start_from_a_fit_of_the_sample_too(small_samples):
    """Factor analysis: the bound of the first pass over all rows is already near the last one."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3_000, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(3_000, 5))
    posterior = cv.models.probabilistic_pca(5, 2).fit({"x": x}, seed=0)
    assert (posterior.elbo - posterior.elbo_trace[0]) / 3_000 < 0.5
    assert np.diff(posterior.elbo_trace).min() > -1e-6


def test_a_start_that_collapses_on_the_sample_is_not_kept(small_samples):
    """Maximum likelihood with more components than the sample can carry still ends where all rows do."""
    x = _draw(np.random.default_rng(4), 4_000)
    mixture = cv.GaussianMixture(5, random_state=0).fit(x)
    assert mixture.converged_
    assert np.isfinite(mixture.elbo_)
