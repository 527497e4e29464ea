"""A lazy table says what it is, and refuses what cannot be read with the file, the column and the place."""

import os
import pickle
import re
import subprocess
import sys
import textwrap

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caviar as cv
from caviar.data import ArrayRows
from caviar.data.files.raw_file import RawFile
from caviar.data.pieces import CutRows
from data import stored

N = 5_003


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(N) for name in "abc"}


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=stored.ODD)
    return path


def refusal(function, *arguments, error=cv.DataError, **keywords):
    with pytest.raises(error) as caught:
        function(*arguments, **keywords)
    return str(caught.value)


def test_what_a_table_says_of_itself(columns, tmp_path):
    path = write(tmp_path / "x.parquet", **columns, n=np.arange(N), city=["Ulm"] * N)
    table = cv.scan(path)
    assert (table.columns, table.n_rows, len(table), table.shape) == (
        ("a", "b", "c", "n", "city"),
        N,
        N,
        (N, 5),
    )
    assert table.types == {"a": "double", "b": "double", "c": "double", "n": "int64", "city": "string"}
    assert "5,003 rows x 5 columns" in repr(table)
    assert "city  string" in repr(table)
    assert table[["b", "a"]].columns == ("b", "a")
    np.testing.assert_array_equal(table[["b", "a"]].to_numpy(), np.column_stack([columns["b"], columns["a"]]))
    arrays = table[["a", "n"]].to_arrays()
    np.testing.assert_array_equal(arrays["n"], np.arange(N))
    assert cv.scan(path, columns=["c", "a"]).columns == ("c", "a")


