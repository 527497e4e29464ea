"""Known values: numbers and arrays that are part of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._errors import ModelError, PlateError
from ..._typing import Array
from .algebra import Algebra, Link
from .node import Node
from .plates import Plate, Plates


def as_known(value: Any, owner: str, instead_of_link: str = "") -> Array:
    """Return a number or an array as float64.

    Parameters
    ----------
    value
        The number or array.
    owner
        Where it is, for the message.
    instead_of_link
        What to state in the place of a link.

    Raises
    ------
    ModelError
        If it is neither: the message says where it is.
    """
    if type(value) is not float and type(value) is not int:
        refuse_link(value, owner, instead_of_link)
    if isinstance(value, list | tuple) and any(isinstance(own, Algebra) for own in value):
        raise ModelError(
            f"{owner} takes one number, array or variable; got the list {list(value)!r}. Several variables are one "
            f"with a plate, Normal('a', 0, 1, plates=Plate('entry', {len(value)})), or one vector, a "
            f"MultivariateNormal or a Dirichlet"
        )
    try:
        if not isinstance(value, (float, int)) and np.asarray(value).dtype.kind == "c":
            raise TypeError("complex")
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        if isinstance(value, Algebra):
            raise ModelError(f"{owner} must be known, a number, an array or a Data; got {value!r}") from None
        raise ModelError(
            f"{owner} takes a number, an array or a caviar variable; got {value!r} of type {type(value).__name__}"
        ) from None
    array.flags.writeable = False
    return array


def refuse_link(value: Any, owner: str, instead: str = "") -> None:
    """Refuse a link where it cannot be, and say what would do instead.

    Raises
    ------
    ModelError
        If it is one: the message says where it is, and where it belongs.
    """
    if isinstance(value, Link):
        remedy = instead or f"{value!r} {value.belongs.format(repr(value))}"
        raise ModelError(f"{owner} takes no link: {remedy}")


class Constant(Node):
    """A known array, which can be indexed like a variable.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    value
        Array of shape (sizes of the plates..., event shape...).
    plates
        Plates of its leading axes.

    Raises
    ------
    PlateError
        If the value has fewer axes than plates, or an axis differs from its plate's size.

    Examples
    --------
    >>> component = Plate("component", 2)
    >>> Constant("means", [0.0, 5.0], plates=component)
    Constant('means', plates=(component))
    """

    is_known = True

    def __init__(self, name: str, value: Any, *, plates: Plates = ()) -> None:
        self._identify(name, plates)
        self._take(as_known(value, f"Constant '{name}'"))

    @classmethod
    def of_known(cls, name: str, value: Array, plates: tuple[Plate, ...]) -> Constant:
        """Return the constant of a checked array that no one else uses, without a copy."""
        constant = cls.__new__(cls)
        constant.name, constant.plates = name, plates
        value.flags.writeable = False
        if value.ndim or plates:
            constant._take(value)
        else:
            constant.value, constant.event_rank, constant.dimension = value, 0, 1
        return constant

    def with_value(self, value: Array | None, plates: tuple[Plate, ...]) -> Constant:
        """Return a constant over these plates that has everything of this one but its value: another, or none."""
        constant = type(self).__new__(type(self))
        vars(constant).update({**self.__getstate__(), "plates": plates})
        vars(constant).pop("value", None)
        if value is not None:
            constant.value = value
        return constant

    def _take(self, value: Array) -> None:
        self.value = value
        if not (value.ndim or self.plates):
            self.event_rank, self.dimension = 0, 1
            return
        if self.value.ndim < len(self.plates):
            raise PlateError(
                f"Constant '{self.name}' has {len(self.plates)} plates but its value has only {self.value.ndim} axes"
            )
        for plate, size in zip(self.plates, self.value.shape, strict=False):
            if plate.size is not None and plate.size != size:
                raise PlateError(
                    f"plate '{plate.name}' has size {plate.size}, but {size} rows in Constant '{self.name}'"
                )
        event = self.value.shape[len(self.plates) :]
        if len(set(event)) > 1:
            raise PlateError(
                f"Constant '{self.name}' must be numbers, vectors or square matrices; got event shape {event}"
            )
        self.event_rank = len(event)
        self.dimension = event[0] if event else 1
