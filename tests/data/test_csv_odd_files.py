"""CSV files of spreadsheets and broken ones: read as they are, or refused in one short message, at once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from caviar import DataError, scan
from caviar.data import read_table
from caviar.data.files.table_files import ends_alike


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.csv"


def refusal(path) -> str:
    with pytest.raises(DataError) as caught:
        read_table(path)
    return str(caught.value)


@pytest.mark.thinned(7)
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (b'"height\n(cm)",b\r\n1,2\r\n3,4\r\n', ("height\n(cm)", "b")),
        (b"a,b\r\n1,2\n3,4\r\n", ("a", "b")),
        (b"a,b\n1,2\r\n3,4", ("a", "b")),
        (b"a,b\r1,2\r3,4\r", ("a", "b")),
        (b'\n\na,"b\r\n"\n1,2\n3,4\n', ("a", "b")),
        (b'height ("),b\n1,2\n3,4\n', ('height (")', "b")),
        (b"2020_01,2020_02\n1,2\n3,4\n", ("2020_01", "2020_02")),
    ],
)
def test_line_breaks_in_cells_and_mixed_line_ends(path, text, columns):
    path.write_bytes(text)
    for table in (read_table(path), scan(path)):
        assert table.columns == columns
    np.testing.assert_array_equal(read_table(path).values, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(scan(path).to_numpy(), [[1, 2], [3, 4]])


def test_a_text_with_an_underscore_is_no_number(path):
    path.write_text("month,b\n2020_01,2\n2020_02,4\n")
    assert "'2020_01' in row 0, line 2" in refusal(path)
    with pytest.raises(DataError, match="2020_01"):
        scan(path).to_numpy()
    query = "SELECT count(*) AS n FROM data WHERE month = '2020_02'"
    assert read_table(path, sql=query).values.tolist() == [[1.0]]


def test_the_line_of_a_bad_entry_is_that_of_the_file_not_of_the_copy(path):
    path.write_bytes(b'a,"b\r\nc"\n1,2\n3,x\n')
    assert "'x' in row 1, line 4" in refusal(path)
    path.write_bytes(b'a,"b\r\nc"\n1,2\n3\n')
    assert "line 4 has one entry; expected 2, one a column" in refusal(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a,"b\n' + "1,2\n" * 160_000, "more than 1,000 lines; is a quote not closed?"),
        ('a,"b\n' + "1,2\n" * 10, "the quote that line 1 opens is not closed"),
        ("a" * 200_000 + ",b\n1,2\n", "field larger than field limit"),
        ("a" * 2**25, "field larger than field limit"),
        (",\n1,2\n", "2 entries and all are empty"),
        ("a,b\n" + '"' + "1,2\n" * 100_000, "cannot read"),
        ("a,b\n" + "1" * 2**25 + ",2\n", "cannot read"),
    ],
)
def test_broken_files_are_refused_at_once(path, text, words):
    path.write_text(text)
    start = time.process_time()
    message = refusal(path)
    assert words in message
    assert len(message) < 600
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_long_names_and_many_names_are_cut_in_messages(path):
    names = [f"{'x' * 3_000}{number}" for number in range(15)]
    path.write_text(",".join(names) + "\n" + ",".join(["q"] * 15) + "\n")
    assert len(refusal(path)) < 600
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * 15) + "\n")
    for wrong in (lambda: read_table(path, columns=["y" * 3_000]), lambda: scan(path, columns=["y" * 3_000])):
        with pytest.raises(DataError) as caught:
            wrong()
        assert len(str(caught.value)) < 1_000
        assert "(15 in all)" in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("latin-1", "if it is a text in Latin-1, iconv -f LATIN1"), ("utf-16", "it is in UTF-16: save it")],
)
def test_how_texts_in_other_encodings_become_tables(path, encoding, words):
    path.write_bytes("größe,b\n1,2\n3,4\n".encode(encoding))
    assert words in refusal(path)
    path.write_bytes(bytes(range(256)))
    assert refusal(path).endswith("in UTF-8")


def test_a_name_is_asked_for():
    for source in ("", " "):
        with pytest.raises(DataError, match="expected the name of a file"):
            scan(source)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_ends_are_looked_at_across_the_pieces_that_are_read(path, end, monkeypatch):
    monkeypatch.setattr("caviar.data.files.table_files._CHUNK", 7)
    path.write_bytes(b"12345" + end + b"123456" + end + b"1234567" + end + b"1" + end)
    assert ends_alike(path)
    other = b"\n" if end == b"\r\n" else b"\r\n"
    path.write_bytes(b"12345" + end + b"123456" + other + b"1234567" + end)
    assert not ends_alike(path)
    path.write_bytes(b"12345\r")
    assert not ends_alike(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rows.npz", r"it is a NumPy file: write its columns as a table, caviar\.data\.write_table"),
        ("rows.xlsx", "it is a workbook: save the sheet as CSV"),
        ("rows.csv", "nor a CSV file in UTF-8$"),
    ],
)
def test_files_of_other_kinds_are_told_how_they_become_tables(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"PK\x03\x04\xff\xfe\xff\n")
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / name)
