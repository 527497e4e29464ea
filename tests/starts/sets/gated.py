"""Spike and slab by gated constants: labels without a plate."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def regression(
    n_rows, coefficients, width, *, values=(0.0, 1.0), correlation=0.0, noise="known", shares=None
):
    """Columns whose coefficients are on or off."""

    def make(rng):
        true = np.asarray(coefficients, dtype=float)
        size = len(true)
        x = rng.normal(size=(n_rows, size)) + np.sqrt(correlation / (1 - correlation)) * rng.normal(
            size=(n_rows, 1)
        )
        x /= x.std(axis=0)
        y = x @ true + width * rng.normal(size=n_rows)
        o, total = cv.Plate("o"), 0
        probabilities = np.ones(len(values)) / len(values) if shares is None else shares
        for j in range(size):
            k = cv.Plate(f"k{j}", len(values))
            gate = cv.Constant(f"on{j}", values, plates=k)[cv.Categorical(f"g{j}", probabilities)]
            total = total + gate * cv.Normal(f"w{j}", 0, 1) * cv.Data(f"x{j}", plates=o)
        precision = width**-2 if noise == "known" else cv.Gamma("t", 1, 1)
        model = cv.Model(cv.Normal("y", total, precision, plates=o))
        on = np.flatnonzero(np.asarray(values))[0]
        init = {f"g{j}": on * (true[j] != 0) for j in range(size)} | {f"w{j}": true[j] for j in range(size)}
        return Problem(model, {"y": y, **{f"x{j}": x[:, j] for j in range(size)}}, init, n_rows)

    return make


def group_effects(rng):
    """One gate for a whole vector of group effects."""
    group = rng.integers(6, size=120)
    y = np.array([-2.0, -1, 0, 1, 2, 0])[group] + rng.normal(size=120)
    o, g, k = cv.Plate("o"), cv.Plate("g", 6), cv.Plate("k", 2)
    gate = cv.Constant("on", [0.0, 1.0], plates=k)[cv.Categorical("z", [0.5, 0.5])]
    effect = cv.Normal("a", 0, 1, plates=g)[cv.Data("group", plates=o)]
    model = cv.Model(cv.Normal("y", gate * effect, cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"y": y, "group": group}, {"z": 1}, 120)


def answers(rng):
    """Gated coefficients of a logistic regression."""
    true = np.array([2.0, 0.0, -2.0])
    x = rng.normal(size=(200, 3))
    y = (rng.random(200) < 1 / (1 + np.exp(-x @ true))).astype(int)
    o, total = cv.Plate("o"), 0
    for j in range(3):
        k = cv.Plate(f"k{j}", 2)
        gate = cv.Constant(f"on{j}", [0.0, 1.0], plates=k)[cv.Categorical(f"g{j}", [0.5, 0.5])]
        total = total + gate * cv.Normal(f"w{j}", 0, 1) * cv.Data(f"x{j}", plates=o)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(total), plates=o))
    init = {f"g{j}": int(true[j] != 0) for j in range(3)} | {f"w{j}": true[j] for j in range(3)}
    return Problem(model, {"y": y, **{f"x{j}": x[:, j] for j in range(3)}}, init, 200)


def which_rate(rng):
    """One label for all rows says which of two populations they are from."""
    x = rng.poisson(7.0, 50)
    o, k = cv.Plate("o"), cv.Plate("k", 2)
    rate = cv.Gamma(
        "r", cv.Constant("a", [2.0, 70.0], plates=k), cv.Constant("b", [2.0, 10.0], plates=k), plates=k
    )
    model = cv.Model(cv.Poisson("x", rate[cv.Categorical("z", [0.5, 0.5])], plates=o))
    return Problem(model, {"x": x}, {"z": 1}, 50)


CASES = cases_of(
    four_columns=regression(60, [2, 0, -1.5, 0], 0.5),
    ten_columns=regression(100, [2, 0, -1.5, 0, 0, 1, 0, 0, 0, -1], 0.5),
    off_first=regression(60, [2, 0, -1.5, 0], 0.5, values=(1.0, 0.0)),
    correlated_columns=regression(80, [2, 0, -1.5, 0, 1], 0.5, correlation=0.6),
    noise_to_learn=regression(80, [2, 0, -1.5, 0], 0.5, noise="learnt"),
    all_off=regression(60, [0, 0, 0], 1.0),
    all_on=regression(60, [1, -1, 2], 0.5),
    three_values=regression(60, [1.5, 0, -1.5], 0.5, values=(0.0, 1.0, -1.0)),
    rarely_on=regression(100, [2, 0, 0, 0, 0, -2], 0.5, shares=[0.9, 0.1]),
    many_rows=regression(2_000, [1, 0, -0.5, 0, 0.2], 1.0, noise="learnt"),
    gate_of_a_group_effect=group_effects,
    gates_of_a_logistic_regression=answers,
    one_label_for_all_rows=which_rate,
)
