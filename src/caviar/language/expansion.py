"""Expansion: a density with a sum or product in a slot, written out in statistics of what the sum is made of.

A predictor ``m = sum_a c_a`` enters a density through ``m`` and ``m^2 = sum_ab c_a c_b``. Products of different
variables become products of their statistics; a variable that meets itself gives its second moment. What is
left is multilinear, or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import ConjugacyError, ModelError, PlateError
from .algebra import Addend, Diagonal, Predictor
from .nodes import Constant, Indexed, Node, as_known
from .roles import LINEAR, LINEAR_VECTOR, PRECISION, PRECISION_MATRIX, Role
from .slots import Slot
from .templates import Density, Factor, Summand

if TYPE_CHECKING:
    from .variable import Variable

__all__ = ["Expansion", "expand"]

_LETTERS = "abcdefghmnopqrstuvwxyz"
"""Event letters of dot products; those of a variable's own axes (i, j, k, l) are left out."""

_Piece = tuple[float, tuple[Factor, ...]]
"""A coefficient and the statistics it multiplies; a factor may have become a sum of several."""


@dataclass
class Expansion:
    """Slots and density of a variable with sums and products written out.

    Attributes
    ----------
    slots
        Slots by the name they have in the density.
    density
        Its log density.
    letter_sizes
        Length of the event axes of dot products.
    """

    slots: dict[str, Slot]
    density: Density
    letter_sizes: dict[str, int] = field(default_factory=dict)


def expand(owner: Variable, density: Density, stated: Mapping[str, Predictor | Diagonal]) -> Expansion:
    """Return the slots and the density that a variable has with sums or products in some of its slots.

    Raises
    ------
    ConjugacyError
        If the density would not be linear in the statistics of each variable.
    ModelError
        If a slot takes no sum or product.
    """
    expansion = Expansion({}, density)
    letters = iter(_LETTERS)
    for name, expression in stated.items():
        if isinstance(expression, Diagonal):
            _expand_diagonal(owner, expansion, name, expression)
            continue
        kind = _LocationSum if _is_location(density, name) else _PrecisionProduct
        writer = kind(owner, name, expression, letters)
        expansion.slots |= writer.slots
        expansion.letter_sizes |= writer.letter_sizes
        expansion.density = _rewritten(expansion.density, name, writer)
    return expansion


def _is_location(density: Density, slot: str) -> bool:
    return any(f.slot == slot and f.statistic == "xx" for summand in density for f in summand.factors)


def _rewritten(density: Density, slot: str, writer: _LocationSum | _PrecisionProduct) -> Density:
    summands = []
    for summand in density:
        target = next((f for f in summand.factors if f.slot == slot), None)
        if target is None:
            summands.append(summand)
            continue
        others = tuple(f for f in summand.factors if f is not target)
        for coefficient, factors in writer.pieces(target):
            letters = dict.fromkeys(summand.letters)
            letters.update(dict.fromkeys("".join(f.letters for f in factors)))
            new = Summand(summand.coefficient * coefficient, others + factors, "".join(letters))
            summands.append(new)
    return tuple(summands)


class _Operands:
    """The distinct operands of a sum, each a slot of its own."""

    def __init__(self, owner: Variable, name: str) -> None:
        self.owner = owner
        self.name = name
        self.slots: dict[str, Slot] = {}
        self._keys: dict[tuple[object, ...], str] = {}

    def add(self, value: Any, role: Role, dimension: int | None = None) -> str:
        """Return the key of an operand's slot."""
        expression: Node | Indexed = value.within(self.owner) if isinstance(value, Indexed) else value
        node, index = (value.node, value.by) if isinstance(value, Indexed) else (value, None)
        identity = (id(node), id(index))
        if identity in self._keys:
            return self._keys[identity]
        for slot in self.slots.values():
            if slot.node is node and not node.is_known:
                raise ConjugacyError(
                    f"'{node.name}' stands in '{self.name}' of '{self.owner.name}' with two indices; its elements would be "
                    f"coupled, and no update of all of them at once exists. Use two variables."
                )
        key = f"{self.name}.{len(self.slots)}"
        self._keys[identity] = key
        self.slots[key] = Slot(self.name, expression, role, dimension)
        return key


