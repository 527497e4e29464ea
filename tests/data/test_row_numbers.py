"""A message gives the same number to the same row, counted from 0, wherever the row comes from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caviar as cv

BAD = 3


def _counts():
    values = np.arange(6.0)
    values[BAD] = -1.0
    return values


def _message(read):
    with pytest.raises(cv.DataError) as raised:
        read()
    return str(raised.value)


@pytest.fixture
def model():
    rate = cv.Gamma("rate", 1, 1)
    return cv.Model(cv.Poisson("y", rate, plates=cv.Plate("obs")))


@pytest.mark.parametrize(
    "of",
    [
        lambda y, folder: {"y": y},
        lambda y, folder: pd.DataFrame({"y": y}, index=list("abcdef")),
        lambda y, folder: pl.DataFrame({"y": y}),
        lambda y, folder: cv.scan(_parquet(y, folder)),
    ],
    ids=["array", "pandas", "polars", "scan"],
)
def test_rows_of_a_fit_count_from_0(model, of, tmp_path):
    assert f"row {BAD} has -1" in _message(lambda: model.fit(of(_counts(), tmp_path), seed=0))


def _parquet(values, folder):
    path = folder / "y.parquet"
    pl.DataFrame({"y": values}).write_parquet(path)
    return path


def _csv(texts, folder):
    path = folder / "y.csv"
    path.write_text("\n".join(["y,z", *(f"{text},1" for text in texts)]) + "\n")
    return path


def test_rows_of_files_count_from_0_and_lines_from_1(model, tmp_path):
    texts = [str(value) for value in range(6)]
    texts[BAD] = "x"
    words = _csv(texts, tmp_path)
    line = words.read_text().splitlines().index("x,1") + 1
    assert f"'x' in row {BAD}, line {line}" in _message(lambda: cv.data.read_table(words))
    assert f"'x' in row {BAD}, line {line}" in _message(lambda: model.fit(cv.scan(words), seed=0))
    query = "SELECT * FROM data"
    assert f"'x' in row {BAD}" in _message(lambda: cv.data.read_table(words, sql=query))
    values = np.arange(6.0)
    values[BAD] = np.inf
    assert f"row {BAD}, where 'y'" in _message(lambda: cv.data.read_table(_parquet(values, tmp_path)))
