"""A fit ends after a move beyond the updates only where a plain sweep in its place would have gained too little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules.batch import Batch, BatchState
from caviar.engine.ascent.status import Status


def overlapping(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    X = rng.standard_normal((300, 2)) + 2.0 * rng.integers(0, 3, 300)[:, None]
    return cv.models.normal_wishart_mixture(2, 3), {"x": X}


def categories(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    n, z = cv.Plate("n"), cv.Plate("z", 2)
    weights = cv.Dirichlet("weights", [1.0, 1.0])
    label = cv.Categorical("label", weights, plates=n)
    leaves = [
        cv.Categorical(f"x{j}", cv.Dirichlet(f"p{j}", np.ones(4), plates=z)[label], plates=n)
        for j in range(4)
    ]
    known = rng.integers(0, 2, 400)
    data = {f"x{j}": (known + rng.integers(0, 3, 400) + j) % 4 for j in range(4)}
    return cv.Model(*leaves), data


def effects(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any]]:
    n, a, b = cv.Plate("n"), cv.Plate("a", 30), cv.Plate("b", 20)
    one, other = cv.Data("one", plates=n), cv.Data("other", plates=n)
    u = cv.Normal("u", 0.0, cv.Gamma("of_u", 1, 1), plates=a)
    v = cv.Normal("v", 0.0, cv.Gamma("of_v", 1, 1), plates=b)
    y = cv.Normal("y", u[one] + v[other], cv.Gamma("noise", 1, 1), plates=n)
    of_a, of_b = rng.integers(0, 30, 300), rng.integers(0, 20, 300)
    values = rng.standard_normal(30)[of_a] + rng.standard_normal(20)[of_b] + rng.standard_normal(300)
    return cv.Model(y), {"one": of_a, "other": of_b, "y": values}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tol", [1e-5, 1e-8])
@pytest.mark.parametrize("case", [overlapping, categories, effects])
def test_a_plain_sweep_would_have_gained_less_than_the_tolerance(
    case: Any, tol: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = case(np.random.default_rng(seed))
    ends: list[tuple[BatchState, BatchState, float]] = []
    judged = Batch.judged

    def noted(own: Batch, before: BatchState, after: BatchState, most: float) -> BatchState:
        found = judged(own, before, after, most)
        if found.status is Status.CONVERGED and after.memory is not None and after.memory.has_moved:
            ends.append((before, after, most))
        return found

    monkeypatch.setattr(Batch, "judged", noted)
    factors = "apart" if case is effects else None
    posterior = model.fit(data, seed=seed, tol=tol, max_iter=2000, factors=factors, uncertainty="mean_field")
    assert posterior.converged
    for before, after, most in ends:
        plain = Batch(None).step(replace(before, memory=None))
        assert abs(plain.change) < most
        assert after.elbo >= before.elbo


def test_some_fits_end_so(monkeypatch: pytest.MonkeyPatch) -> None:
    X = cv.datasets.load_faithful().values
    passes = [cv.GaussianMixture(2, random_state=0).fit(X).n_iter_]
    monkeypatch.setattr("caviar.engine.ascent.schedules.batch.most_of_a_sweep", lambda *_: np.inf)
    passes.append(cv.GaussianMixture(2, random_state=0).fit(X).n_iter_)
    assert passes == [4, 5]
