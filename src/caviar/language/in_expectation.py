"""The same outcomes with the expectation of the logarithm of their link itself in the ELBO, not a bound of it."""

from __future__ import annotations

from collections.abc import Mapping

from .nodes.algebra import Link
from .outcomes.links import (
    Exponential,
    ExponentialOfNormal,
    Logistic,
    LogisticOfNormal,
    Probit,
    ProbitOfNormal,
)
from .variable import Variable

_OF_NORMAL: Mapping[type[Link], type[Link]] = {
    Logistic: LogisticOfNormal,
    Probit: ProbitOfNormal,
    Exponential: ExponentialOfNormal,
}


def in_expectation(outcome: Variable) -> Variable:
    """Return an observed variable with ``method="expectation"`` of its link; the same one if it has none of a bound.

    Raises
    ------
    ModelError
        If its predictor is not Normal under q.
    """
    arguments = outcome.arguments
    links = {
        slot: _OF_NORMAL[type(own)](own.predictor)
        for slot, own in arguments.items()
        if isinstance(own, Link) and type(own) in _OF_NORMAL
    }
    return outcome.state_again(outcome.name, outcome.plates, {**arguments, **links}) if links else outcome


def has_expectation(outcome: Variable) -> bool:
    """Whether some link of an observed variable may have ``method="expectation"``, whatever its predictor is."""
    return any(type(own) in _OF_NORMAL for own in outcome.arguments.values())
