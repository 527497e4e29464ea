"""Schedules: when the globals are updated, and what of the rows that takes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeAlias

from ...._errors import ParameterError
from ..problem import Problem

__all__ = ["Auto", "Batch", "Incremental", "Schedule", "Stochastic", "as_schedule", "n_batches_of"]


_OPERATIONS_A_BATCH = 3e8
"""Of the matrix products of a batch, that make the update of the globals after it worth its time."""

_FEWEST_AUTOMATIC, _MOST_AUTOMATIC = 4, 32

_MOST_BATCHES = 64
"""Batches whose sums are kept apart, so that memory does not grow with the rows."""

_LEAST_BYTES, _MOST_BYTES = 2**28, 2**31
"""Memory that sums of batches may take: as much as the data, and between these."""


@dataclass(frozen=True)
class Batch:
    """Update the globals once a pass over all rows: coordinate ascent as in the textbook, and the default."""


@dataclass(frozen=True)
class Incremental:
    r"""Update the globals after each batch of rows: memoized coordinate ascent, with the exact ELBO.

    The sums of each batch are kept, and replaced when the batch comes round again:

    .. math:: S \leftarrow S - S_b^{\mathrm{old}} + S_b^{\mathrm{new}}

    The objective is that of all rows, with the local factors of each batch as its last pass left them, so it is a
    bound and never falls. The local factors of a batch are found for globals that are carried a little further along
    the way of the last pass, where that does not lower the objective: it takes several times fewer passes than batch
    ascent, about half as many with ``accelerate=False``. A last pass brings all local factors to their optimum.
    In memory the sums of at most 64 batches are held, whatever the number of rows; they take no more than the data do,
    or 256 MB where these are small, and 2 GB where they are large.

    Parameters
    ----------
    n_batches
        Batches of about equal numbers of rows, 2 to 64; fewer where there are not enough blocks of rows, or the sums of
        so many batches would take more memory than that. The rows of a batch are taken from all over the table.

    Raises
    ------
    ParameterError
        If the number is out of range.

    Notes
    -----
    Neal and Hinton (1998); Hughes and Sudderth, "Memoized online variational inference for Dirichlet process mixture
    models" (2013).

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 2)) + 3 * rng.integers(0, 2, (20_000, 1))
    >>> model = cv.models.normal_wishart_mixture(2, 2)
    >>> posterior = model.fit({"x": X}, seed=0, schedule=cv.Incremental(8))
    >>> posterior.converged
    True
    """

    n_batches: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.n_batches, Integral) or not 2 <= self.n_batches <= _MOST_BATCHES:
            raise ParameterError(
                f"n_batches is a whole number from 2 to {_MOST_BATCHES}; got {self.n_batches!r}"
            )


@dataclass(frozen=True)
class Stochastic:
    r"""Update the globals from one small batch of rows after another: natural-gradient steps of falling size.

    A batch that holds the share s of all rows is taken for all of them: with its sums divided by s, the update of each
    global has the natural parameter :math:`\hat\eta`, and step t goes a part of the way,

    .. math:: \eta \leftarrow (1 - \rho_t)\,\eta + \rho_t\,\hat\eta, \qquad \rho_t = (t + \tau)^{-\kappa},

    and the more of the way, the more the batch weighs beside the others. The ELBO of the posterior is exact: a
    last pass over all rows. Before it the trace has estimates, one a pass.

    Parameters
    ----------
    batch_rows
        Rows of a batch, about: it is made of whole blocks, taken at random all over the table.
    delay
        :math:`\tau \ge 0`: the larger, the smaller the first steps.
    decay
        :math:`\kappa`, from 0.5 to 1: above 0.5 the steps lead to a stationary point (Robbins and Monro), and at 0.5
        they wander about it ever more narrowly, without a promise to settle.

    Raises
    ------
    ParameterError
        If one of them is out of range.

    Notes
    -----
    Hoffman, Blei, Wang and Paisley, "Stochastic variational inference" (2013). Factors of the rows that depend on each
    other are found anew in each batch.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50_000, 2)) + 5 * rng.integers(0, 2, (50_000, 1))
    >>> model = cv.models.normal_wishart_mixture(2, 2)
    >>> posterior = model.fit({"x": X}, seed=0, schedule=cv.Stochastic(10_000), max_iter=3)
    >>> posterior["weights"].mean.round(1)
    array([0.5, 0.5])
    """

    batch_rows: int = 16_384
    delay: float = 10.0
    decay: float = 0.7

    def __post_init__(self) -> None:
        if not isinstance(self.batch_rows, Integral) or self.batch_rows < 1:
            raise ParameterError(f"batch_rows is a whole number of rows, at least 1; got {self.batch_rows!r}")
        if not isinstance(self.delay, Real) or not 0 <= self.delay < float("inf"):
            raise ParameterError(f"delay is a number that is not negative; got {self.delay!r}")
        if not isinstance(self.decay, Real) or not 0.5 <= self.decay <= 1:
            raise ParameterError(f"decay is a number from 0.5 to 1; got {self.decay!r}")

    def rate(self, step: int) -> float:
        """Return the size of a step, counted from 1, in (0, 1]."""
        return float(min(1.0, (step + self.delay) ** -self.decay))


@dataclass(frozen=True)
class Auto:
    """Incremental where a pass over the rows costs much more than the updates of the globals, else batch."""


Schedule: TypeAlias = Auto | Batch | Incremental | Stochastic

_BY_NAME: dict[str, type[Schedule]] = {
    "auto": Auto,
    "batch": Batch,
    "incremental": Incremental,
    "stochastic": Stochastic,
}


def as_schedule(schedule: str | Schedule) -> Schedule:
    """Return a schedule, given as such or by its name.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    if isinstance(schedule, str) and schedule in _BY_NAME:
        return _BY_NAME[schedule]()
    if isinstance(schedule, Auto | Batch | Incremental | Stochastic):
        return schedule
    raise ParameterError(
        f"schedule is 'auto', 'batch', 'incremental', 'stochastic', cv.Incremental(...) or cv.Stochastic(...); "
        f"got {schedule!r}"
    )


def n_batches_of(schedule: Schedule, problem: Problem, n_rows: int, *, accelerate: bool) -> int:
    """Return after how many batches of the rows each the globals are updated; 0 for once a pass."""
    if isinstance(schedule, Incremental):
        return max(2, min(schedule.n_batches, _most_batches(problem, n_rows)))
    if not isinstance(schedule, Auto) or not accelerate:
        return 0
    wanted = int(n_rows * problem.rows.operations_a_row / _OPERATIONS_A_BATCH)
    if wanted < _FEWEST_AUTOMATIC:
        return 0
    number = min(wanted, _MOST_AUTOMATIC, _most_batches(problem, n_rows))
    return number if number >= _FEWEST_AUTOMATIC else 0


def _most_batches(problem: Problem, n_rows: int) -> int:
    """Return of how many batches of the rows there is room for what is kept: it follows from the data and the model.

    That is twice their sums, of each batch and of neighbours along a tree, and the globals of the last visit.
    """
    room = min(max(_LEAST_BYTES, n_rows * problem.bound.bytes_a_row), _MOST_BYTES)
    # a model of which all is known has no sums at all
    numbers = max(1, 2 * problem.rows.n_sums + problem.n_natural)
    return int(room // (8 * numbers))
