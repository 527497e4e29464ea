"""A table that is given to a fit or to its posterior is the arrays of its columns, whatever their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import caviar as cv

from .schools import SCHOOLS, assert_same, coded, statement, table


@pytest.fixture(scope="module")
def by_hand() -> Any:
    """Fit to arrays that were coded by hand."""
    return statement(size=3).fit(coded(table()), seed=0)


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Fit to the table."""
    return statement().fit(table(), seed=0)


_AS = {
    "pandas": lambda frame: frame,
    "other columns first": lambda frame: frame[frame.columns[::-1]],
    "polars": polars.from_pandas,
    "arrow": pyarrow.Table.from_pandas,
    "categorical": lambda frame: frame.astype({"school": "category"}),
    "polars enum": lambda frame: polars.from_pandas(frame).with_columns(
        polars.col("school").cast(polars.Enum(SCHOOLS))
    ),
    "arrow dictionary": lambda frame: pyarrow.Table.from_pandas(frame.astype({"school": "category"})),
    "nullable numbers": lambda frame: frame.assign(y=frame["y"].astype("Float64")),
    "by name": lambda frame: {
        "y": frame["y"],
        "X": frame[["slope", "intercept"]],
        "school": list(frame["school"]),
    },
}


@pytest.mark.parametrize("kind", _AS)
def test_a_table_is_its_columns(kind: str, by_hand: Any) -> None:
    posterior = statement().fit(_AS[kind](table()), seed=0)
    assert_same(posterior, by_hand)
    assert posterior.names.plate("school") == SCHOOLS
    assert posterior.names.entries("beta") == ("intercept", "slope")


def test_a_table_on_disk_is_its_columns(tmp_path: Path, by_hand: Any) -> None:
    frame = table().assign(school=coded(table())["school"])
    frame.drop(columns="note").to_parquet(tmp_path / "pupils.parquet", index=False)
    posterior = statement(names=SCHOOLS).fit(cv.scan(tmp_path / "pupils.parquet"), seed=0)
    np.testing.assert_allclose(posterior["effect"].mean, by_hand["effect"].mean, rtol=1e-12)


@pytest.mark.usefixtures("figures_of_factors")
def test_what_is_asked_afterwards_takes_tables_too(fitted: Any, by_hand: Any) -> None:
    frame, arrays = table(), coded(table())
    shuffled = frame.sample(frac=1, random_state=0)[frame.columns[::-1]]
    rest = {name: value for name, value in arrays.items() if name != "y"}
    told = fitted.predict(frame.drop(columns="y"))
    np.testing.assert_array_equal(told["y"].mean, by_hand.predict(rest)["y"].mean)
    again = fitted.predict(shuffled.drop(columns="y")).to_frame()
    np.testing.assert_allclose(again.loc[frame.index, "y_mean"], told["y"].mean, rtol=1e-12)
    assert fitted.elbo_at({}, shuffled) == pytest.approx(by_hand.elbo, rel=1e-12)
    assert fitted.is_fit_of(shuffled)
    assert fitted.share_seen(shuffled) == 1.0
    new = {name: value[:7] for name, value in arrays.items()}
    assert_same(fitted.update(frame.iloc[:7]), by_hand.update(new))
    drawn = fitted.predictive(data=frame.drop(columns="y"), seed=1)["y"]
    np.testing.assert_array_equal(drawn, by_hand.predictive(data=rest, seed=1)["y"])
    response = fitted.linear_response(shuffled).sd("effect")
    np.testing.assert_allclose(response, by_hand.linear_response(arrays).sd("effect"), rtol=1e-6)


def test_cross_validation_of_a_table(fitted: Any, by_hand: Any) -> None:
    pairs = zip(
        fitted.cross_validate(table(), n_folds=2),
        by_hand.cross_validate(coded(table()), n_folds=2),
        strict=True,
    )
    for (rows, own), (same, other) in pairs:
        np.testing.assert_array_equal(rows, same)
        assert_same(own, other)