class _LocationSum:
    """A sum in the slot of a location: ``x`` and ``xx`` of it, written out."""

    def __init__(self, owner: Variable, name: str, predictor: Predictor, letters: Iterator[str]) -> None:
        if owner.value_rank:
            raise ModelError(
                f"'{name}' of {type(owner).__name__} '{owner.name}' takes no sum or product: state a Normal for each "
                f"number, repeated over a plate"
            )
        operands = _Operands(owner, name)
        self.letter_sizes: dict[str, int] = {}
        self.slots = operands.slots
        # coefficient, and for each operand its letter in m and its second letter in m^2
        self._addends: list[tuple[float, dict[str, tuple[str, str]]]] = []
        for addend in predictor.addends:
            self._addends.append((addend.coefficient, self._usage(operands, addend, letters)))

    def _usage(
        self, operands: _Operands, addend: Addend, letters: Iterator[str]
    ) -> dict[str, tuple[str, str]]:
        used: dict[str, tuple[str, str]] = {}

        def use(key: str, pair: tuple[str, str]) -> None:
            if key in used:
                node = self.slots[key].node
                raise ConjugacyError(
                    f"'{node.name}' stands twice in one product of '{operands.name}' of '{operands.owner.name}', whose "
                    f"square would need its fourth moment. Use two variables, or square a known column beforehand."
                )
            used[key] = pair

        for number in addend.numbers:
            use(operands.add(number, LINEAR), ("", ""))
        for vectors in addend.dots:
            size = _length(operands, vectors)
            try:
                pair = (next(letters), next(letters))
            except StopIteration:
                raise ModelError(
                    f"'{operands.name}' of '{operands.owner.name}' has too many dot products; gather known columns in "
                    f"one design matrix"
                ) from None
            self.letter_sizes |= dict.fromkeys(pair, size)
            for vector in vectors:
                node = vector if isinstance(vector, Node | Indexed) else _constant(operands, vector)
                use(operands.add(node, LINEAR_VECTOR, size), pair)
        return used

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return what a statistic of the sum is, in statistics of its operands."""
        if target.statistic == "x":
            return [
                (c, tuple(Factor(key, "x", first) for key, (first, _) in used.items()))
                for c, used in self._addends
            ]
        pieces = []
        for i, (c, used) in enumerate(self._addends):
            pieces.append((c * c, _product(used, used)))
            for d, other in self._addends[i + 1 :]:
                pieces.append((2 * c * d, _product(used, other)))
        return pieces


def _product(one: Mapping[str, tuple[str, str]], other: Mapping[str, tuple[str, str]]) -> tuple[Factor, ...]:
    """Return the statistics of a product of two addends: second moments of what stands in both."""
    factors = []
    for key, (first, _) in one.items():
        if key in other:
            factors.append(Factor(key, "xx", first + other[key][1]))
        else:
            factors.append(Factor(key, "x", first))
    factors += [Factor(key, "x", second) for key, (_, second) in other.items() if key not in one]
    return tuple(factors)


def _constant(operands: _Operands, vector: Any) -> Constant:
    where = f"dot in '{operands.name}' of '{operands.owner.name}'"
    value = as_known(vector, where)
    if value.ndim != 1:
        raise PlateError(
            f"{where} takes vectors; an array of shape {value.shape} needs plates: Data('X', plates=obs), with the array "
            f"in the data, or Constant('X', array, plates=obs)"
        )
    return Constant(f"{operands.owner.name}.{operands.name}.vector", value)


def _length(operands: _Operands, vectors: tuple[Any, Any]) -> int:
    sizes = []
    for vector in vectors:
        node: Any = vector.node if isinstance(vector, Indexed) else vector
        if isinstance(node, Node) and not node.is_known and getattr(node, "value_rank", 1) != 1:
            raise ConjugacyError(
                f"dot in '{operands.name}' of '{operands.owner.name}' takes vectors, but '{node.name}' is a "
                f"{type(node).__name__}. A plate of numbers that meet in one dot product cannot be updated in parallel; "
                f"state them as one vector: MultivariateNormal('{node.name}', ...)."
            )
        size = node.dimension if isinstance(node, Node) else np.size(vector)
        if size is not None:
            sizes.append((size, vector))
    if not sizes:
        raise PlateError(
            f"the length of the vectors {vectors[0]!r} and {vectors[1]!r} in '{operands.name}' of "
            f"'{operands.owner.name}' is unknown; one of them must be a variable with a length"
        )
    if len({size for size, _ in sizes}) > 1:
        (one, first), (two, second) = sizes
        raise PlateError(
            f"dot in '{operands.name}' of '{operands.owner.name}': {first!r} has length {one}, {second!r} has length {two}"
        )
    return sizes[0][0]


class _PrecisionProduct:
    """A product in the slot of a precision: ``x`` and the logarithm of it, written out."""

    def __init__(self, owner: Variable, name: str, predictor: Predictor, letters: Iterator[str]) -> None:
        where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
        if len(predictor.addends) != 1 or predictor.addends[0].dots:
            raise ConjugacyError(
                f"{where} takes a product, as u * tau, but no sum and no dot product: the logarithm of a sum is no sum of "
                f"expected statistics"
            )
        (addend,) = predictor.addends
        if not addend.coefficient > 0:
            raise ModelError(f"{where} must be positive; its factor {addend.coefficient:g} is not")
        operands = _Operands(owner, name)
        self.letter_sizes: dict[str, int] = {}
        self.slots = operands.slots
        self._coefficient = addend.coefficient
        self._matrix: str | None = None
        self._numbers: list[str] = []
        for factor in addend.numbers:
            node = factor.node if isinstance(factor, Indexed) else factor
            is_matrix = owner.value_rank == 1 and getattr(node, "value_rank", 0) == 2
            before = len(self.slots)
            key = operands.add(factor, PRECISION_MATRIX if is_matrix else PRECISION)
            if len(self.slots) == before:
                raise ConjugacyError(f"'{node.name}' stands twice in the product in {where}")
            if is_matrix:
                self._matrix = key
            else:
                self._numbers.append(key)
        if owner.value_rank == 1 and self._matrix is None:
            raise ConjugacyError(
                f"{where} needs a matrix in its product, as u * precision with a Wishart or a Constant"
            )

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return what a statistic of the product is, in statistics of its factors."""
        numbers = self._numbers
        if target.statistic == "x":
            factors = tuple(Factor(key, "x", "") for key in numbers)
            if self._matrix is not None:
                factors += (Factor(self._matrix, "x", target.letters),)
            return [(self._coefficient, factors)]
        # log|c u L| = D (log c + log u) + log|L|; the dimension comes in as a sum over the letter i
        dimension = Factor("", "", "i") if self._matrix is not None else None
        pieces: list[_Piece] = [
            (1.0, (Factor(key, "log_x", ""), *([dimension] if dimension else []))) for key in numbers
        ]
        if self._matrix is not None:
            pieces.append((1.0, (Factor(self._matrix, "log_det", ""),)))
        pieces.append((float(np.log(self._coefficient)), (dimension,) if dimension else ()))
        return pieces


