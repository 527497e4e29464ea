"""Numbers strictly between 0 and 1, such as the level of an interval."""

from __future__ import annotations

from numbers import Real
from typing import Any

from .._errors import ParameterError


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