def test_the_index_of_the_rows_comes_back(fitted: Any) -> None:
    frame = table().iloc[[4, 1, 9]].drop(columns="y")
    told = fitted.predict(frame)
    assert list(told.to_frame().index) == list(frame.index)
    np.testing.assert_array_equal(told.to_frame()["y_sd"], told["y"].standard_deviation)
    gamma = cv.NormalGamma("theta", 0, 1, 1, 1)
    model = cv.Model(cv.Normal("y", gamma, plates=cv.Plate("obs")))
    rows = table()[["y"]]
    density: Any = model.fit(rows).log_predictive(rows.iloc[::-1])
    assert list(density.index) == list(rows.index[::-1])
    plain = model.fit({"y": rows["y"].to_numpy()}).log_predictive({"y": rows["y"].to_numpy()})
    np.testing.assert_array_equal(density.to_numpy(), plain[::-1])


def test_missing_values_of_a_table_are_missing() -> None:
    frame = table().astype({"y": "Float64"})
    frame.iloc[3, frame.columns.get_loc("y")] = pd.NA
    arrays = coded(frame.astype({"y": float}))
    assert np.isnan(arrays["y"][3])
    assert_same(statement().fit(frame, seed=0), statement(size=3).fit(arrays, seed=0))


def test_columns_of_the_fit_are_remembered_in_their_order() -> None:
    obs = cv.Plate("obs")
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 1.0, plates=obs))
    frame = table()
    posterior = model.fit({"X": frame[["slope", "intercept"]], "y": frame["y"]})
    assert posterior.names.entries("w") == ("slope", "intercept")
    told = posterior.predict({"X": frame[["intercept", "note", "slope"]].iloc[:5]})["y"].mean
    expected = frame[["slope", "intercept"]].to_numpy()[:5] @ posterior["w"].mean
    np.testing.assert_allclose(told, expected, rtol=1e-12)
    np.testing.assert_array_equal(posterior.predict(frame.drop(columns="y").iloc[:5])["y"].mean, told)
    with pytest.raises(cv.DataError, match="no column 'slope', which 'X' needs; did you mean 'slopes'"):
        posterior.predict({"X": frame[["intercept"]].assign(slopes=0.0)})


def test_a_plate_of_columns_has_their_names() -> None:
    obs, column = cv.Plate("obs"), cv.Plate("column", 2)
    level = cv.Normal("level", 0.0, 0.01, plates=column)
    model = cv.Model(cv.Normal("x", level, 1.0, plates=(obs, column)))
    frame = pd.DataFrame({"width": [1.0, 2.0, 3.0], "height": [10.0, 20.0, 33.0]})
    posterior = model.fit({"x": frame})
    assert posterior.names.plate("column") == ("width", "height")
    assert [row.index for row in posterior.summary().rows] == ["column width", "column height"]
    assert posterior.elbo_at({}, {"x": frame[["height", "width"]]}) == pytest.approx(
        posterior.elbo, rel=1e-12
    )


