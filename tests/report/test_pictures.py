"""A picture shows the rows in the colours of their components, and each component with its uncertainty."""

import sys

import numpy as np
import pytest
from matplotlib.patches import Polygon

import caviar as cv
from caviar.estimators.mixtures.uncertainty import mean_marginal
from caviar.plot.parts.colours import blend, colours_of
from caviar.report import draw, save_picture

FAITHFUL = cv.datasets.load_faithful()
GALAXIES = cv.datasets.load_galaxies()


@pytest.fixture(scope="module")
def mixture():
    return cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL.values)


def shares_inside(outline, points):
    """Return the share of points within an ellipse that is given by its outline."""
    centre = (outline.min(axis=0) + outline.max(axis=0)) / 2
    deviations = outline[:-1] - centre
    matrix = np.linalg.inv(2 * np.cov(deviations.T, bias=True))
    return (np.einsum("ni,ij,nj->n", points - centre, matrix, points - centre) < 1).mean()


def test_the_ellipses_hold_what_the_legend_says(mixture):
    axes = draw(mixture, FAITHFUL.values, columns=FAITHFUL.columns).axes[0]
    outlines = [patch.get_xy() for patch in axes.patches if isinstance(patch, Polygon)]
    spreads, regions = outlines[::2], outlines[1::2]
    heaviest = int(mixture.weights_.argmax())
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal(mixture.means_[heaviest], mixture.covariances_[heaviest], 20_000)
    assert abs(shares_inside(spreads[0], rows) - 0.95) < 0.01
    means = mixture.posterior_["theta"].sample(20_000, seed=0)[0][:, heaviest]
    assert abs(shares_inside(regions[0], means) - 0.95) < 0.01
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "95% of the rows of a component",
        "its mean, with 95% probability",
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("eruptions", "waiting")


def test_rows_have_the_blended_colours_of_their_components(mixture):
    (points,) = draw(mixture, FAITHFUL.values).axes[0].collections
    expected = blend(mixture.predict_proba(FAITHFUL.values), colours_of(2))
    np.testing.assert_allclose(points.get_facecolors()[:, :3], expected, atol=1e-6)
    np.testing.assert_allclose(points.get_offsets(), FAITHFUL.values)


def test_one_column_is_a_histogram_under_a_density_that_integrates_to_one():
    mixture = cv.BayesianGaussianMixture(3, random_state=0).fit(GALAXIES.values)
    axes = draw(mixture, GALAXIES.values, columns=GALAXIES.columns).axes[0]
    (curve,) = (line for line in axes.lines if line.get_label() == "predictive density")
    x, y = curve.get_data()
    assert 0.97 < np.trapezoid(y, x) < 1.0
    assert axes.get_xlabel() == "velocity"
    bars = sum(bar.get_width() * bar.get_height() for bar in axes.patches)
    np.testing.assert_allclose(bars, 1.0)
    # An interval for each mean, on a line of its own.
    low, _ = mean_marginal(mixture).interval(0.95)
    drawn = [line.get_xdata()[0] for line in axes.lines if line.get_linewidth() == 3]
    assert set(drawn) <= set(low[:, 0])
    assert len(drawn) >= 1


@pytest.mark.thinned(2)
@pytest.mark.parametrize("size", [3, 7])
def test_more_columns_are_pairs_of_those_that_tell_the_components_apart(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, size)) * 10.0 ** np.arange(size)
    X[:150, 0] += 20
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    figure = draw(mixture, X, columns=[f"c{j}" for j in range(size)])
    labels = {axes.get_xlabel() for axes in figure.axes} - {""}
    assert len(labels) == min(size, 4)
    assert "c0" in labels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (cv.GaussianMixture(2, random_state=0), FAITHFUL.values),
        (cv.BayesianGaussianMixture(2, mean_precision_family="independent", random_state=0), FAITHFUL.values),
        (cv.KnownVarianceMixture(2, prior_mean=20.0, random_state=0), GALAXIES.values),
        (cv.BayesianGaussianMixture(12, random_state=0), FAITHFUL.values),
        (cv.BayesianGaussianMixture(1, random_state=0), np.repeat([[1.0, 2.0], [1.0, 3.0]], 3, axis=0)),
        (cv.BayesianGaussianMixture(1, random_state=0), np.ones((5, 1))),
    ],
)
def test_every_estimator_is_drawn(estimator, X, tmp_path):
    save_picture(draw(estimator.fit(X), X), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


def test_many_rows_are_thinned(mixture):
    (points,) = draw(mixture, np.tile(FAITHFUL.values, (100, 1))).axes[0].collections
    assert 2000 < len(points.get_offsets()) <= 4000


def test_bad_arguments_are_refused(mixture, tmp_path):
    with pytest.raises(cv.DataError, match="shape"):
        draw(mixture, GALAXIES.values)
    with pytest.raises(cv.DataError, match="PNG"):
        save_picture(draw(mixture, FAITHFUL.values), tmp_path / "picture.gif")


def test_drawing_leaves_pyplot_alone(mixture):
    # pyplot would choose a backend, and keep every figure alive.
    before = "matplotlib.pyplot" in sys.modules
    draw(mixture, FAITHFUL.values)
    assert ("matplotlib.pyplot" in sys.modules) == before
