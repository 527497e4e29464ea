"""Checks of a report: data sets of the model, residuals, profiles, priors, standard deviations, provenance."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, gamma, invgamma

import caviar as cv
from caviar.report import gather, page_of
from caviar.report.html.provenance import digest_of

OBS = cv.Plate("obs")
SLEEP = pd.DataFrame(
    {name: cv.datasets.load_sleepstudy().column(name) for name in cv.datasets.load_sleepstudy().columns}
)


@pytest.fixture(scope="module")
def sleep():
    return cv.MixedModel("reaction ~ days + (days | subject)").fit(SLEEP)


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 60)
    table = pd.DataFrame(
        {
            "mass": rng.normal(np.where(group, 50.0, 20.0), 3.0),
            "noise": rng.normal(size=120),
            "kind": np.where(rng.random(120) < 0.1, 1 - group, group).astype(object),
        }
    )
    table["kind"] = table["kind"].map({0: "short", 1: "long"})
    return cv.MixedMixture(2, random_state=0).fit(table), table


def titles(page):
    return {finding["title"]: finding["level"] for finding in page["findings"]}


@pytest.mark.slow
def test_the_place_of_new_groups_is_left_out_and_years_are_whole():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"year": 2000 + np.arange(40) % 9, "school": np.repeat(["a", "b"], 20), "y": rng.normal(size=40)}
    )
    model = cv.MixedModel("y ~ year + (1 | school)").fit(table)
    page = page_of(model, table)
    assert "school b" in page
    assert "(new)" not in page
    assert not re.search(r"\b2,00\d\b", page)


def test_a_wrong_shape_is_a_finding_and_a_right_one_is_none():
    rng = np.random.default_rng(0)
    mean = cv.Normal("mean", 0, 0.01)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=OBS))
    right, wrong = (
        {"x": rng.normal(3, 2, 300)},
        {"x": np.where(rng.random(300) < 0.5, -4, 4) + rng.normal(size=300)},
    )
    page = gather(model.fit(right), right)
    assert titles(page)["The model reproduces the data"] == "good"
    page = gather(model.fit(wrong), wrong)
    assert titles(page)["The model misses something"] == "note"
    assert page["checks"]["replicates"][0]["level"] == "note"
    assert "misses the shape" in page_of(model.fit(wrong), wrong)


@pytest.mark.slow
def test_right_models_are_hardly_ever_blamed():
    """In ten or twenty sets of data of the model a finding comes at most twice; by the rule it has one in a hundred."""
    rng = np.random.default_rng(1)
    model = cv.Model(cv.Poisson("y", cv.Gamma("rate", 1, 1), plates=OBS))
    blamed = 0
    for _ in range(20):
        data = {"y": rng.poisson(3.0, 80)}
        (own,) = gather(model.fit(data, uncertainty="mean_field"), data)["checks"]["replicates"]
        blamed += own["level"] == "note"
    assert blamed <= 2


@pytest.mark.slow
def test_a_mixed_model_shows_its_effects_and_predictions(sleep):
    page = gather(sleep, SLEEP, source="/home/ada/secret/sleepstudy.csv")
    summary = sleep.summary(level=0.95)
    shown = [
        (part["title"].lower(), row["name"], row["mean"]) for part in page["effects"] for row in part["rows"]
    ]
    assert shown == [(row.part, row.name, row.mean) for row in summary.rows]
    assert page["rows"]["predictions"][0]["name"] == "reaction"
    assert titles(page)["Predictions are calibrated"] == "good"
    assert "3 rows are more than 3 standard deviations off" in page["checks"]["residuals"][0]["sentence"]
    assert page["source"] == "sleepstudy.csv"
    text = page_of(sleep, SLEEP, source="/home/ada/secret/sleepstudy.csv")
    assert "secret" not in text
    assert "reaction ~ days + (days | subject)" in text


def test_effects_behind_a_link_are_in_its_units_and_not_exact():
    """One factor, but the expected log density of a logistic function has no closed form."""
    table = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40) // 4 % 2})
    model = cv.MixedModel("y ~ x", family="bernoulli").fit(table)
    page = gather(model, table)
    assert "One factor" not in titles(page)
    assert page["effects_units"] == "in log odds"
    assert "Effects and their standard deviations are in log odds" in page_of(model, table)


def test_residuals_of_a_bent_relation_are_off():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 300)
    table = pd.DataFrame({"x": x, "y": x + x**2 + 0.3 * rng.normal(size=300)})
    model = cv.MixedModel("y ~ x").fit(table)
    assert "the predictor misses something" in gather(model, table)["checks"]["residuals"][0]["sentence"]
    bent = cv.MixedModel("y ~ x + I(x**2)").fit(table)
    assert "no more than chance" in gather(bent, table)["checks"]["residuals"][0]["sentence"]


def test_profiles_say_what_is_typical_of_each_cluster(clusters):
    mixture, table = clusters
    profiles = gather(mixture, table)["profiles"]
    by_name = {line["name"]: line for line in profiles["lines"]}
    order = [own["k"] for own in profiles["clusters"]]
    labels = mixture.predict(table)
    for place, k in enumerate(order):
        rows = table[labels == k]
        cell = by_name["mass"]["cells"][place]
        assert float(cell["first"]) == pytest.approx(rows["mass"].mean(), abs=0.6)
        most = rows["kind"].mode()[0]
        assert by_name["kind"]["cells"][place]["first"].startswith(most)
    assert profiles["telling"][0] == "mass"
    explained = [by_name[name]["apart"] for name in ("mass", "kind", "noise")]
    assert explained == sorted(explained, reverse=True)
    assert explained[0] > 0.9
    assert explained[2] < 0.05
    assert "Profiles of the clusters" in page_of(mixture, table)


def test_priors_are_beside_posteriors():
    data = {"x": [1, 1, 0, 1, 1, 1]}
    page = gather(cv.Model(cv.Bernoulli("x", cv.Beta("p", 2, 3), plates=OBS)).fit(data), data)
    (entry,) = page["entries"]
    assert [entry["prior_low"], entry["prior_high"]] == pytest.approx(beta(2, 3).interval(0.95), rel=0.01)
    widths = [np.diff(beta(*own).interval(0.95))[0] for own in ((7, 4), (2, 3))]
    assert entry["narrower"] == pytest.approx(widths[0] / widths[1], rel=0.01)
    flat = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0), 1.0, plates=OBS))
    (entry,) = gather(flat.fit({"x": [1.0, 2.0]}))["entries"]
    assert entry["prior_low"] is None


def test_a_precision_is_shown_as_a_standard_deviation():
    data = {"x": [1.0, -0.5, 2.0, 0.3, 1.1]}
    model = cv.Model(cv.Normal("x", 0.0, cv.Gamma("tau", 3, 2), plates=OBS))
    posterior = model.fit(data)
    entry = next(own for own in gather(posterior)["entries"] if own["variable"] == "tau as sd")
    q = posterior["tau"]
    draws = gamma(q.shape, scale=1 / q.rate).rvs(400_000, random_state=0) ** -0.5
    assert entry["mean"] == pytest.approx(draws.mean(), rel=2e-3)
    assert entry["sd"] == pytest.approx(draws.std(), rel=2e-2)
    assert [entry["low"], entry["high"]] == pytest.approx(np.quantile(draws, [0.025, 0.975]), rel=5e-3)


def test_a_matrix_of_precisions_gives_the_standard_deviations_of_its_inverse():
    rng = np.random.default_rng(0)
    precision = cv.Wishart("precision", 5.0, np.eye(2))
    model = cv.Model(cv.MultivariateNormal("x", np.zeros(2), precision, plates=OBS))
    posterior = model.fit({"x": rng.normal(size=(12, 2)) * [1.0, 3.0]})
    found = [own for own in gather(posterior)["entries"] if own["variable"] == "precision as sd"]
    q = posterior["precision"]
    for k, entry in enumerate(found):
        # the diagonal of an inverse Wishart is inverse Gamma
        variance = invgamma(0.5 * (q.df - 1), scale=0.5 * q.inverse_scale[k, k])
        assert [entry["low"], entry["high"]] == pytest.approx(np.sqrt(variance.interval(0.95)))
    assert len(found) == 2


def test_a_page_says_when_and_with_which_data_it_was_made():
    data = {"x": [1.0, 2.0, 4.0]}
    posterior = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=OBS)).fit(data)
    facts = dict(gather(posterior, data)["provenance"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d.*", facts["Report made"])
    assert facts["SHA-256 of the data"] == digest_of(data)
    assert "SHA-256 of the data" not in dict(gather(posterior)["provenance"])
    assert digest_of({"x": ["a", None]}) != digest_of({"x": ["a", "b"]})


def test_the_call_has_the_arguments_of_the_fit(tmp_path):
    mean = cv.Normal("mean", 0, 1)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=OBS))
    posterior = model.fit(
        {"x": [1.0, 2.0]}, seed=7, tol=1e-9, point=["tau"], sample_weight=np.array([1.0, 2.0])
    )
    posterior.save(tmp_path / "m.caviar")
    told = "posterior = model.fit(data, seed=7, tol=1e-09, point=['tau'], sample_weight=...)"
    for own in (posterior, cv.load(tmp_path / "m.caviar")):
        assert told in gather(own)["fit"]["call"]
        assert gather(own)["fit"]["remarks"] == [
            "The file keeps the model, its posterior and the arguments of fit, not the data."
        ]
    unseeded = gather(model.fit({"x": [1.0, 2.0]}))["fit"]
    assert "model.fit(data)" in unseeded["call"]
    assert "No seed was given" in unseeded["remarks"][1]
