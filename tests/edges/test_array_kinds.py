"""What holds the numbers does not matter: the same rows in any type, layout or container give the same fit."""

import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

from edges import stated

WHOLE = np.round(np.random.default_rng(0).normal(40, 12, (50, 2)).clip(0, 100))


def _memory_mapped(x, folder):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


def _strided(x, _):
    spacious = np.full((2 * len(x), 5), np.nan)
    spacious[::2, 1:5:2] = x
    return spacious[::2, 1:5:2]


def _frozen(x, _):
    x = x.copy()
    x.setflags(write=False)
    return x


CONTAINERS = {
    "Fortran order": lambda x, _: np.asfortranarray(x),
    "strided": _strided,
    "reversed": lambda x, _: x[::-1].copy()[::-1],
    "read-only": _frozen,
    "memory-mapped": _memory_mapped,
    "other byte order": lambda x, _: x.astype(">f8"),
    "long double": lambda x, _: x.astype(np.longdouble),
    "objects": lambda x, _: x.astype(object),
    "list": lambda x, _: x.tolist(),
    "tuple of tuples": lambda x, _: tuple(map(tuple, x)),
    "decimals": lambda x, _: [[decimal.Decimal(str(v)) for v in row] for row in x],
    "fractions": lambda x, _: [[fractions.Fraction(int(v)) for v in row] for row in x],
    "pandas": lambda x, _: pd.DataFrame(x, columns=["a", "b"]),
    "pandas, odd index": lambda x, _: pd.DataFrame(x, index=np.arange(len(x))[::-1]),
    "pandas, mixed types": lambda x, _: pd.DataFrame({"a": x[:, 0].astype("i4"), "b": x[:, 1].astype("f4")}),
    "pandas, nullable": lambda x, _: pd.DataFrame(x).astype("Int64"),
    "polars": lambda x, _: pl.DataFrame(x, schema=["a", "b"]),
    "masked array without mask": lambda x, _: np.ma.array(x),
}


@pytest.mark.thinned(15)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_gives_the_same_fit(state, container, tmp_path):
    plain = state(2, 2).fit({"x": WHOLE}, seed=0, max_iter=30)
    held = CONTAINERS[container](WHOLE, tmp_path)
    posterior = state(2, 2).fit({"x": held}, seed=0, max_iter=30)
    assert_allclose(posterior.elbo_trace, plain.elbo_trace, rtol=1e-11)
    r = posterior.local({"x": held})["z"].probabilities
    assert_allclose(r, plain.local({"x": WHOLE})["z"].probabilities, rtol=1e-9, atol=1e-12)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("kind", ["f4", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_any_numeric_type_gives_the_same_fit(state, kind):
    typed = (WHOLE > 40) if kind == "?" else WHOLE.astype(kind)
    plain = state(2, 2).fit({"x": typed.astype(float)}, seed=0, max_iter=30)
    posterior = state(2, 2).fit({"x": typed}, seed=0, max_iter=30)
    assert_allclose(posterior.elbo_trace, plain.elbo_trace, rtol=1e-12)


@pytest.mark.parametrize("kind", ["i1", "u1", "f2", "?"])
def test_small_types_do_not_overflow_in_one_column_either(kind):
    typed = np.tile([0, 1, 100, 120], 30).astype(kind)
    plain = stated.known_variance(2, mean_precision=1e-4).fit({"x": typed.astype(float)}, seed=0)
    posterior = stated.known_variance(2, mean_precision=1e-4).fit({"x": typed}, seed=0)
    assert_allclose(posterior.elbo, plain.elbo, rtol=1e-12)


def test_the_rows_are_not_written_to():
    x = WHOLE.copy()
    stated.independent(2, 2).fit({"x": x}, seed=0, max_iter=3)
    assert (x == WHOLE).all()
