"""Hidden variables of a row that cannot share a factor: the message says what gives the same model one."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import caviar as cv

OBS, COLUMN = cv.Plate("obs"), cv.Plate("column", 2)
Stated = tuple[cv.Model, dict[str, np.ndarray]]


def label(name: str, plates: object = OBS) -> cv.Categorical:
    return cv.Categorical(name, [0.4, 0.6], plates=plates)


def a_label_for_each_column() -> Stated:
    known = cv.Constant("known", [[0.0, 1.0], [5.0, 3.0]], plates=(cv.Plate("k", 2), cv.Plate("l", 2)))
    x = cv.Normal("x", known[label("z"), label("v", (OBS, COLUMN))], 1.0, plates=(OBS, COLUMN))
    return cv.Model(x), {"x": np.ones((4, 2))}


def two_numbers() -> Stated:
    numbers = [cv.Normal(name, 0.0, 1.0, plates=OBS) for name in ("z", "v")]
    return cv.Model(cv.Normal("x", numbers[0] + numbers[1], 1.0, plates=OBS)), {"x": np.ones(4)}


def two_switches() -> Stated:
    one, other = (cv.Bernoulli(name, 0.5, plates=OBS) for name in ("z", "v"))
    return cv.Model(cv.Normal("x", 5.0 * one + 2.0 * other, 1.0, plates=OBS)), {"x": np.ones(4)}


def a_label_and_a_number_that_do_not_meet() -> Stated:
    known = cv.Constant("known", [0.0, 5.0], plates=cv.Plate("k", 2))
    number = cv.Normal("v", 0.0, 1.0, plates=OBS)
    leaves = cv.Normal("x", known[label("z")], 1.0, plates=OBS), cv.Normal("y", number, 1.0, plates=OBS)
    return cv.Model(*leaves), {"x": np.ones(4), "y": np.ones(4)}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            a_label_for_each_column,
            "'v' has several labels a row: state one plate of all pairs of 'obs', 'column'",
        ),
        (two_numbers, "state 'z' and 'v' as one MultivariateNormal, whose entries dot(array, both) adds up"),
        (two_switches, "'z' is a number: state a Categorical of two categories instead"),
        (a_label_and_a_number_that_do_not_meet, "leave the others factors of their own"),
    ],
)
def test_what_to_state_instead_is_said(state: Callable[[], Stated], words: str) -> None:
    model, data = state()
    with pytest.raises(
        cv.ModelError, match=rf"factors=\('z', 'v'\) cannot be one factor: .*{re.escape(words)}"
    ):
        model.fit(data, data_plate="obs", factors=[("z", "v")])
