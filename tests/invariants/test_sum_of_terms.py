"""The objective of a state, with known terms added up beforehand, is the sum of its terms and entropies one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules.batch import Batch

X = cv.datasets.load_faithful().values


def _mixture(structure: str) -> Any:
    return cv.BayesianGaussianMixture(3, covariance_type=structure, random_state=0, max_iter=6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "estimator",
    [
        _mixture("full"),
        _mixture("diag"),
        _mixture("tied"),
        cv.GaussianMixture(2, random_state=0, max_iter=6),
        cv.HiddenMarkovModel(2, random_state=0, max_iter=6),
    ],
    ids=["full", "diag", "tied", "points", "chain"],
)
@pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning")
def test_the_objective_is_the_sum_of_its_terms(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[Any] = []
    step = Batch.step
    monkeypatch.setattr(Batch, "step", lambda *own: (states.append(step(*own)), states[-1])[1])
    estimator.fit(X)
    assert states
    for state in states:
        told = state.objective
        every = float(told.values.sum() + sum(told.own.values()))
        # log-partitions in the place of the terms of the rows, beside each term by itself
        np.testing.assert_allclose(told.value, every, rtol=1e-12)
        updated = told.updated(state.q, state.arrays)
        np.testing.assert_allclose(updated.value, every, rtol=1e-12)
