"""Codes with zeros in front, as ids and postal codes, are texts; the query of the message reads them as numbers."""

import re

import numpy as np
import pytest

import caviar as cv
from caviar.data import numeric_query, read_columns, read_table

READERS = {"read": read_table, "scan": lambda path: cv.scan(path).to_numpy()}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,zip,x\n7,01234,0.5\n007,90210,0\n07,02139,-0.5\n")
    return path


def test_codes_stay_apart_and_keep_their_zeros(path):
    table = read_columns(path)
    assert table.column("id").to_pylist() == ["7", "007", "07"]
    assert table.column("zip").to_pylist() == ["01234", "90210", "02139"]
    assert table.column("x").to_pylist() == [0.5, 0.0, -0.5]
    assert numeric_query(path, "categorical").categories == {
        "id": ["007", "07", "7"],
        "zip": ["01234", "02139", "90210"],
    }


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_they_are_refused_as_numbers_and_the_query_of_the_message_reads_them(path, read):
    with pytest.raises(cv.DataError) as caught:
        read(path)
    message = str(caught.value)
    assert "column 'id' does not hold numbers: it has '007' in row 1, line 3" in message
    assert message.endswith("columns=['x'], on the command line --columns x")
    query = re.search(r"SELECT .* FROM data", message)[0]
    found = read_table(path, sql=query).values
    np.testing.assert_array_equal(found, [[7, 1234, 0.5], [7, 90210, 0], [7, 2139, -0.5]])


@pytest.mark.parametrize("text", ["0", "0.5", "00.5", "-07", "+07", "0e3", "70", "1e05", " 0 ", "07", "00"])
def test_numbers_with_a_point_a_sign_or_one_zero_are_no_codes(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{text},1\n2,3\n")
    assert read_columns(path).column("a").to_pylist() == [float(text), 2.0]
    assert read_table(path).values[0, 0] == float(text)


@pytest.mark.parametrize("text", ["007", "000", " 012", "012 "])
def test_what_a_code_is(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{text},1\n2,3\n")
    assert read_columns(path).column("a").to_pylist() == [text, "2"]


def test_texts_of_parquet_files_are_texts(tmp_path):
    path = tmp_path / "t.parquet"
    cv.data.write_table(path, {"id": ["7", "12"], "x": [1.5, 2.5]})
    assert read_columns(path).column("id").to_pylist() == ["7", "12"]
    assert read_table(path).values.tolist() == [[7, 1.5], [12, 2.5]]
