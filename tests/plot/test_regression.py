"""Lines are expected responses under q; bands are their intervals and those of new rows."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import caviar as cv
from caviar.estimators.mixed_models import mixed_model
from plot.fits import SLEEP, TRIAL, coins, faithful, logistic, sleep, trial

OBS = cv.Plate("obs")
Z = norm.ppf(0.975)


def lines_of(ax):
    """Return the long lines of a plot: grid and heights."""
    return [drawn.get_xydata().T for drawn in ax.lines if drawn.get_marker() == "None"]


def band_of(ax, number=0):
    """Return the lower and upper ends of a filled band at the points of its grid."""
    path = ax.collections[number].get_paths()[0].vertices
    half = (len(path) - 3) // 2
    return path[1 : half + 1, 1], path[half + 2 : -1, 1][::-1]


@pytest.mark.slow
def test_a_line_is_the_expected_response_of_an_average_group():
    ax = cv.plot.regression(sleep(), SLEEP, "days", n_draws=300)
    (x, y), (_, low), (_, high) = lines_of(ax)
    effects = sleep().posterior_["common effects"]
    design = np.column_stack([np.ones_like(x), x])
    sd = np.sqrt(np.einsum("ni,ij,nj->n", design, effects.covariance, design))
    np.testing.assert_allclose(y, design @ effects.mean, atol=0.15 * sd.max())
    below, above = band_of(ax)
    np.testing.assert_allclose(above - below, 2 * Z * sd, rtol=0.2)
    told = sleep().predict({"days": x, "subject": ["nobody"] * len(x)})
    np.testing.assert_allclose([low, high], told.interval(0.95))


@pytest.mark.slow
def test_a_known_group_has_its_own_line():
    ax = cv.plot.regression(sleep(), SLEEP, "days", by="subject", only=["308", "335"], n_draws=300)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["308", "335"]
    for (x, y), subject in zip(lines_of(ax), [308, 335], strict=True):
        told = sleep().predict({"days": x, "subject": [subject] * len(x)})
        np.testing.assert_allclose(y, told.mean, atol=2.5)
    assert lines_of(ax)[0][1][-1] > lines_of(ax)[1][1][-1] + 100


@pytest.mark.slow
def test_a_line_for_each_level_crosses_where_slopes_differ():
    ax = cv.plot.regression(trial(), TRIAL, "dose", by="arm")
    slopes = {
        label.get_text(): np.polyfit(*xy, 1)[0]
        for label, xy in zip(ax.get_legend().get_texts(), lines_of(ax), strict=True)
    }
    names, mean = trial().names_, trial().posterior_["common effects"].mean
    effect = dict(zip(names, mean, strict=True))
    assert slopes["high"] == pytest.approx(effect["dose"], abs=0.03)
    for arm in ("low", "placebo"):
        (name,) = [own for own in names if arm in own and "dose" in own]
        assert slopes[arm] == pytest.approx(effect["dose"] + effect[name], abs=0.03)


@pytest.mark.slow
def test_three_quantiles_of_numbers_have_a_line_each():
    ax = cv.plot.regression(trial(), TRIAL, "dose", by="age", n_draws=60)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"age = {own:.4g}" for own in np.quantile(TRIAL["age"], [0.1, 0.5, 0.9])]
    assert lines_of(ax)[0][1][0] < lines_of(ax)[2][1][0]


@pytest.mark.slow
def test_the_line_of_a_binary_response_is_a_probability():
    ax = cv.plot.regression(logistic(), coins(), "X 1", n_draws=300)
    ((x, y),) = lines_of(ax)
    draws = logistic().sample(4000, 1)["w"]
    expected = expit(draws[:, :1] + draws[:, 1:] * x)
    np.testing.assert_allclose(y, expected.mean(axis=0), atol=0.015)
    np.testing.assert_allclose(band_of(ax), np.quantile(expected, [0.025, 0.975], axis=0), atol=0.03)
    assert ax.get_ylabel() == "probability of y = 1"


@pytest.mark.slow
def test_names_of_columns_are_those_of_the_table():
    import pandas as pd

    X = pd.DataFrame({"one": np.ones(40), "dose": np.linspace(0, 1, 40)})
    data = {"X": X, "y": 2 * X["dose"]}
    posterior = cv.models.linear_regression(2).fit(data)
    ax = cv.plot.regression(posterior, data)
    assert ax.get_xlabel() == "dose"
    assert [own.get_xlabel() for own in cv.plot.partial_effects(posterior, data)] == ["dose"]


def test_successes_of_trials_are_shares():
    rng = np.random.default_rng(0)
    table = {"n": rng.integers(5, 30, 80), "x": rng.normal(size=80)}
    table["y"] = rng.binomial(table["n"], expit(table["x"]))
    model = cv.MixedModel("y | trials(n) ~ x", family="binomial").fit(table)
    ax = cv.plot.regression(model, table, "x", n_draws=60)
    points = next(drawn for drawn in ax.lines if drawn.get_label() == "row").get_xydata()
    np.testing.assert_allclose(points, np.column_stack([table["x"], table["y"] / table["n"]]))
    x, y = lines_of(ax)[0]
    assert np.abs(y - expit(x)).max() < 0.08


def test_the_formula_is_not_read_again_for_every_draw(monkeypatch):
    made, design_of = [], mixed_model.design_of
    fitted = sleep()
    monkeypatch.setattr(
        mixed_model, "design_of", lambda *own, **more: made.append(1) or design_of(*own, **more)
    )
    cv.plot.regression(fitted, SLEEP, "days", n_draws=30)
    assert len(made) < 10


@pytest.mark.slow
def test_other_columns_are_at_their_means_and_most_common_levels():
    axes = cv.plot.partial_effects(trial(), TRIAL)
    assert [ax.get_xlabel() for ax in axes] == ["dose", "arm", "age"]
    ((x, y),) = lines_of(axes[2])
    told = trial().predict(
        {"dose": np.full(len(x), TRIAL["dose"].mean()), "arm": ["high"] * len(x), "age": x}
    )
    np.testing.assert_allclose(y, told.mean, atol=0.06)
    arms = next(drawn for drawn in axes[1].lines if drawn.get_marker() == "o").get_ydata()
    at = {"dose": np.full(3, TRIAL["dose"].mean()), "age": np.full(3, TRIAL["age"].mean())}
    told = trial().predict({**at, "arm": ["high", "low", "placebo"]})
    np.testing.assert_allclose(arms, told.mean, atol=0.06)
    assert axes[0].get_ylim() == axes[2].get_ylim()


def test_labels_of_a_stated_model_have_their_names():
    school = cv.Plate("school", names=["Adams", "Lincoln"])
    effect = cv.Normal("effect", 0, 0.1, plates=school)
    slope = cv.Normal("slope", 0, 0.1)
    predictor = effect[cv.Data("school", plates=OBS)] + slope * cv.Data("x", plates=OBS)
    rng = np.random.default_rng(0)
    data = {"school": np.tile(["Adams", "Lincoln"], 20), "x": rng.normal(size=40)}
    data["y"] = data["x"] + 4.0 * (data["school"] == "Lincoln") + 0.1 * rng.normal(size=40)
    posterior = cv.Model(cv.Normal("y", predictor, 1.0, plates=OBS)).fit(data)
    ax = cv.plot.regression(posterior, data, by="school", n_draws=60)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Adams", "Lincoln"]
    (_, adams), (_, lincoln) = lines_of(ax)
    assert np.all(np.abs(lincoln - adams - 4) < 0.3)


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: cv.plot.regression(trial(), TRIAL), "known columns are 'dose', 'arm', 'age'; choose one"),
        (lambda: cv.plot.regression(trial(), TRIAL, "mass"), "there is no 'mass'"),
        (lambda: cv.plot.regression(trial(), TRIAL, "arm"), "categories; caviar.plot.partial_effects"),
        (lambda: cv.plot.regression(sleep(), SLEEP, by="subject"), "18 levels, too many.*only="),
        (
            lambda: cv.plot.regression(trial(), TRIAL, "dose", by="arm", only=["none"]),
            "'none', which is not a level",
        ),
        (lambda: cv.plot.partial_effects(trial(), TRIAL, []), "1 to 16 of the known columns; got 0"),
        (
            lambda: cv.plot.partial_effects(faithful(), cv.datasets.load_faithful().values),
            "one number in each row",
        ),
    ],
)
def test_the_message_says_what_to_do(draw, says):
    with pytest.raises(cv.ParameterError, match=says):
        draw()
