"""The curves of prior and posterior are their densities, also of a prior whose parents are unknown."""

import numpy as np
import pytest
from scipy.stats import beta, norm, t

import caviar as cv
from plot.fits import chain, faithful, restarted, sleep

OBS = cv.Plate("obs")


def curve(ax, label):
    (found,) = [drawn for drawn in ax.lines if drawn.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def test_densities_are_those_of_the_families():
    posterior = cv.Model(cv.Bernoulli("x", cv.Beta("p", 2, 2), plates=OBS)).fit({"x": [1, 1, 0, 1, 1, 1]})
    (ax,) = cv.plot.prior_posterior(posterior)
    for label, law in (("prior", beta(2, 2)), ("posterior", beta(7, 3))):
        x, y = curve(ax, label)
        inside = (x > law.ppf(0.01)) & (x < law.ppf(0.99))
        np.testing.assert_allclose(y[inside], law.pdf(x[inside]), rtol=0.02)
    widths = [np.diff(law.ppf([0.1586552539, 0.8413447461]))[0] for law in (beta(7, 3), beta(2, 2))]
    assert ax.get_xlabel() == "p"
    assert ax.get_title() == f"{widths[0] / widths[1]:.0%} as wide as the prior"


def test_a_prior_with_unknown_parents_is_averaged_over_them():
    """A Normal whose precision is Gamma(3, 3) is a Student-t with 6 degrees of freedom."""
    tau = cv.Gamma("tau", 3, 3)
    mean = cv.Normal("mean", 0, tau)
    posterior = cv.Model(cv.Normal("x", mean, 0.5, plates=OBS)).fit(
        {"x": [0.4, -0.3]}, uncertainty="mean_field"
    )
    (ax,) = cv.plot.prior_posterior(posterior, "mean")
    x, y = curve(ax, "prior")
    # 80 draws of tau: a curve that is right to a tenth of its height
    np.testing.assert_allclose(y, t(6).pdf(x), atol=0.04)
    q = posterior["mean"]
    x, y = curve(ax, "posterior")
    inside = np.abs(x - q.mean) < 2.5 * np.sqrt(q.variance)
    np.testing.assert_allclose(y[inside], norm(q.mean, np.sqrt(q.variance)).pdf(x[inside]), rtol=0.02)


def test_the_posterior_is_as_wide_as_it_is_shown():
    """With linear response where the summary has it."""
    axes = cv.plot.prior_posterior(sleep(), "common effects")
    assert [ax.get_xlabel() for ax in axes] == ["Intercept", "days"]
    mean, sd = sleep().posterior_["common effects"].mean, sleep().posterior_.sd("common effects")
    for ax, own, width in zip(axes, mean, sd, strict=True):
        x, y = curve(ax, "posterior")
        assert x[y.argmax()] == pytest.approx(own, abs=0.1 * width)
        assert y.max() == pytest.approx(norm(0, width).pdf(0), rel=0.01)


def test_a_wide_prior_is_cut_off_and_a_flat_one_is_not_drawn():
    x = cv.Normal("x", cv.Normal("mean", 0, 1e-8), 1.0, plates=OBS)
    (ax,) = cv.plot.prior_posterior(cv.Model(x).fit({"x": [1.0, 2.0]}))
    assert np.ptp(ax.get_xlim()) < 40
    flat = cv.Normal("x", cv.Normal("mean", 0, 0), 1.0, plates=OBS)
    (ax,) = cv.plot.prior_posterior(cv.Model(flat).fit({"x": [1.0, 2.0]}))
    assert [drawn.get_label() for drawn in ax.lines] == ["posterior"]
    assert (ax.get_xlabel(), ax.get_title()) == ("mean", "the prior is flat")


@pytest.mark.slow
def test_parts_of_a_joint_factor_and_rows_of_probabilities_have_a_panel_for_each_entry():
    axes = cv.plot.prior_posterior(faithful(), "theta.mean")
    assert [len(ax.lines) for ax in axes] == [2, 2, 2, 2]
    assert len(cv.plot.prior_posterior(chain(), "transition")) == 9


def test_a_prior_that_depends_on_known_columns_needs_the_data():
    school = cv.Plate("school", 3)
    slope = cv.Normal("slope", 0, 1)
    effect = cv.Normal("effect", slope * cv.Data("size", plates=school), 4.0, plates=school)
    y = cv.Normal("y", effect[cv.Data("at", plates=OBS)], 1.0, plates=OBS)
    data = {"y": [1.0, 2.0, 3.0], "at": [0, 1, 2], "size": [0.0, 1.0, 3.0]}
    posterior = cv.Model(y).fit(data)
    with pytest.raises(cv.DataError, match="lack 'size'"):
        cv.plot.prior_posterior(posterior, "effect")
    first, _, last = cv.plot.prior_posterior(posterior, "effect", data=data)
    # with size 0 the prior has the variance 1/4, with size 3 it has 9 + 1/4
    widths = [np.ptp(curve(ax, "prior")[0][curve(ax, "prior")[1] > 0.02]) for ax in (first, last)]
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: cv.plot.prior_posterior(restarted()), "choose one of 'theta', 'weights'"),
        (lambda: cv.plot.prior_posterior(faithful(), "theta"), "'means' or 'precisions'"),
        (lambda: cv.plot.prior_posterior(chain(), "transition", max_entries=4), "9 entries.*max_entries=9"),
        (
            lambda: cv.plot.prior_posterior(cv.GaussianMixture(2, random_state=0).fit(np.eye(9)), "mean"),
            "point or a label",
        ),
    ],
)
def test_the_message_says_what_to_do(draw, says):
    with pytest.raises(cv.ParameterError, match=says):
        draw()
