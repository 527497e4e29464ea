"""Chains whose noise is learnt: the default start ends as high as one from a fit in the data's units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts.products.columns import Setting
from caviar.engine.starts.products.steps import widths_of_steps
from starts.test_basis import made_from

TIME, ROW = cv.Plate("time"), cv.Plate("row", 1)
N = 100


def gamma(name: str, rate: float, *plates: cv.Plate) -> cv.Gamma:
    return cv.Gamma(name, 2.0, rate, plates=plates)


def moved_by_inputs(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    """A level that known inputs push, seen with wide noise."""
    u = np.repeat([1.0, 0.0, 1.0, 0.0, 1.0], N // 5)
    level = np.zeros(N)
    for t in range(1, N):
        level[t] = 0.9 * level[t - 1] + 0.8 * u[t] + 0.1 * rng.normal()
    y = level + 0.2 * rng.standard_t(3, N)
    chain = cv.LinearGaussianChain(
        "level",
        mean=[0.0],
        precision=[[unit**-2]],
        transition=cv.MultivariateNormal("decay", [0.0], [[1.0]], plates=ROW),
        noise_precision=cv.diagonal(gamma("steps", 0.02 * unit**2, ROW)),
        along=TIME,
        inputs=cv.Data("u", plates=TIME),
        input_weights=cv.MultivariateNormal("effect", [0.0], [[0.1 * unit**-2]], plates=ROW),
    )
    noise = cv.Gamma("weights", 1.5, 1.5, plates=TIME) * gamma("noise", 0.1 * unit**2)
    return cv.Model(cv.Normal("y", cv.dot([1.0], chain), noise, plates=TIME)), {
        "y": unit * y,
        "u": u[:, None],
    }


def coefficients_in_time(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    """A regression whose coefficients wander."""
    X = rng.normal(size=(N, 2))
    y = (X * np.cumsum(0.3 * rng.normal(size=(N, 2)), axis=0)).sum(axis=1) + 0.3 * rng.normal(size=N)
    chain = cv.LinearGaussianChain(
        "coefficients",
        mean=np.zeros(2),
        precision=np.eye(2) * 1e-3 * unit**-2,
        transition=np.eye(2),
        noise_precision=cv.diagonal(gamma("steps", 0.02 * unit**2, cv.Plate("coefficient", 2))),
        along=TIME,
    )
    mean = cv.dot(cv.Data("X", plates=TIME), chain)
    return cv.Model(cv.Normal("y", mean, gamma("noise", 0.1 * unit**2), plates=TIME)), {"y": unit * y, "X": X}


def seen_vectors(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    """States that vectors tell, with Wishart precisions."""
    y = np.cumsum(0.5 * rng.normal(size=(N, 2)), axis=0) + rng.normal(size=(N, 2))
    chain = cv.LinearGaussianChain(
        "state",
        mean=np.zeros(2),
        precision=np.eye(2) * 1e-3 * unit**-2,
        transition=np.eye(2),
        noise_precision=cv.Wishart("steps", 3.0, 0.02 * unit**2 * np.eye(2)),
        along=TIME,
    )
    leaf = cv.MultivariateNormal("y", chain, cv.Wishart("noise", 3.0, 0.1 * unit**2 * np.eye(2)), plates=TIME)
    return cv.Model(leaf), {"y": unit * y}


def level_and_slope(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    """A local linear trend: a level that stays where its prior has it costs little, for the slope does its work."""
    slope = np.cumsum(0.1 * rng.normal(size=2 * N))
    y = np.cumsum(slope + 0.3 * rng.normal(size=2 * N)) + rng.normal(size=2 * N)
    chain = cv.LinearGaussianChain(
        "trend",
        mean=np.zeros(2),
        precision=np.eye(2) * 1e-6,
        transition=[[1.0, 1.0], [0.0, 1.0]],
        noise_precision=cv.diagonal(cv.Gamma("steps", 1e-3, 1e-3, plates=cv.Plate("part", 2))),
        along=TIME,
    )
    noise = cv.Gamma("noise", 1e-3, 1e-3)
    return cv.Model(cv.Normal("y", cv.dot([1.0, 0.0], chain), noise, plates=TIME)), {"y": unit * y}


@pytest.mark.parametrize("is_learnt", [False, True])
def test_widths_are_kept_only_where_steps_are_learnt(is_learnt: bool) -> None:
    """The variance of the values, as a narrow prior of the noise does not expect it, is that of steps and noise."""
    steps = cv.diagonal(gamma("steps", 1e-5, cv.Plate("part", 1))) if is_learnt else [[1.0]]
    chain = cv.LinearGaussianChain("s", [0.0], [[1.0]], transition=[[1.0]], noise_precision=steps, along=TIME)
    model = cv.Model(cv.Normal("y", cv.dot([1.0], chain), gamma("noise", 1e-5), plates=TIME))
    y = np.random.default_rng(0).normal(0.0, 3.0, N)
    basis = made_from(model, {"y": y})
    found = widths_of_steps(Setting(basis.problem, basis.sample, {}), basis.q)
    assert {own.name for own in found} == ({"steps", "noise"} if is_learnt else set())
    for point in found.values():
        np.testing.assert_allclose(point.mean, 1.0 / y.var(), rtol=1e-9)


def test_no_part_of_a_trend_stays_at_its_prior_in_large_units() -> None:
    model, data = level_and_slope(1e3, np.random.default_rng(2))
    best = model.fit(data, init={"steps": [1e-5, 1e-4], "noise": 1e-6}, seed=0, uncertainty="mean_field")
    found = model.fit(data, seed=0, uncertainty="mean_field")
    assert best["steps"].mean[0] < 1e-4
    assert found.elbo == pytest.approx(best.elbo, abs=1e-3)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "case",
    [pytest.param(moved_by_inputs, marks=pytest.mark.slow), coefficients_in_time, seen_vectors],
)
@pytest.mark.parametrize("unit", [30.0, 1e3])
def test_states_do_not_fall_silent_in_large_units(case: Any, unit: float) -> None:
    model, _ = case(1.0, np.random.default_rng(13))
    in_units, data = case(unit, np.random.default_rng(13))
    found = model.fit(data, seed=0, uncertainty="mean_field")
    near = in_units.fit(data, seed=0, uncertainty="mean_field")
    init = {name: near[name].mean for name in ("steps", "noise", "decay", "effect") if name in near}
    best = model.fit(data, init=init, seed=0, uncertainty="mean_field")
    assert found.elbo > best.elbo - 0.02
