"""Numbers whose digits double precision loses are refused; all others are read and fitted as they were."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray

import caviar as cv
from caviar.data.columns.lost_digits import lost_digits, refuse_lost_digits
from caviar.estimators.mixed_models.columns import Rows

SMALL = np.random.default_rng(0).integers(-20, 20, 80)
OTHER = np.random.default_rng(1).normal(size=80)
LARGE = SMALL + 10**18
EXACT = [int(own) + 10**18 for own in SMALL]
TABLES = {
    "array": np.c_[LARGE, SMALL],
    "unsigned": LARGE.astype(np.uint64)[:, None],
    "objects": np.array([[own, 0.5] for own in EXACT], dtype=object),
    "list": [[own, 0.5] for own in EXACT],
    "pandas": pd.DataFrame({"a": LARGE, "b": OTHER}),
    "pandas, nullable": pd.DataFrame({"a": pd.array([None, *EXACT], dtype="Int64")}),
    "pandas, Arrow": pd.DataFrame({"a": pd.array([None, *EXACT], dtype="int64[pyarrow]")}),
    "pandas, objects": pd.DataFrame({"a": np.array(EXACT, dtype=object), "b": OTHER}),
    "Polars": pl.DataFrame({"a": LARGE, "b": OTHER}),
    "Arrow": pa.table({"a": LARGE, "b": OTHER}),
    "masked": np.ma.masked_array(np.c_[LARGE, SMALL], mask=np.c_[SMALL > 99, SMALL < 99]),
    "decimals": pd.DataFrame({"a": [Decimal(own) / 10 for own in EXACT]}),
    "decimals of Arrow": pa.table({"a": pa.array([Decimal(own) for own in EXACT])}),
    "fractions": np.array([[Fraction(own, 3)] for own in EXACT], dtype=object),
}
if np.finfo(np.longdouble).nmant > 60:
    TABLES["longdouble"] = (np.longdouble(10**18) + SMALL)[:, None]


@pytest.mark.parametrize("kind", TABLES)
def test_large_numbers_with_a_small_spread_are_refused(kind: str) -> None:
    n_values = len(set(EXACT))
    with pytest.raises(cv.DataError, match=rf"column ('a'|0 of X) has {n_values} different values"):
        refuse_lost_digits(TABLES[kind], "X")


def test_the_message_says_what_exact_integers_say() -> None:
    left = len({float(own) for own in EXACT})
    assert left < len(set(EXACT))
    told = lost_digits(EXACT)
    assert told is not None
    assert f"from {min(EXACT)} to {max(EXACT)}" in told
    assert "rounded to multiples of 128, and 1 different one is left" in told
    assert left == 1


@pytest.mark.parametrize("offset", [0, 2**52, 2**53, 2**54, 10**16, 10**17, 2**62, -(2**53), -(2**62)])
@pytest.mark.parametrize("step", [1, 2, 256, 1024, 10**6])
def test_integers_are_refused_only_if_rounding_matters(offset: int, step: int) -> None:
    # against Python's integers
    exact = [offset + step * int(own) for own in SMALL]
    rounded = [int(float(own)) for own in exact]
    collapse = len(set(rounded)) < len(set(exact))
    unit = np.spacing(float(max(map(abs, exact))))
    is_lost = rounded != exact and (collapse or max(exact) - min(exact) < 1000 * unit)
    for values in (np.array(exact), np.array(exact, dtype=object)):
        if is_lost:
            with pytest.raises(cv.DataError, match="different values"):
                refuse_lost_digits(values, "x")
        else:
            refuse_lost_digits(values, "x")


@pytest.mark.parametrize(
    "value",
    [
        np.arange(1, 9) * 2**60,
        np.random.default_rng(0).integers(0, 2**63, 1000),
        1_700_000_000 * 10**9 + np.random.default_rng(0).integers(0, 86_400 * 10**9, 300),
        np.full(9, 10**18 + 1),
        np.array([Decimal("0.1"), Decimal("0.3")]),
        np.longdouble(1) / 3 * SMALL,
        1e18 + 128.0 * np.arange(9),
        pd.DataFrame({"a": ["x", "y"], "b": pd.Categorical(["1", "2"]), "c": [True, None]}),
        [[1, 2.5], [3, None]],
        np.empty((0, 2), dtype=np.int64),
    ],
    ids=[
        "exact",
        "hashes",
        "a day in ns",
        "constant",
        "decimals",
        "longdouble",
        "floats",
        "texts",
        "list",
        "empty",
    ],
)
def test_other_numbers_are_not_refused(value: object) -> None:
    refuse_lost_digits(value, "X")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files(kind: str, tmp_path) -> None:
    path = tmp_path / f"huge.{kind}"
    frame = pd.DataFrame({"a": LARGE, "b": OTHER})
    frame.to_csv(path, index=False) if kind == "csv" else pq.write_table(pa.table(dict(frame)), path)
    said = f"column 'a' has {len(set(EXACT))} different values from {min(EXACT)} to {max(EXACT)}"
    with pytest.raises(cv.DataError, match=said):
        cv.data.read_table(path)
    with pytest.raises(cv.DataError, match=said):
        cv.scan(path).rows()
    assert cv.scan(path)["b"].to_numpy().tolist() == OTHER.tolist()
    assert cv.data.read_table(path, columns=["b"]).values[:, 0].tolist() == OTHER.tolist()
    # the remedy that the message names
    found = cv.data.read_table(path, sql=f"SELECT a - {10**18} AS a FROM data")
    assert found.values[:, 0].tolist() == SMALL.tolist()
    assert cv.data.read_columns(path)["a"].to_pylist() == EXACT


def test_decimals_of_a_csv_file(tmp_path) -> None:
    path = tmp_path / "decimals.csv"
    path.write_text("a\n" + "\n".join(f"{10**12}.{own + 20:07d}" for own in SMALL) + "\n")
    with pytest.raises(cv.DataError, match="column 'a' has 34 different values"):
        cv.data.read_table(path)


def test_numbers_in_text_keep_their_type_below_the_limit(tmp_path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text(f"a,b,c,d\n{2**53},{2**53 + 1}.0,{2**64 - 1},1e300\n1,2,3,4\n")
    types = dict(zip("abcd", cv.data.read_columns(path).schema.types, strict=True))
    assert {name: str(kind) for name, kind in types.items()} == {
        "a": "double",
        "b": "double",
        "c": "uint64",
        "d": "double",
    }


def test_groups_that_differ_in_their_last_digits_stay_apart() -> None:
    groups = SMALL % 3 + 10**18
    for own in (groups, groups.astype(object), pd.array(groups, dtype="Int64")):
        frame = pd.DataFrame({"id": own, "y": OTHER})
        rows = Rows.of(frame)
        for found in (rows.labels("id")[0], rows.labels_that_are_there("id")):
            assert found.tolist() == [str(int(number)) for number in groups]


@pytest.mark.parametrize("kind", ["Arrow", "Polars", "Int64", "int64[pyarrow]"])
def test_groups_stay_apart_beside_missing_ones(kind: str) -> None:
    groups = [10**18 + 1, None, 10**18 + 2]
    made = {"Arrow": pa.table, "Polars": pl.DataFrame}
    table = made[kind]({"id": groups}) if kind in made else pd.DataFrame({"id": pd.array(groups, dtype=kind)})
    assert Rows.of(table).labels_that_are_there("id").tolist() == [str(10**18 + 1), None, str(10**18 + 2)]


X = cv.Normal("a", cv.Normal("mean", 0, 1e-6), cv.Gamma("precision", 1, 1), plates=cv.Plate("obs"))
FITS = {
    "mixture": lambda: cv.BayesianGaussianMixture(1).fit(TABLES["pandas"]),
    "plain mixture": lambda: cv.GaussianMixture(1).fit(TABLES["array"]),
    "chain": lambda: cv.HiddenMarkovModel(2).fit(TABLES["Polars"]),
    "mixed columns": lambda: cv.MixedMixture(2).fit(TABLES["pandas"]),
    "regression": lambda: cv.MixedModel("b ~ a").fit(TABLES["pandas"]),
    "response": lambda: cv.MixedModel("a ~ b").fit({"a": EXACT, "b": OTHER}),
    "stated, frame": lambda: cv.Model(X).fit(TABLES["pandas"]),
    "stated, array": lambda: cv.Model(X).fit({"a": LARGE}),
    "stated, list": lambda: cv.Model(X).fit({"a": EXACT}),
}


@pytest.mark.parametrize("name", FITS)
def test_fits_refuse_them(name: str) -> None:
    with pytest.raises(cv.DataError, match=r"(column 0 of X|'a') has \d+ different values"):
        FITS[name]()


COLLECTIONS = {
    "xarray": lambda low: xarray.DataArray(np.c_[SMALL + low, SMALL]),
    "xarray of chunks": lambda low: xarray.DataArray(np.c_[SMALL + low, SMALL]).chunk(40),
    "array": lambda low: dask.array.from_array(np.c_[SMALL + low, SMALL], chunks=(30, 1)),
    "frame": lambda low: dask.dataframe.from_pandas(
        pd.DataFrame({"a": SMALL + low, "b": OTHER}), npartitions=3
    ),
    "nullable": lambda low: dask.dataframe.from_pandas(
        pd.DataFrame({"a": pd.array([None, *(SMALL + low)], dtype="Int64")}), npartitions=2
    ),
}


@pytest.mark.parametrize("kind", COLLECTIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_collections_of_dask_and_xarray(kind: str, sign: int) -> None:
    with pytest.raises(cv.DataError, match=r"column ('a'|0 of X) has \d+ different values"):
        cv.GaussianMixture(1).fit(COLLECTIONS[kind](sign * 10**18))
    fit = cv.GaussianMixture(1).fit(COLLECTIONS[kind](sign * 10**15))
    assert fit.means_[0, 0] == pytest.approx(sign * 10**15 + SMALL.mean(), abs=1)


def test_a_stated_model_refuses_a_collection_of_dask() -> None:
    with pytest.raises(cv.DataError, match="'a' has "):
        cv.Model(X).fit({"a": dask.array.from_array(LARGE, chunks=30)})


def test_a_column_that_the_model_does_not_need_may_be_an_identifier() -> None:
    frame = pd.DataFrame({"a": SMALL, "id": LARGE})
    assert np.isfinite(cv.Model(X).fit(frame).elbo)


def test_what_is_predicted_may_lie_close_together() -> None:
    # in the fit the values spread over days, so what rounding moves them by is nothing
    days = 1_700_000_000 * 10**9 + SMALL.astype(np.int64) * 86_400 * 10**9
    fit = cv.GaussianMixture(1, random_state=0).fit(days[:, None])
    assert fit.predict(days[:1, None] + np.arange(2)[:, None]).tolist() == [0, 0]
