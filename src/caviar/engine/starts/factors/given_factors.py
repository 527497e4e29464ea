"""Factors of global variables that a user hands over: whether each is one of its variable."""

from __future__ import annotations

from typing import Any

from ...._errors import ParameterError
from ....families import Categorical
from ....language import Variable
from ...ascent.problem import Problem
from ...binding.clamped.factor import GlobalFactor


def refuse_other_factor(problem: Problem, variable: Variable, factor: Any) -> None:
    """Refuse what is not a factor of a global variable of a problem.

    Another family would give meaningless numbers, because statistics are known by their position.

    Raises
    ------
    ParameterError
        If it is not a distribution of the variable's family, nor a point of it, or has other repetitions or another
        event shape.
    """
    expected = f"a {variable.family.__name__}"
    is_factor = isinstance(factor, GlobalFactor)
    if not is_factor or factor.family is not variable.family:
        came = factor.family.__name__ if is_factor else repr(factor)
        raise ParameterError(
            f"a factor of '{variable.name}' is {expected} of caviar.families, as "
            f"posterior['{variable.name}']; got {came}"
        )
    plates = tuple(problem.bound.sizes[plate] for plate in variable.plates)
    event = (variable.dimension or 1,) * variable.value_rank
    if variable.family is Categorical and factor.learnt is not None:
        # its probabilities, where a point has labels
        event = (variable.dimension or 1,)
    shape = factor.value_shape
    if shape != plates + event:
        names = ", ".join(plate.name for plate in variable.plates) or "none"
        raise ParameterError(
            f"a factor of '{variable.name}' has the shape {plates + event}: its plates ({names}), then its event; got "
            f"{shape}. Give its parameters that shape"
        )


def refuse_other_labels(name: str, distribution: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is not a Categorical with probabilities of a shape: rows, other plates, categories.

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
