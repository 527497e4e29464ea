"""A fit is the same bits wherever the numbers are: in arrays, in tables of other libraries, or on disk."""

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import caviar as cv
from data import stored

N, D = 20_011, 3


@pytest.fixture(scope="module")
def columns():
    """Columns of a mixture of two, as a mapping from names."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * [1.0, 2.0, 0.5] + 3.0 * rng.integers(0, 2, (N, 1)) + 10.0
    return dict(zip("abc", X.T.copy(), strict=True))


@pytest.fixture(scope="module")
def counts():
    """Counts with missing entries, and rows of which nothing was observed."""
    rng = np.random.default_rng(1)
    rate = np.array([[1.0, 6.0, 2.0], [8.0, 1.0, 3.0]])[rng.integers(0, 2, N)]
    C = rng.poisson(rate).astype(float)
    C[rng.random(C.shape) < 0.1] = np.nan
    C[5::97] = np.nan
    return dict(zip("abc", C.T.copy(), strict=True))


def together(columns):
    return np.column_stack(list(columns.values()))


def assert_same(found, expected):
    """Two posteriors are the same bits: the bound after each iteration, and every factor."""
    np.testing.assert_array_equal(found.elbo_trace, expected.elbo_trace)
    for name in expected:
        for ours, theirs in zip(found[name].natural, expected[name].natural, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def mixture(x, **keywords):
    return cv.models.normal_wishart_mixture(D, 3).fit({"x": x}, seed=0, max_iter=6, **keywords)


def in_frames(columns, folder):
    """Return the columns in every other container, by its name."""
    X = together(columns)
    np.save(folder / "x.npy", X)
    frame, table = pd.DataFrame(columns), stored.arrow_table(columns)
    pieces = pa.concat_tables([table.slice(0, 777), table.slice(777)])
    return {
        "Fortran order": np.asfortranarray(X),
        "memory map": np.load(folder / "x.npy", mmap_mode="r"),
        "pandas": frame,
        "Polars": pl.from_arrow(table),
        "Arrow": pieces,
        "Dask array": dask.array.from_array(X, chunks=(1_234, 2)),
        "Dask DataFrame": dask.dataframe.from_pandas(frame, npartitions=7, sort=False),
    }


@pytest.mark.thinned(4)
@pytest.mark.parametrize("store", stored.SCANNED)
def test_a_gaussian_mixture_from_disk(store, columns, tmp_path):
    assert_same(mixture(store(columns, tmp_path)), mixture(together(columns)))


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 4])
def test_any_number_of_threads(n_threads, columns, tmp_path):
    for store in (stored.one_parquet, stored.copied_parquet):
        assert_same(mixture(store(columns, tmp_path), executor=n_threads), mixture(together(columns)))


@pytest.mark.slow
def test_a_gaussian_mixture_from_other_containers(columns, tmp_path):
    expected = mixture(together(columns))
    for name, value in in_frames(columns, tmp_path).items():
        try:
            assert_same(mixture(value), expected)
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.thinned(8)
@pytest.mark.parametrize("store", stored.SCANNED)
def test_a_regression_on_columns_of_one_table(store, columns, tmp_path):
    """With the target, the predictors and the weights from one table."""
    rng = np.random.default_rng(2)
    y = together(columns) @ [1.0, -2.0, 0.5] + rng.standard_normal(N)
    w = rng.integers(0, 3, N).astype(float)
    table = store({**columns, "y": y, "w": w}, tmp_path)
    model = cv.models.linear_regression(D)
    expected = model.fit({"X": together(columns), "y": y}, sample_weight=w, max_iter=6)
    found = model.fit({"X": table[["a", "b", "c"]], "y": table["y"]}, sample_weight=table["w"], max_iter=6)
    assert_same(found, expected)


def test_a_regression_on_columns_of_pandas(columns):
    y = together(columns) @ [1.0, -2.0, 0.5]
    frame = pd.DataFrame({**columns, "y": y})
    model = cv.models.linear_regression(D)
    expected = model.fit({"X": together(columns), "y": y}, max_iter=6)
    assert_same(model.fit({"X": frame[list("abc")], "y": frame["y"]}, max_iter=6), expected)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("store", stored.SCANNED)
def test_a_poisson_mixture_with_missing_entries(store, counts, tmp_path):
    model = cv.models.poisson_mixture(D, 2)
    expected = model.fit({"x": together(counts)}, seed=0, max_iter=6)
    assert_same(model.fit({"x": store(counts, tmp_path)}, seed=0, max_iter=6), expected)


@pytest.mark.slow
def test_a_poisson_mixture_from_other_containers(counts, tmp_path):
    model = cv.models.poisson_mixture(D, 2)
    weights = np.random.default_rng(3).random(N)
    expected = model.fit({"x": together(counts)}, seed=0, max_iter=6, sample_weight=weights)
    for name, value in in_frames(counts, tmp_path).items():
        found = model.fit({"x": value}, seed=0, max_iter=6, sample_weight=dask.array.from_array(weights))
        np.testing.assert_array_equal(found.elbo_trace, expected.elbo_trace, err_msg=name)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("is_location", [True, False])
def test_missing_values_of_a_column(is_location, columns, tmp_path):
    """Locations are measured from the mean of what was observed; positive numbers are not."""
    x = columns["a"].copy()
    x[3:500:7] = np.nan
    obs = cv.Plate("obs")
    leaf = (
        cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 1, 1), plates=obs)
        if is_location
        else cv.Gamma("x", 2.0, cv.Gamma("rate", 1, 1), plates=obs)
    )
    model = cv.Model(leaf)
    for store in (stored.one_parquet, stored.csv_file):
        folder = tmp_path / store.__name__
        folder.mkdir()
        expected = model.fit({"x": x}, max_iter=6)
        assert_same(model.fit({"x": store({"x": x}, folder)["x"]}, max_iter=6), expected)


def test_single_precision_stays(tmp_path):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((5_000, D)).astype(np.float32)
    pa.parquet.write_table(
        pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "x.parquet", row_group_size=777
    )
    table = cv.scan(tmp_path / "x.parquet", directory=tmp_path)
    assert table.rows()[10:20].dtype == np.float32
    assert_same(mixture(table), mixture(X))


def test_incremental_fits_and_streams(columns, tmp_path):
    table = stored.one_parquet(columns, tmp_path)
    model, X = cv.models.normal_wishart_mixture(D, 3), together(columns)
    keywords = {"seed": 0, "max_iter": 4, "schedule": cv.Incremental(8)}
    assert_same(model.fit({"x": table}, **keywords), model.fit({"x": X}, **keywords))
    first = model.fit({"x": X[:5_000]}, seed=0, max_iter=4)
    assert_same(first.update({"x": table}, max_iter=3), first.update({"x": X}, max_iter=3))


@pytest.mark.slow
def test_stochastic_steps_go_over_all_rows(columns, tmp_path):
    """Which rows make a batch follows from the row groups, so the bits are others; where it leads is not."""
    schedule = cv.Stochastic(4_000)
    model, table = cv.models.normal_wishart_mixture(D, 2), stored.one_parquet(columns, tmp_path)
    whole = model.fit({"x": table}, seed=0)
    steps = model.fit({"x": table}, seed=0, max_iter=10, schedule=schedule)
    assert abs(steps.elbo - whole.elbo) < 1e-3 * abs(whole.elbo)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("estimator", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_estimators(estimator, columns, tmp_path):
    X, weights = together(columns), np.random.default_rng(5).random(N)
    table = stored.copied_parquet({**columns, "w": weights}, tmp_path)

    def fitted(rows, weights):
        return estimator(3, random_state=0, max_iter=5, tol=1e-13).fit(rows, sample_weight=weights)

    with pytest.warns(cv.ConvergenceWarning):
        expected, found = fitted(X, weights), fitted(table[list("abc")], table["w"])
    assert found.elbo_ == expected.elbo_
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(found.predict_proba(table[list("abc")]), expected.predict_proba(X))
    np.testing.assert_allclose(found.score_samples(table[list("abc")]), expected.score_samples(X), rtol=1e-13)
    np.testing.assert_array_equal(found.impute(table[list("abc")]), X)
    with pytest.raises(ValueError, match="same order"):
        found.predict(table[list("bac")])
    rows = X.copy()
    rows[7, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in row 7"):
        expected.predict(dask.array.from_array(rows, chunks=(999, D)))


def test_a_mixture_of_one_column_and_partial_fits(columns, tmp_path):
    table = stored.one_parquet(columns, tmp_path)
    expected = cv.KnownVarianceMixture(2, random_state=0).fit(columns["a"])
    assert cv.KnownVarianceMixture(2, random_state=0).fit(table["a"]).elbo_ == expected.elbo_
    ours, theirs = (cv.BayesianGaussianMixture(2, random_state=0) for _ in range(2))
    for start in range(0, 9_000, 3_000):
        ours.partial_fit(table.rows().between(start, start + 3_000))
        theirs.partial_fit(together(columns)[start : start + 3_000])
    assert ours.elbo_ == theirs.elbo_


def test_predictions_and_bounds_of_a_posterior(columns, counts, tmp_path):
    table, X = stored.one_parquet(columns, tmp_path), together(columns)
    posterior = mixture(X)
    assert posterior.elbo_at({name: posterior[name] for name in posterior}, {"x": table}) == (
        posterior.elbo_at({name: posterior[name] for name in posterior}, {"x": X})
    )
    np.testing.assert_array_equal(
        posterior.local({"x": table})["z"].probabilities, posterior.local({"x": X})["z"].probabilities
    )
    np.testing.assert_array_equal(posterior.log_predictive({"x": table}), posterior.log_predictive({"x": X}))
    other = stored.copied_parquet(counts, tmp_path)
    model = cv.models.poisson_mixture(D, 2)
    posterior = model.fit({"x": together(counts)}, seed=0, max_iter=5)
    np.testing.assert_array_equal(
        posterior.log_predictive({"x": other}), posterior.log_predictive({"x": together(counts)})
    )
