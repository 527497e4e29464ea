"""Summaries, tables, plots, reports and ArviZ's data speak in the names of the data and of the statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import caviar as cv
from caviar.cli.app import app

from .schools import SCHOOLS, coded, statement, table


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Fit to the table."""
    return statement().fit(table(), seed=0)


def _varying() -> Any:
    obs, school = cv.Plate("obs"), cv.Plate("school")
    names = ["intercept", "slope"]
    beta = cv.MultivariateNormal("beta", np.zeros(2), np.eye(2) / 10, plates=school, names=names)
    mean = cv.dot(cv.Data("X", plates=obs), beta[cv.Data("school", plates=obs)])
    return cv.Model(cv.Normal("y", mean, 1.0, plates=obs)).fit(table())


def test_summaries_say_names(fitted: Any) -> None:
    told = {(row.variable, row.index) for row in fitted.summary().rows}
    assert told == {
        ("tau", ""),
        *(("effect", f"school {name}") for name in SCHOOLS),
        ("beta", "intercept"),
        ("beta", "slope"),
    }
    assert "slope, school Lincoln" in str(_varying().summary())
    assert "slope, school Lincoln" in _varying().summary()._repr_html_()
    plain = cv.Plate("obs")
    own = cv.MultivariateNormal("m", np.zeros(2), np.eye(2))
    unnamed = cv.Model(cv.MultivariateNormal("x", own, np.eye(2), plates=plain)).fit({"x": np.eye(2)})
    assert [row.index for row in unnamed.summary().rows] == ["[0]", "[1]"]


def test_linear_response_says_names(fitted: Any) -> None:
    rows = fitted.linear_response(table()).summary().rows
    assert [row.index for row in rows] == [row.index for row in fitted.summary().rows]


def test_categories_that_choose_from_a_plate_are_called_by_it() -> None:
    time, state = cv.Plate("time"), cv.Plate("state", names=["calm", "storm"])
    initial, stays = cv.Dirichlet("initial", [1, 1]), cv.Dirichlet("transition", [1, 1], plates=state)
    mean = cv.Normal("mean", 0, 0.01, plates=state)
    s = cv.MarkovChain("s", initial, stays, along=time)
    chain = cv.Model(cv.Normal("x", mean[s], 1.0, plates=time)).fit({"x": [0.0, 0.2, 5.0, 5.1]}, seed=0)
    told = [row.index for row in chain.summary().rows if row.variable in ("initial", "transition")]
    assert told[:2] == ["state calm", "state storm"]
    assert told[2:] == [
        "state calm to calm",
        "state calm to storm",
        "state storm to calm",
        "state storm to storm",
    ]
    assert "state storm to calm" in _labels(cv.plot.forest(chain, "transition"))


def test_a_summary_in_a_console_is_its_table(fitted: Any) -> None:
    assert repr(fitted.summary()) == str(fitted.summary())


@pytest.mark.slow
def test_integration_over_globals_keeps_groups_that_are_texts(fitted: Any) -> None:
    found = fitted.integrated(table(), over="tau")
    assert found.posteriors[0].names.plate("school") == SCHOOLS
    by_hand = statement(size=3).fit(coded(table()), seed=0).integrated(coded(table()), over="tau")
    np.testing.assert_allclose(found.mean("effect"), by_hand.mean("effect"), rtol=1e-6)


def test_a_summary_is_a_table_of_pandas(fitted: Any) -> None:
    frame = fitted.summary(level=0.9, uncertainty="mean_field").to_frame().set_index(["variable", "at"])
    own = fitted["effect"]
    expected = stats.norm(own.mean[1], np.sqrt(own.variance[1])).interval(0.9)
    found = frame.loc[("effect", "school Lincoln")]
    assert found["mean"] == own.mean[1]
    np.testing.assert_allclose([found["lower"], found["upper"]], expected, rtol=1e-9)
    assert len(fitted.summary(max_rows=1).to_frame()) == 3


def test_predictions_are_tables_of_pandas() -> None:
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 2)
    weights = cv.Dirichlet("weights", np.ones(2), names=["low", "high"])
    z = cv.Categorical("z", weights, plates=obs)
    level = cv.Normal("level", 0.0, 0.01, plates=kind)
    model = cv.Model(cv.Normal("x", level[z], 1.0, plates=obs))
    frame = pd.DataFrame({"x": [-5.0, 5.0, 5.5, -4.5]}, index=list("abcd"))
    posterior = model.fit(frame, init={"level": [-5.0, 5.0]})
    told = posterior.predict(frame).to_frame()
    assert list(told.columns) == ["z", "z_probability_low", "z_probability_high"]
    assert list(told["z"]) == ["low", "high", "high", "low"]
    assert list(told.index) == list("abcd")
    np.testing.assert_array_equal(told["z_probability_high"], posterior.local(frame)["z"].probabilities[:, 1])


