"""The density of one column lies in its band, and the regions of two hold what they say."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from scipy.special import logsumexp
from scipy.stats import norm

import caviar as cv
from plot.fits import FAITHFUL, GALAXIES, faithful, galaxies


def curve_of(ax):
    (line,) = (line for line in ax.lines if line.get_label() == "predictive density")
    return line.get_data()


def band_of(ax):
    """Return grid, lower and upper end of the band."""
    (band,) = (c for c in ax.collections if isinstance(c, PolyCollection) and "band" in str(c.get_label()))
    vertices = band.get_paths()[0].vertices
    x = curve_of(ax)[0]
    lower, upper = (
        np.array([pick(vertices[np.isclose(vertices[:, 0], at), 1]) for at in x]) for pick in (np.min, np.max)
    )
    return x, lower, upper


@pytest.mark.thinned(8)
@pytest.mark.parametrize(
    "mixture",
    [
        cv.BayesianGaussianMixture(3, random_state=0),
        cv.BayesianGaussianMixture(3, covariance_type="tied", random_state=0),
        cv.BayesianGaussianMixture(3, covariance_type="unit", random_state=0),
        cv.BayesianGaussianMixture(3, mean_precision_family="independent", random_state=0),
        cv.KnownVarianceMixture(3, prior_mean=20.0, random_state=0),
        cv.BayesianGaussianMixture(2, fixed={"weights": [0.1, 0.9]}, random_state=0),
    ],
    ids=["full", "tied", "unit", "independent", "known variance", "fixed weights"],
)
def test_the_band_contains_the_density_wherever_there_is_some(mixture):
    ax = cv.plot.density(mixture.fit(GALAXIES), GALAXIES, n_draws=60)
    x, density = curve_of(ax)
    np.testing.assert_allclose(density, np.exp(mixture.score_samples(x[:, None])))
    _, lower, upper = band_of(ax)
    there = density > 0.02 * density.max()
    assert np.all(lower[there] <= density[there])
    assert np.all(density[there] <= upper[there])
    assert np.median((upper - lower)[there] / density[there]) > 0.1


@pytest.mark.slow
def test_the_band_is_that_of_the_density_at_drawn_parameters():
    ax = cv.plot.density(galaxies(), GALAXIES, n_draws=40, seed=3, level=0.8)
    x, lower, upper = band_of(ax)
    draws = galaxies().posterior_.sample(40, np.random.default_rng(3))
    mean, precision = (np.reshape(part, (40, 3)) for part in draws["theta"])
    joint = np.log(draws["weights"]) + norm.logpdf(x[:, None, None], mean, precision**-0.5)
    densities = np.exp(logsumexp(joint, axis=2))
    np.testing.assert_allclose(lower, np.quantile(densities, 0.1, axis=1), rtol=1e-6)
    np.testing.assert_allclose(upper, np.quantile(densities, 0.9, axis=1), rtol=1e-6)


@pytest.mark.slow
def test_more_rows_narrow_the_band():
    widths = []
    for copies in (1, 10):
        rows = np.tile(GALAXIES, (copies, 1))
        mixture = cv.BayesianGaussianMixture(1, random_state=0).fit(rows)
        _, lower, upper = band_of(cv.plot.density(mixture, rows, n_draws=80))
        widths.append((upper - lower).max())
    assert 2.5 < widths[0] / widths[1] < 4.2  # the root of ten


def test_components_add_up_and_points_have_no_band():
    mixture = cv.GaussianMixture(2, random_state=0).fit(GALAXIES)
    ax = cv.plot.density(mixture, GALAXIES)
    x, density = curve_of(ax)
    shares = [
        line.get_ydata() for line in ax.lines if len(line.get_xdata()) == len(x) and line.get_lw() < 1.5
    ]
    np.testing.assert_allclose(sum(shares), density)
    assert not any("band" in str(c.get_label()) for c in ax.collections)


def test_the_regions_of_two_columns_hold_the_shares_that_they_say():
    ax = cv.plot.density(faithful(), FAITHFUL)
    lines = [c for c in ax.collections if hasattr(c, "levels") and not c.filled]
    (regions,) = lines
    rows, _ = faithful().sample(40_000, random_state=0)
    densities = np.exp(faithful().score_samples(rows))
    shares = [(densities >= level).mean() for level in regions.levels]
    np.testing.assert_allclose(shares, [0.95, 0.8, 0.5], atol=0.01)


@pytest.mark.slow
def test_rows_with_errors_have_a_density_without_a_band():
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(
        GALAXIES, noise_covariance=np.full((len(GALAXIES), 1), 0.1)
    )
    with pytest.raises(cv.ParameterError, match="level=None"):
        cv.plot.density(mixture, GALAXIES)
    x, density = curve_of(cv.plot.density(mixture, GALAXIES, level=None))
    assert 0.9 < np.trapezoid(density, x) < 1
