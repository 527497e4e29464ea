"""Memory beyond the data does not grow with the rows."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import caviar as cv
from caviar.engine.design.backend import block_rows
from edges import stated

N, K = 500_000, 8
LIMIT = 24e6
"""Of fits: three quarters of one number for each row and component."""
MANY = 32
OF_BLOCKS = 96e6
"""Of predictions, whose blocks have more rows: three quarters of a number for each row and each of many components."""


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 4)) + 3 * rng.integers(0, 2, (N, 1))


def peak_of(function):
    """Return the peak of traced memory above what was held before, in bytes."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
def test_a_fit_from_the_data(state, x):
    assert peak_of(lambda: state(K, 4).fit({"x": x}, seed=0, max_iter=2)) < LIMIT


@pytest.mark.slow
def test_a_fit_of_weighted_single_precision_rows_in_fortran_order(x):
    rows, weights = np.asfortranarray(x, dtype="f4"), np.ones(N)
    assert (
        peak_of(lambda: stated.joint(K, 4).fit({"x": rows}, seed=0, max_iter=1, sample_weight=weights))
        < LIMIT
    )


@pytest.mark.slow
def test_a_fit_from_given_labels(x):
    labels = np.random.default_rng(1).integers(0, K, N)
    assert peak_of(lambda: stated.joint(K, 4).fit({"x": x}, init={"z": labels}, max_iter=1)) < LIMIT


@pytest.mark.slow
def test_a_fit_of_rows_with_missing_entries(x):
    """Copies are made with the holes filled and in the order of the patterns, and masks."""
    rows = np.where(np.random.default_rng(2).random(x.shape, dtype="f4") < 0.1, np.nan, x)
    assert peak_of(lambda: stated.joint(K, 4).fit({"x": rows}, seed=0, max_iter=1)) < LIMIT + 3 * x.nbytes


@pytest.fixture(scope="module")
def mixture(x):
    return cv.BayesianGaussianMixture(MANY, random_state=0, tol=1e-3).fit(x[:2000])


OUTPUTS = {"predict": 1, "predict_proba": MANY, "score_samples": 1}
"""Method -> numbers that it finds for each row."""


@pytest.mark.slow
@pytest.mark.parametrize("method", list(OUTPUTS))
def test_predictions_of_a_mixture(method, mixture, x):
    """Beyond what is returned, memory is that of a block."""
    assert peak_of(lambda: getattr(mixture, method)(x)) < OF_BLOCKS + 8 * N * OUTPUTS[method]


@pytest.mark.slow
def test_predictions_of_rows_with_missing_entries(mixture, x):
    """Masks and copies of the rows are made a block at a time; scikit-learn's check and ours of NaN cost bytes."""
    rows = x.copy()
    rows[::7, 1] = np.nan
    assert peak_of(lambda: mixture.predict(rows)) < OF_BLOCKS + 8 * N + 1.2 * rows.nbytes


@pytest.mark.slow
def test_predictions_of_rows_on_disk(mixture, x, tmp_path):
    """Rows that are not in memory are read a block at a time, for the same numbers."""
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", x.dtype, x.shape)
    stored[:] = x
    stored.flush()
    rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = []
    assert peak_of(lambda: found.append(mixture.predict_proba(rows))) < OF_BLOCKS + 8 * N * MANY
    np.testing.assert_array_equal(found[0], mixture.predict_proba(x))


def test_the_objective_of_all_rows(x):
    model = stated.joint(K, 4)
    posterior = model.fit({"x": x[:1000]}, seed=0, max_iter=2)
    assert peak_of(lambda: posterior.elbo_at({}, {"x": x})) < LIMIT


@pytest.mark.slow
def test_sparse_counts():
    """A million counts of 50,000 words in 20,000 documents: written out, they would be 8 GB."""
    rng, shape, n_entries = np.random.default_rng(0), (20_000, 50_000), 1_000_000
    places = tuple(rng.integers(0, size, n_entries) for size in shape)
    words = sparse.coo_array((rng.integers(1, 4, n_entries), places), shape=shape).tocsr()
    document, topic = cv.Plate("document"), cv.Plate("topic", K)
    topics = cv.Dirichlet("topics", np.full(shape[1], 0.5), plates=topic)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(K)), plates=document)
    model = cv.Model(cv.Multinomial("words", None, topics[z], plates=document))
    assert peak_of(lambda: model.fit({"words": words}, seed=0, max_iter=2, tol=0)) < 192e6


WIDE = 1_500


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, WIDE)) + 3 * rng.integers(0, 2, (30, 1))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
@pytest.mark.parametrize("kind", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_nothing_of_columns_by_columns_where_these_are_uncorrelated(kind, covariance_type, wide):
    """A matrix of columns by columns would take 18 MB; at 20,000 columns 3 GB."""
    mixture = kind(2, covariance_type=covariance_type, random_state=0, tol=0.1)
    gap = wide.copy()
    gap[::2, 0] = np.nan

    def use():
        mixture.fit(wide)
        for X in (wide, gap):
            mixture.predict(X)
            mixture.score_samples(X)
        mixture.sample(5)
        mixture.marginal([0, 1])
        mixture.condition({0: 1.0})
        mixture.predict_columns(gap, 0)
        kept = (mixture.means_, mixture.covariances_, mixture.precisions_, mixture.precisions_cholesky_)
        assert all(np.size(array) <= 2 * WIDE for array in kept)

    assert peak_of(use) < WIDE**2 * 8


@pytest.mark.parametrize("n_numbers", [2, 24, 600])
def test_a_block_of_rows_with_very_many_labels(n_numbers):
    """It has half as many rows as there are labels, up to 16 MB, whatever number of labels there is."""
    few, many = (block_rows(n_numbers // 2, n_numbers // 2, labels) for labels in (20_000, 10**8))
    assert 8 * n_numbers * many <= 16 << 20
    assert 8 * n_numbers * many >= 15 << 20
    assert few == pytest.approx(min(10_000, many), rel=0.02)


def test_second_moments_of_rows_that_share_a_precision_are_summed_without_being_made():
    """For each of 192 rows they would be 100 x 100 numbers."""
    n_rows, n_factors = 192, 100
    data = {"x": np.random.default_rng(0).normal(size=(n_rows, 10))}
    model = cv.models.probabilistic_pca(10, n_factors)
    posterior = model.fit(data, init={"loadings": np.ones((10, n_factors))}, max_iter=1)
    assert peak_of(lambda: posterior.elbo_at({}, data)) < 0.75 * 8 * n_rows * n_factors**2
