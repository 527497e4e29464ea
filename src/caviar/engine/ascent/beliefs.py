"""Beliefs: factors of an earlier fit as priors, for more rows of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._errors import ImproperError, ModelError, PlateError
from ...families import ExponentialFamily
from ...families.shared.coupled_belief import CoupledBelief
from ...families.shared.coupled_normals import CoupledNormals
from ...families.shared.shared_factor import SharedFactor
from ...language import Variable
from ...numerics.cached import cached_property
from ..binding.nested import outer_variables
from .problem import Problem
from .state import AscentState

Belief: TypeAlias = ExponentialFamily | CoupledBelief
"""The distribution that replaces the prior of a variable."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What an earlier fit knows of the globals: all that more rows need of it.

    Attributes
    ----------
    factors
        Global factors by name, those that are shared in the place of their variables', measured from the user's origin.
    of_points
        Of point masses among them, the distributions whose modes they are.
    """

    factors: Mapping[str, Any]
    of_points: Mapping[str, ExponentialFamily]

    def about(self, problem: Problem) -> dict[Variable, Belief]:
        """Return what a problem for more data takes for priors of its globals."""
        return beliefs_about(problem, self.factors, self.of_points)


class BeliefsOfPoints(Mapping[str, ExponentialFamily]):
    """Name of a global point mass -> the distribution whose mode it is, measured from the user's origin.

    They are made when they are first asked for.

    Its natural parameters are those of the optimal factor; a point that has none, as under a flat prior with too few
    rows, is left out.

    Parameters
    ----------
    state
        The end of a fit. Of it the updates and sums over rows are kept, but no rows.
    """

    def __init__(self, state: AscentState) -> None:
        problem = state.problem
        self._arrays = state.arrays
        self._told = [
            (variable, problem.updates[variable], problem.coordinates.of(variable))
            for variable in problem.order
            if variable in problem.point and state.q[variable].learnt is None
        ]

    @cached_property
    def _found(self) -> dict[str, ExponentialFamily]:
        found: dict[str, ExponentialFamily] = {}
        for variable, update, reference in self._told:
            try:
                factor: Any = variable.family.from_natural(update.natural(self._arrays))
            except ImproperError:
                continue
            found[variable.name] = factor if reference is None else factor.translate(reference)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what is pickled: the distributions."""
        return dict, (self._found,)

    def __getitem__(self, name: str) -> ExponentialFamily:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def beliefs_about(
    problem: Problem, factors: Mapping[str, Any], of_points: Mapping[str, ExponentialFamily]
) -> dict[Variable, Belief]:
    """Return the factors of an earlier fit by global variable of a problem for other data.

    Variables of an outer plate, as the proportions of documents, belong to the data and keep their priors.

    Parameters
    ----------
    factors, of_points
        Global factors of the earlier fit by name, and for point masses the distributions whose modes they are.

    Raises
    ------
    ModelError
        If a factor is missing, or is partly known, or is a point without a distribution.
    PlateError
        If a factor has other repetitions than the variable has with the data.
    """
    outer = outer_variables(problem.bound.nodes, problem.order)
    return {v: _belief(problem, v, factors, of_points) for v in problem.order if v not in outer}


def _belief(
    problem: Problem,
    variable: Variable,
    factors: Mapping[str, Any],
    of_points: Mapping[str, ExponentialFamily],
) -> Belief:
    name = variable.name
    shared = (own for own in factors.values() if isinstance(own, SharedFactor) and name in own.names)
    joint = next(shared, None)
    if joint is not None:
        if not isinstance(joint, CoupledNormals):
            raise ModelError(
                f"the earlier posterior cannot serve as the prior of '{name}': {', '.join(joint.names)} share one "
                f"factor there. Fit all rows at once, or fit the earlier ones with factors='apart'"
            )
        if joint.known is not None:
            raise ModelError(
                f"the earlier posterior cannot serve as the prior of '{name}': some of the numbers of "
                f"{', '.join(joint.names)} were known. Fit all rows at once"
            )
        _refuse_other_shape(name, [np.shape(own) for own in joint.marginals[name].natural], problem, variable)
        return CoupledBelief(joint, name)
    factor = of_points.get(name, factors.get(name))
    if factor is None or not isinstance(factor, variable.family):
        if factor is None:
            why = "is missing (if its values came with the earlier rows, give them with these, too)"
        elif factor.learnt is None:
            why = "is a point mass without a distribution: it had too few rows, or was saved and loaded"
        else:
            why = "is known in part"
        raise ModelError(
            f"the earlier posterior cannot serve as the prior of '{name}': its factor {why}. Fit all rows at once"
        )
    _refuse_other_shape(name, [np.shape(array) for array in factor.natural], problem, variable)
    return factor


def _refuse_other_shape(name: str, own: list[tuple[int, ...]], problem: Problem, variable: Variable) -> None:
    wanted = [fixed.shape for fixed in problem.updates[variable].fixed]
    if own != wanted:
        raise PlateError(
            f"'{name}' has natural parameters of shapes {wanted} with these data, but {own} in the earlier posterior; "
            f"give plates other than that of the rows a size where they are stated: Plate(name, size)"
        )