def test_arviz_has_names_as_labels(fitted: Any) -> None:
    tree = fitted.to_arviz(table(), n_draws=10, seed=0)
    posterior = tree["posterior"]
    assert list(posterior["effect"].coords["school"].values) == list(SCHOOLS)
    assert list(posterior["beta"].coords["beta_dim_0"].values) == ["intercept", "slope"]
    assert list(tree["observed_data"]["y"].coords["obs"].values) == list(table().index)
    own = fitted.to_arviz(n_draws=10, seed=0, coords={"school": ["a", "b", "c"]})["posterior"]
    assert list(own["effect"].coords["school"].values) == ["a", "b", "c"]


def _labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_plots_say_names(fitted: Any) -> None:
    assert _labels(cv.plot.forest(fitted, "effect")) == list(SCHOOLS)
    assert _labels(cv.plot.forest(fitted, "beta")) == ["intercept", "slope"]
    assert _labels(cv.plot.forest(fitted, "effect", only={"school": ["Lincoln"]})) == ["Lincoln"]
    labels = _labels(cv.plot.forest(_varying(), "beta"))
    assert labels[:2] == ["intercept, school Adams", "slope, school Adams"]
    assert labels == [row.index for row in _varying().summary(max_rows=None).rows if row.variable == "beta"]
    assert _labels(cv.plot.forest(fitted, "effect", names={"school": ["a", "b", "c"]})) == ["a", "b", "c"]
    obs, kind = cv.Plate("obs"), cv.Plate("kind", names=["low", "high"])
    weights = cv.Dirichlet("weights", np.ones(2))
    z = cv.Categorical("z", weights, plates=obs)
    level = cv.Normal("level", 0.0, 0.01, plates=kind)
    x = np.array([-5.0, 5.0, 5.5, -4.5])
    mixture = cv.Model(cv.Normal("x", level[z], 1.0, plates=obs)).fit({"x": x}, init={"level": [-5.0, 5.0]})
    ax = cv.plot.weights(mixture)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["low", "high"]
    ax = cv.plot.responsibilities(mixture, {"x": x})
    legend = ax.get_legend()
    told = {text.get_text() for text in legend.get_texts()} if legend else set(_labels(ax))
    assert {"low", "high"} <= told
    plt.close("all")


@pytest.mark.slow
def test_reports_say_names(fitted: Any, tmp_path: Path) -> None:
    cv.report.write(fitted, tmp_path / "report.html", table())
    page = (tmp_path / "report.html").read_text()
    for name in (*SCHOOLS, "intercept", "slope"):
        assert name in page


def test_the_command_line_reads_and_says_names(fitted: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "schools.caviar")
    frame = table().drop(columns="y").iloc[::-1]
    frame.to_csv(tmp_path / "new.csv", index=False)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, list(words), prog_name="caviar")
        assert result.exit_code == 0, result.output
        return result.output

    shown = run("show", str(tmp_path / "schools.caviar"))
    assert "school Lincoln" in shown
    assert "slope" in shown
    told = tmp_path / "told.csv"
    run("predict", str(tmp_path / "schools.caviar"), str(tmp_path / "new.csv"), "-o", str(told))
    np.testing.assert_allclose(pd.read_csv(told)["y_mean"], fitted.predict(frame)["y"].mean, rtol=1e-12)


@pytest.mark.usefixtures("figures_of_factors")
def test_mixtures_of_tables_say_columns() -> None:
    faithful = cv.datasets.load_faithful()
    frame = pd.DataFrame(faithful.values, columns=list(faithful.columns))
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(frame)
    assert "waiting, component 1" in [row.index for row in mixture.posterior_.summary().rows]


