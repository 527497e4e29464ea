"""Observations of an outer plate beside those within it: Normals whose evidence SciPy has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

SCHOOL = np.array([0, 0, 1, 3, 3, 3])
SCORE = np.array([0.3, -1.2, 2.0, 0.7, 0.1, -0.4])
BUDGET = np.array([1.0, np.nan, -0.5, 2.0])


def model(budget_first: bool) -> cv.Model:
    school = cv.Plate("school")
    pupil = cv.Plate("pupil", within=school)
    level = cv.Normal("level", 0.0, 1.0, plates=school)
    leaves = [cv.Normal("budget", level, 1.0, plates=school), cv.Normal("score", level, 1.0, plates=pupil)]
    return cv.Model(*(leaves if budget_first else leaves[::-1]))


@pytest.mark.parametrize("budget_first", [True, False])
def test_both_are_counted_in_either_order(budget_first: bool) -> None:
    """Unit variances and a level that each school shares; school 2 has no pupils, and the budget of 1 is missing."""
    known = ~np.isnan(BUDGET)
    values, owner = np.concatenate([BUDGET[known], SCORE]), np.concatenate([np.flatnonzero(known), SCHOOL])
    covariance = np.eye(len(owner)) + (owner[:, None] == owner)
    exact = multivariate_normal.logpdf(values, np.zeros(len(owner)), covariance)
    posterior = model(budget_first).fit({"budget": BUDGET, "score": SCORE, "school": SCHOOL})
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)


def test_the_rows_are_those_of_the_plate_within() -> None:
    data = {"budget": BUDGET, "score": SCORE, "school": SCHOOL}
    with pytest.raises(cv.PlateError, match="data_plate='school', but plate 'pupil' lies within another"):
        model(True).fit(data, data_plate="school")
    assert model(True).fit(data, data_plate="pupil").elbo == model(True).fit(data).elbo
