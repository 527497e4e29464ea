"""Checks of arguments: whole numbers, such as the number of draws, and shares, such as the level of an interval."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from .._errors import ParameterError


def require_whole(name: str, value: Any, at_least: int | None) -> int:
    """Return a whole number, large enough if there is a smallest one; True and False are none.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or (at_least is not None and value < at_least):
        bound = "" if at_least is None else f" of at least {at_least}"
        raise ParameterError(f"{name} must be a whole number{bound}; got {value!r}")
    return int(value)


def require_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ParameterError(f"{name} must lie between 0 and 1; got {value!r}")
    return float(value)


def central_ends(level: float) -> tuple[float, float]:
    """Return the probabilities below the ends of a central interval, after checking its level.

    Examples
    --------
    >>> central_ends(0.5)
    (0.25, 0.75)
    """
    level = require_share("level", level)
    return 0.5 - level / 2, 0.5 + level / 2
