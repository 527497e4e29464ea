"""Dates are numbers only in a unit: refused where numbers are needed, and labels of groups in any unit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

DATES = pd.to_datetime(pd.Series(["2020-01-01", "2020-02-01", None] * 10))
TABLE = pd.DataFrame({"y": np.random.default_rng(0).normal(size=30), "day": DATES, "since": DATES - DATES[0]})


@pytest.mark.parametrize("column", ["day", "since"])
@pytest.mark.parametrize("kept_by", [pd.DataFrame, pl.from_pandas])
def test_dates_are_no_numbers(column, kept_by):
    """A missing date was -9.2e18, and made a slope of its own."""
    with pytest.raises(cv.DataError, match=f"'{column}' has dates or times"):
        cv.MixedModel(f"y ~ {column}").fit(kept_by(TABLE))
    for estimator in (cv.HiddenMarkovModel(2), cv.BayesianGaussianMixture(2), cv.MixedMixture(2)):
        with pytest.raises(cv.DataError, match=f"column '{column}' of X has dates or times"):
            estimator.fit(kept_by(TABLE[["y", column]]))


def test_an_array_of_dates_is_refused():
    with pytest.raises(cv.DataError, match="X has dates or times"):
        cv.GaussianMixture(1).fit(DATES.to_numpy()[:, None])


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("column", ["day", "since"])
def test_dates_are_groups_in_any_unit(column):
    there = TABLE.dropna()
    model = cv.MixedModel(f"y ~ 1 + (1 | {column})").fit(there)
    coarse = there.assign(day=there["day"].astype("M8[s]"), since=there["since"].astype("m8[s]"))
    np.testing.assert_array_equal(model.predict(coarse).mean, model.predict(there).mean)
    by_text = cv.MixedModel("y ~ 1 + (1 | text)").fit(there.assign(text=there[column].astype(str)))
    np.testing.assert_allclose(model.posterior_.elbo, by_text.posterior_.elbo, rtol=1e-10)
    # rows without a date are in a group that was not seen
    assert np.ptp(model.predict(TABLE).mean[2::3]) == 0


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ"])
@pytest.mark.parametrize("formula", ["y ~ day", "y ~ z + z:day", "y ~ z + (day | z)"])
def test_dates_as_texts_are_no_categories_unless_the_formula_says_so(form, formula):
    """Each was a category, without a word: a table of a year had 365 coefficients."""
    there = TABLE.dropna().assign(z=1.0)
    written = there.assign(day=there["day"].dt.strftime(form), z=np.arange(len(there)) % 3)
    with pytest.raises(
        cv.DataError, match=r"'day' has dates as texts, such as .* write C\(day\) in the formula"
    ):
        cv.MixedModel(formula).fit(written)


def test_what_says_that_dates_are_categories_is_taken():
    there = TABLE.dropna()
    written = there.assign(day=there["day"].dt.strftime("%Y-%m-%d"))
    stated = cv.MixedModel("y ~ C(day)").fit(written)
    by_type = cv.MixedModel("y ~ day").fit(written.astype({"day": "category"}))
    versions = written.assign(day=np.where(written["day"] == "2020-01-01", "1.2.0", "1.10.2"))
    as_versions = cv.MixedModel("y ~ day").fit(versions)
    for own in (by_type, as_versions):
        assert own.elbo_ == pytest.approx(stated.elbo_, rel=1e-9)
