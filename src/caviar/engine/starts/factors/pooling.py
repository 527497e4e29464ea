"""Pooling: a start moves the locations of groups to the values that their own data suggest.

In a hierarchy the locations of groups begin at a population mean that is itself at its prior. Each sweep moves the two
together by a small part of the way, all the smaller the more alike the groups are taken to be: correlated random
effects of a common mean of 250 took 257 to 991 sweeps. So the first update of a start leaves the population out: means
of groups are those of their data, and the population follows from them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import MultivariateNormal, Normal, Variable
from ...ascent.problem import Problem
from .prior import own_natural

_SHARE = 1e-3
"""Of the population's message that is left, so that groups with few data have a mean."""

_PRESENT = 1e6
"""Log-odds of an entry that is not zero."""


def is_pooled(problem: Problem, variable: Variable) -> bool:
    """Whether a variable is a location of groups whose own mean is to be learnt."""
    slots = [slot for slot in variable.slots.values() if slot.name == "mean"]
    return (
        isinstance(variable, Normal | MultivariateNormal)
        and bool(variable.plates)
        and variable not in problem.point
        and problem.bound.of(variable).clamped is None
        and problem.bound.of(variable).prior is None
        and any(slot.node in problem.order for slot in slots)
    )


def unpooled(problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
    """Return the optimal factor of a global variable; of a pooled one moved to where the data alone have it.

    Its width is that of the optimal factor: a group without data is at its prior. Of a vector with zeros no entry is
    zero yet: how many are, and how wide the others, is to be learnt from these.
    """
    if variable in problem.sequential:
        natural = problem.updates[variable].natural(arrays)
        natural = (np.full(np.shape(natural[0]), _PRESENT), *natural[1:])
        return problem.factor(variable, problem.sequential[variable].swept(natural, arrays))
    if not is_pooled(problem, variable):
        return problem.update(variable, arrays)
    natural, factor = problem.update_with_natural(variable, arrays)
    moved = _of_data(problem, variable, natural, arrays)
    return factor if moved is None else factor.translate(moved.mean - factor.mean)


def alone(problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
    """Return the factor of a global variable that its data alone give it, nearly; None where that is none."""
    return _of_data(problem, variable, problem.update_with_natural(variable, arrays)[0], arrays)


def _of_data(
    problem: Problem, variable: Variable, natural: tuple[Array, ...], arrays: Mapping[Hashable, Array]
) -> Any:
    own = own_natural(problem, variable, arrays)
    of_data = tuple(all_ - (1 - _SHARE) * prior for all_, prior in zip(natural, own, strict=True))
    try:
        return problem.factor(variable, of_data)
    except ImproperError:
        return None