def test_intervals_and_quantiles_are_those_of_the_marginals(fitted: Any) -> None:
    beta, tau = fitted["beta"], fitted["tau"]
    sd = np.sqrt(np.diagonal(beta.covariance))
    np.testing.assert_allclose(beta.interval(0.8), stats.norm(beta.mean, sd).interval(0.8), rtol=1e-9)
    np.testing.assert_allclose(
        tau.quantile(0.1), stats.gamma(tau.shape, scale=1 / tau.rate).ppf(0.1), rtol=1e-9
    )
    obs = cv.Plate("obs")
    joint = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0, 1, 2, 1), plates=obs)).fit(
        {"x": [1.0, 2.0, 4.0]}
    )
    own = joint["theta"]
    scale = np.sqrt(own.rate / own.shape / own.mean_precision)
    low, high = own.interval(0.5).mean
    np.testing.assert_allclose(
        [low, high], stats.t(2 * own.shape, own.mean.mean(), scale).interval(0.5), rtol=1e-9
    )
    precision = stats.gamma(own.shape, scale=1 / own.rate)
    np.testing.assert_allclose(own.quantile(0.25).precision, precision.ppf(0.25), rtol=1e-9)


def test_intervals_of_points_and_of_what_is_known_in_part() -> None:
    point = statement().fit(table(), point=["tau"])["tau"]
    np.testing.assert_array_equal(point.interval(0.9), [point.mean, point.mean])
    partly = statement(names=SCHOOLS).fit(
        {
            **dict(table()[["y", "school"]]),
            "X": table()[["intercept", "slope"]],
            "effect": [0.5, np.nan, np.nan],
        }
    )["effect"]
    low, high = partly.interval(0.9)
    assert low[0] == high[0] == 0.5
    expected = stats.norm(partly.mean[1:], np.sqrt(partly.variance[1:])).interval(0.9)
    np.testing.assert_allclose([low[1:], high[1:]], expected, rtol=1e-9)


