"""Categories of an ordinal response have the order of their type; texts have none."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caviar as cv

LEVELS = ["low", "middle", "high"]
X = np.random.default_rng(0).normal(size=40)
PLACES = np.digitize(X + 0.5 * np.random.default_rng(1).normal(size=40), [-0.5, 0.5])
TEXTS = np.array(LEVELS)[PLACES]


def model():
    obs = cv.Plate("obs")
    utility = cv.Data("x", plates=obs) * cv.Normal("b", 0, 1)
    return cv.Model(cv.Categorical("y", cv.ordered(utility, cv.Thresholds("cut", 2)), plates=obs))


@pytest.mark.parametrize(
    "y",
    [TEXTS, TEXTS.tolist(), pd.Series(TEXTS).astype("category"), pl.Series(TEXTS)],
    ids=["texts", "list", "pandas", "polars"],
)
def test_what_has_no_order_is_refused(y):
    """Thresholds lay between high and low, and between low and middle: 90 nats lower, without a word."""
    with pytest.raises(
        cv.DataError, match="are in an order, which texts such as 'high', 'low', 'middle' do not"
    ):
        model().fit({"y": y, "x": X})


@pytest.mark.parametrize(
    "y",
    [pd.Series(pd.Categorical(TEXTS, LEVELS, ordered=True)), pl.Series(TEXTS, dtype=pl.Enum(LEVELS))],
    ids=["pandas", "polars"],
)
def test_an_ordered_type_is_the_numbers_of_its_categories(y):
    fitted = model().fit({"y": y, "x": X})
    assert fitted.elbo == pytest.approx(model().fit({"y": PLACES, "x": X}).elbo, rel=1e-12)
    # once the names are known, texts are what they were in the fit
    assert fitted.elbo_at({}, {"y": TEXTS, "x": X}) == pytest.approx(fitted.elbo, rel=1e-9)
