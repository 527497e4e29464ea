"""Random models with one thing wrong: always an error of ours, never another one, a hang or a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

import caviar as cv

from .breakages import OF_ARGUMENTS, OF_DATA, OF_STATEMENTS
from .strategy import Drawn, examples, models


def _assert_refused(call: Callable[[], Any], what: str) -> None:
    try:
        result = call()
    except cv.CaviarError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: not an error of ours: {error!r}") from error
    raise AssertionError(f"{what} was accepted: {result!r}")


@pytest.mark.parametrize("breakage", OF_STATEMENTS)
@examples(25)
@given(drawn=models())
def test_wrong_statements(breakage: str, drawn: Drawn):
    for number, call in enumerate(OF_STATEMENTS[breakage](drawn.stated)):
        _assert_refused(call, f"{breakage} {number}")


@pytest.mark.parametrize("breakage", OF_DATA)
@examples(25)
@given(drawn=models())
def test_wrong_data(breakage: str, drawn: Drawn):
    data = drawn.data
    for name in data:
        for number, wrong in enumerate(OF_DATA[breakage](drawn.stated, data, name)):
            _assert_refused(
                lambda wrong=wrong: drawn.stated.model.fit(wrong, seed=0, max_iter=2),
                f"{breakage} {number} of '{name}'",
            )


@examples(25)
@given(drawn=models())
def test_wrong_arguments(drawn: Drawn):
    data = drawn.data
    for wrong in OF_ARGUMENTS(drawn.stated, data, drawn.n_rows):
        _assert_refused(
            lambda wrong=wrong: drawn.stated.model.fit(data, **{"seed": 0, "max_iter": 2, **wrong}),
            str(wrong),
        )
