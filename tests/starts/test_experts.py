"""Starts of labels behind broken sticks, whose order matters, beside fits from the truth in each order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import caviar as cv

NEAR = 2e-3
"""Nats a row."""


def experts(
    seed: int, n_experts: int, apart: float, n_rows: int = 400
) -> tuple[cv.Model, dict[str, Any], Any]:
    """Return a mixture whose labels follow from a column by questions in turn; its data, and the true means."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([np.ones(n_rows), rng.uniform(-3, 3, n_rows)])
    slopes = rng.normal(size=(n_experts - 1, 2)) * [1, 2]
    yes = rng.random((n_rows, n_experts - 1)) < expit(columns @ slopes.T)
    label = np.where(yes.any(axis=1), yes.argmax(axis=1), n_experts - 1)
    means = apart * rng.normal(size=(n_experts, 2))
    values = means[label] + rng.normal(size=(n_rows, 2))

    obs, question = cv.Plate("obs"), cv.Plate("question", n_experts - 1)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2), plates=question)
    z = cv.Categorical(
        "z", cv.stick_breaking(cv.dot(cv.Data("X", plates=obs), w), along=question), plates=obs
    )
    mean = cv.MultivariateNormal("mean", np.zeros(2), 0.05 * np.eye(2), plates=cv.Plate("expert", n_experts))
    return (
        cv.Model(cv.MultivariateNormal("y", mean[z], np.eye(2), plates=obs)),
        {
            "X": columns,
            "y": values,
        },
        means,
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("seed", "n_experts", "apart"),
    [
        (6, 3, 4.0),
        (14, 3, 2.0),
        (3, 4, 3.0),
        *(
            pytest.param(*own, marks=pytest.mark.slow)
            for own in (
                *((seed, 3, 4.0) for seed in (13, 14, 40, 41, 42)),
                *((seed, 3, 2.0) for seed in (6, 43)),
                *((seed, 4, 3.0) for seed in (5, 44)),
                *((seed, 5, 3.0) for seed in (1, 2)),
            )
        ),
    ],
)
def test_experts_are_in_the_order_of_questions_that_tells_them_best(
    seed: int, n_experts: int, apart: float
) -> None:
    """One fit in four ended up to 0.03 nats a row lower, with its clusters in another order."""
    model, data, means = experts(seed, n_experts, apart)
    found = model.fit(data, seed=0).elbo
    orders = [list(own) for own in permutations(range(n_experts)) if own[-2] < own[-1]]
    best = max(model.fit(data, init={"mean": means[own]}, seed=0).elbo for own in orders)
    assert found > best - NEAR * len(data["y"])
