"""Predictive checks draw the data and data sets of the model; a wrong model is seen, a right one is not."""

import numpy as np
import pytest
from scipy.stats import binom, nbinom

import caviar as cv
from plot.fits import DEATHS, FAITHFUL, SLEEP, chain, coins, deaths, faithful, logistic, sleep, steps

OBS = cv.Plate("obs")


def bars_of(ax, label):
    """Return left end, bottom and height of each bar with this label."""
    (found,) = [bars for bars in ax.containers if bars.get_label().startswith(label)]
    return np.array([[bar.get_x(), bar.get_y(), bar.get_height()] for bar in found])


def test_bars_are_the_counts_of_the_data():
    ax = cv.plot.predictive_check(deaths(), DEATHS)
    shown = bars_of(ax, "data")
    np.testing.assert_array_equal(shown[:5, 2], [109, 65, 22, 3, 1])
    assert ax.get_xlabel() == "deaths"
    assert {tick for tick in ax.get_xticks() if 0 <= tick <= 4} == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_the_band_has_the_quantiles_of_the_predictive_distribution():
    """Given the rate a count of rows is binomial; the rate is known to 0.05, which widens it little."""
    ax = cv.plot.predictive_check(deaths(), DEATHS, n_draws=4000, level=0.9)
    shown = bars_of(ax, "replicated")
    q = deaths()["rate"]
    share = nbinom(q.shape, q.rate / (1 + q.rate)).pmf(np.arange(4))
    low, high = binom(200, share).ppf(0.05), binom(200, share).ppf(0.95)
    assert np.all(np.abs(shown[:4, 1] - low) <= 2 + 0.03 * low)
    assert np.all(np.abs(shown[:4, 1] + shown[:4, 2] - high) <= 2 + 0.03 * high)


def test_counts_that_vary_more_than_a_poisson_are_seen():
    rng = np.random.default_rng(0)
    wide = {"deaths": rng.poisson(rng.gamma(0.5, 2.0, 400))}
    posterior = cv.Model(cv.Poisson("deaths", cv.Gamma("rate", 1, 1), plates=OBS)).fit(wide)
    ax = cv.plot.predictive_check(posterior, wide)
    zero, band = bars_of(ax, "data")[0, 2], bars_of(ax, "replicated")[0]
    assert zero > band[1] + band[2]
    title = cv.plot.predictive_check(posterior, wide, statistic="zeros").get_title()
    assert title == "zeros of deaths: 0% of 200 data sets have as much or more"


@pytest.mark.slow
def test_a_statistic_is_that_of_the_data_and_its_share_is_counted():
    def spread(values):
        return np.ptp(values)

    ax = cv.plot.predictive_check(deaths(), DEATHS, statistic=spread, n_draws=300)
    line = next(drawn for drawn in ax.lines if drawn.get_label() == "data")
    assert list(line.get_xdata()) == [4.0, 4.0]
    drawn = deaths().predictive({"corps": 200}, n_draws=300, seed=0)["deaths"]
    share = np.mean(np.ptp(drawn, axis=1) >= 4)
    assert ax.get_title() == f"spread of deaths: {share:.0%} of 300 data sets have as much or more"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("fit", "data", "keywords", "n_rows"),
    [
        (sleep, lambda: SLEEP, {}, 180),
        (faithful, lambda: FAITHFUL, {"entry": 1}, 272),
        (chain, steps, {"entry": 0}, 60),
        (logistic, coins, {}, 300),
    ],
)
def test_every_kind_of_fit_is_checked_with_its_own_rows(fit, data, keywords, n_rows):
    ax = cv.plot.predictive_check(fit(), data(), n_draws=40, **keywords)
    assert bars_of(ax, "data")[:, 2].sum() == n_rows
    band = bars_of(ax, "replicated")
    own = bars_of(ax, "data")[:, 2]
    inside = (own >= band[:, 1]) & (own <= band[:, 1] + band[:, 2])
    assert inside.mean() > 0.7


def test_labels_have_the_names_of_their_categories():
    data = {"species": ["Adelie", "Gentoo", "Gentoo", "Chinstrap", "Adelie", "Gentoo"]}
    p = cv.Dirichlet("p", [1.0, 1.0, 1.0])
    posterior = cv.Model(cv.Categorical("species", p, plates=OBS)).fit(data)
    ax = cv.plot.predictive_check(posterior, data)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Adelie", "Chinstrap", "Gentoo"]
    np.testing.assert_array_equal(bars_of(ax, "data")[:3, 2], [2, 1, 3])


def test_missing_values_are_left_out():
    data = {"deaths": np.where(np.arange(200) < 20, np.nan, DEATHS["deaths"])}
    ax = cv.plot.predictive_check(deaths(), data)
    assert bars_of(ax, "data")[:, 2].sum() == 180
    assert bars_of(ax, "replicated").sum(axis=0)[2] < 180


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"statistic": "median"}, "'mean', 'sd', 'min', 'max', 'zeros', or a function; got 'median'"),
        ({"variable": "x"}, "observes 'deaths'; there is no 'x'"),
        ({"entry": 2}, "one number in each row"),
        ({"level": 95}, "between 0 and 1"),
    ],
)
def test_the_message_says_what_to_do(keywords, says):
    with pytest.raises(cv.ParameterError, match=says):
        cv.plot.predictive_check(deaths(), DEATHS, **keywords)
