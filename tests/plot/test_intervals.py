"""Ends of intervals are quantiles of the posterior; labels are the names that were given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import beta, norm

import caviar as cv
from plot.fits import FAITHFUL, MEASURES, PENGUINS, VOCABULARY, factors, faithful, topics


def labels_of(axis_labels):
    return [label.get_text() for label in axis_labels]


def ends_of(collection):
    """Return the ends of vertical or horizontal lines, (n, 2)."""
    segments = np.array(collection.get_segments())
    along = int(np.ptp(segments[0], axis=0).argmax())
    return segments[:, :, along]


def intervals_of(ax):
    """Return the ends of the lines of a forest, (n, 2)."""
    return np.array(
        [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2 and line.get_lw() == 2]
    )


def of_mean_field():
    return cv.BayesianGaussianMixture(2, random_state=0, uncertainty="mean_field").fit(FAITHFUL)


def test_weights_have_the_quantiles_of_their_beta_marginals():
    mixture = of_mean_field()
    ax = cv.plot.weights(mixture, level=0.9, names=["short", "long"])
    concentration = mixture.posterior_["weights"].concentration
    marginals = [beta(a, concentration.sum() - a) for a in concentration]
    np.testing.assert_allclose(ends_of(ax.collections[-1]), [m.interval(0.9) for m in marginals])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], mixture.weights_)
    assert ax.get_title().endswith("90% interval (mean field)")
    assert labels_of(ax.get_xticklabels()) == ["short", "long"]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2


@pytest.mark.slow
def test_weights_of_sticks_come_from_draws():
    posterior = cv.models.dirichlet_process_mixture(2, 6).fit(
        {"x": FAITHFUL}, seed=0, uncertainty="mean_field"
    )
    name = next(n for n in posterior if type(posterior[n]).__name__ == "StickBreaking")
    ends = ends_of(cv.plot.weights(posterior, variable=name).collections[-1])
    draws = posterior[name].sample(200_000, seed=1)
    np.testing.assert_allclose(ends.T, np.quantile(draws, [0.025, 0.975], axis=0), atol=0.01)


def test_points_have_weights_without_intervals():
    mixture = cv.GaussianMixture(2, random_state=0).fit(FAITHFUL)
    ax = cv.plot.weights(mixture)
    assert len(ax.patches) == 2
    assert len(ax.collections) == 0
    known = cv.KnownVarianceMixture(2, random_state=0).fit(FAITHFUL[:, :1])
    np.testing.assert_allclose([bar.get_height() for bar in cv.plot.weights(known).patches], known.weights_)


def test_a_forest_has_a_line_for_each_entry():
    ax = cv.plot.forest(factors(), "mean", level=0.8, names={"feature": list("abcde")})
    q = factors()["mean"]
    expected = np.stack(norm.interval(0.8, q.mean, np.sqrt(q.variance)), axis=1)
    np.testing.assert_allclose(intervals_of(ax), expected)
    assert labels_of(ax.get_yticklabels()) == list("abcde")


def test_intervals_are_those_to_second_order_where_they_cost_little():
    posterior = faithful().posterior_
    forest = cv.plot.forest(faithful(), "means", level=0.8)
    ends = np.moveaxis(posterior.interval("theta.mean", 0.8), 0, -1)
    # minutes of an eruption and of the wait after it, each on its own scale
    panels = forest.figure.axes
    assert panels[0] is forest
    assert [ax.get_xlabel() for ax in panels] == ["means, [0]", "means, [1]"]
    for place, ax in enumerate(panels):
        np.testing.assert_allclose(intervals_of(ax), ends[:, place])
    one = cv.plot.forest(faithful(), "means", level=0.8, ax=Figure().add_subplot())
    np.testing.assert_allclose(intervals_of(one), ends.reshape(-1, 2))
    assert forest.get_title() == "means: mean and 80% interval (second order)"
    weights = cv.plot.weights(faithful(), level=0.8)
    np.testing.assert_allclose(ends_of(weights.collections[-1]), posterior.interval("weights", 0.8).T)


def test_intervals_of_linear_response_say_so():
    mixture = cv.BayesianGaussianMixture(2, random_state=0, uncertainty="linear_response").fit(FAITHFUL)
    response = mixture.posterior_.linear_response({"x": FAITHFUL})
    forest = cv.plot.forest(mixture, "theta.mean", level=0.8)
    ends = np.moveaxis(response.interval("theta.mean", 0.8), 0, -1)
    found = [intervals_of(ax) for ax in forest.figure.axes]
    np.testing.assert_allclose(np.stack(found, axis=1), ends)
    assert forest.get_title() == "means: mean and 80% interval (linear response)"


def test_a_forest_of_a_fitted_table_knows_its_columns():
    table = pd.DataFrame(PENGUINS.values[:, 2:6], columns=list(MEASURES))
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    ax = cv.plot.forest(mixture, "theta.mean", only={"theta": ["bill_depth_mm"]})
    assert labels_of(ax.get_yticklabels()) == ["bill_depth_mm, component 0", "bill_depth_mm, component 1"]
    rows = [
        r
        for r in mixture.posterior_.summary(max_rows=None).rows
        if r.variable == "theta.mean" and "bill_depth_mm" in r.index
    ]
    np.testing.assert_allclose(intervals_of(ax), [[r.lower, r.upper] for r in rows])


def test_entries_without_quantiles_are_hollow():
    ax = cv.plot.forest(of_mean_field(), "theta.precision")
    markers = [line for line in ax.lines if line.get_marker() == "o"]
    hollow = [to_hex(line.get_markerfacecolor()) == "#ffffff" for line in markers]
    # of each precision matrix the diagonal has a chi-squared marginal, the entry off it none
    assert hollow == [False, True, False] * 2
    assert len(intervals_of(ax)) == 4


def test_loadings_are_normal_and_hollow_where_zero_is_inside():
    axes = cv.plot.loadings(factors(), names=list("abcde"), level=0.9)
    q = factors()["loadings"]
    assert axes.shape == (2,)
    assert labels_of(axes[0].get_yticklabels()) == list("abcde")
    for k, ax in enumerate(axes):
        deviation = np.sqrt(q.covariance[:, k, k])
        expected = np.stack(norm.interval(0.9, q.mean[:, k], deviation), axis=1)
        np.testing.assert_allclose(ends_of(ax.collections[0]), expected)
        markers = [line for line in ax.lines if line.get_marker() == "o"]
        hollow = [to_hex(line.get_markerfacecolor()) == "#ffffff" for line in markers]
        assert hollow == ((expected[:, 0] <= 0) & (expected[:, 1] >= 0)).tolist()
    assert any(hollow)
    assert not all(hollow)


def test_a_heat_map_has_the_means_and_says_them():
    (ax,) = cv.plot.loadings(factors(), heat_map=True)
    mean = factors()["loadings"].mean
    np.testing.assert_array_equal(ax.images[0].get_array(), mean)
    numbers = [float(text.get_text().strip("()").replace("\N{MINUS SIGN}", "-")) for text in ax.texts]
    np.testing.assert_allclose(numbers, mean.ravel(), atol=0.0051)
    weak = [text.get_text().startswith("(") for text in ax.texts]
    assert any(weak)
    assert np.abs(np.array(numbers)[weak]).max() < np.abs(np.array(numbers)[np.logical_not(weak)]).max()
    low, high = ax.images[0].get_clim()
    assert low == -high


def test_topics_show_their_most_probable_words():
    axes = cv.plot.topic_words(topics(), VOCABULARY, n_words=3, level=0.8)
    concentration = topics()["topics"].concentration
    for ax, own in zip(axes, concentration, strict=True):
        best = np.argsort(-own)[:3]
        assert labels_of(ax.get_yticklabels()) == [VOCABULARY[word] for word in best]
        expected = beta.interval(0.8, own[best], own.sum() - own[best])
        np.testing.assert_allclose(ends_of(ax.collections[0]), np.stack(expected, axis=1))
    (only,) = cv.plot.topic_words(topics(), VOCABULARY, topics=[1])
    assert only.get_title() == "topic 1"


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_wider_levels_give_wider_intervals(level):
    narrow = intervals_of(cv.plot.forest(factors(), "tau", level=0.4))
    wide = intervals_of(cv.plot.forest(factors(), "tau", level=level))
    assert np.all(wide[:, 0] < narrow[:, 0])
    assert np.all(wide[:, 1] > narrow[:, 1])


@pytest.mark.slow
def test_topics_of_an_estimator_know_their_words():
    pd = pytest.importorskip("pandas")
    counts = pd.DataFrame(
        [[9, 8, 0, 0], [7, 9, 0, 1], [0, 0, 8, 8], [0, 1, 9, 7]], columns=["a", "b", "c", "d"]
    )
    lda = cv.LatentDirichletAllocation(2, random_state=0).fit(counts)
    for axes in zip(cv.plot.topic_words(lda), cv.plot.topic_words(lda, ["a", "b", "c", "d"]), strict=True):
        own, given = ([label.get_text() for label in ax.get_yticklabels()] for ax in axes)
        assert own == given
        assert set(own) <= {"a", "b", "c", "d"}


def test_a_list_of_variables_has_a_scale_for_each():
    axes = cv.plot.forest(factors(), ["mean", "tau"], names={"feature": list("abcde")})
    assert [ax.get_xlabel() for ax in axes] == ["mean", "tau"]
    alone = cv.plot.forest(factors(), "tau", names={"feature": list("abcde")})
    np.testing.assert_allclose(intervals_of(axes[1]), intervals_of(alone))
    assert axes[0].get_xlim() != axes[1].get_xlim()
    assert axes[0].get_title() == "Mean and 95% interval (mean field)"


def test_columns_with_other_units_have_a_scale_each():
    rows = PENGUINS.values[:, 2:6]
    table = pd.DataFrame(rows, columns=list(MEASURES))
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    axes = cv.plot.forest(mixture, ["theta.mean", "weights"])
    assert [ax.get_xlabel() for ax in axes] == [*(f"means, {name}" for name in MEASURES), "weights"]
    assert labels_of(axes[3].get_yticklabels()) == ["component 0", "component 1"]
    mean = mixture.posterior_.marginals("theta")[0]
    expected = np.stack([mean.lower[:, 3], mean.upper[:, 3]], axis=1)
    np.testing.assert_allclose(intervals_of(axes[3]), expected)
    # entries of one size stay on one scale, where they can be compared
    assert len(cv.plot.forest(cv.BayesianGaussianMixture(2).fit(rows[:, :2]), ["theta.mean"])) == 1
    with pytest.raises(cv.ParameterError, match="empty list"):
        cv.plot.forest(mixture, [])