def _expand_diagonal(owner: Variable, expansion: Expansion, name: str, stated: Diagonal) -> None:
    node = stated.node
    where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
    if owner.value_rank != 1 or not any(f.statistic == "log_det" for s in owner.density for f in s.factors):
        raise ModelError(f"{where} takes no diagonal(...); that is a precision matrix")
    plate = node.plates[-1]
    size = owner.dimension or plate.size
    if size is None or plate.size != size:
        raise PlateError(
            f"{where} is diagonal over plate '{plate.name}' of size {plate.size}, but '{owner.name}' has dimension {size}"
        )
    owner.dimension = size
    key = f"{name}.0"
    expansion.slots[key] = Slot(name, node, PRECISION, along=plate)
    summands = []
    for summand in expansion.density:
        target = next((f for f in summand.factors if f.slot == name), None)
        if target is None:
            summands.append(summand)
        elif target.statistic == "log_det":
            others = tuple(f for f in summand.factors if f is not target)
            summands.append(Summand(summand.coefficient, (*others, Factor(key, "log_x", "i")), "i"))
        else:
            merged = tuple(
                Factor(key, "x", "i")
                if f is target
                else Factor(f.slot, f.statistic, f.letters.replace("j", "i"))
                for f in summand.factors
            )
            summands.append(Summand(summand.coefficient, merged, "i"))
    expansion.density = tuple(summands)
