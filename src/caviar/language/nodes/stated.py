"""What the slots of a variable need to know of it while they are filled, and of the variables that are put in them."""

from __future__ import annotations

from typing import ClassVar

from ...families import ExponentialFamily
from .node import Node
from .plates import Plate
from .templates import Density


class Stated(Node):
    """A node whose density belongs to a family, with slots for its arguments."""

    family: ClassVar[type[ExponentialFamily]]
    density: ClassVar[Density]
    value_rank: ClassVar[int] = 0
    """Event axes of one value: 0 a number, 1 a vector, 2 a matrix."""

    has_zeros: ClassVar[bool] = False
    """Whether it is a vector with entries that are exactly zero."""

    has_products: ClassVar[bool] = True
    """Whether two entries of such a vector can both be different from zero."""

    is_sequential: ClassVar[bool] = False
    """Whether its factor is a product over the entries of a value, which are updated one after another."""

    is_stick: ClassVar[bool] = False
    """Whether its values are weights whose functions may be in a concentration."""

    precision_rank: ClassVar[int] = 0
    """Event axes of the precision, of a joint factor: 0 a number, 2 a matrix."""

    tied: Plate | None = None
    """The last of its plates, if what is repeated along it shares some statistics, as locations one precision."""

    shared_slots: ClassVar[tuple[str, ...]] = ()
    """Slots of what is shared along the tied plate: they are not repeated over it."""

    @property
    def own_family(self) -> type[ExponentialFamily]:
        """The family of the variable, without the functions that its children add to the statistics of its factor."""
        return type(self).family

    @property
    def batch_plates(self) -> tuple[Plate, ...]:
        """Plates along which its factor is a batch of members of its family; a tied plate lies inside of one."""
        return tuple(plate for plate in self.plates if plate is not self.tied)

    def plates_of_slot(self, slot: str) -> tuple[Plate, ...]:
        """Return the plates along which the argument in a slot may be repeated."""
        return self.batch_plates if slot in self.shared_slots else self.plates

    def refuse_as_parent(self, owner: Stated, slot: str) -> None:
        """Refuse to be in a slot if it can only be observed.

        Raises
        ------
        ConjugacyError
            If so: the message says why.
        """
