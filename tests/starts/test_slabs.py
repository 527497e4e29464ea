"""Vectors with zeros under broad priors of their slabs: the default start ends as high as one from the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv

OBS, OUTCOMES = cv.Plate("obs"), cv.Plate("outcome", 3)
N_ROWS, N_COLUMNS, N_EFFECTS = 200, 60, 3


def broad(name: str, *plates: cv.Plate) -> cv.Gamma:
    return cv.Gamma(name, 1e-3, 1e-3, plates=plates)


def predictor(*plates: cv.Plate, of_slabs: cv.Gamma | None = None) -> Any:
    slabs = broad("slabs") if of_slabs is None else of_slabs
    w = cv.SpikeSlab("w", cv.Beta("share", 1, 1), precision=slabs, length=N_COLUMNS, plates=plates)
    return cv.dot(cv.Data("X", plates=OBS), w)


def with_level(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], Any]:
    X, effects = drawn(rng)
    mean = predictor(of_slabs=cv.Gamma("slabs", 1e-9, 1e-9)) + cv.Normal("level", 0, 1e-8)
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("noise", 1e-9, 1e-9), plates=OBS))
    y = unit * (50.0 + X @ effects + rng.standard_normal(N_ROWS))
    return model, {"X": X, "y": y}, unit * effects


def logistic(_: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], Any]:
    X, effects = drawn(rng)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(predictor()), plates=OBS))
    return model, {"X": X, "y": (X @ effects * 2 + rng.logistic(size=N_ROWS) > 0).astype(int)}, 2 * effects


def several_outcomes(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], Any]:
    X, effects = drawn(rng)
    effects = np.stack([effects, -effects, effects])
    y = cv.Normal(
        "y",
        predictor(OUTCOMES, of_slabs=broad("slabs", OUTCOMES)),
        broad("noise", OUTCOMES),
        plates=(OBS, OUTCOMES),
    )
    return (
        cv.Model(y),
        {"X": X, "y": unit * (X @ effects.T + rng.standard_normal((N_ROWS, 3)))},
        unit * effects,
    )


def wide_noise(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], Any]:
    X, effects = drawn(rng)
    noise = cv.Gamma("weights", 2.0, 2.0, plates=OBS) * broad("noise")
    y = unit * (X @ effects + rng.standard_t(3, N_ROWS))
    return cv.Model(cv.Normal("y", predictor(), noise, plates=OBS)), {"X": X, "y": y}, unit * effects


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    effects = np.zeros(N_COLUMNS)
    effects[:N_EFFECTS] = rng.choice([-1.0, 1.0], N_EFFECTS)
    return rng.standard_normal((N_ROWS, N_COLUMNS)), effects


@pytest.mark.parametrize(
    ("case", "unit"),
    [
        (with_level, 1.0),
        (with_level, 1e3),
        (with_level, 1e-3),
        (logistic, 1.0),
        (several_outcomes, 1.0),
        (wide_noise, 1.0),
    ],
)
def test_entries_that_matter_come_in(case: Any, unit: float) -> None:
    model, data, effects = case(unit, np.random.default_rng(0))
    found = model.fit(data, uncertainty="mean_field")
    known = cv.families.SpikeSlab(
        np.where(effects != 0, 1 - 1e-6, 1e-4), effects, np.full(effects.shape, N_ROWS / unit**2)
    )
    best = model.fit(data, init={"w": known}, uncertainty="mean_field")
    assert found.elbo > best.elbo - 0.1
    np.testing.assert_array_equal(found["w"].inclusion > 0.5, effects != 0)


def test_without_effects_none_comes_in() -> None:
    rng = np.random.default_rng(1)
    model = cv.Model(cv.Normal("y", predictor(), broad("noise"), plates=OBS))
    posterior = model.fit({"X": rng.standard_normal((N_ROWS, N_COLUMNS)), "y": rng.standard_normal(N_ROWS)})
    assert posterior["w"].inclusion.max() < 0.1


def test_points_of_slabs_and_noise_begin_so_too() -> None:
    X, effects = drawn(rng := np.random.default_rng(2))
    mean = predictor(of_slabs=cv.Gamma("slabs", 1.0, 1e-9))
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("noise", 1.0, 1e-9), plates=OBS))
    posterior = model.fit({"X": X, "y": X @ effects + rng.standard_normal(N_ROWS)}, point=["slabs", "noise"])
    np.testing.assert_array_equal(posterior["w"].inclusion > 0.5, effects != 0)
