"""Factors of global variables that a user hands over: whether each is one of its variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._errors import ParameterError
from ....families import Categorical, ExponentialFamily
from ....language import Variable
from ...ascent.problem import Problem
from ...binding.clamped.factor import ClampedFactor
from ...binding.clamped.point_mass import PointMass

__all__ = ["refuse_other_factor", "refuse_other_labels"]


def refuse_other_factor(problem: Problem, variable: Variable, factor: Any) -> None:
    """Refuse what is no factor of a global variable of a problem.

    Another family would give numbers that mean nothing: statistics are told apart by their place.

    Raises
    ------
    ParameterError
        If it is no distribution of the variable's family, nor a point of it, or has other repetitions or another
        event shape.
    """
    expected = f"a {variable.family.__name__}"
    is_factor = isinstance(factor, PointMass | ClampedFactor | ExponentialFamily)
    if not is_factor or _family(factor) is not variable.family:
        came = _family(factor).__name__ if is_factor else repr(factor)
        raise ParameterError(
            f"a factor of '{variable.name}' is {expected} of caviar.families, as "
            f"posterior['{variable.name}']; got {came}"
        )
    plates = tuple(problem.bound.sizes[plate] for plate in variable.plates)
    event = (variable.dimension or 1,) * variable.value_rank
    if variable.family is Categorical and not isinstance(factor, PointMass):
        # its probabilities, where a point has labels
        event = (variable.dimension or 1,)
    shape = _shape(factor)
    if shape != plates + event:
        names = ", ".join(plate.name for plate in variable.plates) or "none"
        raise ParameterError(
            f"a factor of '{variable.name}' has the shape {plates + event}: its plates ({names}), then its event; got "
            f"{shape}. Give its parameters that shape"
        )


def refuse_other_labels(name: str, distribution: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is no Categorical with probabilities of a shape: rows, other plates, categories.

    Raises
    ------
    ParameterError
        If it is another distribution, or of another shape.
    """
    if not isinstance(distribution, Categorical):
        raise ParameterError(
            f"a factor of '{name}' is a Categorical of caviar.families, as posterior.local(data)['{name}']; got "
            f"{distribution!r}"
        )
    own = distribution.batch_shape + distribution.event_shape
    if own != shape:
        raise ParameterError(
            f"a factor of '{name}' has probabilities of shape {shape}, rows of data first and categories last; got "
            f"{own}"
        )


def _family(factor: PointMass | ClampedFactor | ExponentialFamily) -> type[ExponentialFamily]:
    return factor.family if isinstance(factor, PointMass | ClampedFactor) else type(factor)


def _shape(factor: PointMass | ClampedFactor | ExponentialFamily) -> tuple[int, ...]:
    """Return the shape of one value; of the mean of a joint factor."""
    if isinstance(factor, PointMass):
        return np.shape(factor.value[0] if isinstance(factor.value, tuple) else factor.value)
    return factor.batch_shape + factor.event_shape
