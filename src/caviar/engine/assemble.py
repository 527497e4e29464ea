"""Assembling: the one place that knows every kind of model, what its rows and local factors are, and every schedule.

What the compiler derives serves every statement. A pattern with rows of its own, as documents, is one more branch here;
a test holds each to the derived updates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

from .._errors import ModelError, ParameterError
from ..language import Term, Variable, terms_of
from .ascent.problem import CompiledRows, CompileRows, Factors, Problem
from .ascent.schedule import Ascent, Schedule, StatedSchedule
from .ascent.schedules.auto import Auto
from .ascent.schedules.batch import Batch
from .ascent.schedules.beyond_saddles import BeyondSaddles
from .ascent.schedules.coupled import Coupled
from .ascent.schedules.cut import Cut
from .ascent.schedules.expansion.expanded import expanded
from .ascent.schedules.incremental import Incremental
from .ascent.schedules.mixed_precision import as_exact_as
from .ascent.schedules.moves.components import why_no_swaps
from .ascent.schedules.renewing import renewing
from .ascent.schedules.stochastic import Stochastic
from .ascent.schedules.swapping import AS_LONG_AS_IT_PAYS, BRIEFLY, Swapping
from .ascent.schedules.truncated import VERY_MANY, Looks, Truncated, TruncatedSteps
from .binding.bound_model import BoundModel
from .binding.coordinates import Coordinates, Group, coordinates_of
from .compiled.compiler import compile_terms
from .compiled.labels_that_meet import with_joined_labels
from .compiled.shared.groups import with_shared
from .compiled.shared.variable import SharedVariable
from .compiled.terms import Compiled
from .factorisation import APART, apart, local_factors
from .groups.side_by_side import SideBySide
from .local.categorical import CategoricalFactor
from .local.local_factor import LocalFactor
from .rows.e_step import IndependentRows
from .rows.missing_patterns_of import missing_patterns_of
from .rows.recentring import recentrings_of
from .rows.row_map import RowMap
from .rows.truncated.truncated_rows import TruncatedRows, why_not_truncated
from .topics.compile import compile_documents, compile_tied, document_factors
from .topics.documents import Documents
from .topics.e_step import TopicRows
from .topics.kind_of_rows import KindOfRows
from .topics.lowering import BoundDocuments
from .topics.tied import TiedTopicRows

SCHEDULES: Mapping[str, Callable[[], StatedSchedule]] = {
    "auto": Auto,
    "batch": Batch,
    "incremental": Incremental,
    "stochastic": Stochastic,
}
"""Schedules by name."""

_FEW, _LONG = 8, 1e9
"""How many responsibilities rows have by default where components are very many, and operations of a long pass."""

_SEVERAL = 8
"""Components from which on they change places by default where a fit has settled."""

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
    stated: StatedSchedule,
    problem: Problem,
    rows: RowMap,
    max_iter: int,
    accelerate: bool,
    responsibilities: int | str = "all",
    swaps: bool | str = False,
) -> Schedule[Any]:
    """Return the schedule of a fit: with the digits of its executor, beyond saddle points, and with shared factors.

    Parameters
    ----------
    stated
        As a user states it.
    problem, rows
        The model, and where its rows are.
    max_iter
        Iterations at the most.
    accelerate
        Whether the globals may be moved beyond their updates.
    responsibilities
        Mean number of components that a row may belong to; ``"all"`` of them, or ``"auto"``.
    swaps
        Whether components change places where the fit has settled; ``"auto"`` where there are several.

    Raises
    ------
    ParameterError
        If this model cannot have so many responsibilities, or no swaps.
    """
    few = _number_of(responsibilities, problem, rows)
    looked_at = problem.together if few is None else with_few(problem.together, few)
    own = stated.resolved(looked_at, rows.source.n_rows, accelerate=accelerate)
    if any(variable.is_point for variable in problem.order):
        if not isinstance(own, Ascent):
            raise ParameterError(
                "thresholds are found by passes over all rows; fit with schedule='batch' or schedule='incremental'"
            )
        own = Cut(own)
    if isinstance(own, Ascent):
        beyond = partial(BeyondSaddles, most=_MOST_SADDLES, max_iter=max_iter)
        own = as_exact_as(rows, own)
        own = expanded(problem.together, own) if accelerate and few is None else own
        own = own if few is None else Truncated(beyond(renewing(own)), _looks(few))
        if _are_swapped(swaps, problem, accelerate):
            own = Swapping(own, max_iter, BRIEFLY if swaps == "auto" else AS_LONG_AS_IT_PAYS)
        own = beyond(own) if few is None else own
    elif few is not None:
        own = TruncatedSteps(own, _looks(few))
    return Coupled(own) if problem.groups else own


def _are_swapped(asked: bool | str, problem: Problem, accelerate: bool) -> bool:
    """Return whether components change places where a fit has settled."""
    if not isinstance(asked, bool) and asked != "auto":
        raise ParameterError(f"swaps is True, False or 'auto'; got {asked!r}")
    if asked == "auto" and not (
        accelerate and problem.factors and _SEVERAL <= problem.factors[0].n_rows < VERY_MANY
    ):
        return False
    why = why_no_swaps(problem.together)
    if asked == "auto":
        return not why
    if asked and why:
        raise ParameterError(f"swaps=True is not possible here: {why}")
    return asked


def _number_of(asked: int | str, problem: Problem, rows: RowMap) -> int | None:
    """Return how many responsibilities a row has in a fit, as a mean; None for those of all components.

    Few are the default where components are many and a pass over the rows takes long.
    """
    if asked == "all":
        return None
    own = problem.together.rows
    if asked == "auto":
        if rows.executor.is_single or not isinstance(own, IndependentRows) or why_not_truncated(own):
            return None
        is_long = rows.source.n_rows * own.operations_a_row >= _LONG
        return _FEW if is_long and own.factors[0].n_rows >= VERY_MANY else None
    if isinstance(asked, bool | str) or not isinstance(asked, Integral) or int(asked) < 1:
        raise ParameterError(
            f"responsibilities must be a whole number from 1, 'all' or 'auto'; got {asked!r}"
        )
    if rows.executor.is_single:
        raise ParameterError(
            "responsibilities= is not possible on a device, which makes products of all components"
        )
    if not isinstance(own, IndependentRows):
        raise ParameterError(
            "responsibilities= is not possible here: documents have topics for each of their words"
        )
    why = why_not_truncated(own)
    if why:
        raise ParameterError(f"responsibilities= is not possible here: {why}")
    return int(asked)


def with_few(problem: Problem, responsibilities: int, *, is_sparing: bool = False) -> Problem:
    """Return a problem whose rows have few responsibilities, with fewer searches for these if it is sparing."""
    return problem.compiled_by(lambda every: _FewOf(every, responsibilities, is_sparing))


def few_looks(problem: Problem) -> Looks | None:
    """Return the looks at rows with few responsibilities, as many as by default; None if a problem has no such rows."""
    rows = problem.rows
    return _looks(_FEW) if isinstance(rows, IndependentRows) and not why_not_truncated(rows) else None


def _looks(responsibilities: int) -> Looks:
    return Looks(
        few=lambda problem: with_few(problem, responsibilities),
        sparing=lambda problem: with_few(problem, responsibilities, is_sparing=True),
        every=lambda problem: problem.compiled_by(lambda few: few.every if isinstance(few, _FewOf) else few),
        is_few=lambda problem: isinstance(problem.rows, TruncatedRows),
    )


@dataclass(frozen=True)
class _FewOf:
    """Compiles rows, and lets each have few responsibilities."""

    every: CompileRows
    responsibilities: int
    is_sparing: bool

    def __call__(self, *model: Any) -> CompiledRows:
        """Return the compiled rows of a model."""
        own = self.every(*model)
        assert isinstance(own.model, IndependentRows)
        return replace(
            own, model=TruncatedRows.of(own.model, self.responsibilities, is_sparing=self.is_sparing)
        )


def assemble(
    bound: BoundModel,
    order: Sequence[Variable],
    point: frozenset[Variable],
    joint: Sequence[Sequence[str]] | str | None = None,
    plans: dict[Hashable, Any] | None = None,
    coordinates: Coordinates | None = None,
    measured: Sequence[Group] = (),
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
    coordinates
        What locations are measured from; the data by default.
    measured
        Of a fit of the same data, what locations were measured from.
    """
    coordinates = coordinates or coordinates_of(bound, measured)
    if isinstance(bound, BoundDocuments):
        return Problem(bound, coordinates, document_factors(bound), order, point, _documents)
    terms = bound.fact("terms", lambda: _terms_of_all(bound))
    bound = with_joined_labels(bound, terms)
    of_rows, groups = apart(joint, bound, point)
    factors, derived = local_factors(bound, terms, of_rows), partial(_derived, plans)
    problem = Problem(bound, coordinates, factors, order, point, derived, groups)
    return problem.with_default_groups() if joint is None else problem


