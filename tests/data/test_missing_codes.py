"""Numbers that stand for missing values are told at fits and in reports; numbers of the data are not taken for such."""

import numpy as np
import pandas as pd
import pytest

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
