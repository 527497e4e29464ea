"""Assembling: the one place that knows every kind of model, what its rows and local factors are, and every schedule.

What the compiler derives serves every statement. A pattern with rows of its own, as documents, is one more branch here;
a test holds each to the derived updates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from .._errors import ParameterError
from ..language import Variable, terms_of
from .ascent.problem import CompiledRows, Problem
from .ascent.schedule import Ascent, Schedule, StatedSchedule
from .ascent.schedules.auto import Auto
from .ascent.schedules.batch import Batch
from .ascent.schedules.beyond_saddles import BeyondSaddles
from .ascent.schedules.coupled import Coupled
from .ascent.schedules.cut import Cut
from .ascent.schedules.incremental import Incremental
from .ascent.schedules.mixed_precision import as_exact_as
from .ascent.schedules.stochastic import Stochastic
from .binding.bound_model import BoundModel
from .binding.coordinates import Coordinates, coordinates_of
from .compiled.compiler import compile_terms
from .compiled.coupled_normals import CoupledVariable, with_coupled
from .compiled.factorisation import apart, local_factors
from .compiled.labels_that_meet import with_joined_labels
from .compiled.terms import Compiled
from .local.local_factor import LocalFactor
from .rows.e_step import IndependentRows
from .rows.missing_patterns_of import missing_patterns_of
from .rows.recentring import recentrings_of
from .rows.row_map import RowMap
from .topics.compile import compile_documents, document_factors
from .topics.documents import Documents
from .topics.e_step import TopicRows
from .topics.kind_of_rows import KindOfRows
from .topics.lowering import BoundDocuments

SCHEDULES: Mapping[str, Callable[[], StatedSchedule]] = {
    "auto": Auto,
    "batch": Batch,
    "incremental": Incremental,
    "stochastic": Stochastic,
}
"""Schedules by name."""

_MOST_SADDLES = 20
"""Saddle points that a start leaves behind at most."""


def as_schedule(schedule: str | StatedSchedule) -> StatedSchedule:
    """Return a schedule, given as such or by its name.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    if isinstance(schedule, str) and schedule in SCHEDULES:
        return SCHEDULES[schedule]()
    if isinstance(schedule, StatedSchedule):
        return schedule
    names = ", ".join(map(repr, SCHEDULES))
    raise ParameterError(f"schedule is {names}, cv.Incremental(...) or cv.Stochastic(...); got {schedule!r}")


def schedule_for(
    stated: StatedSchedule, problem: Problem, rows: RowMap, *, accelerate: bool, max_iter: int
) -> Schedule[Any]:
    """Return the schedule of a fit: with the digits of its executor, beyond saddle points, and with shared factors.

    Parameters
    ----------
    stated
        As a user states it.
    problem, rows
        The model, and where its rows are.
    accelerate
        Whether the globals may be moved beyond their updates.
    max_iter
        Iterations at the most.
    """
    own = stated.resolved(problem.together, rows.source.n_rows, accelerate=accelerate)
    if any(variable.is_point for variable in problem.order):
        if not isinstance(own, Ascent):
            raise ParameterError(
                "thresholds are found by passes over all rows; fit with schedule='batch' or schedule='incremental'"
            )
        own = Cut(own)
    if isinstance(own, Ascent):
        own = BeyondSaddles(as_exact_as(rows, own), _MOST_SADDLES, max_iter)
    return Coupled(own) if problem.groups else own


def assemble(
    bound: BoundModel,
    order: Sequence[Variable],
    point: frozenset[Variable],
    joint: Sequence[Sequence[str]] | str | None = None,
    plans: dict[Hashable, Any] | None = None,
) -> Problem:
    """Return the compiled problem of a model bound to data.

    Parameters
    ----------
    order
        Global variables in the order of their updates.
    point
        Those whose factors are point masses.
    joint
        Groups of names of variables that share a factor, either local variables or globals. If no group has local
        variables, these are joined wherever that is tractable. Without groups, globals that are added up share a factor
        if it is small, unless this is ``"apart"``.
    plans
        What was compiled before of the same nodes with other values.
    """
    coordinates = coordinates_of(bound)
    if isinstance(bound, BoundDocuments):
        return Problem(bound, coordinates, document_factors(bound), order, point, _documents)
    terms = [term for node in bound.nodes if isinstance(node, Variable) for term in terms_of(node)]
    bound = with_joined_labels(bound, terms)
    of_rows, groups = apart(joint, bound, point)
    factors, derived = local_factors(bound, terms, of_rows), partial(_derived, plans)
    problem = Problem(bound, coordinates, factors, order, point, derived, groups)
    return problem.with_default_groups() if joint is None else problem


def _derived(
    plans: dict[Hashable, Any] | None,
    bound: BoundModel,
    coordinates: Coordinates,
    factors: Sequence[LocalFactor],
    coupled: Sequence[CoupledVariable],
) -> CompiledRows:
    compiled = with_coupled(compile_terms(bound, coordinates, factors, plans), coupled, bound)
    recentrings = recentrings_of(factors, bound, coordinates, compiled)
    centres = {factor: [own.centres for own in several] for factor, several in recentrings.items()}
    rows = IndependentRows(compiled, factors, centres, missing_patterns_of(compiled, bound, centres))
    return CompiledRows(compiled, rows, recentrings, KindOfRows())


def _documents(
    bound: BoundModel,
    coordinates: Coordinates,
    factors: Sequence[LocalFactor],
    coupled: Sequence[CoupledVariable],
) -> CompiledRows:
    # whoever names groups of factors has tokens as rows
    assert isinstance(bound, BoundDocuments)
    assert not coupled
    compiled: Compiled
    compiled, part = compile_documents(bound, coordinates)
    rows = TopicRows(bound, factors, part)
    return CompiledRows(compiled, rows, {}, Documents(bound, rows))