_REFUSED = {
    "a misspelt column": (
        lambda frame: frame.rename(columns={"slope": "Slope"}),
        "no column 'slope', which 'X' needs; did you mean 'Slope'",
    ),
    "a misspelt observed variable": (
        lambda frame: frame.rename(columns={"y": "Y"}),
        "no column 'y', which the observed variable 'y' needs; did you mean 'Y'",
    ),
    "two columns of a name": (
        lambda frame: pd.concat([frame, frame[["slope"]]], axis=1),
        "2 columns named 'slope'",
    ),
    "names of several levels": (
        lambda frame: frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis=1),
        r"2 levels \(a MultiIndex\)",
    ),
    "a column of the name of a hidden variable": (
        lambda frame: frame.assign(effect=1.0),
        "a column 'effect', and the model a hidden variable of that name",
    ),
    "the plan of a table": (lambda frame: polars.from_pandas(frame).lazy(), "LazyFrame"),
    "rows in different orders, after values of the schools": (
        lambda frame: {
            "effect": pd.Series(0.0, index=SCHOOLS),
            "y": frame["y"],
            "X": frame[["intercept", "slope"]].iloc[::-1],
            "school": frame["school"],
        },
        "the rows of 'X' have the index of 'y' in another order",
    ),
    "rows in different orders": (
        lambda frame: {
            "y": frame["y"],
            "X": frame[["intercept", "slope"]].iloc[::-1],
            "school": frame["school"],
        },
        "the rows of 'X' have the index of 'y' in another order",
    ),
    "rows of which one is another": (
        lambda frame: {
            "y": frame["y"].iloc[:-1],
            "X": frame[["intercept", "slope"]].iloc[1:],
            "school": frame["school"].iloc[1:],
        },
        "the rows of 'X' have another index than 'y' .'pupil [0-9]+' where that has 'pupil [0-9]+'.",
    ),
    "rows of two tables": (
        lambda frame: {
            "y": frame["y"],
            "X": frame[["intercept", "slope"]].set_axis(range(7, 47)),
            "school": list(frame["school"]),
        },
        "the rows of 'X' have another index than 'y' .7 where that has 'pupil",
    ),
}


@pytest.mark.parametrize("kind", _REFUSED)
def test_tables_that_are_not_what_the_model_needs_are_refused(kind: str) -> None:
    changed, message = _REFUSED[kind]
    with pytest.raises(cv.DataError, match=message):
        statement().fit(changed(table()))


def test_a_vector_without_names_is_asked_for() -> None:
    with pytest.raises(
        cv.DataError, match="'X' is a vector of several columns, and the model does not name them"
    ):
        statement(entries=None).fit(table())


def test_names_and_columns_that_agree_in_part_are_refused() -> None:
    frame = table()
    with pytest.raises(cv.DataError, match="no column 'intercept', which 'X' needs"):
        statement().fit({**coded(frame), "X": frame[["slope"]].assign(other=1.0)})


@pytest.mark.usefixtures("figures_of_factors")
def test_columns_under_other_names_are_taken_by_place(by_hand: Any) -> None:
    frame = table()
    renamed = frame[["intercept", "slope"]].set_axis(["one", "two"], axis=1)
    posterior = statement().fit({**coded(frame), "X": renamed, "school": frame["school"]}, seed=0)
    assert_same(posterior, by_hand)
    assert posterior.names.entries("beta") == ("intercept", "slope")
    told = posterior.predict({"school": frame["school"].iloc[:3], "X": renamed[["two", "one"]].iloc[:3]})[
        "y"
    ].mean
    arrays = {name: value[:3] for name, value in coded(frame).items() if name != "y"}
    np.testing.assert_array_equal(told, by_hand.predict(arrays)["y"].mean)


def test_weights_of_other_rows_are_refused(by_hand: Any) -> None:
    frame = table()
    weight = pd.Series(np.arange(1.0, 41.0), index=frame.index)
    posterior = statement().fit(frame, seed=0, sample_weight=weight)
    assert_same(posterior, statement(size=3).fit(coded(frame), seed=0, sample_weight=weight.to_numpy()))
    assert posterior.elbo != by_hand.elbo
    turned = weight.sort_values(ascending=False)
    by_name = {"y": frame["y"], "X": frame[["intercept", "slope"]], "school": list(frame["school"])}
    for data, of in ((frame, "the table"), (by_name, "'y'")):
        message = f"the rows of sample_weight have the index of {of} in another order"
        with pytest.raises(cv.DataError, match=message):
            statement().fit(data, sample_weight=turned)
        with pytest.raises(cv.DataError, match=message):
            posterior.linear_response(data, sample_weight=turned)
    with pytest.raises(cv.DataError, match="sample_weight have another index than the table"):
        statement().fit(frame, sample_weight=weight.rename(str.upper))
    # of rows that are only numbered nobody said that they are others
    numbered = pd.Series(weight.to_numpy())
    assert_same(posterior, statement().fit(frame, seed=0, sample_weight=numbered))
