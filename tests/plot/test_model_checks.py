"""Residuals, calibration and effects of groups show the numbers of the posterior, and errors of a wrong model."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import caviar as cv
from caviar.plot._calibration import shares_of_bins
from plot.fits import SLEEP, coins, faithful, logistic, sleep

OBS = cv.Plate("obs")


def line(n_rows=400, slope=2.0, noise=1.0, curve=0.0, known_precision=1.0):
    """Return the data of a line through the origin, perhaps bent, and a fit of a line whose noise is known."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, n_rows)
    data = {"x": x, "y": slope * x + curve * (x**2 - 4 / 3) + noise * rng.normal(size=n_rows)}
    w = cv.Normal("w", 0, 0.01)
    model = cv.Model(cv.Normal("y", cv.Data("x", plates=OBS) * w, known_precision, plates=OBS))
    return data, model.fit(data)


def points_of(ax, label):
    (found,) = [drawn for drawn in ax.lines if drawn.get_label() == label]
    return found.get_xydata()


def heights(ax):
    return np.array([bar.get_height() for bar in ax.patches])


def means_of(ax):
    """Return the means of neighbouring rows and the ends of their bars."""
    bars = np.array(
        [drawn.get_ydata() for drawn in ax.lines if len(drawn.get_xdata()) == 2 and drawn.get_lw() == 1.6]
    )
    return bars.mean(axis=1), bars


def test_residuals_are_standardised_by_the_prediction():
    data, posterior = line(50)
    ax = cv.plot.residuals(posterior, data)
    w = posterior["w"]
    expected = (data["y"] - w.mean * data["x"]) / np.sqrt(1 + data["x"] ** 2 * w.variance)
    np.testing.assert_allclose(points_of(ax, "a row"), np.column_stack([w.mean * data["x"], expected]))
    assert ax.get_title() == "Standardised residuals of y (rows of the fit)"


