"""Sums and products that have no update, or no meaning, are refused; the message is given word for word."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv

OBS, GROUP, PAIR = cv.Plate("obs"), cv.Plate("group", 3), cv.Plate("pair", 2)


def _normal(name: str = "a", plates: Any = ()) -> cv.Normal:
    return cv.Normal(name, 0.0, 1.0, plates=plates)


def _vector(name: str = "w", size: int = 2, plates: Any = ()) -> cv.MultivariateNormal:
    return cv.MultivariateNormal(name, np.zeros(size), np.eye(size), plates=plates)


def _gamma(name: str = "tau", plates: Any = ()) -> cv.Gamma:
    return cv.Gamma(name, 1.0, 1.0, plates=plates)


def _wishart(name: str = "L", size: int = 2) -> cv.Wishart:
    return cv.Wishart(name, size + 1.0, np.eye(size))


def _data(name: str = "X") -> cv.Data:
    return cv.Data(name, plates=OBS)


def _y(mean: Any, precision: Any = 1.0) -> cv.Normal:
    return cv.Normal("y", mean, precision, plates=OBS)


def _x(precision: Any) -> cv.MultivariateNormal:
    return cv.MultivariateNormal("x", np.zeros(2), precision, plates=OBS)


def _square() -> Any:
    a = _normal()
    return _y(a * a)


def _two_indices() -> Any:
    a = _normal(plates=GROUP)
    return _y(a[_data("left")] - a[_data("right")])


def _twice_in_a_precision() -> Any:
    tau = _gamma()
    return _y(0.0, tau * tau)


def _many_dots() -> Any:
    w = _vector()
    return _y(sum((cv.dot(_data(f"X{i}"), w) for i in range(130)), 0.0 * _normal()))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a variable twice in a product": (
        _square,
        "'a' appears twice in one product of 'mean' of 'y', whose square would need its fourth moment. Use two "
        "variables, or square a known column beforehand.",
    ),
    "one variable with two indices": (
        _two_indices,
        "'a' is used in 'mean' of 'y' with two indices, which couples its elements, so they cannot be "
        "updated all at once. Use two variables; or state the elements as one vector, a = MultivariateNormal('a', "
        "...), and their sum or difference as dot(Data('X', plates=...), a), where each row of X has 1 or -1 in the "
        "columns of its two elements and 0 in the others.",
    ),
    "one variable with two indices, of which one is hidden": (
        lambda: _y(
            (a := _normal(plates=GROUP))[_data("left")]
            - a[cv.Categorical("z", np.full(3, 1 / 3), plates=OBS)]
        ),
        "'a' is used in 'mean' of 'y' with two indices, which couples its elements, so they cannot be "
        "updated all at once. Use two variables, or one MultivariateNormal in a dot product.",
    ),
    "a dot product with a plate of numbers": (
        lambda: _y(cv.dot(_data(), _normal(plates=PAIR))),
        "dot in 'mean' of 'y' takes vectors, but 'a' is a Normal with plates. Numbers that meet in one dot product "
        "cannot be updated in parallel; state them as one MultivariateNormal.",
    ),
    "a dot product with a number": (
        lambda: _y(cv.dot(_data(), _normal())),
        "dot in 'mean' of 'y' takes vectors, but 'a' is a number; multiply with *",
    ),
    "a dot product with a plain number": (
        lambda: _y(cv.dot(2.0, _vector())),
        "dot in 'mean' of 'y' takes vectors; got shape (). Multiply by a number with *.",
    ),
    "a dot product with a matrix": (
        lambda: _y(cv.dot(_vector(), _wishart())),
        "dot in 'mean' of 'y' takes vectors, but 'L' is a matrix",
    ),
    "a dot product with a table": (
        lambda: _y(cv.dot(np.zeros((5, 2)), _vector())),
        "dot in 'mean' of 'y' takes vectors; got shape (5, 2). Give the array plates: Constant('X', array, "
        "plates=obs).",
    ),
    "a dot product of known vectors": (
        lambda: cv.dot(np.zeros(2), np.zeros(2)),
        "dot takes at least one vector of the model, a MultivariateNormal, Data or Constant",
    ),
    "a dot product of sums": (
        lambda: cv.dot(_vector("v") + _vector("w"), _data()),
        "dot takes two vectors, not the sum or product MultivariateNormal('v') + MultivariateNormal('w'); write "
        "dot(a + b, w) as dot(a, w) + dot(b, w)",
    ),
    "a dot product with a product": (
        lambda: cv.dot(_vector("v") * _normal(), _data()),
        "dot takes two vectors, not the sum or product MultivariateNormal('v') * Normal('a'); write dot(a * b, c) as "
        "the sum of a product for each entry, a1 * b1 * c1 + a2 * b2 * c2, each with variables of its own",
    ),
    "vectors of unknown length": (
        lambda: _y(cv.dot(_data("X"), _data("Z"))),
        "dot in 'mean' of 'y': the length of 'X' and 'Z' is unknown; one of the two must be a "
        "MultivariateNormal or a "
        "Constant",
    ),
    "vectors of two lengths": (
        lambda: _y(cv.dot(_vector("v", 2), _vector("w", 3))),
        "dot in 'mean' of 'y' takes two vectors of one length: 'v' has length 2, 'w' has length 3",
    ),
    "too many dot products": (
        _many_dots,
        "'mean' of 'y' has too many dot products; gather known columns in one design matrix",
    ),
    "an array without a name": (
        lambda: _normal() + np.zeros(5),
        "an array in a predictor needs a name and a plate for each axis; got shape (5,). Write Constant('name', "
        "array, plates=obs), or Data('name', plates=obs) and pass the array with the data",
    ),
    "a matrix without a name": (
        lambda: cv.Gamma("tau", 1, 1) * np.eye(2),
        "an array in a predictor needs a name and a plate for each axis; got shape (2, 2). Write Constant('name', "
        "array, plates=obs), or Data('name', plates=obs) and pass the array with the data; one matrix, as "
        "in a precision, is "
        "Constant('name', array)",
    ),
    "a list": (
        lambda: _normal() * [1.0, 2.0],
        "an array in a predictor needs a name and a plate for each axis; got shape (2,). Write Constant('name', "
        "array, plates=obs), or Data('name', plates=obs) and pass the array with the data",
    ),
    "a word": (
        lambda: _normal() + "b",
        "a predictor adds and multiplies numbers, variables, Data and Constant; got str",
    ),
    "a number that is not finite": (
        lambda: _normal() * np.inf,
        "a number in a predictor must be finite; got inf",
    ),
    "a division by zero": (
        lambda: _normal() / 0,
        "a predictor can only be divided by a number other than 0; got 0",
    ),
    "a division by a variable": (
        lambda: 1.0 / _normal(),
        "nothing can be divided by Normal('a'), because a predictor is linear in each variable: multiply "
        "by a variable instead, or put a scale into the precision",
    ),
    "a Gamma in a predictor": (
        lambda: _y(_gamma() * _data()),
        "'mean' of Normal 'y' cannot be the Gamma 'tau'. Use a Normal, or a known value. A positive number in a mean "
        "is a HalfNormal. Its log density, in its term -0.5 precision.x mean.xx, needs the expected x, xx there; a "
        "Gamma has log_x, x.",
    ),
    "a predictor without a precision": (
        lambda: cv.Normal("y", _normal() + 1.0, plates=OBS),
        "'precision' of Normal 'y' is missing; only a joint factor (NormalGamma) includes one",
    ),
    "a product of vectors": (
        lambda: cv.MultivariateNormal("x", _vector("v") * _vector("w"), np.eye(2)),
        "'mean' of MultivariateNormal 'x' is a sum of vectors: each product in it has one vector, as x * v with a "
        "MultivariateNormal v; MultivariateNormal('v') * MultivariateNormal('w') has 2",
    ),
    "a sum where only a known value goes": (
        lambda: cv.MultivariateNormalGamma("t", np.zeros(2), np.eye(2), _gamma("u") * 2.0, 1.0),
        "'shape' of MultivariateNormalGamma 't' must be known: no family is conjugate here. Give a number "
        "or an array",
    ),
    "a sum in a precision": (
        lambda: _y(0.0, _gamma("u") + _gamma("v")),
        "'precision' of Normal 'y' takes a product, as u * tau, but no sum and no dot product: its "
        "logarithm has no expectation in closed form",
    ),
    "a sum of two variables in a rate": (
        lambda: cv.Gamma("t", 1.0, _gamma("u") + _gamma("v") + 1.0),
        "'rate' of Gamma 't' takes a product, as u * tau, and known values added to it, but no other sum "
        "and no dot product: its logarithm has no expectation in closed form",
    ),
    "a known value added to a precision": (
        lambda: _y(0.0, _gamma("u") + 1.0),
        "'precision' of Normal 'y' takes a product, as u * tau, but no sum and no dot product: its "
        "logarithm has no expectation in closed form",
    ),
    "a negative value added to a rate": (
        lambda: cv.Gamma("t", 1.0, _gamma("u") - 1.0),
        "'rate' of Gamma 't' must be positive; its factor -1 is not",
    ),
    "a negative factor of a precision": (
        lambda: _y(0.0, -2.0 * _gamma()),
        "'precision' of Normal 'y' must be positive; its factor -2 is not",
    ),
    "a known factor of zero in a precision": (
        lambda: _y(0.0, _gamma() * cv.Constant("zero", 0.0)),
        "'precision' of Normal 'y' must be positive; 'zero' is zero",
    ),
    "a variable twice in a precision": (
        _twice_in_a_precision,
        "'tau' appears twice in the product in 'precision' of Normal 'y'; use two variables",
    ),
    "a matrix precision without a matrix": (
        lambda: _x(_gamma("u") * _gamma("v")),
        "'precision' of MultivariateNormal 'x' takes a product of numbers and one matrix, a Wishart or a "
        "Constant, as u * precision; got 0 matrices",
    ),
    "a product of matrices": (
        lambda: _x(_wishart("L") * _wishart("M")),
        "'precision' of MultivariateNormal 'x' takes a product of numbers and one matrix, a Wishart or a "
        "Constant, as u * precision; got 2 matrices",
    ),
    "a matrix of another size in a product": (
        lambda: _x(_gamma("u") * _wishart("L", 3)),
        "'precision' of MultivariateNormal 'x' has length 3, but the rest of 'x' has dimension 2",
    ),
    "a diagonal of another size": (
        lambda: _x(cv.diagonal(_gamma(plates=GROUP))),
        "'precision' of MultivariateNormal 'x' is diagonal over plate 'group' of size 3, but 'x' has dimension 2",
    ),
    "a diagonal of unknown size": (
        lambda: _x(cv.diagonal(_gamma(plates=cv.Plate("factor")))),
        "'precision' of MultivariateNormal 'x' is diagonal over plate 'factor', which needs a size: "
        "Plate('factor', D)",
    ),
    "a diagonal of a single number": (
        lambda: cv.diagonal(_gamma()),
        "diagonal takes a variable with a plate for the diagonal, as Gamma('alpha', 1, 1, "
        "plates=Plate('factor', D)); "
        "got Gamma('tau')",
    ),
    "a diagonal as a mean": (
        lambda: cv.MultivariateNormal("x", cv.diagonal(_gamma(plates=PAIR)), np.eye(2)),
        "'mean' of MultivariateNormal 'x' takes no diagonal(...), which is the precision of a MultivariateNormal",
    ),
    "a diagonal as the precision of a number": (
        lambda: _y(0.0, cv.diagonal(_gamma(plates=PAIR))),
        "'precision' of Normal 'y' takes no diagonal(...), which is the precision of a MultivariateNormal",
    ),
    "two constants of one name": (
        lambda: cv.Model(_y(_normal() * cv.Constant("c", 1.0) + cv.Constant("c", 2.0))),
        "two parts of the model are both named 'c': Constant('c') and Constant('c'); use one object where "
        "both are the "
        "same, or rename one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_when_stated(case: str) -> None:
    state, message = REFUSED[case]
    with pytest.raises(cv.CaviarError) as caught:
        state()
    assert str(caught.value) == message


def _fit(**columns: Any) -> cv.Posterior:
    mean = _normal(plates=GROUP)[_data("group")] + cv.dot(_data("X"), _vector())
    usual = {"y": np.zeros(4), "X": np.ones((4, 2)), "group": [0, 1, 2, 1]}
    return cv.Model(_y(mean)).fit({**usual, **columns})


AT_THE_FIT = {
    "labels out of range": (
        {"group": [0, 1, 2, 3]},
        "the data of 'group', which choose from plate 'group' of 'a', must be whole numbers from 0 to 2; got 3",
    ),
    "labels below zero": (
        {"group": [0, 1, 2, -1]},
        "the data of 'group', which choose from plate 'group' of 'a', must be whole numbers from 0 to 2; got -1",
    ),
    "labels that are not whole": (
        {"group": [0, 1, 2, 0.5]},
        "the data of 'group', which choose from plate 'group' of 'a', must be whole numbers from 0 to 2; got 0.5",
    ),
    "a missing covariate": (
        {"X": [[1.0, 2.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]]},
        "'X' has a missing value (NaN) in row 1; only variables may have missing entries: drop or impute such "
        "rows, or give the column a distribution: a variable of this name in the place of Data",
    ),
    "a design matrix of another width": (
        {"X": np.ones((4, 3))},
        "'X' has rows of length 3; in 'mean' of 'y' it meets vectors of length 2",
    ),
    "a design matrix without columns": (
        {"X": np.ones(4)},
        "'X' must have 2 axes (obs, D); its data have shape (4,)",
    ),
}


@pytest.mark.parametrize("case", AT_THE_FIT)
def test_refused_with_the_data(case: str) -> None:
    columns, message = AT_THE_FIT[case]
    with pytest.raises(cv.CaviarError) as caught:
        _fit(**columns)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda w, X: X @ w, r"write a dot product as cv.dot\(Data\('X'"),
        (lambda w, X: np.ones((3, 2)) @ w, r"write a dot product as cv.dot\(cv.Data\('X', plates=...\)"),
        (lambda w, X: w**2, "cannot be raised to a power: a predictor is linear in each variable"),
    ],
)
def test_operators_that_a_predictor_does_not_have(state, message):
    obs = cv.Plate("obs")
    with pytest.raises(cv.ModelError, match=message):
        state(cv.MultivariateNormal("w", np.zeros(2), np.eye(2)), cv.Data("X", plates=obs))


def test_leaves_are_passed_one_by_one():
    x = cv.Normal("x", 0.0, 1.0)
    with pytest.raises(cv.ModelError, match=r"one by one: Model\(\*leaves\)"):
        cv.Model([x])
    assert repr(cv.Model(cv.Normal("y", x, 1.0))) == "Model(y; above: x)"
