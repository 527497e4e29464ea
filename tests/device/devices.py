"""Devices to test on, and passes made on them."""

import numpy as np

import caviar as cv
from caviar.engine.ascent.driver import Settings, ascend
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.ascent.schedules.batch import Batch
from caviar.engine.binding.bind import bind
from caviar.engine.rows.row_map import RowMap
from caviar.execution.threads import Threads
from caviar.fitting.restarts import beginning
from caviar.fitting.rows import rows_of

__all__ = ["hard", "reached", "strict", "sums", "uneven_weights"]


def strict(**arguments):
    """Return a device of array-api-strict, whose arrays NumPy neither reads nor mixes with its own."""
    return cv.Device("device1", library="array_api_strict", **arguments)


def reached(model, data, *, weights=None, point=(), n_iter=3, init="auto"):
    """Return a problem and global factors a few iterations after a start, with passes of this process."""
    problem = model._problem(bind(model.nodes, model.leaves, data, sample_weight=weights), point, None)
    row_map = RowMap(problem.rows, rows_of(problem.bound), Threads())
    settings = Settings(max_iter=n_iter, tol=0.0)
    with row_map.executor.session():
        begun = beginning(problem, row_map, init, lambda: np.random.default_rng(0), settings)
        result = ascend(Batch(None), begun, settings)
    return result.problem, result.q, row_map


def sums(problem, q, source, executor):
    """Return the sums of one exact pass over the rows of a source."""
    with executor.session():
        rows = RowMap(problem.rows, source, executor)
        return rows.summary(problem.rows.coefficients(statistics_of(problem, q)))


def uneven_weights(n):
    """Return weights of which every third is zero."""
    return np.random.default_rng(5).uniform(0.2, 3.0, n) * (np.arange(n) % 3 > 0)


def hard(kind, n=3000, seed=0):
    """Return rows (n, 3) where float32 has a hard time, with means (K, 3) and precisions (K, 3, 3) of their components.

    Components overlap in pairs, and each kind moves them elsewhere or looks at them through other columns.
    """
    rng = np.random.default_rng(seed)
    apart = {"far clusters": 30.0, "farther clusters": 1000.0, "very far clusters": 3e4}.get(kind, 4.0)
    means = np.array([[0.0, 0, 0], [1.5, 0, 0], [apart, apart, 0], [apart, apart + 1.5, 0]])
    x = means[rng.integers(0, 4, n)] + rng.standard_normal((n, 3))
    if kind == "outliers":
        x[:: n // 7] *= 1e3
    turn = {
        "columns of different size": np.diag([1e-8, 1.0, 1e8]),
        "collinear columns": np.array([[1.0, 0, 0], [1.0, 1e-2, 0], [0, 0, 1]]),
    }.get(kind, np.eye(3))
    back = np.linalg.inv(turn)
    shift = 1e6 if kind == "far from zero" else 0.0
    return x @ turn.T + shift, means @ turn.T + shift, np.broadcast_to(back.T @ back, (4, 3, 3))
