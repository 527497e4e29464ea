"""Bad input gets an error of the library's own tree that names the variable, says what came, and leaks no warning."""

import datetime
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import caviar as cv
from edges import stated

X = np.random.default_rng(0).standard_normal((20, 2))


def _with(value, dtype=float):
    x = X.astype(dtype)
    x[3, 1] = value
    return x


BAD = {
    "infinity": _with(np.inf),
    "minus infinity": _with(-np.inf),
    "float16 infinity": _with(np.inf, "f2"),
    "beyond a double": np.full((5, 2), np.finfo(np.longdouble).max),
    "strings": np.array([["a", "b"]] * 5),
    "objects with a string": np.array([["a", 1.0]] * 5, dtype=object),
    "bytes": np.array([[b"1", b"2"]] * 5),
    "no rows": np.zeros((0, 2)),
    "no columns": np.zeros((5, 0)),
    "empty list": [],
    "3-D": np.zeros((5, 2, 2)),
    "1-D": np.zeros(5),
    "a number": 3.0,
    "three columns": np.zeros((5, 3)),
    "ragged": [[1.0, 2.0], [3.0]],
    "ragged deeper": [[1.0, 2.0], [3.0, [4.0]]],
    "complex": X + 1j,
    "complex objects": [[1j, 2.0]] * 5,
    "sparse matrix": scipy.sparse.csr_matrix(X),
    "sparse array": scipy.sparse.coo_array(X),
    "datetimes": np.full((5, 2), np.datetime64("2020-01-01")),
    "timedeltas": np.full((5, 2), np.timedelta64(1, "D")),
    "datetime objects": [[datetime.datetime(2020, 1, 1), 1.0]] * 5,
    "pandas strings": pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]}),
    "polars strings": pl.DataFrame({"a": ["u"], "b": [1.0]}),
    "whole number beyond a double": [[10**400, 1]] * 3,
    "records": np.rec.fromarrays([X[:, 0], X[:, 1]]),
    "a mapping": {"a": 1},
    "a set": {1, 2},
    "a generator": (row for row in X),
    "None": None,
    "arrays inside": np.array([[np.zeros(2), 1]] * 3, dtype=object),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused_with_the_name_of_the_variable(case):
    with pytest.raises(ValueError, match="'x'") as caught:
        stated.independent(2, 2).fit({"x": BAD[case]}, seed=0, max_iter=3)
    assert isinstance(caught.value, cv.CaviarError)


@cache
def fitted():
    return stated.independent(2, 2).fit({"x": X}, seed=0, max_iter=3)


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused_by_the_posterior_too(case):
    with pytest.raises(ValueError, match="'x'") as caught:
        fitted().local({"x": BAD[case]})
    assert isinstance(caught.value, cv.CaviarError)


MISSING = {
    "masked entry": np.ma.array(X, mask=np.arange(40).reshape(20, 2) == 7),
    "single precision": _with(np.nan, "f4").astype("f8"),
    "objects": _with(np.nan).astype(object),
    "pandas missing": pd.DataFrame(_with(np.nan)),
    "None inside": [[None, 1.0], [2.0, 1.0]] * 5,
    "polars null": pl.DataFrame(_with(np.nan)).with_columns(pl.all().fill_nan(None)),
}


@pytest.mark.parametrize("case", MISSING)
def test_an_entry_may_be_missing_whatever_holds_it(case):
    values = np.ma.filled(MISSING[case], np.nan) if case == "masked entry" else np.asarray(MISSING[case])
    plain = stated.independent(2, 2).fit({"x": values.astype(float)}, seed=0, max_iter=3)
    assert stated.independent(2, 2).fit({"x": MISSING[case]}, seed=0, max_iter=3).elbo == plain.elbo


@pytest.mark.parametrize("case", ["sparse matrix", "ragged", "infinity"])
def test_the_message_says_what_to_do(case):
    advice = {
        "sparse matrix": "toarray",
        "ragged": "length|shape",
        "infinity": "drop",
    }
    with pytest.raises(cv.CaviarError, match=advice[case]):
        stated.independent(2, 2).fit({"x": BAD[case]}, seed=0, max_iter=3)


WEIGHTS = {
    "negative": -np.ones(20),
    "NaN": np.full(20, np.nan),
    "infinite": np.full(20, np.inf),
    "all zero": np.zeros(20),
    "too few": np.ones(3),
    "a column": np.ones((20, 1)),
    "strings": ["a"] * 20,
    "complex": np.ones(20) * 1j,
    "a mapping": {"a": 1},
    "ragged": [[1.0], 1.0],
    "sum beyond a double": np.full(20, 1e308),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights_are_refused(case):
    with pytest.raises(cv.CaviarError, match="sample_weight"):
        stated.independent(2, 2).fit({"x": X}, seed=0, max_iter=3, sample_weight=WEIGHTS[case])


INITS = {
    "too few labels": ("z", [0, 1]),
    "negative labels": ("z", np.full(20, -1)),
    "labels beyond K": ("z", np.full(20, 2)),
    "fractional labels": ("z", np.full(20, 0.5)),
    "NaN labels": ("z", np.full(20, np.nan)),
    "string labels": ("z", ["a"] * 20),
    "one label": ("z", 0),
    "no labels": ("z", None),
    "negative probabilities": ("z", np.tile([2.0, -1.0], (20, 1))),
    "NaN probabilities": ("z", np.full((20, 2), np.nan)),
    "probabilities that do not sum to 1": ("z", np.full((20, 2), 3.0)),
    "probabilities of too many axes": ("z", np.full((20, 2, 1), 0.5)),
    "NaN mean": ("mean", np.full((2, 2), np.nan)),
    "mean of wrong shape": ("mean", np.zeros(7)),
    "string mean": ("mean", "a"),
    "negative precision": ("precision", -np.eye(2)),
    "NaN precision": ("precision", np.full((2, 2), np.nan)),
    "negative weights": ("weights", [-1.0, 2.0]),
    "weights that sum to 2": ("weights", [1.0, 1.0]),
    "unknown name": ("tau", 1.0),
}


@pytest.mark.parametrize("case", INITS)
def test_bad_starts_are_refused(case):
    name, value = INITS[case]
    with pytest.raises(cv.ParameterError, match=f"'{name}'"):
        stated.independent(2, 2).fit({"x": X}, init={name: value}, max_iter=3)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("max_iter", -1),
        ("max_iter", 1.5),
        ("max_iter", "many"),
        ("tol", -1.0),
        ("tol", np.nan),
        ("tol", "small"),
        ("n_restarts", 0),
        ("n_restarts", 1.5),
        ("n_restarts", None),
        ("seed", -1),
        ("seed", 1.5),
        ("seed", "lucky"),
        ("executor", 0),
        ("executor", "threads"),
        ("executor", 2.5),
        ("init", "k-means"),
        ("init", None),
    ],
)
def test_bad_settings_are_refused_by_name(argument, value):
    arguments = {"seed": 0, "max_iter": 3} | {argument: value}
    with pytest.raises((ValueError, TypeError), match=argument):
        stated.independent(2, 2).fit({"x": X}, **arguments)
