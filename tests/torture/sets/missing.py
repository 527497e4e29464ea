"""Rows of which entries are missing (NaN): structures of independent columns take them."""

import numpy as np
import pandas as pd
import polars as pl

from torture.case import Case, blobs


def _without(rng, share, n=40, d=3):
    x = blobs(rng, n, d)
    x[rng.random(x.shape) < share] = np.nan
    return x


def _row_missing(rng):
    x = blobs(rng, 40, 3)
    x[5] = np.nan
    return x


def _column_nearly_missing(rng, left):
    x = blobs(rng, 40, 3)
    x[left:, 1] = np.nan
    return x


def _never_together(rng):
    x = blobs(rng, 40, 2)
    x[:20, 0] = np.nan
    x[20:, 1] = np.nan
    return x


def _diagonal_only(rng):
    return np.where(np.eye(12, dtype=bool), blobs(rng, 12, 12), np.nan)


CASES = [
    Case(
        "1 entry missing",
        "one NaN",
        lambda rng: np.where(np.arange(120).reshape(40, 3) == 7, np.nan, blobs(rng, 40, 3)),
    ),
    Case("10 % missing", "at random", lambda rng: _without(rng, 0.1)),
    Case("50 % missing", "at random", lambda rng: _without(rng, 0.5)),
    Case("90 % missing", "some rows have nothing", lambda rng: _without(rng, 0.9, 60)),
    Case("a row all missing", "a row that tells nothing", _row_missing),
    Case(
        "half of the rows all missing",
        "rows that tell nothing",
        lambda rng: np.where((np.arange(40) % 2 == 0)[:, None], np.nan, blobs(rng)),
    ),
    Case("a column with one value", "39 of 40 missing", lambda rng: _column_nearly_missing(rng, 1)),
    Case("a column with two values", "38 of 40 missing", lambda rng: _column_nearly_missing(rng, 2)),
    Case(
        "a column all missing",
        "no value at all",
        lambda rng: _column_nearly_missing(rng, 0),
        refused="column 1",
    ),
    Case("all missing", "nothing was observed", lambda rng: np.full((20, 2), np.nan), refused="column 0"),
    Case("columns never seen together", "each row has one of two", _never_together, 2),
    Case("one entry a row", "each row has another column", _diagonal_only, 2),
    Case(
        "missing, constant otherwise",
        "a column is 3 where it is there",
        lambda rng: np.c_[blobs(rng), np.where(np.arange(40) % 3, 3.0, np.nan)],
    ),
    Case(
        "missing beside 1e12",
        "NaN among values of every size",
        lambda rng: _without(rng, 0.2) * [1e-12, 1.0, 1e12],
    ),
    Case(
        "missing, an outlier",
        "NaN, and one row at 1e12",
        lambda rng: np.r_[_without(rng, 0.2), np.full((1, 3), 1e12)],
    ),
    Case(
        "missing, few rows",
        "three rows, four of nine entries",
        lambda rng: np.array([[1.0, np.nan, np.nan], [np.nan, 2.0, 1.0], [np.nan, np.nan, 3.0]]),
        2,
    ),
    Case(
        "missing, clusters of width 1e-9",
        "NaN among narrow clusters",
        lambda rng: np.where(rng.random((60, 2)) < 0.2, np.nan, blobs(rng, 60, 2, 3, 1.0, 1e-9)),
    ),
    Case(
        "missing, weighted",
        "NaN, and weights from 0 to 3",
        lambda rng: _without(rng, 0.3),
        weigh=lambda rng, n: rng.integers(0, 4, n),
    ),
    Case(
        "missing, zero weights of rows far out",
        "NaN, and rows at 1e150 that count nothing",
        lambda rng: np.r_[_without(rng, 0.2), np.full((4, 3), 1e150)],
        weigh=lambda rng, n: (np.arange(n) < n - 4) * 1.0,
    ),
    Case("missing, in float32", "NaN of single precision", lambda rng: _without(rng, 0.2).astype("f4")),
    Case("missing, in pandas", "None in a table", lambda rng: pd.DataFrame(_without(rng, 0.2))),
    Case(
        "missing, nullable pandas",
        "pandas' own NA",
        lambda rng: pd.DataFrame(_without(rng, 0.2).round()).astype("Int64"),
    ),
    Case(
        "missing, in polars",
        "null in a table",
        lambda rng: pl.DataFrame(_without(rng, 0.2), schema=["a", "b", "c"]).fill_nan(None),
    ),
    Case("signalling NaN", "NaN with a payload", lambda rng: _payload(rng)),
]


def _payload(rng):
    x = blobs(rng, 40, 3)
    bits = x.view(np.uint64)
    bits[3, 1] = 0x7FF0_0000_0000_0001
    return x
