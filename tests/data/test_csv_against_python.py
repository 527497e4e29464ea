"""Values of CSV files are those that Python's ``csv`` reads, or the file is refused in words: random files."""

from __future__ import annotations

import csv
import io
import math
import random

import duckdb
import numpy as np
import pytest
from thinning import amount

from caviar import DataError, scan
from caviar.data import read_table
from caviar.data.files.csv_dialect import MISSING, dialect_of

ENDS = [["\n"], ["\n"], ["\r\n"], ["\r\n"], ["\n", "\r\n"], ["\r"], ["\r", "\n"]]
NUMBERS = ["1", "2", "-3.5", "1e3", ".25", "12345678901", "nan", " 7", "8 ", "+4.", "-0"]
NO_EXTENSIONS = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
NO_TABLE = ("two columns with the same name", "is empty", "all are empty")


def entry(rng: random.Random, *, odd: bool) -> str:
    share = rng.random()
    if odd and share < 0.2:
        return rng.choice(
            [
                '"1"2',
                '1"2',
                ' "1"',
                '"1" ',
                '"',
                '""1',
                '"a,b"',
                '"x\ny"',
                '"q""q"',
                "x",
                "1;2",
                "1_0",
                "inf",
                "1\n",
            ]
        )
    if share < 0.35:
        return rng.choice(["", "", "NA", "null", "N/A", '""', '"NA"'])
    return f'"{rng.choice(NUMBERS)}"' if share < 0.45 else rng.choice(NUMBERS)


def text_of(rng: random.Random) -> str:
    """Return the text of a CSV file; one of two holds what no writer of CSV files should write."""
    delimiter, width, ends, odd = (
        rng.choice(",,;\t|"),
        rng.randint(1, 4),
        rng.choice(ENDS),
        rng.random() < 0.5,
    )
    head = [
        rng.choice(
            [f"a{j}", f"b {j}", f'"c{j}"', f'"d\ne{j}"', f'"d\r\ne{j}"', f'"f{delimiter}g{j}"', f'h"{j}', ""]
        )
        for j in range(width)
    ]
    lines = [delimiter.join(head)] if rng.random() < 0.85 else []
    for _ in range(rng.randint(0, 6)):
        n_entries = rng.randint(0, width + 1) if odd and rng.random() < 0.1 else width
        lines.append(delimiter.join(entry(rng, odd=odd) for _ in range(n_entries)))
    text = "\n" * (rng.random() < 0.1) + "".join(line + rng.choice(ends) for line in lines)
    return text.rstrip("\r\n") if rng.random() < 0.3 else text


def read_by_python(text: str, path) -> np.ndarray | None:
    """Return the numbers, or None where the file is no table of numbers."""
    dialect = dialect_of(path)
    lines = io.StringIO(text, newline="")
    records = list(csv.reader(lines, delimiter=dialect.delimiter, skipinitialspace=True))
    width = len(dialect.names)
    records = [record or [""] for record in records[dialect.blank_lines :] if record or width == 1]
    rows = []
    for record in records[int(dialect.header) :]:
        kept = record[:width] if len(record) == width + 1 and not record[-1] else record
        if len(kept) != width or any("_" in value for value in kept):
            return None
        try:
            rows.append([math.nan if value in MISSING else float(value) for value in kept])
        except ValueError:
            return None
    return np.array(rows).reshape(len(rows), width)


def check(seed: int, tmp_path) -> str:
    rng = random.Random(seed)
    text, path = text_of(rng), tmp_path / "table.csv"
    path.write_bytes(text.encode())
    try:
        ours = read_table(path, missing_ok=True).values
    except DataError as error:
        message = str(error)
        is_odd = any(quote in text for quote in ('"1"2', '""1', ',"\n')) or text.count('"') % 2
        if not is_odd and not any(words in message for words in NO_TABLE):
            values = read_by_python(text, path)
            assert (
                values is None
                or not len(values)
                or np.isnan(values).all(axis=0).any()
                or np.isinf(values).any()
            ), (
                seed,
                text,
                message,
            )
        assert len(message) < 1_000
        return "refused"
    np.testing.assert_array_equal(ours, read_by_python(text, path), err_msg=f"{seed}: {text!r}")
    np.testing.assert_array_equal(scan(path).to_numpy(), ours, err_msg=f"{seed}: {text!r}")
    return "read"


def test_random_files(tmp_path):
    ends = [check(seed, tmp_path) for seed in range(amount(8, 60))]
    assert ends.count("read") > len(ends) / 3


@pytest.fixture
def one_database(monkeypatch):
    """Open one DuckDB database for all files, with a connection for each: opening it takes longer than a file."""
    with duckdb.connect(config=NO_EXTENSIONS) as database:
        monkeypatch.setattr(duckdb, "connect", lambda config: database.cursor())
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("one_database")
def test_two_thousand_random_files(tmp_path):
    ends = [check(seed, tmp_path) for seed in range(2_000)]
    assert ends.count("read") > 600
