"""Counts that users ask for: of draws, rows of a table, parts of the data."""

from __future__ import annotations

from numbers import Integral

from .._errors import ParameterError

_MOST = 1_000_000_000


def check_count(name: str, value: int) -> None:
    """Refuse what is no whole number from 1 on, or too large a one.

    Raises
    ------
    ParameterError
        If so: the message names the argument.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1; got {value!r}")
    if value > _MOST:
        raise ParameterError(f"{name} must be at most {_MOST}; got {value}")
