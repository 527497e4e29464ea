"""Sizes of the classic models are whole numbers from 1; anything else is refused by the name of the argument."""

import inspect
import math

import pytest

import caviar as cv

SIZES = [
    (name, size)
    for name in cv.models.__all__
    for size, own in inspect.signature(getattr(cv.models, name)).parameters.items()
    if own.annotation == "int"
]


def required(name: str) -> dict:
    """Return what a model cannot be stated without."""
    given = {"n_categories": {"answer": 3}} if name == "latent_class_analysis" else {}
    if name == "mixed_mixture":
        given = {"numbers": ["x"]}
    signature = inspect.signature(getattr(cv.models, name))
    return {own: 2 for own, each in signature.parameters.items() if each.default is each.empty} | given


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_a_size_is_a_whole_number_from_1(name: str, size: str) -> None:
    state, given = getattr(cv.models, name), required(name)
    assert isinstance(state(**given), cv.Model)
    for wrong in (0, -1, 1.5, "two", None, math.nan, True):
        with pytest.raises(cv.ParameterError, match=f"^{size} must be a whole number of at least 1; got "):
            state(**{**given, size: wrong})


def test_most_models_have_sizes() -> None:
    assert len(SIZES) > 50