def test_means_of_neighbours_miss_zero_where_the_line_should_bend():
    data, straight = line()
    _, bars = means_of(cv.plot.residuals(straight, data, against=data["x"], label="x"))
    assert ((bars[:, 0] < 0) & (bars[:, 1] > 0)).mean() > 0.8
    bent, posterior = line(curve=1.5)
    named = cv.plot.residuals(posterior, bent, against="x")
    assert named.get_xlabel() == "x"
    assert np.array_equal(
        means_of(named)[0], means_of(cv.plot.residuals(posterior, bent, against=bent["x"]))[0]
    )
    with pytest.raises(cv.DataError, match="names 'z', which is not a column"):
        cv.plot.residuals(posterior, bent, against="z")
    ax = cv.plot.residuals(posterior, bent, against=pd.Series(bent["x"], name="dose"))
    means, bars = means_of(ax)
    assert ax.get_xlabel() == "dose"
    assert means[0] > 1
    assert means[-1] > 1
    assert means[len(means) // 2] < -1


def test_residuals_of_new_rows_say_so_and_of_folds_too():
    data, posterior = line(60)
    new, _ = line(20, slope=2.5)
    assert "(new rows)" in cv.plot.residuals(posterior, new).get_title()
    ax = cv.plot.residuals(posterior, data, n_folds=5)
    assert "by fits without them, 5 folds" in ax.get_title()
    shown = points_of(ax, "a row")
    # each row once, at a prediction that differs from that of the fit to all rows
    assert len(shown) == 60
    for rows, other in posterior.cross_validate(data, n_folds=5, seed=0):
        own = other["w"].mean * data["x"][rows]
        assert all(np.isclose(shown[:, 0], each).any() for each in own)


def test_an_entry_of_a_vector_is_chosen_by_name_or_number():
    rows = pd.DataFrame(cv.datasets.load_faithful().values, columns=["eruption", "wait"])
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(rows)
    ax = cv.plot.residuals(mixture, rows, entry="wait")
    told = mixture.posterior_.predict({})["x"]
    expected = (rows["wait"] - told.mean[0, 1]) / told.sd[0, 1]
    np.testing.assert_allclose(points_of(ax, "a row")[:, 1], expected)
    with pytest.raises(cv.ParameterError, match="choose one of eruption, wait, as entry='eruption'"):
        cv.plot.residuals(mixture, rows)
    with pytest.raises(cv.ParameterError, match="no entry 'mass'"):
        cv.plot.residuals(mixture, rows, entry="mass")


def test_bars_of_calibration_are_shares_of_transforms():
    data, posterior = line(200)
    ax = cv.plot.calibration(posterior, data, n_bins=5)
    told = posterior.residuals(data)
    u = norm.cdf(told.standardised)
    np.testing.assert_allclose(heights(ax), np.histogram(u, 5, (0, 1))[0] * 5 / 200)


def test_calibration_shows_predictions_that_are_too_narrow_and_too_wide():
    middle, ends = slice(8, 12), [0, 19]
    data, right = line()
    shown = heights(cv.plot.calibration(right, data))
    assert 0.5 < shown[middle].mean() < 1.5
    _, narrow = line(noise=1.0, known_precision=9.0)
    shown = heights(cv.plot.calibration(narrow, data))
    assert shown[ends].min() > 3
    _, wide = line(noise=1.0, known_precision=1 / 9)
    shown = heights(cv.plot.calibration(wide, data))
    assert shown[ends].max() < 0.2
    assert shown[middle].mean() > 1.8


def test_counts_of_a_right_model_spread_evenly():
    rng = np.random.default_rng(0)
    data = {"y": rng.poisson(1.3, 2000)}
    posterior = cv.Model(cv.Poisson("y", cv.Gamma("rate", 1, 1), plates=OBS)).fit(data)
    shown = heights(cv.plot.calibration(posterior, data, n_bins=10))
    np.testing.assert_allclose(shown, 1.0, atol=0.15)
    # a Poisson for counts that vary more: too many at the ends
    wide = {"y": rng.poisson(rng.gamma(0.6, 1.3 / 0.6, 2000))}
    other = cv.Model(cv.Poisson("y", cv.Gamma("rate", 1, 1), plates=OBS)).fit(wide)
    shown = heights(cv.plot.calibration(other, wide, n_bins=10))
    assert shown[-1] > 1.5
    assert shown[0] > 1.3


def test_rows_are_spread_over_bins_from_their_low_end_to_their_high_one():
    low, high = np.array([0.0, 0.05, 1.0, 0.5]), np.array([1.0, 0.25, 1.0, 0.5])
    expected = np.array([0.1 + 0.25, *[0.1 + 0.5 if k == 1 else 0.1 for k in range(1, 10)]])
    expected[2] += 0.25
    expected[[5, 9]] += 1.0
    np.testing.assert_allclose(shares_of_bins(low, high, 10), expected / 4)


def test_probabilities_are_beside_shares():
    ax = cv.plot.calibration(logistic(), coins(), n_bins=3)
    probability = logistic().predict({"X": coins()["X"]})["y"].mean
    groups = np.array_split(np.argsort(probability, kind="stable"), 3)
    expected = [[probability[rows].mean(), coins()["y"][rows].mean()] for rows in groups]
    shown = [drawn.get_xydata()[0] for drawn in ax.lines if drawn.get_marker() == "o"]
    np.testing.assert_allclose(shown, expected)
    assert ax.get_xlabel() == "predicted probability that y is 1"


def test_effects_of_groups_are_in_order_with_their_intervals():
    axes = cv.plot.group_effects(sleep(), level=0.9)
    frame = sleep().ranef(level=0.9)["days | subject"]
    for ax, (effect, own) in zip(axes, frame.groupby("effect", sort=False), strict=True):
        own = own.sort_values("mean", ascending=False, kind="stable")
        assert ax.get_xlabel() == effect
        assert [label.get_text() for label in ax.get_yticklabels()] == own["group"].tolist()
        ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
        np.testing.assert_allclose(ends, own[["lower", "upper"]])
        hollow, filled = [drawn.get_xdata() for drawn in ax.lines[:2]]
        has_zero = (own["lower"] <= 0) & (own["upper"] >= 0)
        np.testing.assert_allclose(hollow, own["mean"][has_zero])
        np.testing.assert_allclose(filled, own["mean"][~has_zero])


def test_panels_may_share_the_order_of_the_first_or_of_the_groups():
    first = cv.plot.group_effects(sleep(), order="first")
    own = sleep().ranef()["days | subject"].query("effect == 'Intercept'")
    by_size = own.sort_values("mean", ascending=False)["group"].tolist()
    assert [label.get_text() for label in first[0].get_yticklabels()] == by_size
    groups = cv.plot.group_effects(sleep(), order="groups")
    assert [label.get_text() for label in groups[0].get_yticklabels()] == own["group"].tolist()


def test_group_effects_of_a_posterior_have_the_names_of_its_plate():
    school = cv.Plate("school", names=["Adams", "Lincoln", "Taft"])
    effect = cv.Normal("effect", 0, 1, plates=school)
    model = cv.Model(cv.Normal("y", effect[cv.Data("school", plates=OBS)], 1.0, plates=OBS))
    data = {"y": [1.0, -2.0, 0.1, 5.0], "school": ["Adams", "Lincoln", "Taft", "Adams"]}
    (ax,) = cv.plot.group_effects(model.fit(data))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Adams", "Taft", "Lincoln"]
    assert ax.get_title().startswith("effect: effect of each school")


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: cv.plot.group_effects(sleep(), order="name"), "'size', 'first' or 'groups'; got 'name'"),
        (lambda: cv.plot.group_effects(logistic()), "this fit has none"),
        (lambda: cv.plot.group_effects(sleep(), "residual precision"), "not an effect of groups"),
        (lambda: cv.plot.calibration(sleep(), SLEEP, n_bins=1), "at least 2; got 1"),
        (lambda: cv.plot.calibration(logistic(), coins(), variable="z"), "observes 'y'; there is no 'z'"),
        (lambda: cv.plot.residuals(logistic(), coins(), entry=1), "no entry 1"),
    ],
)
def test_the_message_says_what_to_do(draw, says):
    with pytest.raises(cv.ParameterError, match=says):
        draw()