def _terms_of_all(bound: BoundModel) -> list[Term]:
    return [term for node in bound.nodes if isinstance(node, Variable) for term in terms_of(node)]


def _derived(
    plans: dict[Hashable, Any] | None,
    bound: BoundModel,
    coordinates: Coordinates,
    factors: Sequence[LocalFactor],
    coupled: Sequence[SharedVariable],
) -> CompiledRows:
    compiled = with_shared(compile_terms(bound, coordinates, factors, plans), coupled, bound)
    recentrings = recentrings_of(factors, bound, coordinates, compiled)
    centres = {factor: [own.centres for own in several] for factor, several in recentrings.items()}
    rows = IndependentRows(compiled, factors, centres, missing_patterns_of(compiled, bound, centres))
    if rows.keeps_locals and not rows.maximises:
        names = ", ".join(f"'{factor.name}'" for factor in factors)
        raise ModelError(
            f"a link with method='expectation' takes global variables alone in its predictor, and this model has "
            f"{names} for each row, which depend on each other; leave method= out"
        )
    return CompiledRows(compiled, rows, recentrings, KindOfRows())


def _documents(
    bound: BoundModel,
    coordinates: Coordinates,
    factors: Sequence[LocalFactor],
    coupled: Sequence[SharedVariable],
) -> CompiledRows:
    # whoever names groups of factors has tokens as rows
    assert isinstance(bound, BoundDocuments)
    assert not coupled
    compiled: Compiled
    rows: TopicRows
    if bound.pattern.is_plain:
        compiled, part = compile_documents(bound, coordinates)
        rows = TopicRows(bound, factors, part)
    else:
        compiled, part, ties = compile_tied(bound, coordinates, factors)
        rows = TiedTopicRows(bound, factors, part, ties)
    return CompiledRows(compiled, rows, {}, Documents(bound, rows))


