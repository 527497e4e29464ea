"""Predictions of few rows that hide something are made by weighted draws of the globals, as summaries are."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import t as student

import caviar as cv
from caviar.engine.binding.clamped.factor import PointMass
from caviar.posterior.prediction.over_draws.merging import merged
from caviar.posterior.prediction.over_draws.mixed import _over
from caviar.posterior.prediction.prediction import Prediction
from caviar.posterior.shared_factors import SharedFactors
from caviar.posterior.simulation import one_by_one
from caviar.posterior.uncertainty.pending import Judged
from caviar.testing import exact_draws

OBS = cv.Plate("obs")
NEW = np.array([0.0, 1.0, 3.0, -3.0])
ENDS = (0.05, 0.95)


def line(name="x"):
    return cv.Normal("a", 0.0, 0.1) + cv.Normal("b", 0.0, 0.1) * cv.Data(name, plates=OBS)


def answers(link, n, seed):
    """Return binary answers that a column nearly tells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    data = {"x": x, "y": (rng.normal(size=n) < 0.3 + 1.5 * x).astype(int)}
    return cv.Model(cv.Bernoulli("y", link(line()), plates=OBS)), data, {"x": NEW}, "y"


def probit():
    return answers(cv.probit, 9, 0)


def logistic():
    return answers(cv.logistic, 12, 0)


def counts():
    rng = np.random.default_rng(4)
    x = rng.normal(size=9)
    leaf = cv.NegativeBinomial("y", cv.exp(line()), 3.0, plates=OBS)
    return cv.Model(leaf), {"x": x, "y": rng.poisson(np.exp(0.3 + 0.8 * x))}, {"x": NEW / 2}, "y"


def missing_covariate():
    rng = np.random.default_rng(2)
    x = rng.normal(size=14)
    hidden = cv.Normal("x", cv.Normal("m", 0.0, 0.1), cv.Gamma("q", 2, 2), plates=OBS)
    at = cv.Normal("a", 0.0, 0.1) + cv.Normal("b", 0.0, 0.1) * hidden
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 1), plates=OBS), hidden)
    data = {"x": np.where(np.arange(14) % 4 == 0, np.nan, x), "y": 1 + x + 0.5 * rng.normal(size=14)}
    return model, data, {"x": NEW}, "y"


def two_outcomes():
    """A number of each row that a measurement and an answer depend on: of new rows the former is there."""
    rng = np.random.default_rng(3)
    u = rng.normal(size=14)
    data = {
        "y": 1.0 + u + 0.5 * rng.normal(size=14),
        "z": (rng.logistic(size=14) < 0.3 + 1.5 * u).astype(int),
    }
    hidden = cv.Normal("u", 0.0, cv.Gamma("spread", 2, 2), plates=OBS)
    measured = cv.Normal("y", cv.Normal("a", 0.0, 0.1) + hidden, cv.Gamma("tau", 2, 1), plates=OBS)
    at = cv.Normal("b", 0.0, 0.25) + cv.Normal("c", 0.0, 0.25) * hidden
    return cv.Model(measured, cv.Bernoulli("z", cv.logistic(at), plates=OBS)), data, {"y": NEW}, "z"


def heavy_tails():
    rng = np.random.default_rng(1)
    x = rng.normal(size=10)
    u = cv.Gamma("u", 2, 2, plates=OBS)
    model = cv.Model(cv.Normal("y", line(), u * cv.Gamma("tau", 1, 1), plates=OBS))
    return model, {"x": x, "y": 1 + x + rng.standard_t(3, size=10)}, {"x": NEW}, "y"


KINDS = {
    own.__name__: own for own in (probit, logistic, counts, missing_covariate, two_outcomes, heavy_tails)
}


@cache
def fitted(kind):
    model, data, new, name = KINDS[kind]()
    return model.fit(data, seed=0), data, new, name


