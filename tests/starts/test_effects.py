"""Effects whose precision is learnt: the default start ends as high as one from the truth, in any units."""

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


@pytest.mark.thinned(2)
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


def grouped(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    group, of_groups = rng.integers(0, 20, N_ROWS), rng.standard_normal(20)
    level = cv.Normal("level", 0, 1e-12)
    effects = cv.Normal("effects", 0, broad("widths"), plates=cv.Plate("group", 20))
    y = cv.Normal("y", level + effects[cv.Data("of", plates=OBS)], broad("noise"), plates=OBS)
    values = unit * (50.0 + of_groups[group] + rng.standard_normal(N_ROWS))
    return cv.Model(y), {"of": group, "y": values}, {"effects": unit * of_groups}


def grouped_about_a_mean(
    unit: float, rng: np.random.Generator
) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    group, of_groups = rng.integers(0, 20, N_ROWS), 5.0 + rng.standard_normal((20, 2))
    X = np.column_stack([np.ones(N_ROWS), rng.standard_normal(N_ROWS)])
    mean = cv.MultivariateNormal("mean", np.zeros(2), 1e-12 * np.eye(2))
    widths = cv.Wishart("widths", 3.0, np.eye(2))
    effects = cv.MultivariateNormal("effects", mean, widths, plates=cv.Plate("group", 20))
    own = effects[cv.Data("of", plates=OBS)]
    y = cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), own), broad("noise"), plates=OBS)
    values = unit * ((X * of_groups[group]).sum(axis=1) + rng.standard_normal(N_ROWS))
    return cv.Model(y), {"of": group, "X": X, "y": values}, {"effects": unit * of_groups}


def shrunk(unit: float, rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    X, slopes = rng.standard_normal((N_ROWS, 10)), rng.standard_normal(10)
    precision = cv.diagonal(broad("width") * cv.Gamma("of_each", 1, 1, plates=cv.Plate("entry", 10)))
    w = cv.MultivariateNormal("w", np.zeros(10), precision)
    y = cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), cv.Gamma("noise", 1, 1), plates=OBS)
    return cv.Model(y), {"X": X, "y": unit * (X @ slopes + rng.standard_normal(N_ROWS))}, {"w": unit * slopes}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("factors", [None, "apart"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("case", [grouped, grouped_about_a_mean, shrunk])
def test_effects_are_not_held_at_zero_in_any_units(case: Any, unit: float, factors: str | None) -> None:
    model, data, truth = case(unit, np.random.default_rng(0))
    found = model.fit(data, factors=factors, uncertainty="mean_field")
    best = model.fit(data, init=truth, factors=factors, uncertainty="mean_field")
    assert found.elbo > best.elbo - 0.1


def test_a_prior_that_is_narrow_by_intention_is_kept() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N_ROWS, 5))
    w = cv.MultivariateNormal(
        "w", np.zeros(5), cv.diagonal(cv.Gamma("width", 1e6, 1e2, plates=cv.Plate("entry", 5)))
    )
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), cv.Gamma("noise", 1, 1), plates=OBS))
    data = {"X": X, "y": 100.0 * X[:, 0] + rng.standard_normal(N_ROWS)}
    found, plain = (model.fit(data, init=init, uncertainty="mean_field") for init in ("auto", "prior"))
    assert found.elbo > plain.elbo - 0.1
    np.testing.assert_allclose(found["width"].mean, 1e4, rtol=0.05)


def test_points_of_effects_are_not_held_at_zero() -> None:
    model, data, truth = shrunk(1e4, np.random.default_rng(0))
    found = model.fit(data, point=["w"])
    best = model.fit(data, init=truth, point=["w"])
    assert found.elbo > best.elbo - 0.1
    np.testing.assert_allclose(found["w"].value, truth["w"], atol=0.3e4)


def test_what_is_given_beside_effects_does_not_hold_them_at_zero() -> None:
    model, data, truth = grouped(1e4, np.random.default_rng(0))
    found = model.fit(data, init={"level": 50e4}, factors="apart", uncertainty="mean_field")
    best = model.fit(data, init=truth, factors="apart", uncertainty="mean_field")
    assert found.elbo > best.elbo - 0.1


def test_restarts_of_effects_end_elsewhere() -> None:
    rng = np.random.default_rng(1)
    X = np.sqrt(0.1) * rng.standard_normal((100, 200)) + np.sqrt(0.9) * rng.standard_normal((100, 1))
    y = X[:, :5] @ np.array([0.3, -0.3, 0.3, 0.3, -0.3]) + 0.3 * rng.standard_normal(100)
    w = cv.SpikeSlab("w", cv.Beta("share", 1, 1), precision=broad("slabs"), length=200)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), broad("noise"), plates=OBS))
    one, best = (model.fit({"X": X, "y": y}, seed=0, n_restarts=k, uncertainty="mean_field") for k in (1, 8))
    assert best.elbo > one.elbo + 0.5


def test_vectors_of_unlike_lengths_may_share_a_precision() -> None:
    rng = np.random.default_rng(4)
    X, Z, width = rng.standard_normal((N_ROWS, 5)), rng.standard_normal((N_ROWS, 3)), broad("width")
    v = cv.MultivariateNormal("v", np.zeros(5), width * cv.Constant("five", np.eye(5)))
    w = cv.MultivariateNormal("w", np.zeros(3), width * cv.Constant("three", np.eye(3)))
    mean = cv.dot(cv.Data("X", plates=OBS), v) + cv.dot(cv.Data("Z", plates=OBS), w)
    model = cv.Model(cv.Normal("y", mean, broad("noise"), plates=OBS))
    data = {"X": X, "Z": Z, "y": 1e3 * (X.sum(axis=1) + Z.sum(axis=1) + rng.standard_normal(N_ROWS))}
    best = model.fit(data, init={"v": np.full(5, 1e3), "w": np.full(3, 1e3)}, uncertainty="mean_field")
    assert model.fit(data, uncertainty="mean_field").elbo > best.elbo - 0.1


def test_a_level_without_rows_under_a_flat_prior_collapses_as_the_fit_says() -> None:
    rng = np.random.default_rng(5)
    effects = cv.Normal("effects", 0, broad("width"), plates=cv.Plate("group", 5))
    flat = cv.Normal("flat", 0, 0, plates=cv.Plate("kind", 4))
    mean = effects[cv.Data("group_of", plates=OBS)] + flat[cv.Data("kind_of", plates=OBS)]
    model = cv.Model(cv.Normal("y", mean, broad("noise"), plates=OBS))
    data = {
        "group_of": rng.integers(0, 5, 80),
        "kind_of": rng.integers(0, 3, 80),
        "y": rng.standard_normal(80),
    }
    with pytest.warns(cv.CollapseWarning):
        model.fit(data, uncertainty="mean_field")
