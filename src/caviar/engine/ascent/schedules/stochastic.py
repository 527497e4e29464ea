"""Stochastic: natural-gradient steps, each from a small batch of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from ...._errors import ImproperError, ParameterError
from ...rows.row_map import RowMap
from ...rows.subsample import Sample, sample_of
from ...rows.tasks import Chunk
from ..degeneracy import has_collapsed, refused_or_collapsed
from ..elbo import Objective
from ..plain_states import fit_of, in_frame_of, plain_fit, plain_frame
from ..problem import Problem, statistics_of
from ..schedule import Beginning, Schedule
from ..state import AscentState, FitState, begin, ready, updated_globals
from ..status import Status
from .batch import Batch

_BLOCKS_A_CHUNK = 4
"""Blocks of a batch that one thread sums."""


@dataclass(frozen=True)
class Batches:
    """The batches of one pass over all rows.

    Attributes
    ----------
    chunks, weights
        Of each batch, those without a weight left out.
    rng
        After the batches of this pass were drawn: that of the next one. Copies of it are drawn from.
    """

    chunks: Sequence[Sequence[Chunk]]
    weights: np.ndarray
    rng: np.random.Generator


@dataclass(frozen=True, kw_only=True)
class StochasticState(FitState):
    """Where natural-gradient steps are; the trace has an estimate of the objective for each pass that is over.

    Attributes
    ----------
    rng
        What the batches of the present pass are drawn with. Copies of it are drawn from.
    began
        The problem that the present pass began with: its row model says where blocks of rows start and stop.
    estimates
        What each batch of the present pass said of the objective, so far.
    batches
        Of the present pass; None if they have to be drawn.
    """

    rng: np.random.Generator
    began: Problem
    estimates: tuple[float, ...] = ()
    batches: Batches | None = None


@dataclass(frozen=True)
class Stochastic(Schedule[StochasticState]):
    r"""Update the globals from one small batch of rows after another, by natural-gradient steps of decreasing size.

    A batch with the share s of all rows represents all of them: its sums are divided by s. If the update of a global
    then has the natural parameter :math:`\hat\eta`, step t moves part of the way,

    .. math:: \eta \leftarrow (1 - \rho_t)\,\eta + \rho_t\,\hat\eta, \qquad \rho_t = (t + \tau)^{-\kappa},

    and further for batches of larger weight. The ELBO of the posterior is exact, from a last pass over all rows. Before
    that, the trace has one estimate for each pass.

    Parameters
    ----------
    batch_rows
        Approximate number of rows of a batch. A batch consists of random blocks of the table.
    delay
        :math:`\tau \ge 0`. Larger values make the first steps smaller.
    decay
        :math:`\kappa`, from 0.5 to 1. Above 0.5 the steps converge to a stationary point (Robbins and Monro); at 0.5
        convergence is not guaranteed.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Hoffman, Blei, Wang and Paisley, "Stochastic variational inference" (2013). Local factors that depend on each other
    start from scratch in each batch.

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
            raise ParameterError(
                f"batch_rows must be a whole number of rows, at least 1; got {self.batch_rows!r}"
            )
        if not isinstance(self.delay, Real) or not 0 <= self.delay < float("inf"):
            raise ParameterError(f"delay must not be negative; got {self.delay!r}")
        if not isinstance(self.decay, Real) or not 0.5 <= self.decay <= 1:
            raise ParameterError(f"decay must be a number from 0.5 to 1; got {self.decay!r}")

    def rate(self, step: int) -> float:
        """Return the size of a step, in (0, 1]; steps are counted from 1."""
        return float(min(1.0, (step + self.delay) ** -self.decay))

    most_iterations: ClassVar[int] = 10
    settles: ClassVar[bool] = False

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Schedule[Any]:
        """Return this schedule, or batch ascent if the rows have no hidden variables and one pass is enough."""
        if problem.factors:
            return self
        return Batch(goes_on=False) if accelerate else Batch(None, goes_on=False)

    def init(self, beginning: Beginning[StochasticState]) -> StochasticState:
        """Return the state after an update of the globals from the subsample, which represents all rows.

        Distributions given by the user do not change until the first step.
        """
        problem, rows = beginning.problem, beginning.rows
        assert beginning.rng is not None
        sample = sample_of(rows.source) if rows.source.n_rows else Sample({}, np.empty(0))
        few = RowMap(problem.rows, sample, rows.executor.host)
        began = begin(problem, beginning.q, rows if problem.chains else few)
        start = updated_globals(began)
        # only what is learnt as a whole has natural parameters of its own
        given = {v: q for v, q in began.q.items() if v in beginning.given and q.learnt is q}
        return StochasticState(
            problem=start.problem,
            rows=rows.at(start.problem.rows),
            q={**start.q, **given},
            natural={**start.natural, **{v: factor.natural for v, factor in given.items()}},
            trace=(began.elbo if given else start.elbo,),
            rng=deepcopy(beginning.rng()),
            began=start.problem,
        )

    def step(self, state: StochasticState) -> StochasticState:
        """Return the state after a step from one batch; after the last batch of a pass its trace has a new estimate."""
        batches = state.batches or self._drawn(state)
        number, weights = len(state.estimates), batches.weights
        if number < len(weights):
            # steps in proportion to what batches weigh: so all rows count alike in the end
            rate = min(1.0, self.rate(state.n_updates + 1) * weights[number] / weights.mean())
            try:
                state = replace(_moved(state, batches.chunks[number], rate), batches=batches)
            except ImproperError as error:
                refused_or_collapsed(state.problem, error)
                return replace(state, status=Status.COLLAPSED)
        if len(state.estimates) < len(weights):
            return state
        total = state.rows.total_weight
        estimate = float(np.array(state.estimates) @ weights / total)
        return replace(
            state,
            trace=(*state.trace, estimate),
            change=(estimate - state.trace[-1]) / total,
            rng=batches.rng,
            began=state.problem,
            estimates=(),
            batches=None,
        )

    def judged(self, before: StochasticState, after: StochasticState, tol: float) -> StochasticState:
        """Return the state after a pass; it has converged if the estimate did not change."""
        return replace(after, status=Status.CONVERGED) if abs(after.change) < tol else after

    def finish(self, state: StochasticState) -> AscentState:
        """Return the end of a fit: a last pass over all rows, with the exact objective.

        It keeps no local factors if the next pass would not use them, because they would grow with the rows.
        """
        keeps = not state.problem.rows.begins_anew
        end = begin(state.problem, state.q, replace(state.rows, keeps=keeps))
        is_empty = has_collapsed(end.problem, end.q, end.arrays)
        status = Status.COLLAPSED if is_empty else state.status
        rows, trace = state.rows.at(end.problem.rows), (*state.trace, end.elbo)
        return replace(end, rows=rows, trace=trace, status=status, n_updates=state.n_updates)

    def to_plain(self, state: StochasticState) -> dict[str, Any]:
        """Return a state as values for a checkpoint; the batches of a pass are drawn again."""
        random_state: Any = state.rng.bit_generator.state
        if random_state["bit_generator"] != "PCG64":
            raise ParameterError(
                f"checkpoint= cannot keep a generator of kind {random_state['bit_generator']}; give a whole number as "
                f"seed, or numpy.random.default_rng(...)"
            )
        return {
            **plain_fit(state),
            "random_state": random_state,
            "began": plain_frame(state.began),
            "estimates": np.array(state.estimates),
        }

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> StochasticState:
        """Return the state from these values."""
        found = fit_of(document, problem, rows)
        own = plain_frame(found["problem"])
        is_same = all(_is_same(*pair) for pair in zip(own, document["began"], strict=False))
        is_same = is_same and len(own) == len(document["began"])
        bits = np.random.PCG64()
        bits.state = document["random_state"]
        return StochasticState(
            **found,
            rng=np.random.Generator(bits),
            began=found["problem"] if is_same else in_frame_of(document["began"], problem),
            estimates=tuple(float(value) for value in document["estimates"]),
        )

    def _drawn(self, state: StochasticState) -> Batches:
        """Return the batches of the present pass.

        Blocks come in random order; where a source reads many rows together, its groups of rows do, and the blocks in
        them.
        """
        rng, rows = deepcopy(state.rng), state.rows.at(state.began.rows)
        blocks = rows.blocks(self.batch_rows)
        size = max(stop - start for start, stop in blocks)
        together = max(1, rows.source.rows_together // size)
        groups = [blocks[start : start + together] for start in range(0, len(blocks), together)]
        order = [groups[i][j] for i in rng.permutation(len(groups)) for j in rng.permutation(len(groups[i]))]
        length = max(1, round(self.batch_rows / size))
        several = (order[start : start + length] for start in range(0, len(order), length))
        weighed = [(own, rows.weight([Chunk(0, tuple(own))])) for own in several]
        chunks = [_chunks_of(own) for own, weight in weighed if weight > 0]
        return Batches(chunks, np.array([weight for _, weight in weighed if weight > 0]), rng)


def _is_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two reference points are the same."""
    return list(one[:2]) == list(other[:2]) and np.array_equal(one[2], other[2])


def _chunks_of(blocks: Sequence[tuple[int, int]]) -> list[Chunk]:
    pieces = (blocks[start : start + _BLOCKS_A_CHUNK] for start in range(0, len(blocks), _BLOCKS_A_CHUNK))
    return [Chunk(number, tuple(piece)) for number, piece in enumerate(pieces)]


@np.errstate(all="ignore")
def _moved(state: StochasticState, chunks: Sequence[Chunk], rate: float) -> StochasticState:
    """Return the state after a step from one batch, with the batch's estimate of the objective before the step."""
    natural = state.natural
    problem, q, arrays, coefficients = ready(state.problem, state.q, statistics_of(state.problem, state.q))
    if problem is not state.problem:
        # other reference points: points, which have no natural parameters of their own, take those of this batch whole
        natural = {v: factor.natural for v, factor in q.items() if factor.learnt is factor}
    rows = state.rows.at(problem.rows)
    summary = rows.summarize_share(coefficients, chunks)
    arrays.update(summary.parts)
    estimate = Objective(problem, q, arrays, summary).value
    q, natural = dict(q), dict(natural)
    for variable in problem.order:
        hat, _ = problem.update_with_natural(variable, arrays)
        before = natural.get(variable, hat)
        natural[variable] = tuple((1 - rate) * a + rate * b for a, b in zip(before, hat, strict=True))
        q[variable] = problem.factor(variable, natural[variable])
        arrays.update(problem.statistics(variable, q[variable]))
    return replace(
        state,
        problem=problem,
        rows=rows,
        q=q,
        natural=natural,
        estimates=(*state.estimates, estimate),
        n_updates=state.n_updates + 1,
    )
