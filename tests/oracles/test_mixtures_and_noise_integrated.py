"""By default noise of few rows, and mixtures whose components overlap, have the intervals of exact posteriors."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv

OBS = cv.Plate("obs")
EYES = """529.0 530.0 532.0 533.1 533.4 533.6 533.7 534.1 534.8 535.3 535.4 535.9 536.1 536.3 536.4 536.6 537.0 537.4
537.5 538.3 538.5 538.6 539.4 539.6 540.4 540.8 542.0 542.8 543.0 543.5 543.8 543.9 545.3 546.2 548.8 548.7 548.9 549.0
549.4 549.9 550.6 551.2 551.4 551.5 551.6 552.8 552.9 553.2"""
NUTS = {"mean": [[535.3, 546.5], [538.4, 550.8]], "weights": [[0.4457], [0.7393]], "sd": [[3.045], [5.113]]}
"""90% intervals of 4,000 draws of NUTS for the model of :func:`two_components`; components in the order of means."""


def half_t(scale: float) -> cv.Gamma:
    return cv.Gamma("tau", 2.0, cv.Gamma("rate", 0.5, 1.0 / (4.0 * scale**2)))


def two_components(tau: cv.Gamma) -> cv.Model:
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    mean = cv.Normal("mean", 540.0, 1 / 20.0**2, plates=component)
    return cv.Model(cv.Normal("y", mean[z], tau, plates=OBS))


def off(found, truth) -> float:
    """How far ends of intervals are from others, in widths of these."""
    truth = np.asarray(truth)
    return float(np.max(np.abs(found - truth) / (truth[1] - truth[0])))


@pytest.fixture(scope="module")
def eyes():
    return {"y": np.array(EYES.split(), dtype=float)}


def ends_of(posterior, of_noise):
    order = np.argsort(posterior["mean"].mean)
    weights = posterior.interval("weights", 0.9)[:, order[:1]]
    return {"mean": posterior.interval("mean", 0.9)[:, order], "weights": weights, "sd": of_noise[:, None]}


def test_overlapping_components_have_the_intervals_of_nuts(eyes):
    model = two_components(half_t(5.0))
    shown = model.fit(eyes, seed=0, tol=1e-10, max_iter=2000)
    assert shown.uncertainty == "integrated"
    noise = shown.transformed(lambda tau: tau**-0.5, "tau").interval(0.9)
    for name, ends in ends_of(shown, noise).items():
        assert off(ends, NUTS[name]) < 0.11
    second = model.fit(eyes, seed=0, tol=1e-10, max_iter=2000, uncertainty="second_order")
    noise = np.sort(second.interval("tau", 0.9) ** -0.5)
    before = {name: off(ends, NUTS[name]) for name, ends in ends_of(second, noise).items()}
    assert before["mean"] > 0.13
    assert before["sd"] > 0.2


def test_components_that_are_apart_keep_second_order(eyes):
    apart = {"y": np.where(eyes["y"] > 544.5, eyes["y"] + 8.0, eyes["y"])}
    assert two_components(half_t(5.0)).fit(apart, seed=0).uncertainty == "second_order"


def test_components_with_a_precision_each_share_no_scale(eyes):
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    mean = cv.Normal("mean", 540.0, 1 / 20.0**2, plates=component)
    tau = cv.Gamma("tau", 2.0, 20.0, plates=component)
    model = cv.Model(cv.Normal("y", mean[z], tau[z], plates=OBS))
    assert model.fit(eyes, seed=0).uncertainty in ("second_order", "importance_sampling")
    with pytest.warns(cv.CaviarWarning, match="'integrated' is not available"):
        model.fit(eyes, seed=0, uncertainty="integrated")


def exact_of_student(y, prior):
    """The standard deviation of Student-t noise about a level, by a grid of both."""
    level, sd = np.linspace(-4.0, 4.0, 161), np.exp(np.linspace(-2.5, 2.5, 401))
    residuals = (y - level[:, None, None]) / sd[:, None]
    log_density = (stats.t.logpdf(residuals, 4) - np.log(sd)[:, None]).sum(axis=2)
    # Jacobian of tau = sd^-2 on a grid of log sd
    log_density += stats.norm.logpdf(level, 0, 2.0)[:, None] + prior.logpdf(sd**-2.0) - 2.0 * np.log(sd)
    share = np.exp(log_density - log_density.max())
    return level, share.sum(axis=1) / share.sum(), sd, share.sum(axis=0) / share.sum()


def test_student_noise_of_few_rows_is_that_of_a_grid():
    y = np.array([-1.3, -0.4, 0.1, 0.2, 0.3, 0.5, 0.9, 1.4, 4.2])
    level, of_level, sd, of_sd = exact_of_student(y, stats.gamma(2.0, scale=1.0))
    mu = cv.Normal("mu", 0.0, 0.25)
    weight = cv.Gamma("weight", 2.0, 2.0, plates=OBS)
    model = cv.Model(cv.Normal("y", mu, weight * cv.Gamma("tau", 2.0, 1.0), plates=OBS))
    shown = model.fit({"y": y}, tol=1e-12, max_iter=2000)
    assert shown.uncertainty == "integrated"
    assert "corrected to second order; those of tau are integrated" in shown.interval_remark
    noise = shown.transformed(lambda tau: tau**-0.5, "tau")
    mean = of_sd @ sd
    assert noise.mean == pytest.approx(mean, rel=0.02)
    assert noise.sd == pytest.approx(np.sqrt(of_sd @ (sd - mean) ** 2), rel=0.05)
    low, high = noise.interval(0.9)
    assert of_sd[(sd > low) & (sd < high)].sum() == pytest.approx(0.9, abs=0.012)
    mean = of_level @ level
    assert shown.sd("mu") == pytest.approx(np.sqrt(of_level @ (level - mean) ** 2), rel=0.05)


@pytest.mark.slow
def test_saved_posteriors_show_the_same(tmp_path, eyes):
    y = np.array([-1.3, -0.4, 0.1, 0.2, 0.3, 0.5, 0.9, 1.4, 4.2])
    weight = cv.Gamma("weight", 2.0, 2.0, plates=OBS)
    model = cv.Model(
        cv.Normal("y", cv.Normal("mu", 0.0, 0.25), weight * cv.Gamma("tau", 2.0, 1.0), plates=OBS)
    )
    for shown in (model.fit({"y": y}), two_components(half_t(5.0)).fit(eyes, seed=0)):
        shown.save(tmp_path / "m.caviar")
        again = cv.load(tmp_path / "m.caviar")
        assert again.uncertainty == "integrated"
        assert str(again.summary()) == str(shown.summary())