def several(
    problem: Problem, starts: Sequence[Factors], rows: RowMap, *, moves: bool = True
) -> SideBySide | None:
    """Return starts of a problem, given by their global factors, side by side; None where each runs by itself."""
    if why_not_grouped(problem):
        return None
    return SideBySide.of(problem, again, starts, rows, moves=moves)


def again(
    bound: BoundModel, order: Sequence[Variable], point: frozenset[Variable], coordinates: Coordinates
) -> Problem:
    """Return the problem of a statement that is repeated for many groups, measured from given points."""
    return assemble(bound, order, point, APART, coordinates=coordinates)


def why_not_grouped(one: Problem) -> str:
    """Return why a pass over the rows of several groups is no stack of matrix products; nothing if it is.

    Parameters
    ----------
    one
        The problem of one of the groups.
    """
    bound, compiled = one.bound, one.compiled
    if bound.data_plate is None:
        return "its data have no rows"
    if not _is_in_products(one):
        return "its rows meet the globals otherwise than in matrix products"
    if len(one.factors) > 1 or any(type(own) is not CategoricalFactor for own in one.factors):
        return "what is hidden in its rows is not a single Categorical"
    if any(own.has_unseen or own.labelled or own.values is None for own in one.factors):
        return "its labels are known in part, or several in a row"
    if not one.order or compiled.zero_terms or one.groups or one.coupled or one.sequential:
        return "it has no globals, or they share a factor, or some probabilities are zero"
    if bound.joined or any(bound.gathered(name) for name in ("clamped", "prior", "entries")):
        return "some of what is hidden is known, or has an earlier posterior as its prior"
    frame = one.coordinates
    if (
        frame.designs
        or any(own.location is not None for own in frame.groups)
        or any(own.is_point or (own.has_zeros and own in one.with_precisions) for own in one.order)
    ):
        return (
            "its rows are measured from points of their own, or some of its globals are thresholds, or effects "
            "with learnt precisions"
        )
    return ""


def _is_in_products(one: Problem) -> bool:
    """Whether rows meet the globals in matrix products."""
    rows = one.rows
    if type(rows) is not IndependentRows or rows.has_centres or any(rows.partial.values()):
        return False
    compiled = one.compiled
    are_features = all(own.feature is not None for own in compiled.parts.values())
    return rows.is_fused and are_features and not any(own.tallied for own in compiled.tables.values())
