"""The race of starts on a sample: which go on, by how far they are behind. Their ascents are scripted."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.status import Status
from caviar.engine.starts import race as trials

ROWS, COLUMNS = 1000, 3
BEHIND = 0.1
"""Nats a value by which a start may be behind at the beginning, 300 here; nats a row, 100, where passes are dear."""


@dataclass(frozen=True)
class Variable:
    """A global variable whose natural parameters are ``size`` numbers."""

    size: int
    name = "mean"
    family = SimpleNamespace(statistics=("x",))


def winner(monkeypatch, scripts, *, passes_are_dear=False, settled=(), is_point=False):
    """Return the start that wins, given its objectives before the race and after each six iterations of it."""
    variable = Variable(10**9 if passes_are_dear else 1)
    rows = SimpleNamespace(keeps_locals=True)
    problem = SimpleNamespace(order=(variable,), point={variable} if is_point else frozenset(), rows=rows)
    arrays = {("mean", "x"): np.broadcast_to(0.0, variable.size)}

    def reached(name, stretch):
        elbo = scripts[name][min(stretch, len(scripts[name]) - 1)]
        before = scripts[name][min(max(stretch - 1, 0), len(scripts[name]) - 1)]
        status = Status.CONVERGED if stretch and name in settled else None
        return SimpleNamespace(
            elbo=elbo,
            problem=problem,
            q={"name": name, "stretch": stretch},
            arrays=arrays,
            status=status,
            trace=np.linspace(before, elbo, 7),
        )

    def run(race, state, settings):
        return reached(state.q["name"], state.q["stretch"] + 1)

    monkeypatch.setattr(trials.Batch, "init", lambda schedule, beginning: reached(beginning.q["name"], 0))
    monkeypatch.setattr(trials.Race, "run", run)
    starts = [lambda name=name: (problem, {"name": name}) for name in scripts]
    columns = {"x": np.zeros((ROWS, COLUMNS))}
    sample = SimpleNamespace(is_part=False, n_rows=ROWS, columns=columns, row_weights=np.ones(ROWS))
    row_map = SimpleNamespace(total_weight=float(ROWS))
    passes, several = trials.Passes(), trials.by_themselves
    basis = SimpleNamespace(sample=sample, row_map=row_map, passes=passes, several=several)
    best = trials.best_of(starts, basis, BEHIND)
    return best.start[1]["name"]


@pytest.mark.parametrize(
    ("behind", "passes_are_dear", "wins"),
    [(295.0, False, "late"), (305.0, False, "early"), (95.0, True, "late"), (105.0, True, "early")],
)
def test_a_start_far_behind_at_the_beginning_does_not_run(monkeypatch, behind, passes_are_dear, wins):
    scripts = {"early": [0.0], "late": [-behind, 1.0]}
    assert winner(monkeypatch, scripts, passes_are_dear=passes_are_dear) == wins


@pytest.mark.parametrize(
    ("missing", "risen", "wins"),
    [(85.0, 0.0, "late"), (95.0, 0.0, "early"), (145.0, 15.0, "late"), (155.0, 15.0, "early")],
)
def test_a_start_that_may_still_rise_goes_on(monkeypatch, missing, risen, wins):
    """By 0.03 nats a value on a plateau, 90 here; or by 60 iterations like the last, 150 where six brought 15 nats."""
    scripts = {"early": [0.0], "late": [-missing - risen, -missing, 1.0]}
    assert winner(monkeypatch, scripts) == wins


def test_a_start_that_has_settled_behind_is_left_out(monkeypatch):
    scripts = {"early": [0.0], "late": [-5.0, -5.0, 1.0]}
    assert winner(monkeypatch, scripts) == "late"
    assert winner(monkeypatch, scripts, settled=("late",)) == "early"


def test_a_start_that_rises_steadily_goes_on_beside_higher_ones(monkeypatch):
    """Half of the starts go on: not those that are higher now, but those that lead the farthest."""
    scripts = {f"early {number}": [-1.0 - number, 0.0 - number] for number in range(4)}
    slow = {"slow": [-200.0, -180.0, -160.0, -140.0, -120.0, -100.0, -80.0, -60.0, -40.0, -20.0, 1.0]}
    assert winner(monkeypatch, scripts | slow) == "slow"


def test_of_point_masses_none_is_left_out_while_passes_are_cheap(monkeypatch):
    scripts = {"early": [0.0], "late": [-250.0, -250.0, -250.0, 1.0]}
    assert winner(monkeypatch, scripts) == "early"
    assert winner(monkeypatch, scripts, is_point=True) == "late"


def test_a_start_whose_objective_is_no_number_yet_takes_part(monkeypatch):
    """Points in the place of distributions have none before the first iteration."""
    assert winner(monkeypatch, {"early": [0.0], "point": [np.nan, 1.0]}) == "point"


@pytest.mark.starts_of_users
@pytest.mark.parametrize(
    "seed", [203, pytest.param(204, marks=pytest.mark.slow), pytest.param(205, marks=pytest.mark.slow)]
)
def test_a_start_that_rises_steadily_is_not_left_out(seed):
    """Others rest sooner, 3 nats a row lower: a mixture of factor analysers whose hidden factor is a mixture."""
    rng = np.random.default_rng(seed)
    loadings, levels = 1.5 * rng.normal(size=(2, 5)), 2 * rng.normal(size=(2, 5))
    outer, inner = rng.integers(2, size=250), rng.integers(2, size=250)
    factor = np.array([-2.0, 2.0])[inner] + 0.5 * rng.normal(size=250)
    y = loadings[outer] * factor[:, None] + levels[outer] + 0.4 * rng.normal(size=(250, 5))
    row, column, kinds, kinds_of_factors = (
        cv.Plate("row"),
        cv.Plate("column", 5),
        cv.Plate("kinds", 2),
        cv.Plate("kinds of factors", 2),
    )
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(2)), plates=row)
    v = cv.Categorical("v", cv.Dirichlet("shares of factors", np.ones(2)), plates=row)
    f = cv.Normal("f", cv.Constant("means", [-2.0, 2.0], plates=kinds_of_factors)[v], 4.0, plates=row)
    w, level = (cv.Normal(name, 0, own, plates=(kinds, column)) for name, own in (("w", 0.3), ("level", 0.2)))
    model = cv.Model(cv.Normal("y", w[z] * f + level[z], cv.Gamma("tau", 1, 1), plates=(row, column)))
    good = model.fit({"y": y}, init={"w": loadings, "level": levels, "tau": 6.0}).elbo
    assert model.fit({"y": y}, seed=seed - 200).elbo > good - 0.01 * 250
