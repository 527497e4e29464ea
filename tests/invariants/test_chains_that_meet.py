"""Chains beside other hidden values: tails, threads, blocks, schedules, saved models and more data change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.rows import sequences
from caviar.execution.threads import Threads

pytestmark = pytest.mark.first_guess

TIME, STATE = cv.Plate("time"), cv.Plate("state", 2)
LENGTHS = (30, 7, 1, 42, 20)
BEGINS = cv.Data("starts", plates=TIME)
N = sum(LENGTHS)
STARTS = np.isin(np.arange(N), np.cumsum((0, *LENGTHS))[:-1])


def _labels() -> cv.MarkovChain:
    transition = cv.Dirichlet("transition", [2.0, 1.0], plates=STATE)
    return cv.MarkovChain("s", [0.5, 0.5], transition, along=TIME, starts=BEGINS)


def _level() -> cv.LinearGaussianChain:
    return cv.LinearGaussianChain(
        "level",
        [0.0],
        [[1.0]],
        [[0.9]],
        cv.Wishart("drive", 2.0, [[0.5]]),
        along=TIME,
        starts=BEGINS,
        inputs=cv.Data("u", plates=TIME),
        input_weights=[[0.5]],
    )


def robust() -> cv.Model:
    noise = cv.Gamma("width", 2.0, 2.0, plates=TIME) * cv.Gamma("tau", 2, 1)
    return cv.Model(cv.Normal("x", cv.dot([1.0], _level()), noise, plates=TIME))


def parts() -> cv.Model:
    shares = cv.Dirichlet("shares", np.ones(3), plates=STATE)
    z, part = cv.Categorical("z", shares[_labels()], plates=TIME), cv.Plate("part", 3)
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=part)[z], 4.0, plates=TIME))


def switching() -> cv.Model:
    noise = cv.Gamma("tau", 2, 1, plates=STATE)[_labels()]
    return cv.Model(cv.Normal("x", cv.dot([1.0], _level()), noise, plates=TIME))


MODELS: dict[str, Callable[[], cv.Model]] = {"robust": robust, "parts": parts, "switching": switching}


def data_of(name: str, rng: np.random.Generator) -> dict[str, Any]:
    data: dict[str, Any] = {"x": rng.choice([-2.0, 0.0, 3.0], N) + rng.normal(size=N), "starts": STARTS}
    return data if name == "parts" else {**data, "u": rng.normal(size=(N, 1))}


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[cv.Model, dict[str, Any]]:
    return MODELS[request.param](), data_of(request.param, np.random.default_rng(0))


@pytest.mark.slow
def test_steps_after_the_last_observation_change_nothing(case):
    model, data = case
    kept = np.ones(N, dtype=bool)
    kept[[25, 26, 27, 28, 29, 37, 79]] = False
    gaps = {**data, "x": np.where(kept, data["x"], np.nan)}
    gaps["x"][[3, 50]] = np.nan
    trimmed = {name: values[kept] for name, values in gaps.items()}
    settings: dict[str, Any] = {"init": "prior", "max_iter": 40, "tol": 1e-12}
    whole, cut = model.fit(gaps, **settings), model.fit(trimmed, **settings)
    assert whole.elbo == pytest.approx(cut.elbo, abs=1e-9)
    assert whole.elbo_at({}, trimmed) == pytest.approx(whole.elbo_at({}, gaps), abs=1e-8)


@pytest.mark.thinned(3)
def test_threads_give_the_same_bits(case, monkeypatch):
    """Also where a block is a tile, and each sequence a block."""
    monkeypatch.setattr(sequences, "_BLOCK_NUMBERS", 64)
    monkeypatch.setattr(sequences, "_STEP_NUMBERS", 1)
    model, data = case
    one, three = (model.fit(data, init="prior", max_iter=15, executor=Threads(number)) for number in (1, 3))
    np.testing.assert_array_equal(one.elbo_trace, three.elbo_trace)


@pytest.mark.slow
def test_the_elbo_never_falls_and_sequences_may_come_in_batches(case):
    model, data = case
    batch = model.fit(data, init="prior", tol=1e-9, max_iter=150)
    parts = model.fit(data, init="prior", tol=1e-9, max_iter=150, schedule=cv.Incremental(3))
    for posterior in (batch, parts):
        assert np.all(np.diff(posterior.elbo_trace) > -1e-8)
    assert abs(parts.elbo - batch.elbo) < 0.01 * N


@pytest.mark.slow
def test_saved_models_and_more_data(case, tmp_path):
    model, data = case
    posterior = model.fit(data, init="prior", max_iter=30)
    posterior.save(tmp_path / "chains.caviar")
    again = cv.load(tmp_path / "chains.caviar")
    assert again.elbo_at({}, data) == posterior.elbo_at({}, data)
    one, other = posterior.local(data), again.local(data)
    for name, factor in one.items():
        np.testing.assert_array_equal(factor.mean, other[name].mean)
    more = posterior.update(data, max_iter=5)
    assert np.all(np.diff(more.elbo_trace) > -1e-8)
