"""Attributes that only a fit can set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._errors import FittedAttributeError


class Fitted:
    """An attribute that follows from the posterior of a fit: it is read, and setting it raises.

    Predictions are those of the posterior; another value here would not change them.
    Arrays are read-only for the same reason. The value lies in the instance's dictionary under its own name, where
    scikit-learn looks for what was fitted.

    Parameters
    ----------
    remedy
        What to do instead of setting it.
    """

    def __init__(self, remedy: str = "") -> None:
        self._remedy, self._name = remedy, ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the name of the attribute."""
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the value; AttributeError before a fit."""
        if instance is None:
            return self
        try:
            return _read_only(vars(instance)[self._name])
        except KeyError:
            name = type(instance).__name__
            raise AttributeError(f"{name!r} object has no attribute {self._name!r}") from None

    def __set__(self, instance: Any, value: Any) -> None:
        """Refuse a value."""
        refuse_setting(instance, self._name, self._remedy)


def refuse_setting(instance: Any, name: str, remedy: str) -> None:
    """Refuse to set an attribute of a fit.

    Raises
    ------
    FittedAttributeError
        Always.
    """
    raise FittedAttributeError(
        f"{name} of {type(instance).__name__} is computed from the fit, posterior_, as are all predictions, so setting "
        f"it would not change them. {remedy}".rstrip()
    )


def keep(instance: Any, **attributes: Any) -> None:
    """Set attributes of a fit."""
    vars(instance).update(attributes)


def _read_only(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_read_only(part) for part in value)
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view
