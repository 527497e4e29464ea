"""Probabilities of components are drawn as they are, whatever the kind of model."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import caviar as cv
from caviar.plot.parts.colours import blend, colours_of
from plot.fits import FAITHFUL, GALAXIES, PENGUINS, chain, faithful, galaxies, penguins, steps, topics


def heights_at(ax, x):
    """Return the height of each filled area of a stack at a place, in the order of drawing."""
    heights = []
    for area in ax.collections:
        if isinstance(area, PolyCollection):
            path = area.get_paths()[0]
            inside = path.contains_points(np.column_stack([np.full(2001, x), np.linspace(0, 1, 2001)]))
            heights.append(inside.mean())
    return np.array(heights)


@pytest.mark.parametrize("x", [10.0, 17.0, 21.0, 27.0, 33.0])
def test_along_one_column_the_areas_are_the_responsibilities(x):
    ax = cv.plot.responsibilities(galaxies(), GALAXIES)
    expected = galaxies().predict_proba([[x]])[0]
    np.testing.assert_allclose(heights_at(ax, x), expected, atol=0.01)


def test_in_two_columns_uncertain_rows_are_larger_and_mixed():
    ax = cv.plot.responsibilities(faithful(), FAITHFUL, columns=["eruption (min)", "wait (min)"])
    (points,) = ax.collections
    shares = faithful().predict_proba(FAITHFUL)
    np.testing.assert_allclose(points.get_facecolors()[:, :3], blend(shares, colours_of(2)), atol=1e-6)
    np.testing.assert_array_equal(np.argmax(points.get_sizes()), np.argmin(shares.max(axis=1)))
    assert ax.get_xlabel() == "eruption (min)"


@pytest.mark.slow
def test_rows_of_more_columns_are_sorted_bars():
    rows = PENGUINS.values[:, 2:6]
    ax = cv.plot.responsibilities(penguins(), rows)
    shares = penguins().predict_proba(rows)
    # as wide as there are rows, and as much area as there is probability
    widths = np.mean([heights_at(ax, x) for x in np.arange(0.5, len(rows), 7)], axis=0)
    np.testing.assert_allclose(widths, shares.mean(axis=0), atol=0.02)
    largest = [heights_at(ax, x).argmax() for x in np.arange(0.5, len(rows), 7)]
    assert np.all(np.diff(largest) >= 0)


def test_many_components_are_a_heat_map():
    mixture = cv.BayesianGaussianMixture(10, random_state=0).fit(FAITHFUL)
    ax = cv.plot.responsibilities(mixture, FAITHFUL, over_data=False)
    image = np.asarray(ax.images[0].get_array())
    shares = mixture.predict_proba(FAITHFUL)
    assert image.shape == (10, 272)
    np.testing.assert_allclose(image.sum(axis=1), shares.sum(axis=0))
    np.testing.assert_allclose(np.sort(image, axis=None), np.sort(shares, axis=None))


def test_a_posterior_shows_its_hidden_labels():
    ax = cv.plot.responsibilities(chain(), steps())
    assert len(ax.get_legend().get_texts()) == 3
    words = {"word": [np.array([0, 1, 2]), np.array([3, 4])]}
    ax = cv.plot.responsibilities(topics(), words, variable="z", names=["sport", "politics"])
    assert ax.get_xlim() == (0, 5)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(cv.ParameterError, match="pairs"):
        cv.plot.responsibilities(penguins(), PENGUINS.values[:, 2:6], over_data=True)
    with pytest.raises(cv.ParameterError, match="'s'"):
        cv.plot.responsibilities(chain(), steps(), variable="z")
    with pytest.raises(cv.DataError, match="by name"):
        cv.plot.responsibilities(chain(), steps()["x"])
