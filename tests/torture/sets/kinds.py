"""Ordinary numbers in every kind of array, list and table."""

import decimal
import fractions
import tempfile

import numpy as np
import pandas as pd
import polars as pl

from torture.case import Case, blobs


def whole(rng):
    """Return rows of whole numbers from 0 to 100, which every type holds."""
    return np.clip(np.round(40 + 6.0 * blobs(rng)), 0, 100)


def _memory_mapped(x):
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, x)
        file.flush()
        return np.load(file.name, mmap_mode="r")


def _read_only(x):
    x = x.copy()
    x.setflags(write=False)
    return x


def _strided(x):
    spacious = np.full((2 * len(x), 5), np.nan)
    spacious[::2, 1:5:2] = x
    return spacious[::2, 1:5:2]


def _unaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(x.shape)
    view[...] = x
    return view


def _structured_view(x):
    return np.ascontiguousarray(x).view([("a", "f8"), ("b", "f8")]).view("f8").reshape(x.shape)


_TYPES = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]

_KINDS = {
    "long double": ("80 or 128 bits", lambda x: x.astype(np.longdouble)),
    "big-endian float64": ("the other byte order", lambda x: x.astype(">f8")),
    "big-endian float32": ("the other byte order, single precision", lambda x: x.astype(">f4")),
    "big-endian int32": ("the other byte order, whole numbers", lambda x: x.astype(">i4")),
    "objects": ("an array of Python objects", lambda x: x.astype(object)),
    "Fortran order": ("columns one after the other", np.asfortranarray),
    "strided": ("every second row and column of a larger array", _strided),
    "rows reversed": ("negative strides", lambda x: x[::-1].copy()[::-1]),
    "both reversed": ("negative strides in both directions", lambda x: x[::-1, ::-1].copy()[::-1, ::-1]),
    "transposed": ("a transposed view", lambda x: x.T.copy().T),
    "unaligned": ("doubles at an odd address", _unaligned),
    "read-only": ("an array that must not be written to", _read_only),
    "memory-mapped": ("a file that must not be written to", _memory_mapped),
    "a view of records": ("numbers that were records", _structured_view),
    "lists": ("lists in a list", lambda x: x.tolist()),
    "tuples": ("tuples in a tuple", lambda x: tuple(map(tuple, x.tolist()))),
    "lists of whole numbers": ("Python's own whole numbers", lambda x: x.astype(int).tolist()),
    "decimals": ("Python's decimals", lambda x: [[decimal.Decimal(str(v)) for v in row] for row in x]),
    "fractions": ("Python's fractions", lambda x: [[fractions.Fraction(int(v)) for v in row] for row in x]),
    "a masked array": ("without a mask", np.ma.array),
    "pandas": ("a table", lambda x: pd.DataFrame(x, columns=["a", "b"])),
    "pandas, odd names": (
        "names with blanks, quotes and other alphabets",
        lambda x: pd.DataFrame(x, columns=["μ (ärger) \n'\"", "x; DROP TABLE x"]),
    ),
    "pandas, an empty name": ("a column without a name", lambda x: pd.DataFrame(x, columns=["", " "])),
    "pandas, numbers for names": ("columns 7 and 3", lambda x: pd.DataFrame(x, columns=[7, 3])),
    "pandas, odd index": (
        "an index that runs backwards",
        lambda x: pd.DataFrame(x, index=np.arange(len(x))[::-1]),
    ),
    "pandas, mixed types": (
        "a column of bytes, one of single precision",
        lambda x: pd.DataFrame({"a": x[:, 0].astype("i1"), "b": x[:, 1].astype("f4")}),
    ),
    "pandas, nullable": ("whole numbers that may be missing", lambda x: pd.DataFrame(x).astype("Int64")),
    "pandas, booleans beside": (
        "a column of booleans",
        lambda x: pd.DataFrame({"a": x[:, 0], "b": x[:, 1] > 40}),
    ),
    "polars": ("another table", lambda x: pl.DataFrame(x, schema=["a", "b"])),
    "polars, odd names": ("names with blanks and quotes", lambda x: pl.DataFrame(x, schema=["a b'\"", ""])),
}

CASES = [
    *(
        Case(name, f"whole numbers as {name}", lambda rng, name=name: whole(rng).astype(name))
        for name in _TYPES
    ),
    Case("booleans", "truth values", lambda rng: whole(rng) > 40, 2),
    Case(
        "float16, to the end",
        "values up to the largest of float16",
        lambda rng: (noise_of_float16(rng)).astype("f2"),
    ),
    Case("float32 of 1e30", "squares beyond float32", lambda rng: (1e30 * blobs(rng)).astype("f4")),
    Case(
        "int64 near its end",
        "whole numbers of 9e18",
        lambda rng: np.iinfo(np.int64).max - rng.integers(0, 10**12, (40, 2)),
    ),
    Case(
        "uint64 near its end",
        "whole numbers of 1.8e19",
        lambda rng: np.iinfo(np.uint64).max - rng.integers(0, 10**12, (40, 2)).astype("u8"),
    ),
    *(
        Case(name, sentence, lambda rng, hold=hold: hold(whole(rng)))
        for name, (sentence, hold) in _KINDS.items()
    ),
    Case(
        "one name for two columns",
        "a table whose columns cannot be told apart",
        lambda rng: pd.DataFrame(blobs(rng), columns=["a", "a"]),
        refused="rename",
    ),
    Case("complex numbers", "numbers with an imaginary part", lambda rng: blobs(rng) + 1j, refused="omplex"),
    Case("strings", "words", lambda rng: np.array([["a", "b"]] * 20), refused="does not contain numbers"),
    Case(
        "an infinity",
        "one entry is infinite",
        lambda rng: np.where(np.arange(80).reshape(40, 2) == 9, np.inf, blobs(rng)),
        refused="nfinity",
    ),
    Case("no rows", "an empty table", lambda rng: np.zeros((0, 2)), refused="0 sample"),
    Case("no columns", "rows of nothing", lambda rng: np.zeros((20, 0)), refused="0 feature"),
    Case("a vector", "one axis too few", lambda rng: blobs(rng)[:, 0], refused="Reshape your data"),
    Case("a cube", "one axis too many", lambda rng: blobs(rng)[:, :, None], refused="rows x columns"),
]


def noise_of_float16(rng):
    """Return rows of up to 60,000."""
    return rng.uniform(-6e4, 6e4, (40, 2))
