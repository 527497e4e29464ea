"""The race of starts on a sample: which go on, by how far they are behind in nats a row. Ascents are scripted."""

from types import SimpleNamespace

import numpy as np
import pytest

from caviar.engine import trials
from caviar.engine.status import Status

ROWS = 1000.0
BEHIND = 0.1
"""Nats a row by which a start may be behind before the first iteration: 100 nats here, and 20 after a round."""


def winner(monkeypatch, begin, rounds, settled=()):
    """Return the start that wins, given each objective at the beginning and after each round of iterations."""
    passes = SimpleNamespace(source=SimpleNamespace(total_weight=ROWS))

    def first_moment(settings, name, q, passes):
        return SimpleNamespace(state=SimpleNamespace(elbo=begin[name]))

    def ascend(settings, name, q, passes, moment):
        done = q.get("rounds", 0)
        status = Status.CONVERGED if name in settled else Status.MAX_ITER
        return SimpleNamespace(plan=name, q={"rounds": done + 1}, elbo=rounds[name][done], status=status)

    monkeypatch.setattr(trials, "first_moment", first_moment)
    monkeypatch.setattr(trials, "ascend", ascend)
    starts = [lambda name=name: (name, {}) for name in begin]
    return trials.best_of(starts, SimpleNamespace(is_part=False), passes, BEHIND)[0]


@pytest.mark.parametrize(("behind", "wins"), [(95.0, "late"), (105.0, "early")])
def test_a_start_far_behind_before_the_first_iteration_is_left_out(monkeypatch, behind, wins):
    begin = {"early": 0.0, "late": -behind}
    rounds = {"early": [0.0] * 3, "late": [1.0] * 3}
    assert winner(monkeypatch, begin, rounds) == wins


@pytest.mark.parametrize(
    ("behind", "settled", "wins"),
    [(19.0, (), "late"), (21.0, (), "early"), (9.0, ("late",), "late"), (11.0, ("late",), "early")],
)
def test_a_start_behind_after_a_round_goes_on_as_long_as_it_may_catch_up(monkeypatch, behind, settled, wins):
    """It may be 20 nats behind, or 10 where it has settled; the worst of three goes in any case."""
    begin = {"early": 0.0, "late": 0.0, "worst": 0.0}
    rounds = {"early": [0.0] * 3, "late": [-behind, 1.0, 1.0], "worst": [-30.0, 5.0, 5.0]}
    assert winner(monkeypatch, begin, rounds, settled) == wins


def test_a_start_whose_objective_is_no_number_yet_takes_part(monkeypatch):
    """Points in the place of distributions have none before the first iteration."""
    begin = {"early": 0.0, "point": np.nan}
    assert winner(monkeypatch, begin, {"early": [0.0] * 3, "point": [1.0] * 3}) == "point"