def test_a_csv_file_is_not_read_before_its_rows_are_asked_for(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,x\n5,6\n7,8\n")
    table = cv.scan(path)
    assert "not yet counted" in repr(table)
    np.testing.assert_array_equal(table["a"][1:3], [3, 5])
    assert "4 rows" in repr(table)
    message = refusal(lambda: table["b"])
    assert "'b' has one entry that cannot be read as a number: 'x' in row 1, line 3" in message


@pytest.mark.thinned(4)
@pytest.mark.parametrize("store", stored.SCANNED)
def test_any_rows_of_any_storage(store, columns, tmp_path):
    """Against slices of the array, for bounds that lie in one piece, in two and in many."""
    table, X = store(columns, tmp_path), np.column_stack(list(columns.values()))
    rng = np.random.default_rng(1)
    rows, column = table.rows(), table["b"]
    for start, stop in [(0, N), (0, 0), (N, N), (1_008, 1_010), *np.sort(rng.integers(0, N + 1, (40, 2)))]:
        np.testing.assert_array_equal(rows[start:stop], X[start:stop])
        np.testing.assert_array_equal(column[start:stop], X[start:stop, 1])
        part = pickle.loads(pickle.dumps(rows.between(int(start), int(stop))))
        np.testing.assert_array_equal(part.to_numpy(), X[start:stop])
        inside = (stop - start) // 3
        np.testing.assert_array_equal(part.between(inside, stop - start)[:], X[start + inside : stop])


def test_a_part_of_named_rows_travels_with_its_places(columns, tmp_path):
    table = stored.copied_parquet(columns, tmp_path)
    whole = ArrayRows({"x": table.rows(), "y": columns["a"]}, N, table["c"])
    part = pickle.loads(pickle.dumps(whole.between(1_000, 3_000).between(500, 1_500)))
    assert part.n_rows == 1_000
    assert part.places(10, 20) == slice(1_510, 1_520)
    np.testing.assert_array_equal(part.read(10, 20)["x"][:, 2], columns["c"][1_510:1_520])
    np.testing.assert_array_equal(part.read(10, 20)["y"], columns["a"][1_510:1_520])
    np.testing.assert_array_equal(part.weights(10, 20), columns["c"][1_510:1_520])
    assert len(pickle.dumps(ArrayRows({"x": table.rows()}, N))) < 5_000, "the rows stay on disk"


def test_a_part_of_a_parquet_table_is_read_without_the_copy(columns, tmp_path):
    """As on a machine that does not see the temporary files."""
    table = stored.copied_parquet(columns, tmp_path)
    rows = table.rows()
    rows[0:10]
    sent = pickle.dumps(rows.between(900, 2_500))
    (copy,) = tmp_path.glob("caviar-*/rows")
    copy.unlink()
    np.testing.assert_array_equal(pickle.loads(sent)[100:1_200][:, 1], columns["b"][1_000:2_100])
    assert "temporary copy" in refusal(CutRows(rows.pieces).read, 0, 10)


def test_a_block_reads_no_more_of_the_copy_than_its_rows(columns, tmp_path, monkeypatch):
    table = stored.copied_parquet(columns, tmp_path)
    rows, read = table.rows(), []
    rows[0:10]
    of_file = RawFile.rows

    def counting(self, start, stop):
        read.append((start, stop))
        return of_file(self, start, stop)

    monkeypatch.setattr(RawFile, "rows", counting)
    part = rows.between(900, 2_500)
    for own, at in ((rows, 0), (part, 900)):
        np.testing.assert_array_equal(own[700:1_300][:, 1], columns["b"][at + 700 : at + 1_300])
    assert sum(stop - start for start, stop in read) == 1_200


@pytest.mark.slow
@pytest.mark.posix
def test_temporary_files_go_with_the_table_and_with_python(columns, tmp_path):
    table = stored.copied_parquet(columns, tmp_path)
    table["a"][0:5]
    assert list(tmp_path.glob("caviar-*"))
    del table
    assert not list(tmp_path.glob("caviar-*"))
    code = f"""
        import caviar as cv
        table = cv.scan({str(tmp_path / "copied.parquet")!r}, copy=True, directory={str(tmp_path)!r})
        rows = table.rows()
        rows[0:5]
        import os, pathlib
        print(len(list(pathlib.Path({str(tmp_path)!r}).glob("caviar-*"))), flush=True)
        if not os.fork():
            raise SystemExit
        os.wait()
        assert rows[0:5].shape == (5, 3)
    """
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "1", found
    assert not list(tmp_path.glob("caviar-*"))


def test_folders_tell_columns(columns, tmp_path):
    for year, place in ((2023, "Ulm"), (2024, "Bern"), ("__HIVE_DEFAULT_PARTITION__", "New%20York")):
        write(tmp_path / "t" / f"year={year}" / f"place={place}" / "x.parquet", a=[1.0, 2.0], b=[3.0, 4.0])
    table = cv.scan(tmp_path / "t")
    assert table.columns == ("a", "b", "year", "place")
    np.testing.assert_array_equal(table["year"][:], [2023, 2023, 2024, 2024, np.nan, np.nan])
    np.testing.assert_array_equal(table[["year", "a"]].to_numpy()[2], [2024, 1])
    message = refusal(lambda: table["place"])
    assert "'place' does not hold numbers" in message
    assert "columns=['a', 'b', 'year']" in message
    write(tmp_path / "t" / "x.parquet", a=[1.0], b=[1.0])
    assert "the same keys" in refusal(cv.scan, tmp_path / "t")


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["Ulm", "Bern"], "string", "'Ulm'"),
        ([None, pd.Timestamp("2024-01-02")], "timestamp", "'2024-01-02 00:00:00'"),
        ([[1.0], [2.0]], "list", "'[1.0]'"),
    ],
)
def test_a_column_of_something_else(values, kind, first, tmp_path):
    path = write(tmp_path / "x.parquet", a=[1.0, 2.0], t=pa.array(values))
    for given in (lambda: cv.scan(path)["t"], cv.scan(path).rows):
        message = refusal(given)
        assert "column 't' does not hold numbers: its type is " + kind in message
        assert f"first value {first}" in message
        assert "columns=['a']" in message
    table = cv.scan(sql=f"select * from '{path}'")
    if kind != "list":
        assert "'t'" in refusal(lambda: table["t"])
        assert first.strip("'") in refusal(lambda: table["t"])
    assert "its type is" in refusal(
        cv.models.normal_wishart_mixture(2, 2).fit, {"x": pa.table({"a": [1.0], "t": ["x"]})}
    )


def test_numbers_of_every_type(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1, None, 3], pa.int8()),
            "u": pa.array([1, 2, 2**40], pa.uint64()),
            "t": pa.array([True, False, None]),
            "d": pa.array([1.25, 2.5, None]).cast(pa.decimal128(9, 2)),
            "h": pa.array([1.5, 2.5, 3.5], pa.float32()),
            "k": pa.array([1.0, 2.0, 1.0]).dictionary_encode(),
            "n": pa.nulls(3),
        }
    )
    nan = np.nan
    expected = {
        "i": [1, nan, 3],
        "u": [1, 2, 2**40],
        "t": [1, 0, nan],
        "d": [1.25, 2.5, nan],
        "h": [1.5, 2.5, 3.5],
        "k": [1, 2, 1],
        "n": [nan, nan, nan],
    }
    pq.write_table(table, tmp_path / "x.parquet")
    for found in (
        cv.scan(tmp_path / "x.parquet", copy=False),
        cv.scan(tmp_path / "x.parquet", copy=True),
        cv.scan(sql=f"select * from '{tmp_path / 'x.parquet'}'"),
    ):
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name].to_numpy(), values, err_msg=name)
    assert cv.scan(tmp_path / "x.parquet")["h"].dtype == np.float32


