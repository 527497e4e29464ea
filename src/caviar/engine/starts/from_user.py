"""Starts from what a user gives: values of globals, and of local variables for all rows.

Given values are kept while a first sweep updates everything else to match them. The rest begins at its prior, or from
the data if the given values do not distinguish the categories of a label, or leave a product at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from ... import families
from ..._errors import ParameterError
from ...families.base.family import MeanPrecision
from ...families.base.parameters import all_finite
from ...language import Categorical, Label, Variable
from ...language.nodes.roles import PRECISION, PRECISION_MATRIX
from ...language.products_of_unknowns import multiplied_together
from ..ascent.problem import Problem
from ..binding.clamped.factor import GlobalFactor, PointMass
from ..rows.row_map import RowMap
from ..topics.kind_of_rows import kind_of
from .factors.given_factors import refuse_other_factor
from .factors.given_locals import GivenLocals, checked_values
from .factors.prior import Start, prior_start
from .factors.swept import swept
from .products.effects import widths_of
from .race import Begun
from .warm_up import brought_near, updated_at_once

_ROUNDS = 2
"""The same where local variables are given: the others of a row wait for the globals, and these for them."""


def open_variables(problem: Problem, names: Collection[str]) -> frozenset[Variable]:
    """Return the globals that begin alike at their priors, where values of the named variables are given.

    They are what a hidden label chooses from, where neither the label nor any of them is given; and locations that
    are multiplied, where none of them is given.
    """
    return problem.fact(("open", frozenset(names)), lambda: _open_variables(problem, names))


def _open_variables(problem: Problem, names: Collection[str]) -> frozenset[Variable]:
    if kind_of(problem).has_own_start:
        return frozenset()
    hidden = set(problem.bound.latent)
    several = [*_chosen_together(problem, names), *multiplied_together(problem.bound.nodes, hidden)]
    left = (group for group in several if not any(variable.name in names for variable in group))
    return frozenset(variable for group in left for variable in group if variable in problem.order)


def _chosen_together(problem: Problem, names: Collection[str]) -> Iterator[tuple[Variable, ...]]:
    """Yield each hidden label with all that it chooses from, if its probabilities do not distinguish its categories.

    Categories of a label that chooses from nothing hidden are told apart by constants, or by a table of the data.
    """
    hidden = problem.bound.latent
    for gate in hidden:
        if isinstance(gate, Label) and (gate.categories or 1) > 1:
            told = isinstance(gate, Categorical) and any(p.name in names and p.plates for p in gate.parents)
            chosen = [
                node
                for node in hidden
                for child in problem.bound.nodes
                if isinstance(child, Variable) and child is not gate
                for slot in child.slots.values()
                if slot.node is node and slot.index is gate
            ]
            if chosen and not told:
                yield (gate, *dict.fromkeys(chosen))


@np.errstate(all="ignore")
def given_start(
    problem: Problem, init: Mapping[str, Any], row_map: RowMap, others: Callable[[], Start] | None = None
) -> Begun:
    """Return where a fit begins with given values: of globals, as points or factors; of local variables, for all rows.

    Parameters
    ----------
    problem
        The model with its data.
    init
        Name -> value.
    row_map
        Over all rows.
    others
        A start from the data, where those globals begin that would begin alike at their priors. Without it all that
        are not given begin at their priors.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value has the wrong shape.
    """
    given = _by_variable(problem, init)
    # all that is given is checked before a start from the data, which may take long
    fixed = _as_factors(problem, given)
    labelled = {v: value for v, value in given.items() if v not in problem.order}
    give = kind_of(problem).given_locals(problem, labelled, fixed) if labelled else None
    values = {} if give is not None else checked_values(problem, labelled, row_map.source.n_rows)
    at_data: dict[Variable, Any] = {}
    unknown = frozenset() if others is None else open_variables(problem, init)
    if unknown and others is not None:
        problem, found = others()
        at_data = {variable: found[variable] for variable in unknown}
        fixed = _as_factors(problem, given)
    begun = None if labelled or at_data else updated_at_once(problem, fixed, row_map)
    if begun is not None:
        return begun
    q = prior_start(problem, {**at_data, **fixed})
    if not labelled:
        held = {**widths_of(problem, q, row_map, fixed), **fixed} if fixed else {}
        return brought_near(problem, {**q, **held}, held, row_map)
    if give is not None:
        return Begun(swept(problem, q, give, row_map.source, row_map, frozenset(fixed))[:2])
    for _ in range(_ROUNDS):
        locals_ = GivenLocals(problem, q, values, row_map)
        problem, q, _ = swept(problem, q, locals_, row_map.source, row_map, frozenset(fixed))
        if locals_.are_all:
            break
    return Begun((problem, q))


def _by_variable(problem: Problem, init: Mapping[str, Any]) -> dict[Variable, Any]:
    by_name = {variable.name: variable for variable in problem.bound.latent}
    unknown = [name for name in init if name not in by_name]
    if unknown:
        names = ", ".join(by_name)
        raise ParameterError(
            f"init= names '{unknown[0]}', which is not a latent variable; the latent variables are {names}"
        )
    return {by_name[name]: value for name, value in init.items()}


def _as_factors(problem: Problem, given: Mapping[Variable, Any]) -> dict[Variable, Any]:
    """Return the given values of globals as factors, measured from the reference points of a problem."""
    return {v: _as_factor(problem, v, value) for v, value in given.items() if v in problem.order}


def _as_factor(problem: Problem, variable: Variable, value: Any) -> Any:
    """Return a given value of a global as a factor: a family member unchanged, anything else as a point."""
    factor: Any = value
    if not isinstance(value, GlobalFactor):
        factor = _as_point(problem, variable, value)
    elif isinstance(value, families.ExponentialFamily):
        factor = variable.family.widened(value)
    refuse_other_factor(problem, variable, factor)
    reference = problem.coordinates.of(variable)
    moved = factor if reference is None else factor.translate(-reference)
    return problem.with_known(variable, moved)


def _as_point(problem: Problem, variable: Variable, value: Any) -> PointMass | families.Categorical:
    plates = tuple(problem.bound.sizes[plate] for plate in variable.plates)
    if "precision" in variable.family.statistics:
        return PointMass.of(variable, _as_pair(variable, value))
    shape = plates + (variable.dimension or 1,) * variable.value_rank
    if variable.family is families.Categorical and np.shape(value) == (*shape, variable.dimension):
        return _as_probabilities(variable, value)
    try:
        point = np.asarray(value, dtype=np.float64)
        point = point if point.shape == shape else np.broadcast_to(point, shape)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"init of '{variable.name}' must fit shape {shape}; got {value!r}") from None
    wrong = variable.problem_with(point) if all_finite(point) else "must be finite"
    if wrong:
        raise ParameterError(f"init of {variable.in_words}, {wrong}")
    return PointMass.of(variable, point)


def _as_probabilities(variable: Variable, value: Any) -> families.Categorical:
    """Return given probabilities of the categories of a global label as a factor."""
    try:
        return families.Categorical(value)
    except (ParameterError, TypeError, ValueError) as error:
        raise ParameterError(f"init of '{variable.name}', probabilities of its categories: {error}") from None


def _as_pair(variable: Variable, value: Any) -> MeanPrecision:
    """Return a given value of a joint factor as (mean, precision)."""
    try:
        mean, precision = (np.asarray(part, dtype=np.float64) for part in value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"init of {variable.in_words}, is a distribution or a pair (mean, precision), "
            f"each over its plates; got {value!r}"
        ) from None
    matrix = variable.precision_rank == 2
    n_tied = len(variable.plates) - len(variable.plates_of("precision"))
    if precision.ndim != mean.ndim - variable.value_rank - n_tied + 2 * matrix:
        wrong = f"has shape {precision.shape} for a mean of shape {mean.shape}"
    elif not np.isfinite(mean).all():
        wrong = "goes with a mean that must be finite"
    else:
        wrong = (PRECISION_MATRIX if matrix else PRECISION).problem(precision)
        wrong = wrong or ("" if np.any(precision) else "must be positive")
    if wrong:
        raise ParameterError(f"the precision in init of '{variable.name}' {wrong}; got {value!r}")
    return MeanPrecision(mean, precision)
