"""Renewing: rows get other components than a search would give them, where a step from there ends higher."""

from typing import Any

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done

import caviar as cv
from caviar.engine import assemble
from caviar.engine.ascent.schedules import renewing
from caviar.engine.ascent.schedules.relaxed import Relaxed
from caviar.engine.rows.terms.row_term import BlockWork
from caviar.engine.rows.truncated.supports import Supports
from caviar.engine.rows.truncated.truncated_rows import TruncatedRows
from truncated.looking import looking_at

pytestmark = pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")

K = 100
MODEL = cv.models.normal_wishart_mixture(6, K)


def clusters(seed: int, n_rows: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and labels by the nearest of some of them: often several in one cluster."""
    rng = np.random.default_rng(seed)
    scales, labels = rng.gamma(2.0, size=(K, 6)), rng.integers(0, K, n_rows)
    X = 2 * rng.normal(size=(K, 6))[labels] + 0.5 * scales[labels] * rng.standard_t(3, size=(n_rows, 6))
    return X, ((X[:, None] - X[:K]) ** 2).sum(axis=2).argmin(axis=1)


def fitted(X: np.ndarray, labels: np.ndarray, **more: Any) -> cv.Posterior:
    asked = {"schedule": "batch", "swaps": False, "uncertainty": "mean_field", "tol": 0.0, "max_iter": 30}
    return MODEL.fit({"x": X}, init={"z": labels}, responsibilities=4, **{**asked, **more})


@pytest.fixture
def steps(monkeypatch) -> list[tuple[int, float, float]]:
    """Of each step in which components may have been renewed: how often before, and the objective before and after."""
    found, step = [], renewing.Renewing.step

    def noted(own, state):
        after_step = step(own, state)
        found.append((after_step.renewals - state.renewals, state.elbo, after_step.elbo))
        return after_step

    monkeypatch.setattr(renewing.Renewing, "step", noted)
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fits_end_higher_and_never_fall(seed, steps, monkeypatch):
    X, labels = clusters(seed)
    renewed = fitted(X, labels)
    assert sum(own for own, *_ in steps) >= 1
    assert all(before <= behind for _, before, behind in steps)
    assert np.all(np.diff(renewed.elbo_trace) >= 0)
    monkeypatch.setattr(assemble, "renewing", lambda own: Relaxed())
    assert renewed.elbo > fitted(X, labels).elbo + 0.05 * len(X)


def test_what_leads_lower_is_left(steps, monkeypatch):
    """The step is that from the components that rows had, and there is no other trial."""
    looks = []

    def with_one(rows: TruncatedRows) -> Any:
        looks.append(rows)
        return rows._looked_at_otherwise(_renews=True, n_responsibilities=1)

    monkeypatch.setattr(TruncatedRows, "with_new_sets", property(with_one))
    monkeypatch.setattr(renewing, "_FIRST", 9)
    X, labels = clusters(0, 2000)
    as_before = fitted(X, labels)
    assert len(looks) == len(steps)
    assert sum(own for own, *_ in steps) == 0
    monkeypatch.setattr(assemble, "renewing", lambda own: Relaxed())
    assert_same_bits(as_before, fitted(X, labels))


def test_new_sets_are_those_of_a_first_look():
    """Whatever rows had: as many components, and others than a search leaves."""
    X, labels = clusters(0)
    looking = looking_at(MODEL, {"x": X}, labels, 4)
    _, state = looking.looked(9)
    known = Supports.from_state(state)
    _, renewed = looking.rows.with_new_sets.summarize(
        BlockWork(looking.read, looking.coefficients, looking.scratch, state)
    )
    found = Supports.from_state(renewed)
    assert found.sizes.mean() <= 4
    assert found.age == known.age + 1
    np.testing.assert_array_equal(found.order, known.order)
    assert len(found.members) != len(known.members) or (found.members != known.members).any()


def test_a_fit_that_was_broken_off_ends_with_the_same_bits(tmp_path):
    X, labels = clusters(0, 2000)
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    breaks = [{"progress": after(12)}]
    found, n_breaks = broken_off_until_done(lambda **more: fitted(X, labels, **kept, **more), breaks)
    assert n_breaks == 1
    assert_same_bits(found, fitted(X, labels))
