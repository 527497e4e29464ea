"""A worker goes through many pieces of the rows in each pass."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from invariants.registry import CASES

from caviar.engine.ascent.problem import statistics_of
from caviar.engine.design.backend import Workspace
from caviar.engine.rows import tasks
from caviar.engine.rows.tasks import InferBlocks
from caviar.engine.rows.terms.row_term import BlockWork


def _work_on(data):
    """Return what is done with blocks of rows in a pass, and the rows."""
    case = CASES["independent"]
    posterior = case.fit(data, max_iter=1)
    problem, rows = posterior._evaluator.bind(data)
    factors = {own: posterior[own.name] for own in problem.order}
    return InferBlocks(problem.rows, problem.rows.coefficients(statistics_of(problem, factors))), rows


@pytest.mark.slow
def test_blocks_of_few_rows_keep_their_features(monkeypatch):
    """Each pass finds them written, also in another thread; where all take much memory, they are written anew."""
    work, rows = _work_on(CASES["independent"].draw(np.random.default_rng(0), 100))
    halves = [(0, 60), (60, 100)]
    kept = [work._rows(rows.source, own) for own in halves]
    for own in kept:
        work.rows.summarize(BlockWork(own, work.coefficients, work.scratch))
        assert [len(table.T) for table in own.tables.values()] == [own.n_rows]
    with ThreadPoolExecutor(1) as pool:
        for again in (map, pool.map):
            found = again(partial(work._rows, rows.source), halves)
            assert all(own is first for own, first in zip(found, kept, strict=True))
    monkeypatch.setattr(tasks, "_KEPT_NUMBERS", 99)
    assert work._rows(rows.source, halves[0]).tables is None


@pytest.mark.slow
def test_blocks_of_rows_in_single_precision_keep_no_features():
    """They would be a copy in double precision of the rows, which their user wanted to be small."""
    data = CASES["independent"].draw(np.random.default_rng(0), 100)
    for dtype, are_kept in ((float, True), (np.float32, False)):
        work, rows = _work_on({name: values.astype(dtype) for name, values in data.items()})
        assert (work._rows(rows.source, (0, 60)).tables is not None) == are_kept


def test_features_of_pieces_go_into_one_buffer():
    """The only block of a table keeps its features; a piece that did would take new memory in each pass."""
    alone, rows = _work_on(CASES["independent"].draw(np.random.default_rng(0), 100))
    piece = alone.task()(rows=alone.rows, scratch=Workspace())
    bounds = (0, rows.source.n_rows)
    assert alone._rows(rows.source, bounds).tables is not None
    assert piece._rows(rows.source, bounds).tables is None
