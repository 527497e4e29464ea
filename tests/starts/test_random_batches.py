"""Random statements: a batch of starts has the iterations and ends of each start by itself, or there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.groups.side_by_side import SideBySide

from .sets.statements import Statement

_HELD = [105, 107, 109, 112, 115, 127, 138, 140, 150, 156, 164, 202, 232, 252, 281]
"""Seeds of small statements that a batch holds."""

_REFUSED = [108, 157, 187, 214, 246]
"""Those that end with an error, or elsewhere, in a batch that does not refuse them."""

_CHUNK = 4
"""Seeds that a slow test tries."""


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Any, int]]:
    """Return what fits a statement twice: with batches, and each start by itself; and how many batches there were."""
    of = SideBySide.of

    def fitted(stated: Statement, **settings: Any) -> tuple[Any, Any, int]:
        made = []
        monkeypatch.setattr(
            SideBySide, "of", lambda *own, **named: made.append(of(*own, **named)) or made[-1]
        )
        together = _fitted(stated, settings)
        monkeypatch.setattr(SideBySide, "of", lambda *own, **named: None)
        return together, _fitted(stated, settings), sum(own is not None for own in made)

    return fitted


def _fitted(stated: Statement, settings: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return stated.model.fit(stated.data, **stated.settings | settings)
        except cv.CaviarError as refusal:
            return refusal


def _statement(seed: int) -> Statement | None:
    """Return a random statement; None where what was drawn is none."""
    try:
        return Statement(seed)
    except cv.CaviarError:
        return None


def _checked(stated: Statement, both: Callable[..., tuple[Any, Any, int]]) -> int:
    """Return how many batches of plain iterations there were, each the same as without it."""
    settings = {"init": "prior", "accelerate": False, "tol": 0.0, "max_iter": 4}
    together, alone, n_batches = both(stated, **settings)
    assert type(together) is type(alone), stated.said
    if not isinstance(together, cv.CaviarError):
        for one, other in zip(together.restart_traces, alone.restart_traces, strict=True):
            # a draw in the place of a factor has no objective yet
            np.testing.assert_allclose(one[1:], other[1:], rtol=1e-8, atol=1e-8, err_msg=stated.said)
    return n_batches


@pytest.mark.parametrize("seed", _HELD)
def test_iterations_of_a_batch_are_those_of_each_start(seed, both):
    assert _checked(Statement(seed), both) == 1


@pytest.mark.parametrize("seed", _REFUSED)
def test_a_statement_is_refused_as_a_batch(seed, both):
    assert _checked(Statement(seed), both) == 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 800, _CHUNK))
def test_more_statements_have_the_iterations_of_each_start(first, both):
    for seed in range(first, first + _CHUNK):
        stated = _statement(seed)
        if stated is not None:
            _checked(stated, both)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["prior", "auto"])
@pytest.mark.parametrize("seed", range(800, 830))
def test_starts_of_a_batch_settle_where_each_does(seed, init, both):
    stated, most = _statement(seed), 200
    if stated is None:
        return
    together, alone, _ = both(stated, init=init, tol=1e-10, max_iter=most)
    assert type(together) is type(alone), stated.said
    if isinstance(together, cv.CaviarError):
        return
    ends = zip(together.restart_elbos, alone.restart_elbos, strict=True)
    lengths = zip(together.restart_traces, alone.restart_traces, strict=True)
    for (one, other), traces in zip(ends, lengths, strict=True):
        if max(map(len, traces)) < most:
            assert one == pytest.approx(other, rel=1e-6, abs=1e-6), stated.said