def test_nothing_to_read(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no Parquet file" in refusal(cv.scan, tmp_path / "empty")
    assert "no file matches" in refusal(cv.scan, tmp_path / "*.parquet")
    assert "there is no file" in refusal(cv.scan, tmp_path / "x.parquet")
    assert "got none" in refusal(cv.scan, error=cv.ParameterError)
    for number in range(3):
        write(tmp_path / "zero" / f"{number}.parquet", a=np.empty(0))
    assert "has no rows" in refusal(cv.BayesianGaussianMixture().fit, cv.scan(tmp_path / "zero"))
    (tmp_path / "x.csv").write_text("a,b\n")
    assert "has no rows" in refusal(cv.scan(tmp_path / "x.csv").rows)
    assert "has no rows" in refusal(cv.scan(sql="select 1 as a where false").rows)
    write(tmp_path / "zero" / "3.parquet", a=[1.0, 2.0])
    np.testing.assert_array_equal(cv.scan(tmp_path / "zero")["a"][:], [1, 2])


def test_columns_that_are_not_there(columns, tmp_path):
    table = cv.scan(write(tmp_path / "x.parquet", **columns))
    assert "has no column 'd'; its columns are a, b, c" in refusal(lambda: table["d"])
    assert "has no column 'd'" in refusal(cv.scan, tmp_path / "x.parquet", columns=["a", "d"])
    assert "two columns with the same name" in refusal(lambda: table[["a", "a"]])
    assert "chosen by its name" in refusal(lambda: table[3], error=cv.ParameterError)
    assert "chosen by its name" in refusal(lambda: table[:3], error=cv.ParameterError)


def test_files_that_do_not_belong_together(tmp_path):
    write(tmp_path / "t" / "1.parquet", a=[1.0], b=[1.0])
    write(tmp_path / "t" / "2.parquet", a=[1.0], c=[1.0])
    message = refusal(cv.scan, tmp_path / "t")
    assert "1.parquet has 'b'" in message
    assert "2.parquet does not" in message
    write(tmp_path / "s" / "1.parquet", a=[1.0], b=[1.0])
    write(tmp_path / "s" / "2.parquet", a=[1.0], b=["x"])
    table = cv.scan(tmp_path / "s")
    assert table.types["b"] == "double or string"
    assert "'b' does not hold numbers" in refusal(lambda: table["b"])
    write(tmp_path / "s" / "2.parquet", b=np.array([2], np.int32), a=np.array([2], np.float32))
    np.testing.assert_array_equal(cv.scan(tmp_path / "s").to_numpy(), [[1, 1], [2, 2]])


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("change", ["deleted", "cut off", "written anew", "overwritten"])
def test_a_file_that_changes_after_the_scan(change, copy, columns, tmp_path):
    path = write(tmp_path / "x.parquet", **columns)
    table = cv.scan(path, copy=copy)
    rows = table.rows()
    if change == "deleted":
        path.unlink()
    elif change == "cut off":
        os.truncate(path, 30_000)
    elif change == "written anew":
        write(path, **{name: values + 1 for name, values in columns.items()})
        os.utime(path, ns=(0, 0))
    else:
        before = path.stat()
        path.write_bytes(os.urandom(before.st_size))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    message = refusal(cv.models.normal_wishart_mixture(3, 2).fit, {"x": rows})
    assert str(path) in message


def test_a_file_that_changes_while_it_is_read(columns, tmp_path):
    path = write(tmp_path / "x.parquet", **columns)
    rows = cv.scan(path, copy=False).rows()
    rows[0:10]
    os.truncate(path, 30_000)
    assert f"{path} has changed" in refusal(rows.read, 4_000, 4_010)


def test_bad_csv_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 50_000 + "1,2,3\n" + "1,2\n" * 10)
    assert "line 50002 has another number of columns, 3, than the lines before" in refusal(cv.scan(path).rows)
    path.write_text("a,b\n" + "1,2\n" * 70_000 + "1,zwei\n" + "1,2\n" * 10)
    message = refusal(cv.scan(path).rows)
    assert "'b' has one entry that cannot be read as a number: 'zwei' in row 70000, line 70002" in message
    assert "cannot read the query" in refusal(cv.scan, path, sql="select nonsense from data")


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("select avg(code) as m from data", r"avg\(VARCHAR\) does not exist"),
        ("select code + 1 as m from data", r"\+\(VARCHAR, INTEGER_LITERAL\) does not exist"),
        ("select * from data where code > 5", "VARCHAR and type INTEGER_LITERAL cannot be compared"),
    ],
)
def test_queries_of_codes_are_told_of_the_cast(query, what, tmp_path):
    """Codes such as 007 are texts, which DuckDB calls VARCHAR."""
    path = tmp_path / "x.csv"
    path.write_text("code,b\n007,1\n012,2\n")
    told = refusal(cv.scan, path, sql=query)
    assert re.search(f"{what}: VARCHAR are texts, as columns of codes such as 007 are", told)
    assert "school::DOUBLE" in told
    assert cv.scan(path, sql=query.replace("code", "code::DOUBLE")).n_rows >= 1


