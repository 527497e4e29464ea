"""A worker goes through many pieces of the rows in each pass."""

import numpy as np
from invariants.registry import CASES

from caviar.engine.ascent.problem import statistics_of
from caviar.engine.design.backend import Workspace
from caviar.engine.rows.tasks import InferBlocks


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
