"""Frozen records with other values of some fields, and shallow copies."""

from __future__ import annotations

from typing import Any, TypeVar

R = TypeVar("R")


def replaced(record: R, **changes: Any) -> R:
    """Return a frozen dataclass with other values of some fields, as :func:`dataclasses.replace` does.

    That function calls ``__init__``, which takes longer than most steps of a fit of few rows. This one copies the
    fields; so it is for classes that check and compute nothing when they are made. Cached properties are dropped.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     y: float
    >>> replaced(Point(1.0, 2.0), y=3.0)
    Point(x=1.0, y=3.0)
    """
    kind: Any = type(record)
    other, fields = object.__new__(kind), kind.__dataclass_fields__
    values = other.__dict__
    values.update(record.__dict__)
    values.update(changes)
    if len(values) > len(fields):
        # cached properties, or a name that is not a field
        if not changes.keys() <= fields.keys():
            raise TypeError(f"{kind.__name__} has no field {sorted(changes.keys() - fields.keys())[0]!r}")
        for name in values.keys() - fields.keys():
            del values[name]
    return other


def copied(own: R) -> R:
    """Return a shallow copy of an object of a class written in Python, which keeps its attributes in a dictionary.

    :func:`copy.copy` does the same after it has asked how such an object is pickled.

    Examples
    --------
    >>> class Point:
    ...     def __init__(self, x: float) -> None:
    ...         self.x = x
    >>> one = Point(1)
    >>> other = copied(one)
    >>> other.x, other is one
    (1, False)
    """
    other = object.__new__(type(own))
    other.__dict__.update(own.__dict__)
    return other