def exact(kind, posterior, data, n_steps):
    """Return draws of new rows from exact draws of the globals, pushed through the statement, (n, rows)."""
    draws, rng = exact_draws(posterior, data, n_steps=n_steps, seed=1), np.random.default_rng(5)
    assert draws.r_hat < 1.2

    def column(name):
        return np.asarray(draws[name])[:, None]

    if kind == "two_outcomes":
        precision = column("spread") + column("tau")
        u = column("tau") * (NEW - column("a")) / precision + rng.normal(size=(len(precision), 4)) / np.sqrt(
            precision
        )
        chance = expit(column("b") + column("c") * u)
    else:
        at = column("a") + column("b") * (NEW / 2 if kind == "counts" else NEW)
        if kind == "missing_covariate":
            return at + rng.normal(size=at.shape) / np.sqrt(column("tau"))
        if kind == "heavy_tails":
            return at + student(4).rvs(size=at.shape, random_state=rng) / np.sqrt(column("tau"))
        if kind == "counts":
            # a Gamma of shape 3 about exp(at)
            return rng.poisson(rng.gamma(3.0, 1 / 3, size=at.shape) * np.exp(np.minimum(at, 20.0))).astype(
                float
            )
        chance = ndtr(at) if kind == "probit" else expit(at)
    return (rng.random(chance.shape) < chance).astype(float)


def assert_is_exact(kind, n_steps, *, error):
    """Check a prediction against exact draws: what is off is at most a share of standard deviations."""
    posterior, data, new, name = fitted(kind)
    told, rows = posterior.predict(new)[name], exact(kind, posterior, data, n_steps)
    assert told.remark == ""
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    np.testing.assert_array_less(np.abs(told.mean - mean), error * sd + 0.003)
    if kind != "counts":
        # of counts single draws decide the standard deviation
        np.testing.assert_allclose(told.sd, sd, rtol=error, atol=0.01)
    if told.by_moments is not None and not told.by_moments.is_binary:
        ends = np.quantile(rows, ENDS, axis=0)
        most = error * (ends[1] - ends[0]) + told.by_moments.is_discrete
        assert (np.abs(told.quantile(ENDS) - ends) < most).all()


@pytest.mark.parametrize("kind", ["probit", pytest.param("logistic", marks=pytest.mark.slow)])
def test_answers_of_few_rows_are_those_of_exact_draws(kind):
    """Under q the standard deviation of a far answer is a tenth to two thirds of this."""
    assert_is_exact(kind, 1_500, error=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_few_rows_are_those_of_exact_draws(kind):
    assert_is_exact(kind, 4_000, error=0.15 if kind == "heavy_tails" else 0.08)


def draws_of(posterior: Any) -> Any:
    """Return the draws that predict."""
    return posterior._shown_as("auto").draws


def predicted_by(posterior: Any, draws: Any, new: dict[str, Any]) -> Any:
    """Return predictions by some draws."""
    factors, over = posterior._shared.beside(posterior._factors, ()), posterior._mixed_over
    return posterior._predicted(new, factors, over=replace(over, draws=draws))


def given_each(posterior, new, name, draws, n):
    """Return mean and standard deviation of a prediction given each of n draws, one after the other, (n, rows)."""
    found = []
    for values in one_by_one(draws, n):
        points = {key: PointMass.of(posterior.model.variables[key], own) for key, own in values.items()}
        evaluator = posterior._evaluator.above(posterior.model.leaves, point=list(points))
        attributes = {"model": posterior.model, "_local": posterior._local, "_shared": SharedFactors()}
        one = type(posterior)._of_parts(_factors=points, _evaluator=evaluator, **attributes)
        told = one._predicted(new, points)[name]
        found.append((told.mean, told.sd))
    return tuple(np.stack(own) for own in zip(*found, strict=True))


PARTLY = {
    "y without x": ("missing_covariate", {"x": [np.nan, 0.5]}, "y"),
    "x from y": ("missing_covariate", {"y": [0.0, 2.0]}, "x"),
    "y where it is missing": ("missing_covariate", {"x": [1.0, 0.5], "y": [np.nan, np.nan]}, "y"),
    "z from y": ("two_outcomes", {"y": NEW}, "z"),
    "y from z": ("two_outcomes", {"z": [0, 1]}, "y"),
    "both": ("two_outcomes", {}, "y"),
    "a row": ("heavy_tails", {"x": [2.0]}, "y"),
}


@pytest.mark.parametrize(("kind", "new", "name"), PARTLY.values(), ids=PARTLY)
def test_all_draws_together_are_each_draw_by_itself(kind, new, name):
    """Whatever is known of new rows: what they hide has its distribution given each draw."""
    posterior, *_ = fitted(kind)
    draws = draws_of(posterior).thinned(20)
    told = predicted_by(posterior, draws, new)[name]
    means, sds = given_each(posterior, new, name, draws.values, 20)
    mean = means.mean(axis=0)
    np.testing.assert_allclose(told.mean, mean, rtol=1e-6, atol=1e-9)
    sd = np.sqrt((sds**2 + (means - mean) ** 2).mean(axis=0))
    np.testing.assert_allclose(told.sd, sd, rtol=1e-6)


def test_components_of_new_rows_have_their_probabilities_given_each_draw():
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(-2.0, 1.0, 9), rng.normal(2.0, 1.0, 8)]
    group = cv.Plate("group", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=OBS)
    mean, tau = cv.Normal("mean", 0.0, 0.1, plates=group), cv.Gamma("tau", 2.0, 2.0, plates=group)
    slope = cv.Normal("slope", 0.0, 0.1, plates=group)
    model = cv.Model(cv.Normal("x", mean[z], tau[z], plates=OBS), cv.Normal("y", slope[z], 4.0, plates=OBS))
    posterior = model.fit({"x": x, "y": np.sign(x) + 0.5 * rng.normal(size=17)}, seed=0)
    draws = draws_of(posterior).thinned(50)
    new = {"x": [-1.0, 0.2, 2.0]}
    told = predicted_by(posterior, draws, new)["y"]
    means, _ = given_each(posterior, new, "y", draws.values, 50)
    np.testing.assert_allclose(told.mean, means.mean(axis=0), rtol=1e-6)


