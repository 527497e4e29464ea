"""A table is read exactly as it stands in its files, or refused with the column and the line; never read in part."""

import gzip

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thinning import amount

from caviar import DataError, ParameterError
from caviar.data import category_query, indicator_query, read_table, write_table
from caviar.data.files.table_files import find_files


@pytest.fixture
def csv(tmp_path):
    """Return a function that writes a CSV file and gives back its path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(*arguments, **keywords):
    """Return the message with which a table is refused."""
    with pytest.raises(DataError) as caught:
        read_table(*arguments, **keywords)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "columns", "values"),
    [
        ("a,b\n1,2\n3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("a;b\r\n1;2\r\n3;4", ("a", "b"), [[1, 2], [3, 4]]),
        ("a\tb\n1\t2\n", ("a", "b"), [[1, 2]]),
        ("a|b\n1e3|-0.5\n", ("a", "b"), [[1000, -0.5]]),
        ("one\n1\n2\n", ("one",), [[1], [2]]),
        ("\n\na, b\n 1 , 2\n\n3,4\n\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", ("x0", "x1"), [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ('"a,\n1",b\n"1","2"\n', ("a,\n1", "b"), [[1, 2]]),
        ('a,"b\nc"\n1,2\n', ("a", "b\nc"), [[1, 2]]),
        (",b\n0,1\n", ("x0", "b"), [[0, 1]]),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), ("a", "b"), [[1, 2]]),
    ],
)
def test_csv_files_are_read_as_they_stand(csv, text, columns, values):
    table = read_table(csv(text, "table.csv.gz" if isinstance(text, bytes) else "table.csv"))
    assert table.columns == columns
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values, values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3\n4,5\n", ["line 3 has another number of columns, 1, than the lines before it, 2"]),
        ("a,b\n1,2\n3,4,NA\n", ["line 3", "columns, 3, than", "before it, 2"]),
        ('a\n1\n3,"null"\n', ["line 3", "columns, 2, than", "before it, 1"]),
        ("a,b\n" + "1,2\n" * 50000 + "1,2,3\n", ["line 50002", "columns, 3, than"]),
        ('a,b\n"1,2\n3,4\n', ["a double quote in line 2 is not closed"]),
        ("a,b\n1,2\n3,\n5,6\n", ["1 of 3 rows", "row 1, line 3", "'b' is missing", 'isfinite("b"::DOUBLE)']),
        ("a,b\n1,2\n3,NaN\n5,NA\n", ["2 of 3 rows", "row 1, line 3", "'b' is missing"]),
        ("a,b\n1,2\n3,inf\n", ["row 1, line 3", "'b' is infinite"]),
        ('a,b\n"1\n",2\n3,4\n\n5,x7\n', ["one entry", "'x7' in row 2, line 6"]),
        ("a,b\n1,2\n3,x\n5,y\n5,6\n7,8\n", ["2 entries", "'x' in row 1, line 3"]),
        ("a,name\n1,Ann\n2,Bob\n", ["'name' does not hold numbers", "'Ann' in row 0, line 2", "--columns a"]),
        ("name,city\nx,y\n", ["'name' does not hold numbers", "No other column holds numbers"]),
        ("a,b\n1,\n2,\n", ["'b' does not hold numbers", "all its values are missing"]),
        ("a,b\n", ["has no rows", "a, b"]),
        ("", ["is empty"]),
        ("\n\n", ["is empty"]),
        ("a,b,a\n1,2,3\n", ["two columns", "'a'"]),
        ("a,b,A\n1,2,3\n", ["two columns", "'a' and 'A'"]),
        (b"a,b\xe9\n1,2\n", ["UTF-8"]),
        (b"\x00\x01\x02binary", ["neither a Parquet nor a CSV"]),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(csv, text, words):
    message = refusal(csv(text))
    assert "table.csv" in message
    for word in words:
        assert word in message


def test_columns_are_chosen_by_name_and_order(csv):
    path = csv("name,a,b\nAnn,1,2\nBob,3,4\n")
    table = read_table(path, columns=["b", "a"])
    assert table.columns == ("b", "a")
    np.testing.assert_array_equal(table.values, [[2, 1], [4, 3]])
    assert "its columns are name, a, b. Did you mean 'a'?" in refusal(path, columns=["aa"])
    assert "'a' and 'a'" in refusal(path, columns=["a", "a"])
    with pytest.raises(ParameterError, match=r"columns=\['a'\]"):
        read_table(path, columns="a")


HOSTILE = [
    'a"b',
    "'; DROP TABLE data; --",
    "a,b",
    "SELECT",
    "c0",
    "*",
    "ä\u200b",
    'x"; COPY data TO "/tmp/x',
    "{x}",
    "?",
]


def test_hostile_names_of_columns_are_only_names(tmp_path):
    values = np.arange(3.0 * len(HOSTILE)).reshape(3, -1)
    for path in (tmp_path / "hostile.csv", tmp_path / "hostile.parquet"):
        write_table(path, dict(zip(HOSTILE, values.T, strict=True)))
        table = read_table(path)
        assert table.columns == tuple(HOSTILE)
        np.testing.assert_array_equal(table.values, values)
        np.testing.assert_array_equal(read_table(path, columns=HOSTILE[1:3]).values, values[:, 1:3])


@pytest.mark.parametrize("name", ["it's.csv", "[1]*.csv", 'q"uote.csv', "a?b.csv", "x;y --.csv", "ü n.csv"])
def test_hostile_names_of_files_are_only_names(csv, name):
    csv("a\n99\n", "1b.csv")  # what the names would find, were they patterns
    np.testing.assert_array_equal(read_table(csv("a\n1\n", name)).values, [[1]])


def test_queries_keep_the_order_of_rows(csv, tmp_path):
    """Row after row and file after file, however often they are run: DuckDB reads files side by side."""
    kinds = "uvwxyz"
    csv("a,kind\n0,u\n", "part-1.csv")
    csv("a,kind\n" + "".join(f"{j + 1},{kind}\n" for j, kind in enumerate(kinds)), "part-2.csv")
    files = find_files(str(tmp_path / "part-*.csv")).query
    queries = [files] + [
        make(["a", "kind"], {"kind": kinds}, sql=files) for make in (indicator_query, category_query)
    ]
    with duckdb.connect() as connection:
        for query in queries:
            for _ in range(amount(12, 60)):
                assert connection.sql(query).to_arrow_table()["a"].to_pylist() == list("0123456")


def test_many_files_are_one_table_in_the_order_of_their_names(csv, tmp_path):
    csv("a,b\n1,2\n", "part-1.csv")
    csv("a,b\n3,4\n5,six\n", "part-2.csv")
    pattern = str(tmp_path / "part-*.csv")
    np.testing.assert_array_equal(read_table(pattern, columns=["a"]).values, [[1], [3], [5]])
    message = refusal(pattern)
    assert "'six' in row 2, line 3 of" in message
    assert message.count("part-2.csv") == 1
    csv("b,a\n3,4\n", "part-3.csv")
    assert "the same first line" in refusal(pattern)


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    write_table(tmp_path / "1.parquet", {"a": np.array([1, 2]), "b": np.array([0.5, 1.5])})
    (tmp_path / "deeper").mkdir()
    write_table(tmp_path / "deeper" / "2.parquet", {"b": np.array([7.0]), "a": np.array([3.25])})
    for source in (tmp_path, str(tmp_path / "**" / "*.parquet")):
        table = read_table(source)
        # By name, whatever the order and the types of the columns in each file.
        np.testing.assert_array_equal(table.values, [[1, 0.5], [2, 1.5], [3.25, 7.0]])


def test_capitals_in_the_suffix_of_a_parquet_file_leave_no_row_out(tmp_path):
    for name, value in (("1.parquet", 1.0), ("2.PARQUET", 2.0), ("3.Pq", 3.0)):
        pq.write_table(pa.table({"a": [value]}), tmp_path / name)
    np.testing.assert_array_equal(read_table(tmp_path).values, [[1], [2], [3]])


def test_what_writers_hide_in_a_folder_is_not_read(tmp_path):
    """By the rule of Arrow and Spark: what a broken run left behind would be rows twice."""
    for name in (
        "1.parquet",
        ".1.parquet",
        "_temporary/0/1.parquet",
        ".staging/1.parquet",
        "_year=2/1.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [float(len(name))]}), tmp_path / name)
    np.testing.assert_array_equal(read_table(tmp_path).values, [[9], [17]])


def test_two_columns_of_one_name_are_refused_in_parquet_files_too(tmp_path):
    table = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["a", "a"])
    pq.write_table(table, tmp_path / "twins.parquet")
    assert "two columns with the same name, 'a' and 'a'" in refusal(tmp_path / "twins.parquet")
    assert "two columns with the same name" in refusal(tmp_path / "twins.parquet", sql="select * from data")


def test_columns_of_other_types_are_refused_by_their_type(tmp_path):
    days = pa.array([0, 1], pa.date32())
    table = pa.table({"day": days, "a": [1, 2], "yes": [True, False], "list": [[1], [2]], "d": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "types.parquet")
    assert "'day' does not hold numbers: its type is DATE" in refusal(tmp_path / "types.parquet")
    assert "--columns a,d" in refusal(tmp_path / "types.parquet", columns=["yes"])
    assert read_table(tmp_path / "types.parquet", columns=["a", "d"]).values.tolist() == [[1, 0.5], [2, 1.5]]


def test_files_that_are_not_there_or_are_something_else(csv, tmp_path):
    assert "there is no file" in refusal(tmp_path / "nope.csv")
    assert "no file matches" in refusal(tmp_path / "*.nope")
    assert "no Parquet file" in refusal(tmp_path)
    csv("a\n1\n")
    assert "*.csv" in refusal(tmp_path)
    assert "although its name ends so" in refusal(csv("a\n1\n", "not.parquet"))
    assert "or only a part of one" in refusal(csv(b"PAR1 and no more", "cut.parquet"))
    with pytest.raises(ParameterError, match="neither"):
        read_table()


def test_a_query_sees_the_file_as_data_with_numbers_as_numbers(csv):
    path = csv("name,a,b\nAnn,1,2\nBob,30,\nCid,4,5\n")
    table = read_table(path, sql="SELECT a * 2 AS twice, b FROM data WHERE b IS NOT NULL ORDER BY a DESC;")
    assert table.columns == ("twice", "b")
    np.testing.assert_array_equal(table.values, [[8, 5], [2, 2]])
    # 9 < 30 as numbers, not as texts
    assert len(read_table(path, sql="SELECT a FROM data WHERE a > 9").values) == 1
    advice = refusal(path, columns=["a", "b"]).split("--sql) ")[1]
    assert read_table(path, sql=advice, columns=["a", "b"]).values.tolist() == [[1, 2], [4, 5]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1 AS a, 2 AS a", "two columns"),
        ("SELECT 1 AS a WHERE false", "no rows"),
        ("SELECT 'x' AS a", "does not hold numbers"),
        ("SELECT * FROM 'http://localhost:9/a.csv'", "httpfs"),
        ("", "expected a query"),
    ],
)
def test_a_bad_query_is_refused(query, words):
    message = refusal(sql=query)
    assert words in message
    assert "INSTALL" not in message


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".pq", ".CSV"])
def test_what_is_written_is_read_again_to_the_last_bit(tmp_path, suffix):
    values = np.random.default_rng(0).normal(size=(100, 2)) * 10.0 ** np.arange(-50, 50)[:, None]
    path = tmp_path / f"table{suffix}"
    write_table(path, {"a": values[:, 0], "b": values[:, 1]})
    np.testing.assert_array_equal(read_table(path).values, values)
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_half_written_is_left_and_the_old_file_stays(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(pa.ArrowException):
        write_table(path, {"a": np.array([object()])})
    with pytest.raises(DataError, match="one length"):
        write_table(path, {"a": np.arange(3), "b": np.arange(2)})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.posix
def test_places_that_cannot_be_written_are_refused(tmp_path):
    column = {"a": np.arange(3)}
    for path, words in [
        (tmp_path / "x.xlsx", "must end with .csv or .parquet"),
        (tmp_path / "nope" / "x.csv", "there is no folder"),
        (tmp_path / "folder.csv", "it is a folder"),
        (tmp_path / "device.csv", "not a regular file"),
    ]:
        if path.name == "folder.csv":
            path.mkdir()
        if path.name == "device.csv":
            path.symlink_to("/dev/null")
        with pytest.raises(DataError, match=words):
            write_table(path, column)


def test_a_missing_extra_is_named(monkeypatch, csv):
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"python -m pip install \"duckdb>=1.3\" \"pyarrow>=17\""):
        read_table(csv("a\n1\n"))
