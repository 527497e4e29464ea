"""Ordinal mixed models: mode and covariance against a numeric maximum, named levels, predictions, files."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_ndtr, ndtr

import caviar as cv

pytestmark = pytest.mark.first_guess

LEVELS = ("poor", "fair", "good", "great")


def table(n=300, groups=12, seed=0):
    rng = np.random.default_rng(seed)
    judge = rng.integers(groups, size=n)
    x, warm = rng.normal(size=n), rng.integers(2, size=n)
    eta = 0.8 * x - 0.6 * warm + rng.normal(0.0, 0.7, groups)[judge]
    place = np.searchsorted([-1.0, 0.0, 1.2], eta + rng.normal(size=n))
    return pd.DataFrame(
        {
            "rating": np.array(LEVELS)[place],
            "x": x,
            "warm": np.array(["no", "yes"])[warm],
            "judge": [f"judge {k:02}" for k in judge],
        }
    )


def log_joint(theta, matrix, place, prior):
    """Return the log density of thresholds and effects: probabilities of the categories, and a Normal prior."""
    cuts, effects = theta[:3], theta[3:]
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    if np.any(np.diff(cuts) <= 0) or np.abs(theta).max() > 20:
        return -1e6
    eta = matrix @ effects
    shares = ndtr(ends[place + 1] - eta) - ndtr(ends[place] - eta)
    return float(np.log(shares).sum() - 0.5 * effects @ prior @ effects)


def of_maximum(matrix, place, prior):
    """Return mode and covariance by a general optimiser and differences."""

    def gradient(theta):
        return approx_fprime(theta, lambda own: -log_joint(own, matrix, place, prior), 1e-6)

    start = np.concatenate([[-1.0, 0.0, 1.0], np.zeros(matrix.shape[1])])
    found = minimize(
        lambda own: -log_joint(own, matrix, place, prior), start, method="BFGS", options={"gtol": 1e-6}
    )
    steps = 1e-4 * np.eye(len(found.x))
    hessian = np.array([(gradient(found.x + own) - gradient(found.x - own)) / 2e-4 for own in steps])
    return found.x, np.linalg.inv(0.5 * (hessian + hessian.T))


def test_cumulative_probit_is_the_numeric_maximum_with_its_covariance():
    own = table()
    model = cv.MixedModel("rating ~ x + warm", family="ordinal", categories=LEVELS, tol=1e-12).fit(own)
    matrix = np.column_stack([own["x"], own["warm"] == "yes"]).astype(float)
    place = np.array([LEVELS.index(name) for name in own["rating"]])
    prior = np.diag((matrix.std(axis=0) / 2.5) ** 2)
    mode, covariance = of_maximum(matrix, place, prior)
    cuts = model.thresholds()
    np.testing.assert_allclose(cuts["mean"], mode[:3], atol=2e-5)
    np.testing.assert_allclose(model.fixef(), mode[3:], atol=2e-5)
    np.testing.assert_allclose(model.fixed_covariance_, covariance, rtol=2e-3, atol=1e-5)
    assert list(cuts.index) == ["poor | fair", "fair | good", "good | great"]
    rows = {row.name: row for row in model.summary().rows}
    assert rows["x"].sd == pytest.approx(np.sqrt(covariance[3, 3]), rel=1e-3)
    assert rows["fair | good"].upper == pytest.approx(
        mode[1] + 1.959964 * np.sqrt(covariance[1, 1]), rel=1e-3
    )
    assert "information at the mode" in str(model.summary())


@pytest.mark.slow
def test_effects_of_groups_are_at_the_mode_of_their_precision():
    own = table()
    model = cv.MixedModel(
        "rating ~ x + warm + (1 | judge)", family="ordinal", categories=LEVELS, tol=1e-13
    ).fit(own)
    judges = sorted(set(own["judge"]))
    groups = np.equal.outer(own["judge"].to_numpy(), judges)
    matrix = np.column_stack([own["x"], own["warm"] == "yes", groups]).astype(float)
    place = np.array([LEVELS.index(name) for name in own["rating"]])
    tau = float(model.posterior_["precision of 1 | judge"].mean)
    prior = np.diag(np.concatenate([(matrix[:, :2].std(axis=0) / 2.5) ** 2, np.full(len(judges), tau)]))
    mode, covariance = of_maximum(matrix, place, prior)
    np.testing.assert_allclose(model.thresholds()["mean"], mode[:3], atol=2e-4)
    np.testing.assert_allclose(model.ranef()["1 | judge"]["mean"], mode[5:], atol=2e-4)
    np.testing.assert_allclose(model.fixed_covariance_, covariance[:5, :5], rtol=5e-3, atol=1e-4)
    # the thresholds are wider than if the effects were known
    given = np.linalg.inv(np.linalg.inv(covariance)[:3, :3])
    assert np.all(np.diag(covariance)[:3] > 1.5 * np.diag(given))


def test_probabilities_of_named_levels():
    own = table()
    model = cv.MixedModel("rating ~ x + (1 | judge)", family="ordinal", categories=LEVELS).fit(own)
    rows = own.iloc[:5].drop(columns="rating")
    told = model.predict_proba(rows)
    assert list(told.columns) == list(LEVELS)
    assert list(told.index) == list(rows.index)
    np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
    # a Normal predictor: the probability that a wider utility lies below each threshold
    new = model.predict_proba({"x": [0.4], "judge": ["somebody"]}, groups="new").to_numpy()[0]
    posterior = model.posterior_
    effect, slope = posterior["1 | judge"], posterior["common effects"]
    spread = float(np.asarray(effect.variance)[-1])
    wide = np.sqrt(1.0 + spread + 0.16 * float(slope.covariance[0, 0]))
    cuts = (model.thresholds()["mean"].to_numpy() - 0.4 * slope.mean[0] - np.asarray(effect.mean)[-1]) / wide
    np.testing.assert_allclose(np.cumsum(new)[:3], np.exp(log_ndtr(cuts)), atol=5e-3)
    place = np.array([LEVELS.index(name) for name in own["rating"]])
    shares = model.predict_proba(own).to_numpy()[np.arange(len(own)), place]
    assert model.score(own) == pytest.approx(np.log(shares).mean(), rel=1e-12)


def test_the_order_comes_from_the_type_or_from_numbers():
    own = table(120)
    typed = own.assign(rating=pd.Categorical(own["rating"], LEVELS, ordered=True))
    stated = cv.MixedModel("rating ~ x", family="ordinal", categories=LEVELS).fit(own)
    assert cv.MixedModel("rating ~ x", family="ordinal").fit(typed).elbo_ == pytest.approx(
        stated.elbo_, rel=1e-12
    )
    numbers = own.assign(rating=[LEVELS.index(name) + 1 for name in own["rating"]])
    model = cv.MixedModel("rating ~ x", family="ordinal").fit(numbers)
    assert model.categories_ == ["1", "2", "3", "4"]
    assert model.elbo_ == pytest.approx(stated.elbo_, rel=1e-12)
    twice = stated.fit(own, sample_weight=np.full(120, 2.0)).fixed_covariance_
    once = cv.MixedModel("rating ~ x", family="ordinal", categories=LEVELS).fit(own).fixed_covariance_
    np.testing.assert_allclose(twice, 0.5 * once, rtol=0.1)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kept_by", [lambda table: table, pa.Table.from_pandas])
def test_a_type_without_an_order_is_no_order(kept_by):
    """astype("category") has categories by the alphabet: high, low, middle were thresholds in this order."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    places = np.digitize(x + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    texts = pd.Series(np.array(["low", "middle", "high"])[places])
    table = pd.DataFrame({"x": x, "rating": texts.astype("category")})
    model = cv.MixedModel("rating ~ x", family="ordinal")
    with pytest.raises(cv.DataError, match="nothing tells their order"):
        model.fit(kept_by(table))
    levels = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    numbers = model.fit(pd.DataFrame({"x": x, "rating": places})).elbo_
    assert model.fit(kept_by(table.astype({"rating": levels}))).elbo_ == pytest.approx(numbers, abs=1e-6)
    # numbers have an order, whatever the order of their categories
    as_categories = pd.Categorical(places + 1, categories=[3, 1, 2])
    assert model.fit(table.assign(rating=as_categories)).elbo_ == pytest.approx(numbers, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "changed", "message"),
    [
        ({}, {}, "nothing tells their order: give categories="),
        ({"categories": ["poor", "fair"]}, {}, "'rating' has 'g"),
        ({"categories": [*LEVELS, "superb"]}, {}, "no row has the category 'superb'"),
        ({"categories": ["poor", "poor"]}, {}, "categories must be distinct"),
        ({"categories": LEVELS, "formula": "rating ~ 0 + x"}, {}, "replace the intercept"),
        ({"categories": LEVELS, "formula": "rating ~ 1"}, {}, "no common effects"),
        ({"categories": ["poor"]}, {"rating": "poor"}, "is 'poor' in all rows"),
        ({"categories": LEVELS, "family": "gaussian"}, {}, "only family='ordinal' has categories"),
    ],
)
def test_what_is_no_ordinal_model_is_refused(arguments, changed, message):
    own = table(60).assign(**changed)
    with pytest.raises(cv.CaviarError, match=message):
        cv.MixedModel(**{"formula": "rating ~ x", "family": "ordinal", **arguments}).fit(own)


def test_others_have_no_thresholds_and_no_categories():
    rng = np.random.default_rng(1)
    rows = {"y": rng.normal(size=30), "x": rng.normal(size=30)}
    model = cv.MixedModel("y ~ x").fit(rows)
    with pytest.raises(cv.ParameterError, match="predict_proba is for"):
        model.predict_proba(rows)
    with pytest.raises(cv.ParameterError, match="only family='ordinal' has thresholds"):
        model.thresholds()
    binary = cv.MixedModel("y ~ x", family="probit").fit({**rows, "y": (rows["y"] > 0).astype(int)})
    told = binary.predict_proba(rows)
    np.testing.assert_array_equal(told["1"], binary.predict(rows).mean)


def test_saved_and_read_again(tmp_path):
    own = table(120)
    model = cv.MixedModel("rating ~ x + (1 | judge)", family="ordinal", categories=LEVELS).fit(own)
    model.save(tmp_path / "m.caviar")
    again = cv.load(tmp_path / "m.caviar")
    pd.testing.assert_frame_equal(again.thresholds(), model.thresholds())
    pd.testing.assert_frame_equal(again.predict_proba(own), model.predict_proba(own))
    assert str(again.summary()) == str(model.summary())
    assert json.dumps(again.categories_)