def test_rows_and_calls_do_not_change_what_is_predicted(tmp_path):
    """Summaries asked for before, other rows beside, and a saved posterior: the predictions are the same."""
    model, data, new, name = probit()
    first, second = model.fit(data, seed=0), model.fit(data, seed=0)
    second.summary()
    before = first.predict(new)[name].mean
    np.testing.assert_array_equal(second.predict(new)[name].mean, before)
    alone = [first.predict({"x": [at]})[name].mean[0] for at in NEW]
    np.testing.assert_allclose(alone, before, rtol=1e-12)
    first.save(tmp_path / "p.caviar")
    np.testing.assert_array_equal(cv.load(tmp_path / "p.caviar").predict(new)[name].mean, before)


def test_a_loaded_posterior_has_the_same_intervals(tmp_path):
    posterior, _, new, name = fitted("heavy_tails")
    posterior.save(tmp_path / "p.caviar")
    before, after = posterior.predict(new)[name], cv.load(tmp_path / "p.caviar").predict(new)[name]
    np.testing.assert_array_equal(after.interval(), before.interval())
    np.testing.assert_array_equal(after.sd, before.sd)


def test_many_rows_and_mean_field_have_the_factors():
    """Of many rows nothing is computed for predictions; mean field that was asked for predicts by itself."""
    many, few = answers(cv.logistic, 1_500, 0), logistic()
    fits = [many[0].fit(many[1]), few[0].fit(few[1], uncertainty="mean_field")]
    for posterior in fits:
        told = posterior.predict({"x": NEW})["y"]
        shared = posterior._shared.beside(posterior._factors, ())
        np.testing.assert_array_equal(told.mean, posterior._predicted({"x": NEW}, shared)["y"].mean)
    assert isinstance(fits[0]._uncertainty, Judged)


