r"""The concentration of a Dirichlet as an unknown number for each category.

The normaliser has functions of each number, which are tabulated, and one of their sum. The logarithm of the gamma
function is convex, so it is bounded by a tangent, at a point that is updated with everything else:

.. math:: \log\Gamma(s) \ge \log\Gamma(\zeta) + \psi(\zeta) (s - \zeta), \qquad s = \sum_k a_k,
          \qquad \zeta = \langle s \rangle

This is linear in each :math:`a_k`.
"""

from __future__ import annotations

from typing import Any

from ..._errors import ModelError, PlateError
from ...families.tabulated.scalar import can_be_tabulated
from ...families.tabulated.scalar_functions import PLAIN, Function, LogGamma
from ..nodes.algebra import Addend, Algebra, PredictorAlong, as_predictor
from ..nodes.constants import Constant
from ..nodes.node import Indexed, Node, placed
from ..nodes.plates import Plate
from ..nodes.roles import SCALAR
from ..nodes.slots import Slot
from ..nodes.stated import Stated
from ..nodes.templates import Factor

TANGENT = "tangent"
"""The slot of the point of the tangent."""

_Piece = tuple[float, tuple[Factor, ...]]


def along_categories(owner: Node, concentration: Algebra) -> PredictorAlong | None:
    """Return a concentration that is an unknown number for each category; None if it is something else."""
    predictor = as_predictor(concentration)
    hidden = [own for addend in predictor.addends for own in addend.numbers if _is_number(own)]
    if len(predictor.addends) != 1 or len(hidden) != 1 or predictor.addends[0].dots:
        return None
    (number,) = hidden
    along = _categories_of(number, owner)
    if along is None:
        return None
    others = [own for own in predictor.addends[0].numbers if own is not number]
    scale = predictor.addends[0].coefficient
    for other in others:
        if not (isinstance(other, Constant) and not other.plates and not other.event_rank):
            raise ModelError(
                f"'concentration' of Dirichlet '{owner.name}' takes an unknown number for each category times one "
                f"known number; {other!r} is more than that"
            )
        scale *= float(other.value)
    if not scale > 0:
        raise ModelError(
            f"'concentration' of Dirichlet '{owner.name}' must be positive; its factor {scale:g} is not"
        )
    beside = Node()
    beside.name, beside.plates = owner.name, (*owner.plates, along)
    return PredictorAlong((Addend(scale, (placed(number, beside),), ()),), along)


def _is_number(operand: Any) -> bool:
    node = operand.node if isinstance(operand, Indexed) else operand
    return isinstance(node, Stated) and not node.value_rank and can_be_tabulated(node.own_family)


def _categories_of(number: Any, owner: Node) -> Plate | None:
    """Return the last plate of a number, if that is one more than its owner has or something chooses from."""
    node, n_chosen = (number.node, len(number.indices)) if isinstance(number, Indexed) else (number, 0)
    own = [plate for plate in node.plates if plate not in owner.plates]
    return own[-1] if len(own) == n_chosen + 1 and own[-1].size is not None else None


class UnknownConcentrations:
    """The concentration of a Dirichlet as one unknown number for each category, perhaps times a known number.

    Attributes
    ----------
    slots
        Slots by their names in the density.
    functions
        (Slot, statistic) -> the function of the number with that name.
    letter_sizes
        The number of categories.
    """

    is_bound = True
    """The normaliser is bounded."""

    def __init__(self, owner: Stated, name: str, predictor: PredictorAlong) -> None:
        (addend,) = predictor.addends
        (number,) = addend.numbers
        self._scale, size = addend.coefficient, predictor.along.size
        if owner.dimension not in (None, size):
            raise PlateError(
                f"'{name}' of {type(owner).__name__} '{owner.name}' has {size} numbers along plate "
                f"'{predictor.along.name}', but 'categories' is {owner.dimension}"
            )
        owner.dimension = size
        self.letter_sizes: dict[str, int] = {"k": size}
        self.functions: dict[tuple[str, str], Function] = {}
        self._numbers = f"{name}.0"
        self.slots = {self._numbers: Slot(name, number, SCALAR, along=predictor.along)}

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return a statistic of the concentration in statistics of the numbers, and of the point of the tangent."""
        if target.statistic == "x":
            return [(self._scale, (self._factor(PLAIN["x"], target.letters),))]
        itself = self._factor(PLAIN["x"], "k")
        return [
            (1.0, (self._factor(LogGamma(self._scale), "k"),)),
            (-self._scale, (Factor(TANGENT, "x", ""), itself)),
            (-1.0, (Factor(TANGENT, "constant", ""),)),
        ]

    def _factor(self, function: Function, letters: str) -> Factor:
        self.functions[self._numbers, function.name] = function
        return Factor(self._numbers, function.name, letters)
