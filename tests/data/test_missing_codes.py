"""Numbers that stand for missing values are told at fits and in reports; numbers of the data are not taken for such."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import caviar as cv
from caviar.data.columns.missing_codes import missing_code

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("code", [-999.0, 9999.0, -9.0, -(2.0**31)])
@pytest.mark.parametrize(
    "values", [RNG.normal(50, 10, 100), RNG.integers(0, 9, 100) / 2.0], ids=["ages", "scores"]
)
def test_codes_far_from_all_values_are_found(values, code):
    column = np.concatenate([values, [code, np.nan, code]])
    is_far = np.abs(values - code).min() > np.ptp(values)
    assert missing_code(column) == ((code, 2) if is_far else None)


@pytest.mark.parametrize(
    "column",
    [
        np.arange(90.0, 110.0).repeat(2),
        np.append(RNG.normal(50, 10, 100), -999.0),
        np.append(RNG.normal(50, 10, 100), [1234.0, 1234.0]),
        np.array([-9.0, -9.0, 1.0, 1.0]),
        RNG.normal(0, 600, 1000).round(),
        np.full(20, -999.0),
        np.full(20, np.nan),
        np.empty(0),
    ],
    ids=["values around", "once", "another number", "few values", "wide", "constant", "missing", "none"],
)
def test_numbers_of_the_data_are_no_codes(column):
    assert missing_code(column) is None


@pytest.fixture
def rows():
    frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": RNG.normal(50, 10, 80).round(2)})
    frame.loc[:4, "size"] = -999
    return frame


def test_a_fit_of_mixed_columns_and_its_report_tell_the_code(rows):
    with pytest.warns(cv.CaviarWarning, match="column size has -999 in 5 rows.* make it NaN"):
        mixture = cv.MixedMixture(2, random_state=0).fit(rows)
    told = {line["name"]: line["remarks"] for line in cv.report.gather(mixture, rows)["quality"]}
    assert told["size"] == ["-999 in 5 rows, far from all others: does it mean a missing value?"]


def told_once(fit, words):
    """Check that a call warns once of a code; return what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit()
    texts = [str(own.message) for own in caught if "missing value" in str(own.message)]
    assert len(texts) == 1
    assert f"{words} has -999 in 5 rows, and no other value near" in texts[0]
    assert texts[0].endswith("make it NaN")
    return found


@pytest.mark.parametrize("take", [pd.DataFrame, np.asarray], ids=["frame", "array"])
@pytest.mark.parametrize(
    "estimator",
    [
        cv.GaussianMixture(2, random_state=0),
        cv.BayesianGaussianMixture("auto", random_state=0),
        cv.HiddenMarkovModel(2, random_state=0),
    ],
    ids=["maximum likelihood", "automatic", "hidden Markov"],
)
def test_fits_of_numbers_tell_the_code_once(estimator, take, rows):
    numbers = pd.DataFrame({"other": RNG.normal(size=80), "size": rows["size"]})
    is_frame = take is pd.DataFrame
    fit = clone(estimator)
    told_once(lambda: fit.fit(take(numbers)), "column size" if is_frame else "column 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error", cv.CaviarWarning)
        clone(estimator).fit(take(numbers.replace(-999, np.nan)))
        # rows that are no rows of a fit are not told
        fit.predict(take(numbers))


def test_a_comparison_tells_the_code_once(rows):
    told_once(
        lambda: cv.compare_mixtures(rows[["size"]], [1, 2], random_state=0, held_out=0.2), "column size"
    )


def test_fits_of_stated_models_tell_the_code_once(rows):
    obs, two = cv.Plate("obs"), cv.Plate("two", 2)
    x = cv.Normal("size", cv.Normal("mean", 0, 1e-4), cv.Gamma("tau", 1, 1), plates=obs)
    model, values = cv.Model(x), rows["size"].to_numpy()
    for own in (values, list(values), rows["size"]):
        told_once(lambda own=own: model.fit({"size": own}), "column size")
    told_once(lambda: model.fit(rows), "column size")
    model.fit({"size": np.where(values == -999, np.nan, values)})
    # rows along the second axis, and covariates that may be missing
    wide = cv.Normal("w", cv.Normal("m", 0, 1e-4, plates=two), 1.0, plates=(two, obs))
    table = np.stack([RNG.normal(size=80), values])
    told_once(lambda: cv.Model(wide).fit({"w": table}, data_plate="obs"), "column 1 of w")
    slope = cv.Normal("slope", 0, 1)
    y = cv.Normal("y", slope * x, 1.0, plates=obs)
    told_once(lambda: cv.Model(y).fit({"size": values, "y": RNG.normal(size=80)}), "column size")