def test_numbers_for_other_rows_are_refused():
    with pytest.raises(cv.DataError, match="at least 180; got an array of shape"):
        cv.plot.residuals(sleep(), SLEEP, against=[1.0, 2.0])


def test_labels_have_no_calibration():
    p = cv.Dirichlet("p", [1.0, 1.0, 1.0])
    posterior = cv.Model(cv.Categorical("c", p, plates=OBS)).fit({"c": [0, 1, 2, 0]})
    with pytest.raises(cv.ParameterError, match=r"'c' is a label.*predictive_check"):
        cv.plot.calibration(posterior, {"c": [0, 1, 2, 0]})


def test_dark_figures_stay_dark_and_lines_on_them_are_light():
    from matplotlib import pyplot as plt

    from caviar.plot.parts.axes import luminance

    light = cv.plot.weights(faithful())
    assert luminance(light.figure.get_facecolor()) > 0.9
    with plt.style.context("dark_background"):
        dark = cv.plot.weights(faithful())
        effects = cv.plot.group_effects(sleep())[0]
    assert luminance(dark.figure.get_facecolor()) < 0.05
    assert dark.spines["left"].get_edgecolor()[0] > 0.9
    assert not dark.spines["top"].get_visible()
    assert luminance(effects.collections[0].get_colors()[0][:3]) > 0.3


def test_long_titles_fit_the_width_of_the_figure():
    groups = np.arange(60) % 6
    table = {"score": np.random.default_rng(0).normal(groups, 1.0), "class in the school": groups}
    model = cv.MixedModel("score ~ 1 + (1 | `class in the school`)").fit(table)
    (ax,) = cv.plot.group_effects(model)
    assert ax.get_xlabel() == "Intercept"
    renderer = ax.figure.canvas.get_renderer()
    assert ax.title.get_window_extent(renderer).width < ax.figure.get_window_extent(renderer).width


@pytest.mark.slow
def test_levels_that_are_whole_numbers_are_found_however_they_are_stored():
    ax = cv.plot.regression(sleep(), SLEEP, "days", by="subject", only=[308.0, 309])
    assert [text.get_text() for text in ax.get_legend().get_texts()][:2] == ["308", "309"]
    with pytest.raises(
        cv.ParameterError, match="lists '300', which is not a level of the column; they are '308', "
    ):
        cv.plot.regression(sleep(), SLEEP, "days", by="subject", only=[300])
