"""A new schedule is a file of its own and a line of the assembling file: here is one that no other file knows."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine import assemble
from caviar.engine.ascent.degeneracy import checked
from caviar.engine.ascent.plain_states import place_of, plain_place
from caviar.engine.ascent.problem import Problem
from caviar.engine.ascent.schedule import Ascent, settled
from caviar.engine.ascent.state import AscentState, advance, extended, iterated
from caviar.engine.ascent.status import Status
from caviar.engine.rows.row_map import RowMap

SOURCE = Path(cv.__file__).parent


@dataclass(frozen=True, kw_only=True)
class RandomOrderState(AscentState):
    """Where the ascent is: with the order that the globals were updated in last."""

    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class RandomOrder(Ascent[RandomOrderState]):
    """Update the globals in an order from chance, another one in each pass over the rows."""

    seed: int = 0

    def at(self, place: AscentState) -> RandomOrderState:
        return extended(RandomOrderState, place)

    def step(self, state: RandomOrderState) -> RandomOrderState:
        after = checked(state, self._swept)
        return replace(state, status=Status.COLLAPSED) if after is None else iterated(state, after)

    def _swept(self, state: RandomOrderState) -> RandomOrderState:
        variables = sorted(state.problem.order, key=lambda variable: variable.name)
        rng = np.random.default_rng((self.seed, state.n_iter))
        order = [variables[i] for i in rng.permutation(len(variables))]
        after = advance(replace(state, problem=state.problem.updating(order)))
        return replace(after, order=tuple(variable.name for variable in order))

    def judged(self, before: RandomOrderState, after: RandomOrderState, tol: float) -> RandomOrderState:
        return settled(after) if abs(after.change) < tol else after

    def to_plain(self, state: RandomOrderState) -> dict[str, Any]:
        return {**plain_place(state), "order": list(state.order)}

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> RandomOrderState:
        return RandomOrderState(**place_of(document, problem, rows), order=tuple(document["order"]))


def _data(n_rows: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(n_rows, 2)) + rng.choice([-1.5, 1.5], n_rows)[:, None]}


def _fit(**arguments: Any) -> cv.Posterior:
    model = cv.models.gaussian_mixture(2, 2)
    return model.fit(_data(), seed=0, **{"schedule": RandomOrder(1), "tol": 1e-10, **arguments})


def test_it_ends_where_batch_ascent_does():
    found, batch = _fit(), _fit(schedule="batch")
    assert found.converged
    assert found.elbo == pytest.approx(batch.elbo, abs=1e-5)
    assert (np.diff(found.elbo_trace) >= -1e-9 * abs(found.elbo)).all()
    assert found.elbo == pytest.approx(found.elbo_at({}, _data()), rel=1e-12)


def test_the_order_is_one_from_chance(monkeypatch):
    orders = []
    step = RandomOrder.step
    monkeypatch.setattr(RandomOrder, "step", lambda own, state: orders.append(step(own, state)) or orders[-1])
    _fit(tol=0.0, max_iter=12)
    assert len({state.order for state in orders}) > 2
    assert {frozenset(state.order) for state in orders} == {frozenset({"weights", "mean", "precision"})}
    traces = {tuple(_fit(schedule=RandomOrder(seed), tol=0.0, max_iter=12).elbo_trace) for seed in range(3)}
    assert len(traces) == 3


def test_it_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0, "init": "prior", "max_iter": 9, "tol": 0.0}

    class BrokenOffError(Exception):
        pass

    def break_off(told: Any) -> None:
        if told.iteration == 4:
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        _fit(**kept, progress=break_off)
    told = []
    found, whole = _fit(**kept, progress=told.append), _fit(init="prior", max_iter=9, tol=0.0)
    assert [progress.iteration for progress in told] == [5, 6, 7, 8, 9]
    np.testing.assert_array_equal(found.elbo_trace, whole.elbo_trace)


def test_saddle_points_float32_and_the_end_that_is_asked_for_need_nothing_of_it():
    equal = {"mean": np.zeros((2, 2)), "precision": np.stack([np.eye(2)] * 2)}
    assert _fit(init=equal).elbo == pytest.approx(_fit().elbo, abs=0.01)
    device = cv.Device("device1", library="array_api_strict", dtype="float32")
    assert _fit(executor=device).elbo == pytest.approx(_fit().elbo, abs=1e-5)
    assert _fit(progress=lambda told: told.iteration == 2).status is Status.STOPPED


def test_a_name_is_one_line(monkeypatch):
    monkeypatch.setattr(assemble, "SCHEDULES", {**assemble.SCHEDULES, "random order": RandomOrder})
    by_name = _fit(schedule="random order", max_iter=3)
    np.testing.assert_array_equal(by_name.elbo_trace, _fit(schedule=RandomOrder(), max_iter=3).elbo_trace)


def _imported_by(folder: Path) -> dict[str, set[str]]:
    """Return which modules of schedules the files of a folder import."""
    found = {}
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # most say nothing of schedules
        tree = ast.parse(text if "schedules" in text else "")
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {
            (node.module or "").rpartition("schedules.")[2]
            for node in nodes
            if ".schedules." in f".{node.module}"
        }
        found[path.relative_to(SOURCE).as_posix()] = names
    return found


def test_only_the_assembling_file_knows_the_schedules_by_name():
    """Others may climb a little by batch ascent, or warm nested plates up; no file above knows a schedule of users."""
    imported = _imported_by(SOURCE)
    users = {"auto", "incremental", "stochastic", "beyond_saddles"}
    topics = {"estimators/latent_dirichlet_allocation.py", "estimators/topics/topic_schedule.py"}
    public = {"__init__.py", "engine/assemble.py", *topics}
    assert {path for path, names in imported.items() if names & users} - public == set()
    assert imported["engine/ascent/driver.py"] == set()
    driver = (SOURCE / "engine/ascent/driver.py").read_text()
    function = next(own for own in ast.parse(driver).body if getattr(own, "name", "") == "iterate")
    assert (function.end_lineno or 0) - function.lineno < 25