@pytest.mark.parametrize("kind", ["linear_response", "second_order"])
def test_fits_asked_for_other_figures_say_that_their_predictions_may_be_too_narrow(kind, tmp_path):
    """The exact standard deviation of a far answer is many times as large; draws, which are not made, are near it."""
    _, data, new, name = fitted("probit")
    asked = KINDS["probit"]()[0].fit(data, seed=0, uncertainty=kind)
    told = asked.predict(new)[name]
    assert (told.sd < 0.7 * exact("probit", asked, data, 300).std(axis=0)).any()
    assert told.remark.startswith("They are those of mean field, and may be too narrow")
    assert str(told).count(told.remark) == 1
    asked.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").predict(new)[name].remark == told.remark
    # components far apart hide nothing: no draws would predict, and nothing is told
    theta = cv.NormalGamma("theta", 0.0, 0.1, 1.0, 1.0, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    x = np.random.default_rng(0).normal(size=60) + np.repeat([-20.0, 20.0], 30)
    apart = cv.Model(cv.Normal("x", theta[z], plates=OBS)).fit({"x": x}, seed=0, uncertainty=kind)
    assert apart.predict({})["x"].remark == ""


def test_posteriors_after_earlier_rows_say_that_their_predictions_may_be_too_narrow(tmp_path):
    model, data, new, name = probit()
    more = {"x": data["x"][:4] + 0.1, "y": data["y"][:4]}
    both = {own: np.concatenate([data[own], more[own]]) for own in data}
    posterior = model.fit(data, seed=0).update(more)
    told = posterior.predict(new)[name]
    assert (told.sd < 0.7 * exact("probit", model.fit(both, seed=0), both, 300).std(axis=0)).any()
    assert "the prior was an earlier posterior" in told.remark
    asked = model.fit(more, prior=model.fit(data, seed=0), uncertainty="linear_response")
    assert asked.predict(new)[name].remark == told.remark
    posterior.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").predict(new)[name].remark == told.remark
    # rows that hide nothing, and many rows, have no draws in any fit
    level = cv.Model(cv.Normal("y", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 1, 1), plates=OBS))
    hidden_nowhere = level.fit({"y": [1.0, 2.0]}).update({"y": [3.0, 2.0]})
    assert hidden_nowhere.predict({})["y"].remark == ""
    many = answers(cv.logistic, 700, 0)
    assert many[0].fit(many[1]).update(many[1]).predict(many[2])["y"].remark == ""


def test_a_given_global_has_a_remark():
    posterior, _, new, name = fitted("missing_covariate")
    told = posterior.predict({**new, "b": 1.0})[name]
    assert "may be too narrow" in told.remark
    assert told.remark in str(told)


def test_parts_that_become_one_keep_means_variances_and_quantiles():
    rng, n = np.random.default_rng(0), 4_000
    weights = np.tile(rng.dirichlet(np.ones(n)), (3, 1)).T
    means = rng.standard_t(4, size=(n, 3))
    for sds in (np.full((n, 3), 0.3), rng.gamma(2.0, size=(n, 3)) ** -0.5):
        like, few = Prediction.of_parts(weights, means, sds), merged(weights, means, sds)
        assert len(few[0]) < 250
        told = Prediction.of_parts(*few)
        np.testing.assert_allclose(told.mean, like.mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(told.sd, like.sd, rtol=1e-10)
        levels = [0.005, 0.025, 0.25, 0.5, 0.9, 0.975, 0.995]
        found, most = told.quantile(levels)[:, None], 0.02 * like.sd.max()
        lower, upper = ((weights * ndtr((found + by - means) / sds)).sum(axis=1) for by in (-most, most))
        assert (lower < np.array(levels)[:, None]).all()
        assert (upper > np.array(levels)[:, None]).all()
        np.testing.assert_allclose(few[0].sum(axis=0), 1.0)


def test_curves_are_those_of_the_draws():
    """A band of expected answers is as wide as the weighted draws, not as the factors."""
    posterior, data, _, _ = fitted("probit")
    (own,) = cv.plot.partial_effects(posterior, data, level=0.9).ravel()
    (band,) = own.collections
    vertices = band.get_paths()[0].vertices
    draws = draws_of(posterior)
    lowest = vertices[:, 0].min()
    chance = ndtr(draws.values["a"] + draws.values["b"] * lowest)
    order = np.argsort(chance)
    upper = np.interp(0.95, np.cumsum(draws.weights[order]), chance[order])
    # that of the factors is 0.39
    assert upper == pytest.approx(0.57, abs=0.03)
    assert vertices[vertices[:, 0] == lowest, 1].max() == pytest.approx(upper, abs=0.1)


def test_parts_that_rows_have_in_common_are_mixed():
    """The parts of vectors that a label chooses are the same in all rows, and only their weights are not."""
    means = np.arange(30.0).reshape(2, 5, 1, 3)
    whole = Prediction.of_parts(np.full((2, 5, 4, 1), 0.5), means, np.ones((2, 5, 1, 3)))
    told = replace(whole, parts=tuple((np.full((5, 4, 1), 0.5), own, np.ones((5, 1, 3))) for own in means))
    found, same = (_over(own, 0, np.full(5, 0.2)) for own in (told, whole))
    np.testing.assert_allclose(found.mean, np.broadcast_to(means.mean(axis=(0, 1)), (4, 3)))
    np.testing.assert_array_equal(found.interval(0.9), same.interval(0.9))
