r"""Sums of rates: :math:`y \sim \mathrm{Poi}(\sum_k r_k)` is a sum of counts, one from each source.

The logarithm of a sum has no expectation in closed form. Given how many units of the count come from each source it is
not needed: these parts are a hidden variable of the row, a Multinomial with probabilities :math:`\phi`, and

.. math:: y \log \sum_k r_k \ge y \sum_k \phi_k (\log r_k - \log \phi_k)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from ..._errors import ConjugacyError, ModelError, PlateError
from ..nodes.algebra import Addend, Predictor
from ..nodes.constants import Constant
from ..nodes.node import Indexed, Node, Part, placed
from ..nodes.plates import Plate
from ..nodes.roles import INPUTS, RATE
from ..nodes.slots import Slot
from ..nodes.stated import Stated
from ..nodes.templates import Factor
from .operands import Operands

_Piece = tuple[float, tuple[Factor, ...]]

SPLIT = "split"
"""The slot of the hidden parts of a count."""


def is_rate_sum(expression: Any) -> TypeGuard[Predictor]:
    """Whether an expression is a sum of several rates, or a dot product of rates."""
    return isinstance(expression, Predictor) and (
        len(expression.addends) > 1 or any(addend.dots for addend in expression.addends)
    )


def n_sources(predictor: Predictor, owner: Node) -> int:
    """Return the number of sources of a sum of rates: one for each addend, those of a dot product along its plate."""
    along = [_plate_along(owner, addend) for addend in predictor.addends]
    return sum(1 if plate is None else plate.size or 0 for plate in along)


def placed_sum(predictor: Predictor, owner: Node) -> Predictor:
    """Return a sum of rates in which indices of dot products choose from other plates than the one it runs along.

    Raises
    ------
    ModelError, PlateError
        If the operands of a dot product do not share one plate that the count lacks.
    """
    return Predictor(tuple(_placed_addend(owner, addend) for addend in predictor.addends))


def _placed_addend(owner: Node, addend: Addend) -> Addend:
    plate = _plate_along(owner, addend)
    if plate is None:
        return addend
    beside = Node()
    beside.name, beside.plates = owner.name, (*owner.plates, plate)
    return replace(
        addend, dots=tuple((placed(one, beside), placed(other, beside)) for one, other in addend.dots)
    )


def _plate_along(owner: Node, addend: Addend) -> Plate | None:
    """Return the plate that the dot product of an addend runs along; None without one."""
    if not addend.dots:
        return None
    where = f"dot in the rate of '{owner.name}'"
    if len(addend.dots) > 1:
        raise ModelError(f"{where}: a product may hold one dot product; {addend!r} has {len(addend.dots)}")
    pairs = list(addend.dots)
    both = [_plates_of(operand, where) for operand in pairs[0]]
    shared = [plate for plate in both[0] if plate in both[1] and plate not in owner.plates]
    if len(shared) != 1:
        names = " and ".join(f"{own!r}" for own in pairs[0])
        raise PlateError(
            f"{where} runs along the one plate that both operands have and '{owner.name}' lacks; {names} share "
            f"{', '.join(plate.name for plate in shared) or 'none'}. For a regression of counts use "
            f"NegativeBinomial('{owner.name}', exp(dot(...)), size)"
        )
    (plate,) = shared
    if plate.size is None:
        raise PlateError(
            f"{where} runs along plate '{plate.name}', which needs a size: Plate('{plate.name}', K)"
        )
    return plate


def _plates_of(operand: Any, where: str) -> tuple[Plate, ...]:
    node = operand.node if isinstance(operand, Indexed) else operand
    if not isinstance(node, Node):
        raise ModelError(f"{where} takes Gammas, or Constants with a plate for its sum; got {operand!r}")
    return node.plates


@dataclass(frozen=True)
class _Source:
    """An addend: its coefficient, the letter of its dot product ("" without one), and its operands' slots.

    Attributes
    ----------
    numbers, entries
        Keys of operands that all units have in common, and of those along the dot product.
    place
        Key of the known array that says which of all sources are its own; "" if all are.
    """

    coefficient: float
    letter: str
    numbers: tuple[str, ...]
    entries: tuple[str, ...]
    place: str

    def value(self) -> _Piece:
        """Return the rate, summed over its letter."""
        factors = [Factor(key, "x", "") for key in self.numbers]
        return self.coefficient, (*factors, *(Factor(key, "x", self.letter) for key in self.entries))

    def logarithm(self) -> Iterator[_Piece]:
        """Yield the addends of its logarithm, with the share of the count that it has."""
        if self.place:
            own = (Factor(SPLIT, "x", "k"), Factor(self.place, "x", f"{self.letter}k"))
        else:
            own = (Factor(SPLIT, "x", self.letter),)
        for key in self.numbers:
            yield 1.0, (*own, Factor(key, "log_x", ""))
        for key in self.entries:
            yield 1.0, (*own, Factor(key, "log_x", self.letter))
        if self.coefficient != 1:
            yield float(np.log(self.coefficient)), own


class RateSum:
    """A sum in the slot of a rate, of an owner whose slot ``split`` holds the hidden parts of its count."""

    def __init__(self, owner: Stated, name: str, predictor: Predictor, letters: Iterator[str]) -> None:
        self._owner, self._where = owner, f"'{name}' of {type(owner).__name__} '{owner.name}'"
        self._operands = Operands(owner, name)
        self.slots = self._operands.slots
        along = [_plate_along(owner, addend) for addend in predictor.addends]
        sizes = [1 if plate is None else plate.size or 0 for plate in along]
        self.letter_sizes = {"k": sum(sizes)}
        self._sources = []
        for addend, plate, size, start in zip(
            predictor.addends, along, sizes, np.cumsum([0, *sizes]), strict=False
        ):
            letter = "" if plate is None else next(letters) if len(sizes) > 1 else "k"
            if letter:
                self.letter_sizes[letter] = size
            place = self._places(int(start), size, plate, sum(sizes)) if len(sizes) > 1 else ""
            self._sources.append(self._source(addend, plate, letter, place))

    def _places(self, start: int, size: int, along: Plate | None, total: int) -> str:
        """Return the key of a known array that says which of all sources are those of an addend."""
        own, key = np.eye(total)[start : start + size], f"{SPLIT}.{start}"
        value, plates = (own[0], ()) if along is None else (own, (along,))
        constant = Constant.of_known(f"{self._owner.name}.{key}", value, plates)
        self.slots[key] = Slot(SPLIT, constant, INPUTS, along=along)
        return key

    def _source(self, addend: Addend, plate: Plate | None, letter: str, place: str) -> _Source:
        if not addend.coefficient > 0:
            raise ModelError(f"{self._where} must be positive; its addend {addend!r} is not")
        numbers = tuple(self._add(addend, number) for number in addend.numbers)
        entries = tuple(self._add(addend, own) for pair in addend.dots for own in pair)
        for key in entries:
            self.slots[key] = replace(self.slots[key], along=plate)
        if len({*numbers, *entries}) < len(numbers) + len(entries):
            raise ConjugacyError(
                f"{self._where} has the same variable twice in the product {addend!r}; use two variables"
            )
        return _Source(addend.coefficient, letter, numbers, entries, place)

    def _add(self, addend: Addend, operand: Any) -> str:
        if isinstance(operand, Part) or not isinstance(operand, Node | Indexed):
            raise ModelError(
                f"{self._where} takes Gammas and known positive numbers; got {operand!r} in {addend!r}"
            )
        return self._operands.add(operand, RATE)

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return what a statistic of the sum is: of its logarithm the bound."""
        if target.statistic == "x":
            return [source.value() for source in self._sources]
        found = [piece for source in self._sources for piece in source.logarithm()]
        return [*found, (1.0, (Factor(SPLIT, "entropy", ""),))]


@dataclass(frozen=True)
class Rates:
    """The rates of all sources of a sum, side by side: what the parts of a count are drawn from.

    Attributes
    ----------
    predictor
        The sum.
    """

    predictor: Predictor


def shares_given(slots: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the count and the probabilities of its sources, of one batch shape."""
    rates = np.asarray(slots["rates"], dtype=np.float64)
    probabilities = rates / rates.sum(axis=-1, keepdims=True)
    shape = np.broadcast_shapes(np.shape(slots["answer"]), probabilities.shape[:-1])
    return (
        np.broadcast_to(slots["answer"], shape),
        np.broadcast_to(probabilities, (*shape, probabilities.shape[-1])),
    )
