"""Tables of other libraries: a missing value is one in each of them, and what is no table yet is refused in words."""

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
GAPS = np.where(np.random.default_rng(0).random(FAITHFUL.shape) < 0.05, np.nan, FAITHFUL)
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]


def arrow(X: np.ndarray) -> pa.Table:
    """A table in two chunks with null where NaN stands."""
    halves = [
        pa.table(
            {name: pa.array(column, from_pandas=True) for name, column in zip("ab", part.T, strict=True)}
        )
        for part in (X[:100], X[100:])
    ]
    return pa.concat_tables(halves)


TABLES = {
    "arrow": arrow,
    "a batch of arrow": lambda X: arrow(X).combine_chunks().to_batches()[0],
    "polars": lambda X: pl.from_arrow(arrow(X)),
    "pandas with arrow columns": lambda X: arrow(X).to_pandas(types_mapper=pd.ArrowDtype),
    "xarray": lambda X: xr.DataArray(X, dims=("row", "column"), coords={"column": ["a", "b"]}),
}


@pytest.mark.thinned(10)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", TABLES)
def test_a_null_is_a_missing_value(kind, structure):
    arguments = {"covariance_type": structure, "random_state": 0}
    expected = cv.BayesianGaussianMixture(2, **arguments).fit(GAPS)
    table = TABLES[kind](GAPS)
    mixture = cv.BayesianGaussianMixture(2, **arguments).fit(table)
    assert mixture.elbo_ == pytest.approx(expected.elbo_, rel=1e-9)
    np.testing.assert_allclose(mixture.predict_proba(table), expected.predict_proba(GAPS), atol=1e-6)
    np.testing.assert_allclose(mixture.score_samples(table), expected.score_samples(GAPS), rtol=1e-6)
    np.testing.assert_allclose(mixture.impute(table), expected.impute(GAPS), rtol=1e-6)


def test_whole_numbers_and_truth_values_with_nulls():
    table = pa.table(
        {"a": pa.array([1, None, 3, 4, 9, 8]), "b": pa.array([True, False, None, True, False, True])}
    )
    values = np.array([[1, 1], [np.nan, 0], [3, np.nan], [4, 1], [9, 0], [8, 1]])
    expected = cv.BayesianGaussianMixture(2, random_state=0).fit(values)
    assert cv.BayesianGaussianMixture(2, random_state=0).fit(table).elbo_ == pytest.approx(expected.elbo_)


def test_models_take_arrow_tables_with_nulls_too():
    model = cv.models.normal_wishart_mixture(2, 2)
    expected = model.fit({"x": GAPS}, seed=0)
    assert model.fit({"x": arrow(GAPS)}, seed=0).elbo == pytest.approx(expected.elbo, rel=1e-9)


def test_starts_that_need_all_rows_have_them_of_arrow_tables():
    named, plain = (
        cv.GaussianMixture(2, init_params="kmeans", random_state=0).fit(X)
        for X in (arrow(FAITHFUL), FAITHFUL)
    )
    assert named.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-9)


def test_values_of_xarray_may_be_read_in_blocks():
    chunked = xr.DataArray(dask.array.from_array(FAITHFUL, chunks=(100, 2)))
    plain = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    assert cv.BayesianGaussianMixture(2, random_state=0).fit(chunked).elbo_ == pytest.approx(plain.elbo_)
    weights = xr.DataArray(np.full(len(FAITHFUL), 2.0))
    twice = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL, sample_weight=weights)
    assert twice.weight_concentration_.sum() == pytest.approx(2 * len(FAITHFUL) + 1)


@pytest.mark.parametrize(
    "estimator", [cv.GaussianMixture(2), cv.KnownVarianceMixture(2), cv.LatentDirichletAllocation(2)]
)
@pytest.mark.parametrize(
    ("unmade", "message"),
    [
        (pl.LazyFrame({"a": [1.0, 2.0, 3.0]}), r"a LazyFrame of polars.*pass frame.collect\(\).*cv.scan"),
        (xr.Dataset({"a": ("row", [1.0, 2.0, 3.0])}), r"an xarray.Dataset.*to_dataframe\(\)"),
    ],
)
def test_what_is_no_table_yet_is_refused_in_words(estimator, unmade, message):
    with pytest.raises(cv.DataError, match=message):
        estimator.fit(unmade)
    model = cv.models.normal_wishart_mixture(1, 2)
    with pytest.raises(cv.DataError, match=message):
        model.fit({"x": unmade})


def test_data_sets_are_tables():
    faithful, penguins = cv.datasets.load_faithful(), cv.datasets.load_penguins()
    found = cv.BayesianGaussianMixture(2, random_state=0).fit(faithful)
    assert found.elbo_ == cv.BayesianGaussianMixture(2, random_state=0).fit(faithful.values).elbo_
    assert penguins["species"][0] == "Adelie"
    assert list(penguins["sex"][:4]) == ["male", "female", "female", None]
    assert len(penguins) == 344 == penguins.shape[0]
    mixed = cv.MixedMixture(2, random_state=0).fit(penguins)
    assert mixed.elbo_ == cv.MixedMixture(2, random_state=0).fit(penguins.to_frame()).elbo_
    with pytest.raises(cv.DataError, match="choose the columns of numbers, bill_length_mm"):
        cv.BayesianGaussianMixture(2).fit(penguins)
    with pytest.raises(TypeError, match="columns 'species', 'island', 'sex' have words"):
        np.asarray(penguins)


@pytest.mark.parametrize(
    "estimator", [cv.GaussianMixture(2), cv.MixedMixture(2), cv.LatentDirichletAllocation(2)]
)
def test_a_mapping_of_columns_is_refused_in_words(estimator):
    with pytest.raises(cv.DataError, match=r"got a mapping \(dict\) of a, b\. .*pandas.DataFrame\(X\)"):
        estimator.fit({"a": [1.0, 2.0], "b": ["x", "y"]})
