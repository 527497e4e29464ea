"""A worker goes through many pieces of the rows in each pass."""

import numpy as np
import pytest
from invariants.registry import CASES

from caviar.engine.ascent.problem import statistics_of
from caviar.engine.design.backend import Workspace
from caviar.engine.rows import tasks
from caviar.engine.rows.tasks import InferBlocks


@pytest.mark.slow
def test_blocks_of_few_rows_keep_their_features(monkeypatch):
    """Each pass finds them written; where those of all blocks take much memory, they are written anew."""
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(0), 100)
    posterior = case.fit(data, max_iter=1)
    problem, rows = posterior._evaluator.bind(data)
    factors = {own: posterior[own.name] for own in problem.order}
    work = InferBlocks(problem.rows, problem.rows.coefficients(statistics_of(problem, factors)))
    halves = [(0, 60), (60, 100)]
    kept = [work._rows(rows.source, own) for own in halves]
    for own in kept:
        work.rows.summarize(own, work.coefficients, {}, work.scratch)
        assert [len(table.T) for table in own.tables.values()] == [own.n_rows]
    assert all(work._rows(rows.source, own) is first for own, first in zip(halves, kept, strict=True))
    monkeypatch.setattr(tasks, "_KEPT_NUMBERS", 99)
    assert work._rows(rows.source, halves[0]).tables is None


def test_features_of_pieces_go_into_one_buffer():
    """The only block of a table keeps its features; a piece that did would take new memory in each pass."""
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(0), 100)
    posterior = case.fit(data, max_iter=1)
    problem, rows = posterior._evaluator.bind(data)
    factors = {own: posterior[own.name] for own in problem.order}
    coefficients = problem.rows.coefficients(statistics_of(problem, factors))
    alone = InferBlocks(problem.rows, coefficients)
    piece = alone.task()(problem.rows, Workspace())
    bounds = (0, rows.source.n_rows)
    assert alone._rows(rows.source, bounds).tables is not None
    assert piece._rows(rows.source, bounds).tables is None