def test_what_needs_all_rows_says_so(columns, tmp_path):
    table = cv.scan(write(tmp_path / "x.parquet", **columns))
    assert "to_numpy()" in refusal(np.asarray, table["a"])
    assert "to_numpy()" in refusal(cv.BayesianGaussianMixture("auto").fit, table)
    assert "to_numpy()" in refusal(cv.BayesianGaussianMixture(2, init_params="kmeans").fit, table)
    assert "to_numpy()" in refusal(cv.compare_mixtures, table, 2, "full", held_out=0.5)
    with pytest.raises(ValueError, match="table"):
        cv.BayesianGaussianMixture().fit(table["a"])
    partly = {**columns, "a": np.where(np.arange(N) == 4_321, np.nan, columns["a"])}
    rows = stored.one_parquet(partly, tmp_path)
    message = refusal(cv.models.normal_wishart_mixture(3, 2).fit, {"x": rows})
    assert "first in row 4321" in message
    assert "to_numpy()" in message


def test_values_are_checked_block_by_block(columns, tmp_path):
    model = cv.models.poisson_mixture(1, 2)
    counts = np.ones((30_000, 1))
    counts[20_000] = 0.5
    assert "must hold counts" in refusal(model.fit, {"x": dask.array.from_array(counts, chunks=7_000)})
    counts[20_000] = np.inf
    assert "infinity in row 20000" in refusal(model.fit, {"x": dask.array.from_array(counts, chunks=7_000)})
    assert "all missing" in refusal(model.fit, {"x": dask.array.full((100, 1), np.nan)})
    model = cv.models.linear_regression(1)
    x, y = np.ones((30_000, 1)), np.zeros(30_000)
    x[20_000] = np.nan
    lazy = {"X": dask.array.from_array(x, chunks=7_000), "y": y}
    assert "'X' has a missing value (NaN) in row 20000" in refusal(model.fit, lazy)
    for bad, words in ((np.nan, "in row 20000"), (-1.0, "in row 20000"), (1e200, "too large for sums")):
        weights = np.ones(30_000)
        weights[20_000] = bad
        weights = dask.array.from_array(weights, chunks=7_000)
        assert words in refusal(model.fit, {"X": np.ones((30_000, 1)), "y": y}, sample_weight=weights)
    column, obs = cv.Plate("column", 3), cv.Plate("obs")
    leaf = cv.Normal("x", cv.Normal("mean", 0, 1, plates=column), 1.0, plates=(column, obs))
    with pytest.raises(cv.PlateError, match="read in blocks"):
        cv.Model(leaf).fit({"x": dask.array.zeros((3, 10))})


def test_dask_collections_of_unknown_sizes_and_other_types():
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int64"), "b": [1.0, 2.0, 3.0, 4.0]})
    rows = cv.data.as_rows(dask.dataframe.from_pandas(frame, npartitions=2))
    np.testing.assert_array_equal(rows.to_numpy(), [[1, 1], [np.nan, 2], [3, 3], [4, 4]])
    unknown = dask.dataframe.from_pandas(frame[["b"]], npartitions=2).to_dask_array()
    np.testing.assert_array_equal(cv.data.as_rows(unknown).to_numpy(), frame[["b"]])
    text = dask.dataframe.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1)
    assert "'a'" in refusal(cv.data.as_rows, text)


@pytest.mark.slow  # tests/architecture/test_imports.py tells what an import loads
def test_dask_is_not_imported_for_other_data():
    code = "import sys, numpy as np, caviar as cv; cv.BayesianGaussianMixture().fit(np.eye(3)); "
    code += "print('dask' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
