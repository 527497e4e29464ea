"""A regression of pupils in schools: as a table with names, and as arrays that are coded by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import caviar as cv

SCHOOLS = ("Adams", "Lincoln", "Roosevelt")
"""In the order of the alphabet."""


def statement(
    *, size: int | None = None, names: Any = None, entries: Any = ("intercept", "slope")
) -> cv.Model:
    """Return the model: an effect of each school, and a vector of coefficients with names."""
    obs, school = cv.Plate("obs"), cv.Plate("school", size, names=names)
    effect = cv.Normal("effect", 0.0, 0.1, plates=school)
    beta = cv.MultivariateNormal("beta", np.zeros(2), np.eye(2) / 100, names=entries)
    mean = effect[cv.Data("school", plates=obs)] + cv.dot(cv.Data("X", plates=obs), beta)
    return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=obs))


@cache
def table() -> pd.DataFrame:
    """Return 40 pupils: no order of the columns, the rows or the schools agrees with another."""
    rng = np.random.default_rng(3)
    school = rng.choice(["Roosevelt", "Lincoln", "Adams"], 40)
    slope = rng.normal(size=40)
    y = pd.Series(school).map({"Roosevelt": 3.0, "Lincoln": -3.0, "Adams": 0.5}).to_numpy() + 2.0 * slope
    columns = {"y": y + 0.1 * rng.normal(size=40), "slope": slope, "note": "x", "school": school}
    index = [f"pupil {number}" for number in rng.permutation(40)]
    return pd.DataFrame({**columns, "intercept": 1.0}, index=index)


def coded(frame: pd.DataFrame, schools: Any = SCHOOLS) -> dict[str, Any]:
    """Return a table as arrays, its schools as places in a list."""
    return {
        "y": frame["y"].to_numpy(),
        "X": frame[["intercept", "slope"]].to_numpy(),
        "school": np.array([list(schools).index(name) for name in frame["school"]]),
    }


def assert_same(one: Any, other: Any) -> None:
    """Check that two posteriors have the same bits."""
    assert one.elbo == other.elbo
    for name in one:
        for a, b in zip(one[name].natural, other[name].natural, strict=True):
            np.testing.assert_array_equal(a, b)
