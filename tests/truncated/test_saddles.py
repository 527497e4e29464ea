"""The look for a saddle point has as few responsibilities as the fit, and finds what all of them show."""

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine import assemble
from caviar.engine.ascent.schedules import beyond_saddles
from caviar.engine.ascent.schedules.moves import saddles
from caviar.engine.ascent.state import with_optimal_locals
from caviar.engine.rows.e_step import IndependentRows
from caviar.engine.rows.terms.row_term import BlockWork
from caviar.numerics.records import replaced
from truncated.looking import looking_at

K = 12
LABELS = np.random.default_rng(0).integers(0, 4, 600)
X = np.array([[-6, 0], [6, 0], [0, 7], [0, -7]])[LABELS] + np.random.default_rng(1).normal(size=(600, 2))
MODEL = cv.models.gaussian_mixture(2, K)
ALIKE = {"mean": np.zeros((K, 2)), "precision": np.stack([np.eye(2)] * K)}


@pytest.fixture
def dense_passes(monkeypatch) -> list[int]:
    """Rows of each block that was looked at with all responsibilities."""
    found: list[int] = []
    every = IndependentRows.summarize

    def counted(model: Any, work: BlockWork, *others: Any) -> Any:
        found.append(work.rows.n_rows)
        return every(model, work, *others)

    monkeypatch.setattr(IndependentRows, "summarize", counted)
    return found


@pytest.fixture
def eigenvalues(monkeypatch) -> list[float]:
    """The largest eigenvalue of each look for a saddle point."""
    found: list[float] = []
    steepest = saddles._steepest

    def noted(*arguments: Any) -> Any:
        pair = steepest(*arguments)
        found.append(float(pair[0]))
        return pair

    monkeypatch.setattr(saddles, "_steepest", noted)
    return found


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(3)])
def test_one_pass_has_all_responsibilities(schedule, n, dense_passes, eigenvalues):
    """Beside those of the start: the last one, also of a fit that leaves a saddle point behind."""
    arguments: dict[str, Any] = {"init": ALIKE, "schedule": schedule, "swaps": False, "max_iter": 400}
    MODEL.fit({"x": X}, responsibilities=n, **{**arguments, "max_iter": 1})
    of_start = list(dense_passes)
    dense_passes.clear()
    found = MODEL.fit({"x": X}, responsibilities=n, **arguments)
    assert dense_passes == of_start
    assert found.converged
    assert eigenvalues[0] > 1 > eigenvalues[-1]
    assert np.diff(found.elbo_trace).min() > -1e-8
    np.testing.assert_allclose(found.elbo, found.elbo_at({}, {"x": X}), rtol=1e-11)


def test_few_responsibilities_show_the_eigenvalue_of_all(monkeypatch, eigenvalues):
    """Where next to nothing is left out of the sets, it is that of all responsibilities at the same globals."""
    rng = np.random.default_rng(2)
    centres = 2.5 * rng.normal(size=(30, 2))
    rows = centres[rng.integers(0, 30, 1500)] + rng.normal(size=(1500, 2))
    states: list[Any] = []
    beyond = beyond_saddles.beyond_saddle
    monkeypatch.setattr(
        beyond_saddles, "beyond_saddle", lambda *own: (states.append(own[0]), beyond(*own))[1]
    )
    model = cv.models.normal_wishart_mixture(2, 30)
    model.fit({"x": rows}, seed=0, responsibilities=10, swaps=False, max_iter=1000)
    state, few = states[-1], eigenvalues[-1]
    looks = assemble.few_looks(state.problem.compiled_by(lambda own: own.every))
    assert looks is not None
    problem = looks.every(state.problem)
    closed = replaced(state, problem=problem, rows=state.rows.at(problem.rows), warm={})
    saddles._steepest(with_optimal_locals(closed), np.random.default_rng(state.saddles))
    assert 0.3 < few < 1
    assert eigenvalues[-1] == pytest.approx(few, abs=0.01)


def test_rows_within_their_sets_keep_them():
    """As in looks whose difference is taken; and what they sum is the same to the bit."""
    looking = looking_at(MODEL, {"x": X}, LABELS, 3)
    _, state = looking.looked(1)
    within = looking.rows.within_sets
    sums, after = within.summarize(BlockWork(looking.read, looking.coefficients, looking.scratch, state))
    for name in ("order", "sizes", "members"):
        np.testing.assert_array_equal(after[name], state[name])
    again, _ = within.summarize(BlockWork(looking.read, looking.coefficients, looking.scratch, state))
    np.testing.assert_array_equal(sums.fused["z"], again.fused["z"])