def test_labels_have_no_interval_and_levels_are_checked(fitted: Any) -> None:
    obs, group = cv.Plate("obs"), cv.Plate("group", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=group)
    level = cv.Constant("level", [-1.0, 1.0], plates=cv.Plate("kind", 2))
    x = cv.Normal("x", level[z[cv.Data("group", plates=obs)]], 1.0, plates=obs)
    posterior = cv.Model(x).fit({"x": [-1.0, 1.2, 0.8], "group": [0, 1, 1]})
    with pytest.raises(cv.ModelError, match="a Categorical has no quantiles"):
        posterior["z"].interval()
    for call in (lambda: fitted["tau"].interval(1.0), lambda: fitted["tau"].quantile(0)):
        with pytest.raises(cv.ParameterError, match="must lie between 0 and 1"):
            call()


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("is_learnt", [False, True])
def test_widths_that_labels_choose_have_the_names_of_their_vector(is_learnt: bool, tmp_path: Path) -> None:
    """The plate of the label runs along the vector, not the plate that it chooses from."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3))
    frame = pd.DataFrame(X, columns=["age", "dose", "sex"]).assign(y=2 * X[:, 0] + 0.5 * rng.normal(size=30))

    def fitted(data: Any, names: Any) -> Any:
        obs, entry, kind = cv.Plate("obs"), cv.Plate("entry", 3), cv.Plate("kind", 2)
        known = cv.Constant("widths", [1.0, 1000.0], plates=kind)
        widths = cv.Gamma("widths", 2.0, [2.0, 0.01], plates=kind) if is_learnt else known
        narrow = cv.Categorical("narrow", cv.Dirichlet("share", [1, 1]), plates=entry)
        w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(widths[narrow]), names=names)
        y = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 4.0, plates=obs)
        return cv.Model(y).fit(data, seed=0)

    posterior = fitted(frame[["y", "sex", "dose", "age"]], ["age", "dose", "sex"])
    by_hand = fitted({"X": X, "y": frame["y"].to_numpy()}, None)
    assert posterior.elbo == by_hand.elbo
    np.testing.assert_array_equal(posterior["w"].mean, by_hand["w"].mean)
    said = str(posterior.summary())
    assert "entry dose, [1]" in said
    assert "kind age" not in said
    for number, (own, data) in enumerate(
        [(posterior, frame), (by_hand, {"X": X, "y": frame["y"].to_numpy()})]
    ):
        cv.report.write(own, tmp_path / f"{number}.html", data)
    assert "dose" in (tmp_path / "0.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("n_inputs", [1, 2])
def test_inputs_of_a_chain_have_names_of_their_own(n_inputs: int) -> None:
    """The entries of inputs and of their weights are the same places, the entries of a state are others."""
    names = ["sun", "rain"][:n_inputs]
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(30, n_inputs)), columns=names).assign(y=rng.normal(size=30))

    def fitted(data: Any, names: Any) -> Any:
        time, row = cv.Plate("time"), cv.Plate("row", 1)
        level = cv.LinearGaussianChain(
            "level",
            mean=cv.MultivariateNormal("first", [0.0], [[1.0]], names=names and ["height"]),
            precision=[[1.0]],
            transition=[[0.9]],
            noise_precision=[[1.0]],
            along=time,
            inputs=cv.Data("u", plates=time, names=names),
            input_weights=cv.MultivariateNormal("effect", np.zeros(n_inputs), np.eye(n_inputs), plates=row),
        )
        return cv.Model(cv.Normal("y", cv.dot([1.0], level), 1.0, plates=time)).fit(data, seed=0)

    posterior = fitted(frame[["y", *names[::-1]]], names)
    by_hand = fitted({"u": frame[names].to_numpy(), "y": frame["y"].to_numpy()}, None)
    np.testing.assert_array_equal(posterior["effect"].mean, by_hand["effect"].mean)
    assert posterior.names.entries("effect") == tuple(names)
    assert posterior.names.entries("level") == ("height",)


@pytest.mark.parametrize("family", ["Normal", "Categorical"])
def test_densities_of_linear_response_are_of_tables_too(family: str) -> None:
    """Texts, their order and the index of a table are those of the fit; the numbers are those of arrays."""
    rng = np.random.default_rng(7)
    places = rng.integers(3, size=40)
    words = np.array(["aa", "kk", "mm"])[places]
    obs, group = cv.Plate("obs"), cv.Plate("group")
    of = cv.Data("g", plates=obs)
    if family == "Normal":
        leaf: Any = cv.Normal("c", cv.Normal("a", 0.0, 1.0, plates=group)[of], 1.0, plates=obs)
    else:
        leaf = cv.Categorical("c", cv.Dirichlet("p", np.ones(3), plates=group)[of], plates=obs)
    values = rng.normal(size=40) if family == "Normal" else words
    frame = pd.DataFrame({"g": np.where(rng.random(40) < 0.5, "u", "v"), "c": values}, index=range(5, 45))
    posterior = cv.Model(leaf).fit(frame, seed=0)
    found = posterior.linear_response(frame).log_predictive(frame.iloc[::-1])
    assert list(found.index) == list(range(44, 4, -1))
    # a single factor is its own linear response
    exact = posterior.log_predictive(frame)
    np.testing.assert_allclose(found.loc[frame.index], exact, atol=1e-9)
    with pytest.raises(cv.DataError, match="'g' has 'w' in row 0"):
        posterior.linear_response(frame).log_predictive(frame.assign(g="w"))


def test_densities_of_linear_response_refuse_what_cannot_be() -> None:
    answer = cv.Bernoulli("answer", cv.Beta("p", 1, 1), plates=cv.Plate("obs"))
    data = {"answer": [1, 0, 1]}
    response = cv.Model(answer).fit(data).linear_response(data)
    for wrong in (0.5, -1.0, 2.0):
        with pytest.raises(cv.DataError, match="'answer'"):
            response.log_predictive({"answer": [1.0, wrong]})


def test_values_with_names_go_to_their_groups(fitted: Any) -> None:
    """A Series is read by its index, as in the data: where a start begins, and what a density is given."""
    turned = pd.Series([1.0, -2.0, 3.0], index=["Roosevelt", "Adams", "Lincoln"])
    placed = np.array([-2.0, 3.0, 1.0])
    model = statement()
    one, other = (model.fit(table(), seed=0, init={"effect": own}, max_iter=1) for own in (turned, placed))
    assert one.elbo_trace[0] == other.elbo_trace[0]
    others = {"tau": 2.0, "beta": np.array([0.5, 1.0])}
    rows = table().iloc[:5]
    found = fitted.log_predictive(rows, given={**others, "effect": turned})
    mean = rows["school"].map(turned) + 0.5 + rows["slope"]
    np.testing.assert_allclose(found, stats.norm.logpdf(rows["y"], mean, np.sqrt(0.5)), atol=1e-9)


def test_sensitivities_say_names(fitted: Any) -> None:
    text = str(fitted.linear_response(table()).sensitivity_table())
    assert "[0]" not in text
    assert any(f"[{school}]" in text for school in SCHOOLS)
    assert "[slope]" in text or "[intercept]" in text
