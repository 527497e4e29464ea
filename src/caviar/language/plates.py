"""Plates: the named repetitions of a model."""

from __future__ import annotations

import operator
from typing import TypeAlias

from .._errors import ParameterError, PlateError

__all__ = ["Plate", "as_plates"]


class Plate:
    """A named axis along which a variable is repeated, conditionally independent.

    Parameters
    ----------
    name
        What one repetition is called: ``"obs"``, ``"component"``. Unique within a model.
    size
        How many repetitions there are. Without it the data decide.

    Raises
    ------
    ParameterError
        If ``name`` is not a non-empty string or ``size`` is not a positive whole number.

    Examples
    --------
    >>> Plate("component", 3)
    Plate('component', 3)
    >>> Plate("obs")
    Plate('obs')
    """

    def __init__(self, name: str, size: int | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"a plate needs a name, a non-empty string; got {name!r}")
        if size is not None:
            try:
                size = operator.index(size)
            except TypeError:
                size = 0
            if size < 1:
                raise ParameterError(
                    f"the size of plate '{name}' must be a positive whole number or left out"
                )
        self.name = name
        self.size = size

    def __repr__(self) -> str:
        return f"Plate({self.name!r})" if self.size is None else f"Plate({self.name!r}, {self.size})"


Plates: TypeAlias = Plate | tuple[Plate, ...] | list[Plate]


def as_plates(plates: Plates, owner: str) -> tuple[Plate, ...]:
    """Return ``plates`` as a tuple, each of them once.

    Raises
    ------
    PlateError
        If something is not a plate, or a plate is repeated.
    """
    if isinstance(plates, str):
        raise PlateError(
            f"plates= of '{owner}' takes Plate objects; write obs = Plate({plates!r}) once, and plates=obs "
            f"wherever something is repeated over it"
        )
    several = (plates,) if isinstance(plates, Plate) else tuple(plates)
    for plate in several:
        if not isinstance(plate, Plate):
            raise PlateError(
                f"plates= of '{owner}' takes Plate objects; got {plate!r}. Write Plate('name', size)."
            )
    names = [plate.name for plate in several]
    if len(set(names)) < len(names):
        raise PlateError(
            f"'{owner}' names a plate twice: {', '.join(names)}. Each axis needs a plate of its own."
        )
    return several
