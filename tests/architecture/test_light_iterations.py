"""An iteration of a small fit is few calls: they, and no arithmetic, are what it takes time for.

Calls are counted, not timed, so that a busy machine does not matter. The numbers may only shrink.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules import beyond_saddles
from caviar.engine.ascent.schedules.batch import Batch
from caviar.numerics.blas import one_blas_thread

SOURCE = str(Path(cv.__file__).parent)


def calls_of(function: Callable[[], object]) -> Counter[str]:
    """Return how many functions of the library run in the second call of a function, by file."""
    found: Counter[str] = Counter()

    def count(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            found[frame.f_code.co_filename] += 1

    function()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return found


def ten_variables(values: Any) -> None:
    """State a model of ten variables, and sweep over them once."""
    obs = cv.Plate("obs")
    tau = [cv.Gamma(f"tau{i}", 1.0, 1.0) for i in range(2)]
    leaves = [
        cv.Normal(f"y{i}", cv.Normal(f"m{i}", 0.0, 0.1), tau[i % 2], plates=obs) for i in range(len(values))
    ]
    data = {leaf.name: own for leaf, own in zip(leaves, values, strict=True)}
    cv.Model(*leaves).fit(data, init={"tau0": 1.0, "tau1": 1.0}, max_iter=1, tol=0, accelerate=False)


def test_a_small_model_is_stated_compiled_and_swept_in_few_calls() -> None:
    values = np.random.default_rng(0).normal(size=(4, 100))
    # an equal statement shares its structure from the second time on, and its plan from the fourth
    for _ in range(3):
        ten_variables(values)
    calls = calls_of(lambda: ten_variables(values))
    assert sum(calls.values()) <= 1844
    assert len(calls) <= 112


@pytest.mark.parametrize(
    ("estimator", "most", "most_files", "most_with_move", "most_of_saddle"),
    [(cv.BayesianGaussianMixture, 212, 34, 329, 655), (cv.GaussianMixture, 189, 35, 286, 610)],
)
def test_iterations_and_looks_for_saddle_points_are_few_calls(
    estimator: Any,
    most: int,
    most_files: int,
    most_with_move: int,
    most_of_saddle: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[Any] = []
    step, look = Batch.step, beyond_saddles.beyond_saddle
    monkeypatch.setattr(Batch, "step", lambda *own: (steps.append(own), step(*own))[1])
    estimator(2, random_state=0).fit(cv.datasets.load_faithful().values)
    schedule, last = steps[-1]
    # an iteration that moves nothing beyond its update
    state = replace(last, memory=None)
    with one_blas_thread():
        end = step(schedule, state)
        iteration, saddle = calls_of(lambda: step(schedule, state)), calls_of(lambda: look(end, 1e-4))
        move = calls_of(lambda: step(schedule, last))
    assert sum(iteration.values()) <= most
    assert len(iteration) <= most_files
    assert sum(move.values()) <= most_with_move
    assert sum(saddle.values()) <= most_of_saddle
