"""Arguments of a wrong kind: an error of caviar that says what was expected and what came, and no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv

X = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 7.0])
HUGE = 10**400
RAGGED = [[1, 2], [3]]
OBS, COMPONENT = cv.Plate("obs"), cv.Plate("component", 3)
NORMAL = cv.Normal("v", 0, 1, plates=COMPONENT)


@pytest.fixture(scope="module")
def model() -> cv.Model:
    mean = cv.Normal("mean", 0.0, 1.0, plates=COMPONENT)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=OBS)
    return cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 1.0, 1.0), plates=OBS))


@pytest.fixture(scope="module")
def posterior(model: cv.Model) -> cv.Posterior:
    return model.fit({"x": X}, seed=0, max_iter=2)


STATEMENTS = {
    "a number beyond double precision": (lambda: cv.Normal("n", HUGE, 1.0), "takes a number, an array"),
    "a complex array": (lambda: cv.Normal("n", np.array(1 + 1j), 1.0), "takes a number, an array"),
    "a number as plates": (lambda: cv.Normal("n", 0.0, 1.0, plates=3), "takes a Plate or several; got 3"),
    "a truncation without end": (lambda: cv.StickBreaking("s", 1.0, HUGE), "must be at most 1000000"),
    "no marks of sequences": (
        lambda: cv.MarkovChain("s", [0.5, 0.5], np.eye(2), along=OBS, starts=[]),
        "must be 1 where a sequence begins",
    ),
    "a ragged list in a sum": (lambda: NORMAL + RAGGED, "an array in a predictor needs a name"),
    "a huge number in a product": (lambda: NORMAL * HUGE, "must be a real one of double precision"),
}


@pytest.mark.parametrize(("build", "message"), STATEMENTS.values(), ids=STATEMENTS)
def test_statements(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(cv.ModelError, match=message):
        build()


ARGUMENTS_OF_FIT = {
    "point": (1.5, "point must be a list of names"),
    "order": ([["mean"]], r"order= names \['mean'\], which is not a global"),
    "factors": ([1.5], "factors must be a list of groups of names"),
    "data_plate": (1.5, "data_plate=1.5 is not a plate of the model"),
    "init": (np.array([]), "init is 'auto', 'prior' or a mapping"),
    "n_restarts": (HUGE, "n_restarts must be at most"),
    "sample_weight": (HUGE, "sample_weight must be real numbers"),
}


@pytest.mark.parametrize(("name", "case"), ARGUMENTS_OF_FIT.items())
def test_arguments_of_a_fit(model: cv.Model, name: str, case: tuple[Any, str]) -> None:
    value, message = case
    with pytest.raises(cv.CaviarError, match=message):
        model.fit({"x": X}, **{name: value})


SIMULATIONS = {
    "sizes": ({"sizes": 3}, "sizes= must be a mapping"),
    "data": ({"data": 3}, "data= must be a mapping"),
    "given": ({"given": 3}, "given= must be a mapping"),
    "letters": ({"given": {"mean": ["a", "b", "c"]}}, "given 'mean' must be an array of real numbers"),
    "a ragged list": ({"given": {"z": RAGGED}}, "given 'z' must be an array of real numbers"),
    "complex numbers": ({"given": {"tau": 1j}}, "given 'tau' must be an array of real numbers"),
    "nothing": ({"given": {"z": []}}, r"given 'z' is empty: shape \(0,\)"),
}


@pytest.mark.parametrize(("arguments", "message"), SIMULATIONS.values(), ids=SIMULATIONS)
def test_simulations(model: cv.Model, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(cv.ParameterError, match=message):
        model.simulate(0, **{"sizes": {"obs": 3}, **arguments})


def test_values_of_a_joint_density(model: cv.Model) -> None:
    with pytest.raises(cv.ParameterError, match="values must be a mapping"):
        model.log_joint(3)  # type: ignore[arg-type]
    draw = model.simulate(0, sizes={"obs": 3})
    with pytest.raises(cv.ParameterError, match="'x' must be an array of real numbers"):
        model.log_joint({**draw, "x": ["a", "b", "c"]})


POSTERIORS = {
    "a list as a name": (lambda p: p[[]], r"has no factor \[\]"),
    "a truth value for a number": (lambda p: p.sample(True), "n must be a whole number of at least 1"),
    "draws without end": (lambda p: p.sample(HUGE), "n must be at most"),
    "a level in letters": (lambda p: p.summary(level="a"), "level must lie between 0 and 1; got 'a'"),
    "factors that are none": (lambda p: p.elbo_at(3, {"x": X}), "factors must map names to distributions"),
}


@pytest.mark.parametrize(("call", "message"), POSTERIORS.values(), ids=POSTERIORS)
def test_posteriors(posterior: cv.Posterior, call: Callable[[cv.Posterior], Any], message: str) -> None:
    with pytest.raises(cv.CaviarError, match=message):
        call(posterior)


@pytest.mark.parametrize("name", ["n_draws", "n_directions", "replications"])
@pytest.mark.parametrize("value", [1.5, "a", -1, True, None])
def test_numbers_of_the_kit(model: cv.Model, name: str, value: Any) -> None:
    with pytest.raises(cv.ParameterError, match=f"{name} must be a whole number of at least"):
        cv.testing.check_model(model, {"x": X}, **{name: value})


def test_the_kit_takes_a_model_and_data(model: cv.Model) -> None:
    with pytest.raises(cv.ParameterError, match=r"check_model takes a caviar.Model; got 3"):
        cv.testing.check_model(3, {"x": X})  # type: ignore[arg-type]
    with pytest.raises(cv.ParameterError, match="data must be a mapping from names to arrays"):
        cv.testing.check_model(model, 3)  # type: ignore[arg-type]


def test_a_number_is_no_path() -> None:
    """It would be the descriptor of an open file, which reading then closes."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        with pytest.raises(cv.DataError, match="a path is a string or a path object; got"):
            cv.load(descriptor)  # type: ignore[arg-type]
        os.fstat(descriptor)
    finally:
        os.close(descriptor)
