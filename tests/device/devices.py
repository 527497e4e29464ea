"""Devices to test on, and passes made on them."""

import numpy as np

import caviar as cv
from caviar._model import rows_of
from caviar.engine.binding import bind
from caviar.engine.loop import Settings
from caviar.engine.passes import Passes
from caviar.engine.state import statistics_of
from caviar.execution import Threads

__all__ = ["hard", "reached", "strict", "sums", "uneven_weights"]


def strict(**arguments):
    """Return a device of array-api-strict whose arrays cannot be read, nor mixed with those of the host, by accident."""
    return cv.Device("device1", library="array_api_strict", **arguments)


def reached(model, data, *, weights=None, point=(), n_iter=3):
    """Return a plan and global factors a few iterations after a start, with passes of this process."""
    plan = model._plan(bind(model.nodes, model.leaves, data, sample_weight=weights), point, None)
    passes = Passes(rows_of(plan.binding), Threads())
    settings = Settings(max_iter=n_iter, tol=0.0)
    with passes.executor.session():
        result = model._ascend(plan, passes, "auto", np.random.SeedSequence(0), settings)
    return result.plan, result.q, passes


def sums(plan, q, source, executor):
    """Return the sums of one pass over the rows of a source."""
    with executor.session():
        return Passes(source, executor).summarize(plan, plan.rows.coefficients(statistics_of(plan, q)))


def uneven_weights(n):
    """Return weights of which every third is zero."""
    return np.random.default_rng(5).uniform(0.2, 3.0, n) * (np.arange(n) % 3 > 0)


def hard(kind, n=3000, seed=0):
    """Return rows (n, 3) of overlapping components where float32 has a hard time."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3)) + 1.5 * rng.integers(0, 3, (n, 1)) * np.array([1.0, -1.0, 0.5])
    if kind == "far from zero":
        return x + 1e6
    if kind == "far clusters":
        return x + 30.0 * rng.integers(0, 2, (n, 1))
    if kind == "very far clusters":
        return x + 3e4 * rng.integers(0, 2, (n, 1))
    if kind == "columns of different size":
        return x * np.array([1e-25, 1.0, 1e25])
    if kind == "collinear columns":
        return np.column_stack([x[:, 0], x[:, 0] + 1e-3 * x[:, 1], x[:, 2]])
    if kind == "outliers":
        x[:: n // 7] *= 1e3
        return x
    raise ValueError(kind)
