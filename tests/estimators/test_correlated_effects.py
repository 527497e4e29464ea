"""Standard deviations of correlated effects with binary outcomes, beside a Gibbs sampler with the same priors."""

import numpy as np
import pandas as pd
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess


def table():
    """Return 240 binary outcomes of 40 groups, whose slopes of p vary most."""
    rng, g = np.random.default_rng(3), np.repeat(np.arange(40), 6)
    x, own = rng.normal(size=(240, 2)), rng.normal(size=(40, 3)) * [0.5, 1.5, 0.5]
    eta = own[g, 0] + own[g, 1] * x[:, 0] + own[g, 2] * x[:, 1]
    y = (rng.random(240) < 1 / (1 + np.exp(-eta))) * 1
    return pd.DataFrame({"y": y, "p": x[:, 0], "q": x[:, 1], "g": g})


def fitted(**arguments):
    model = cv.MixedModel("y ~ p + q + (p + q | g)", family="bernoulli", random_state=0, **arguments)
    return model.fit(table())


def test_a_spread_that_is_well_known_is_not_as_wide_as_those_that_may_be_zero():
    """5,000 Pólya-Gamma draws of the slopes of p: 2.22 ± 0.59, 95% between 1.26 and 3.52."""
    summary = fitted().summary()
    shown = summary.to_frame()
    row = shown[shown["name"] == "g, p"].iloc[0]
    assert abs(row["mean"] - 2.22) < 0.15
    assert 0.5 < row["sd"] < 0.9
    assert 1.1 < row["lower"] < 1.4
    assert 3.3 < row["upper"] < 4.4
    assert "integrated" not in str(summary)


def test_what_is_shown_in_place_of_integrated_intervals_says_that_it_may_be_wrong():
    with pytest.warns(cv.CaviarWarning, match="not available for this fit, which shows linear response"):
        summary = fitted(uncertainty="integrated").summary()
    assert "may be too narrow or too wide" in str(summary)


def test_a_precision_without_a_finite_mean_is_shown_without_a_warning():
    """Slopes may be equal, so that their precision may be infinite; reports and summaries told NumPy's warning."""
    rng = np.random.default_rng(1)
    school, x = rng.integers(0, 10, 200), rng.normal(size=200)
    y = 3.0 * x + 2.0 * rng.normal(size=10)[school] + rng.normal(size=200)
    model = cv.MixedModel("y ~ x + (x | school)", random_state=0).fit({"y": y, "x": x, "school": school})
    (own,) = model.posterior_.marginals("precision of x | school", 0.95)
    assert np.isinf(own.mean[1, 1])
    assert np.isfinite([own.lower[0, 0], own.upper[0, 0], own.lower[1, 1], own.upper[1, 1]]).all()
