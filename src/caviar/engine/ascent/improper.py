"""Why an update has left its family, in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array
from ...language import Constant, Node, Variable

_FAR_FROM_ONE = 20
"""Powers of ten between a parameter and 1 that are very many."""


def is_proper(variable: Variable, natural: tuple[Array, ...]) -> bool:
    """Whether natural parameters are those of a member of the variable's family."""
    try:
        variable.family.from_natural(natural)
    except ImproperError:
        return False
    return True


def why_no_mode(variable: Variable, reason: str) -> str:
    """Return why a point mass has no optimum."""
    return (
        f"the point mass of '{variable.name}' has no optimum: {reason} Leave '{variable.name}' out of "
        f"point=, so that it gets a distribution, or give it a prior whose density vanishes at the edge of its domain"
    )


def why_improper(variable: Variable, reason: str, values_of: Callable[[Node], AnyArray]) -> str:
    """Return why an update has left its family, and what to do."""
    message = f"the update of '{variable.name}' has left its family: {reason}"
    if variable.is_flat:
        return message
    if extreme := extreme_parameter(variable, values_of):
        return (
            f"{message} Its prior is proper, but with its {extreme} the numbers of the update leave the range or the "
            f"digits of double precision. Give the prior and the data sizes that are nearer to each other and to 1"
        )
    return (
        f"{message} Its prior is proper, so it is double precision that gives out: a component stretches over widths "
        f"too different to be held in one covariance. Bring columns and components to similar scales, or widen the "
        f"prior"
    )


def extreme_parameter(variable: Variable, values_of: Callable[[Node], AnyArray]) -> str:
    """Return the known parameter of a variable's density farthest from 1, if it is very far, or nothing."""
    found = []
    for slot in variable.slots.values():
        if isinstance(slot.node, Constant):
            value = values_of(slot.node)
            sizes = np.abs(value[value != 0])
            ends = (sizes.min(initial=1.0), sizes.max(initial=1.0))
            found += [(abs(np.log10(size)), f"{slot.name} of {size:.3g}") for size in ends]
    farthest, said = max(found, default=(0.0, ""))
    return said if farthest > _FAR_FROM_ONE else ""
