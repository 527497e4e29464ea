"""Labels that are texts are places among names: learnt in their order, kept, and checked ever after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import caviar as cv
from caviar.testing import check_model

from .schools import SCHOOLS, assert_same, coded, statement, table


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Fit to the table."""
    return statement().fit(table(), seed=0)


def _effects(posterior: Any) -> dict[str, float]:
    return dict(zip(posterior.names.plate("school"), posterior["effect"].mean.tolist(), strict=True))


ORDERS = {
    "that of the statement": (("Roosevelt", "Adams", "Lincoln"), lambda frame: frame),
    "that of the categories": (
        None,
        lambda frame: frame.assign(school=pd.Categorical(frame["school"], ["Roosevelt", "Adams", "Lincoln"])),
    ),
    "that of the enum": (
        None,
        lambda frame: polars.from_pandas(frame).with_columns(
            polars.col("school").cast(polars.Enum(["Roosevelt", "Adams", "Lincoln"]))
        ),
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_of_the_names_does_not_matter(order: str, fitted: Any) -> None:
    names, changed = ORDERS[order]
    posterior = statement(names=names).fit(changed(table()), seed=0)
    assert posterior.names.plate("school") == ("Roosevelt", "Adams", "Lincoln")
    by_hand = statement(size=3).fit(coded(table(), ["Roosevelt", "Adams", "Lincoln"]), seed=0)
    assert_same(posterior, by_hand)
    for name, value in _effects(fitted).items():
        assert _effects(posterior)[name] == pytest.approx(value, rel=1e-9)


def test_an_update_knows_its_levels_in_any_order(fitted: Any) -> None:
    more = table().iloc[5:17]
    expected = statement(size=3).fit(coded(table()), seed=0).update(coded(more))
    assert_same(fitted.update(more), expected)
    others = more.assign(school=pd.Categorical(more["school"], ["Roosevelt", "Zuse", "Lincoln", "Adams"]))
    assert_same(fitted.update(others), expected)
    fewer = more[more["school"] != "Adams"]
    assert fitted.update(fewer).names.plate("school") == SCHOOLS
    assert _effects(fitted.update(fewer))["Roosevelt"] == pytest.approx(3.0, abs=0.5)


@pytest.mark.parametrize("how", ["names", "categories"])
def test_a_level_without_rows_is_forecast_from_its_prior(how: str) -> None:
    """By the factors of the fit: integrated over the noise, the figures differ in the fifth digit."""
    names, frame = ("Zuse", *SCHOOLS), table()
    if how == "names":
        posterior = statement(names=names).fit(frame, seed=0, uncertainty="mean_field")
    else:
        frame = frame.assign(school=pd.Categorical(frame["school"], names))
        posterior = statement().fit(frame, seed=0, uncertainty="mean_field")
    assert posterior["effect"].mean[0] == pytest.approx(0.0, abs=1e-12)
    assert posterior["effect"].variance[0] == pytest.approx(10.0)
    told = posterior.predict(frame.drop(columns="y").iloc[:1].assign(school="Zuse", slope=0.0))["y"]
    noise = posterior["tau"].rate / (posterior["tau"].shape - 1)
    beta = posterior["beta"]
    assert told.mean[0] == pytest.approx(beta.mean[0])
    assert told.standard_deviation[0] ** 2 == pytest.approx(10.0 + beta.covariance[0, 0] + noise, rel=1e-6)


def test_unknown_levels_are_named(fitted: Any) -> None:
    frame = table().drop(columns="y").iloc[:3].assign(school=["Adams", "Lincon", "Zuse"])
    with pytest.raises(cv.DataError) as told:
        fitted.predict(frame)
    for word in (
        "'school' has 'Lincon' in row 1",
        "of plate 'school'",
        "Did you mean 'Lincoln'",
        "names=[...]",
    ):
        assert word in str(told.value)
    with pytest.raises(cv.DataError, match="'Zuse' in row 2"):
        fitted.update(table().iloc[:3].assign(school=["Adams", "Lincoln", "Zuse"]))
    with pytest.raises(
        cv.DataError, match="'Zuse' in row 0, which is not one of the names of plate 'school'"
    ):
        statement(names=SCHOOLS).fit(table().assign(school="Zuse"))


@pytest.mark.usefixtures("figures_of_factors")
def test_whole_numbers_as_texts_are_names_and_no_places() -> None:
    frame = table().assign(school=table()["school"].map({"Adams": "10", "Lincoln": "2", "Roosevelt": "7"}))
    posterior = statement().fit(frame, seed=0)
    assert posterior.names.plate("school") == ("10", "2", "7")
    expected = _effects(statement().fit(table(), seed=0))
    found = _effects(posterior)
    assert found["2"] == pytest.approx(expected["Lincoln"], rel=1e-9)
    # the numbers themselves mean the same names, be they whole or, beside missing ones, of floating point
    rest = frame.drop(columns="y")
    told = posterior.predict(rest)["y"].mean
    for kind in (int, float, "Int64"):
        numbers = rest.assign(school=rest["school"].astype(int).astype(kind))
        np.testing.assert_array_equal(posterior.predict(numbers)["y"].mean, told)
    with pytest.raises(cv.DataError, match="'school' has '0' in row 0"):
        posterior.predict(rest.assign(school=0))


def test_categories_that_are_whole_numbers_are_names_unless_they_are_places() -> None:
    codes = table()["school"].map({"Adams": 0, "Lincoln": 1, "Roosevelt": 2})
    plain = statement(size=3).fit(table().assign(school=codes), seed=0)
    assert plain.names.plate("school") is None
    assert_same(statement(size=3).fit(table().assign(school=codes.astype("category")), seed=0), plain)
    years = statement().fit(table().assign(school=(1990 + codes).astype("category")), seed=0)
    assert years.names.plate("school") == ("1990", "1991", "1992")
    np.testing.assert_array_equal(years["effect"].mean, plain["effect"].mean)


def test_missing_labels_are_refused_by_their_row_where_they_choose() -> None:
    for absent in (None, np.nan, pd.NA):
        frame = table().astype({"school": object})
        frame.iloc[6, frame.columns.get_loc("school")] = absent
        with pytest.raises(cv.DataError, match=r"'school'.*(row 6|missing)"):
            statement().fit(frame)


def test_texts_and_numbers_are_not_mixed() -> None:
    frame = table().astype({"school": object})
    frame.iloc[2, frame.columns.get_loc("school")] = 5
    with pytest.raises(cv.DataError, match="labels of 'school' mix texts and other values: row 2 has 5"):
        statement().fit(frame)
    plain = statement(size=3).fit(coded(table()), seed=0)
    with pytest.raises(cv.DataError, match="were numbers where the model was fitted, and are texts here"):
        plain.predict({"X": np.ones((1, 2)), "school": ["Adams"]})


@pytest.mark.parametrize(("size", "told"), [(2, "size 2, but the labels"), (4, "size 4, but the labels")])
def test_as_many_levels_as_places(size: int, told: str) -> None:
    with pytest.raises(cv.PlateError, match=told):
        statement(size=size).fit(table())


def _with_covariate(names: Any = None) -> cv.Model:
    obs, school = cv.Plate("obs"), cv.Plate("school", names=names)
    slope = cv.Normal("slope", 0.0, 0.01)
    mean = slope * cv.Data("funds", plates=school)
    effect = cv.Normal("effect", mean, 1.0, plates=school)
    return cv.Model(cv.Normal("y", effect[cv.Data("school", plates=obs)], 1.0, plates=obs))


def test_values_of_levels_go_with_their_names() -> None:
    frame, funds = table(), {"Roosevelt": 3.0, "Lincoln": -3.0, "Adams": 0.0}
    data = {"y": frame["y"], "school": frame["school"]}
    by_name = _with_covariate().fit({**data, "funds": pd.Series(funds)})
    stated = _with_covariate(list(funds)).fit({**data, "funds": list(funds.values())})
    assert by_name["slope"].mean == pytest.approx(stated["slope"].mean, rel=1e-9)
    assert _effects(by_name) == pytest.approx(_effects(stated), rel=1e-9)
    with pytest.raises(cv.DataError, match="for each name of plate 'school', but the names are texts of the"):
        _with_covariate().fit({**data, "funds": list(funds.values())})


def test_numbers_of_the_statement_need_an_order_of_the_levels() -> None:
    obs, school = cv.Plate("obs"), cv.Plate("school")
    effect = cv.Normal("effect", cv.Constant("start", [3.0, -3.0, 0.0], plates=school), 1.0, plates=school)
    model = cv.Model(cv.Normal("y", effect[cv.Data("school", plates=obs)], 1.0, plates=obs))
    with pytest.raises(cv.DataError, match="'start' has a value for each name of plate 'school'"):
        model.fit(table())
    answer = cv.Categorical("x", cv.Dirichlet("p", [1.0, 2.0, 3.0]), plates=obs)
    with pytest.raises(cv.DataError, match="category of 'x', but the categories are texts of the data"):
        cv.Model(answer).fit({"x": ["a", "b", "c"]})
    named = cv.Categorical("x", cv.Dirichlet("p", [1.0, 2.0, 3.0], names=["c", "b", "a"]), plates=obs)
    posterior = cv.Model(named).fit({"x": ["a", "b", "c", "c"]})
    np.testing.assert_array_equal(posterior["p"].concentration, [3.0, 3.0, 4.0])


def test_observed_categories_may_be_texts_and_missing() -> None:
    obs, item = cv.Plate("obs"), cv.Plate("item", 2)
    p = cv.Dirichlet("p", np.ones(3), plates=item)
    model = cv.Model(cv.Categorical("x", p, plates=(obs, item)))
    frame = pd.DataFrame({"a": ["no", "yes", None, "maybe"], "b": ["yes", "yes", "no", np.nan]})
    posterior = model.fit({"x": frame})
    assert posterior.names.entries("p") == ("maybe", "no", "yes")
    np.testing.assert_array_equal(posterior["p"].concentration, [[2, 2, 2], [1, 2, 3]])
    told = [(row.index, row.mean) for row in posterior.summary().rows[3:]]
    assert told == [("maybe, item b", 1 / 6), ("no, item b", 2 / 6), ("yes, item b", 3 / 6)]


def test_states_of_a_chain_that_are_seen_have_names() -> None:
    time, state = cv.Plate("time"), cv.Plate("state", names=["rain", "sun"])
    initial = cv.Dirichlet("initial", np.ones(2))
    transition = cv.Dirichlet("transition", np.ones(2), plates=state)
    weather = cv.MarkovChain("weather", initial, transition, along=time)
    level = cv.Normal("level", 0.0, 0.01, plates=state)
    model = cv.Model(cv.Normal("x", level[weather], 1.0, plates=time))
    posterior = model.fit({"x": [5.0, 5.5, -5.0, -5.2, 4.9]}, init={"level": [5.0, -5.0]})
    assert {posterior.names.entries(name) for name in ("weather", "initial", "transition")} == {
        ("rain", "sun")
    }
    frame = posterior.local({"x": [5.0, -5.0]}).to_frame()
    assert list(frame["weather"]) == ["rain", "sun"]
    np.testing.assert_allclose(frame["weather_probability_rain"], [1, 0], atol=1e-6)


def test_names_are_saved(tmp_path: Path, fitted: Any) -> None:
    fitted.save(tmp_path / "schools.caviar")
    loaded = cv.load(tmp_path / "schools.caviar")
    assert loaded.names == fitted.names
    rest = table().drop(columns="y").iloc[::-1]
    np.testing.assert_array_equal(loaded.predict(rest)["y"].mean, fitted.predict(rest)["y"].mean)
    assert str(loaded.summary()) == str(fitted.summary())
    statement(names=SCHOOLS).save(tmp_path / "model.caviar")
    again = cv.load(tmp_path / "model.caviar").fit(table(), seed=0)
    assert again.names == statement(names=SCHOOLS).fit(table(), seed=0).names
    assert_same(again, fitted)


def test_a_checkpoint_of_named_data_goes_on(tmp_path: Path, fitted: Any) -> None:
    path = tmp_path / "fit.checkpoint"
    statement().fit(table(), seed=0, checkpoint=path)
    shuffled = table()[table().columns[::-1]]
    assert_same(statement().fit(shuffled, seed=0, checkpoint=path), fitted)


@pytest.mark.parametrize("schedule", ["batch", "incremental"])
@pytest.mark.parametrize("executor", [1, 2])
def test_schedules_and_threads_see_the_same_places(schedule: str, executor: int) -> None:
    own = statement().fit(table(), seed=0, schedule=schedule, executor=executor)
    assert_same(own, statement(size=3).fit(coded(table()), seed=0, schedule=schedule))


_BAD_NAMES = {
    "a text": (lambda: cv.Plate("school", names="ab"), "must be a list of texts"),
    "a name twice": (lambda: cv.Plate("school", names=["a", "a"]), "lists 'a' twice"),
    "another number": (lambda: cv.Plate("school", 3, names=["a", "b"]), "must list 3"),
    "none": (lambda: cv.Plate("school", names=[]), "at least one"),
    "no texts": (lambda: cv.Plate("school", names=["a", 1.5]), "one of them is 1.5"),  # pyright: ignore[reportArgumentType]
    "of a nested plate": (
        lambda: cv.Plate("pupil", within=cv.Plate("school"), names=["a"]),
        "takes no names; 'school' does",
    ),
    "of a vector of another length": (
        lambda: cv.MultivariateNormal("w", np.zeros(3), np.eye(3), names=["a", "b"]),
        "names= of MultivariateNormal 'w' must list 3",
    ),
}


@pytest.mark.parametrize("kind", _BAD_NAMES)
def test_names_that_name_nothing_are_refused(kind: str) -> None:
    state, message = _BAD_NAMES[kind]
    with pytest.raises(cv.ParameterError, match=message):
        state()


def test_two_sets_of_names_for_one_axis_are_refused() -> None:
    obs = cv.Plate("obs")
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), names=["b", "a"])
    columns = cv.Data("X", plates=obs, names=["a", "b"])
    with pytest.raises(cv.ModelError, match="run over the same positions, but have different names"):
        cv.Model(cv.Normal("y", cv.dot(columns, w), 1.0, plates=obs))


@pytest.mark.slow
def test_simulated_data_and_checked_models_know_names() -> None:
    frame = table()
    model, by_hand = statement(), statement(size=3)
    arrays = coded(frame)
    drawn = model.simulate(0, data={"school": list(frame["school"]), "X": frame[["slope", "intercept"]]})
    same = by_hand.simulate(0, data={name: arrays[name] for name in ("school", "X")})
    np.testing.assert_array_equal(drawn["y"], same["y"])
    effect = pd.Series([1.0, 2.0, 3.0], index=["Roosevelt", "Adams", "Lincoln"])
    known = {"school": frame["school"], "X": frame[["slope", "intercept"]]}
    assert model.simulate(0, data=known, given={"effect": effect})["effect"].tolist() == [2.0, 3.0, 1.0]
    with pytest.raises(
        cv.ParameterError, match="data= must be a mapping from names to values; got DataFrame"
    ):
        model.simulate(0, data=frame)
    report = check_model(model, {"school": list(frame["school"]), "X": arrays["X"], "y": arrays["y"]})
    assert report.passed, str(report)
