"""The ellipses of pairs are those of the covariances, and of the posterior of the means."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Polygon

import caviar as cv
from caviar.plot.parts.colours import blend, colours_of
from plot.fits import FAITHFUL, MEASURES, PENGUINS, faithful, penguins

ROWS = PENGUINS.values[:, 2:6]


def ellipses(ax):
    """Return the outlines of (spread, region of the mean) in the order of drawing."""
    outlines = [patch.get_xy() for patch in ax.patches if isinstance(patch, Polygon)]
    return list(zip(outlines[::2], outlines[1::2], strict=True))


def matrix_of(outline):
    """Return M of an ellipse (x - c)' M^-1 (x - c) = 1 from points that are even in its angle."""
    points = outline[:120]
    return 2 * np.cov(points.T, bias=True)


STRUCTURES = {
    "full": cv.BayesianGaussianMixture(3, random_state=0),
    "independent": cv.BayesianGaussianMixture(3, mean_precision_family="independent", random_state=0),
    "tied": cv.BayesianGaussianMixture(3, covariance_type="tied", random_state=0),
    "diag": cv.BayesianGaussianMixture(3, covariance_type="diag", random_state=0),
    "spherical": cv.BayesianGaussianMixture(3, covariance_type="spherical", random_state=0),
    "unit": cv.BayesianGaussianMixture(3, covariance_type="unit", random_state=0),
    "em": cv.GaussianMixture(3, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_axes_of_the_outlines_are_those_of_the_covariances(structure):
    rows = (ROWS - np.nanmean(ROWS, axis=0)) / np.nanstd(ROWS, axis=0)
    mixture = STRUCTURES[structure].fit(rows[~np.isnan(rows).any(axis=1)])
    axes = cv.plot.pairs(mixture, rows, level=0.9)
    covariances = mixture.covariance_matrices()
    # a component without rows is not drawn
    order = [k for k in np.argsort(-mixture.weights_, kind="stable") if mixture.weights_[k] > 0.005]
    assert len(order) >= 2
    for i in range(1, 4):
        for j in range(i):
            outlines = [patch.get_xy() for patch in axes[i, j].patches if isinstance(patch, Polygon)]
            # the outline alone where means are points
            spreads = outlines if structure == "em" else outlines[::2]
            for k, outline in zip(order, spreads, strict=True):
                block = covariances[k][np.ix_([j, i], [j, i])]
                values, vectors = np.linalg.eigh(matrix_of(outline))
                expected, directions = np.linalg.eigh(block)
                np.testing.assert_allclose(values, -2 * np.log(0.1) * expected, rtol=1e-9)
                if expected[1] > 1.01 * expected[0]:
                    np.testing.assert_allclose(np.abs(np.sum(vectors * directions, axis=0)), 1, atol=1e-8)
                np.testing.assert_allclose(outline[:120].mean(axis=0), mixture.means_[k][[j, i]], atol=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("structure", ["full", "independent", "tied", "diag", "spherical", "unit"])
def test_the_small_ellipses_hold_the_mean_with_the_probability_asked_for(structure):
    mixture = (
        cv.BayesianGaussianMixture(**STRUCTURES[structure].get_params())
        .set_params(n_components=2, uncertainty="mean_field")
        .fit(FAITHFUL)
    )
    (ax,) = cv.plot.pairs(mixture, FAITHFUL, level=0.8)[1, :1]
    draws = mixture.posterior_.sample(20_000, seed=0)
    means = draws["theta"][0] if "theta" in draws else draws["mean"]
    order = np.argsort(-mixture.weights_, kind="stable")
    for k, (spread, region) in zip(order, ellipses(ax), strict=True):
        centre = region[:120].mean(axis=0)
        deviations = means[:, k] - centre
        inside = np.einsum("ni,ij,nj->n", deviations, np.linalg.inv(matrix_of(region)), deviations) < 1
        assert abs(inside.mean() - 0.8) < 0.015
        # the two can be told apart: one holds rows, the other the mean
        assert np.linalg.det(matrix_of(region)) < 0.1 * np.linalg.det(matrix_of(spread))


def test_a_table_is_read_by_the_names_of_its_columns():
    table = pd.DataFrame(ROWS, columns=list(MEASURES))
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    shuffled = table[list(MEASURES)[::-1]].assign(year=2008)
    axes = cv.plot.pairs(mixture, shuffled, columns=["bill_depth_mm", "body_mass_g"])
    assert axes.shape == (2, 2)
    assert (axes[1, 0].get_xlabel(), axes[1, 0].get_ylabel()) == ("bill_depth_mm", "body_mass_g")
    (points,) = [c for c in axes[1, 0].collections if isinstance(c, PathCollection)]
    shown = np.ma.filled(points.get_offsets(), np.nan)
    np.testing.assert_array_equal(shown, ROWS[:, [1, 3]])


def test_rows_have_the_blended_colours_of_their_components():
    (points,) = cv.plot.pairs(faithful(), FAITHFUL)[1, 0].collections
    expected = blend(faithful().predict_proba(FAITHFUL), colours_of(2))
    np.testing.assert_allclose(points.get_facecolors()[:, :3], expected, atol=1e-6)
    # and the marker of the most probable one
    labels = faithful().predict(FAITHFUL)
    paths = points.get_paths()
    assert {len(paths[n].vertices) for n in np.flatnonzero(labels == 0)} == {
        len(paths[int(np.argmin(labels))].vertices)
    }
    assert len({len(path.vertices) for path in paths}) == 2


def test_the_diagonal_shows_the_marginal_density():
    ax = cv.plot.pairs(faithful(), FAITHFUL)[1, 1]
    *shares, total = [line.get_data() for line in ax.lines]
    expected = np.exp(faithful().marginal(1).log_density(total[0][:, None]))
    np.testing.assert_allclose(total[1], expected)
    np.testing.assert_allclose(sum(share[1] for share in shares), expected)
    np.testing.assert_allclose(sum(bar.get_width() * bar.get_height() for bar in ax.patches), 1)


@pytest.mark.slow
def test_many_rows_are_thinned_and_very_many_counted():
    rows = np.tile(FAITHFUL, (20, 1))
    (points,) = cv.plot.pairs(faithful(), rows, max_points=500)[1, 0].collections
    assert len(points.get_offsets()) == 500
    assert {tuple(row) for row in points.get_offsets()} <= {tuple(row) for row in FAITHFUL}
    (cells,) = cv.plot.pairs(faithful(), rows, max_points=100)[1, 0].collections
    assert isinstance(cells, PolyCollection)
    assert cells.get_array().sum() == len(rows)


@pytest.mark.slow
def test_components_without_rows_are_left_out():
    mixture = cv.BayesianGaussianMixture(8, weight_concentration_prior=1e-3, random_state=0).fit(FAITHFUL)
    n_used = int((mixture.weights_ > 0.005).sum())
    assert n_used < 8
    assert len(ellipses(cv.plot.pairs(mixture, FAITHFUL)[1, 0])) == n_used


@pytest.mark.slow
def test_above_the_diagonal_nothing_is_drawn_and_edges_are_components_in_ink():
    axes = cv.plot.pairs(penguins(), ROWS, columns=[0, 1, 2])
    assert [[ax.get_visible() for ax in row] for row in axes] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    spread, region = [patch for patch in axes[1, 0].patches if isinstance(patch, Polygon)][:2]
    assert region.get_facecolor() == to_rgba("#222222")
    assert spread.get_facecolor()[3] < 0.2


@pytest.mark.slow
def test_rows_and_columns_of_the_grid_share_their_ranges():
    axes = cv.plot.pairs(penguins(), ROWS)
    assert len({ax.get_ylim() for ax in axes[3, :3]}) == 1
    assert len({ax.get_xlim() for ax in axes[:, 0]}) == 1
    low, high = axes[3, 1].get_ylim()
    assert low < np.nanmin(ROWS[:, 3]) < np.nanmax(ROWS[:, 3]) < high


def test_few_outliers_do_not_press_the_others_together():
    far = np.concatenate([FAITHFUL, [[60, 80], [4, 900], [55, -200], [3, 950]]])
    axes = cv.plot.pairs(faithful(), far)
    (x_low, x_high), (y_low, y_high) = axes[1, 0].get_xlim(), axes[1, 0].get_ylim()
    assert 0 < x_low < FAITHFUL[:, 0].min() < FAITHFUL[:, 0].max() < x_high < 10
    assert 0 < y_low < FAITHFUL[:, 1].min() < FAITHFUL[:, 1].max() < y_high < 130
    assert [text.get_text() for text in axes[1, 0].texts][-1] == "4 rows beyond"
    arrows = {
        line.get_marker(): len(line.get_xdata()) for line in axes[1, 0].lines if line.get_marker() in "<>^v"
    }
    assert arrows == {"<": 0, ">": 2, "v": 1, "^": 2}
    # the histogram is of the rows inside, in as many bars as without the outliers
    assert len([bar for bar in axes[0, 0].patches if bar.get_height() > 0]) > 10
    whole = cv.plot.pairs(faithful(), far, robust=False)
    assert whole[1, 0].get_xlim()[1] > 60


def test_one_wide_component_does_not_press_the_others_together():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (300, 2)), rng.normal(8, 1, (300, 2)), [[400.0, -300.0]] * 3])
    mixture = cv.GaussianMixture.from_parameters(
        weights=[0.49, 0.49, 0.02],
        means=[[0, 0], [8, 8], [4, 4]],
        covariances=[np.eye(2), np.eye(2), 1e4 * np.eye(2)],
    )
    axes = cv.plot.pairs(mixture, rows)
    for low, high in (axes[1, 0].get_xlim(), axes[1, 0].get_ylim()):
        assert -20 < low < -3
        assert 11 < high < 30
    assert [text.get_text() for text in axes[1, 0].texts][-1] == "3 rows beyond"
    # a narrow component far away is in the plot, however few its rows are
    far = cv.GaussianMixture.from_parameters(
        weights=[0.49, 0.49, 0.02], means=[[0, 0], [8, 8], [400, -300]], covariances=[np.eye(2)] * 3
    )
    assert cv.plot.pairs(far, rows)[1, 0].get_xlim()[1] > 400


@pytest.mark.slow
def test_axes_without_outliers_hold_all_rows():
    axes = cv.plot.pairs(faithful(), FAITHFUL)
    assert all("beyond" not in text.get_text() for text in axes[1, 0].texts)
    np.testing.assert_array_equal(
        axes[1, 0].get_xlim(), cv.plot.pairs(faithful(), FAITHFUL, robust=False)[1, 0].get_xlim()
    )
