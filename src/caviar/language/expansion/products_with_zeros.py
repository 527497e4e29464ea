r"""Dot products with vectors that have zeros: second moments without the matrix of all products.

Of a vector b of independent entries :math:`\mathrm E (x'b)^2 = \sum_a x_a^2 \mathrm E b_a^2 + \sum_{a \neq c} x_a x_c
\mathrm E b_a \mathrm E b_c`; of one with a single entry that is not zero only the first sum is left. Both are written
in means and squares of entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._errors import ConjugacyError
from ..nodes.algebra import Predictor
from ..nodes.node import Indexed, Node, Part
from ..nodes.roles import BESIDE_SPARSE, LINEAR_VECTOR, SPARSE_VECTOR, Role
from ..nodes.stated import Stated
from ..nodes.templates import Factor
from .operands import Operands

Piece = tuple[float, tuple[Factor, ...]]
"""A coefficient and the statistics it multiplies."""


class SparseDots:
    """The dot products of a predictor that have a vector with zeros.

    Parameters
    ----------
    operands
        The operands of the predictor, to which slots are added.
    predictor
        The sum.
    """

    def __init__(self, operands: Operands, predictor: Predictor) -> None:
        self._operands = operands
        vectors = [own for addend in predictor.addends for pair in addend.dots for own in pair]
        self._any = any(_has_zeros(own) for own in vectors)
        self._partners: dict[str, str] = {}
        """Key of a vector with zeros -> key of the other one in its dot product."""

    def roles(self, vectors: Sequence[Node | Indexed | Part]) -> list[Role]:
        """Return what the two vectors of a dot product are.

        Raises
        ------
        ConjugacyError
            If both have zeros.
        """
        if all(map(_has_zeros, vectors)):
            names = " and ".join(repr(_node(own).name) for own in vectors)
            raise ConjugacyError(
                f"dot in '{self._operands.name}' of '{self._operands.owner.name}' multiplies {names}, which both have "
                f"entries that are zero; one of the two must be known, or a MultivariateNormal"
            )
        known = BESIDE_SPARSE if self._any else LINEAR_VECTOR
        return [
            SPARSE_VECTOR if _has_zeros(own) else known if _node(own).is_known else LINEAR_VECTOR
            for own in vectors
        ]

    def met(self, one: str, other: str) -> None:
        """Take notice of the keys of the vectors of a dot product.

        Raises
        ------
        ConjugacyError
            If one with zeros was in another dot product: the square of the sum would need products of its entries.
        """
        for key, partner in ((one, other), (other, one)):
            if self._operands.slots[key].role is not SPARSE_VECTOR:
                continue
            if key in self._partners:
                name = self._operands.slots[key].node.name
                raise ConjugacyError(
                    f"'{name}' is in two products of '{self._operands.name}' of '{self._operands.owner.name}'; its "
                    f"entries would be coupled. Add the columns beforehand: dot(X + Z, {name})"
                )
            self._partners[key] = partner

    def apart(
        self, used: Mapping[str, tuple[str, str]]
    ) -> tuple[list[list[Piece]], dict[str, tuple[str, str]]]:
        """Return the square of each dot product of an addend that has a vector with zeros, and its other operands."""
        dots: list[list[Piece]] = []
        rest = dict(used)
        for key in [key for key in used if key in self._partners]:
            partner = self._partners[key]
            dots.append(self._square(key, partner, used[key]))
            del rest[key], rest[partner]
        return dots, rest

    def _square(self, key: str, partner: str, letters: tuple[str, str]) -> list[Piece]:
        first, second = letters
        slots = self._operands.slots
        squares = Factor(partner, "squares", first)
        if slots[partner].role is LINEAR_VECTOR:
            squares = Factor(partner, "xx", first + first)
        pieces: list[Piece] = [(1.0, (Factor(key, "squares", first), squares))]
        node = slots[key].node
        assert isinstance(node, Stated)
        if node.has_products:
            one, other = Factor(key, "x", first), Factor(key, "x", second)
            pieces.append((1.0, (one, other, Factor(partner, "xx", first + second))))
            pieces.append((-1.0, (one, one, squares)))
        return pieces


def _node(value: Node | Indexed | Part) -> Node:
    return value.node if isinstance(value, Indexed | Part) else value


def _has_zeros(value: object) -> bool:
    node = value.node if isinstance(value, Indexed | Part) else value
    return isinstance(node, Stated) and node.has_zeros
