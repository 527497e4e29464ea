r"""Slots that hold a function of one hidden scalar, such as the shape of a Gamma or a common concentration.

If :math:`y = ca + d` is in such a slot, the density contains y, which is linear in a, and functions of y that no family
has as statistics, such as :math:`\log\Gamma(y)`. These become statistics of a, whose factor is then tabulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ..._errors import ConjugacyError, ModelError
from ...families.tabulated.scalar import can_be_tabulated, support_of
from ...families.tabulated.scalar_functions import PLAIN, Function, LogBeta, LogGamma
from ..nodes.algebra import Addend, Predictor
from ..nodes.constants import Constant
from ..nodes.node import Data, Indexed, Node, placed
from ..nodes.roles import SCALAR, WEIGHTS, OfScalar, Role
from ..nodes.slots import Slot, agreed_dimension
from ..nodes.stated import Stated
from ..nodes.templates import Factor

_Piece = tuple[float, tuple[Factor, ...]]


class _Affine(NamedTuple):
    """A scalar as stated, its coefficient, a number or a known vector, and the number that is added."""

    scalar: Node | Indexed
    scale: float
    weights: Constant | None
    shift: float


def _spelled(scale: float, shift: float, name: str) -> str:
    product = name if scale == 1 else f"{scale:g} * {name}"
    return product if not shift else f"{product} {'+' if shift > 0 else '-'} {abs(shift):g}"


class FunctionOfScalar:
    """A sum in a slot that depends on one hidden scalar, as functions of that scalar.

    Attributes
    ----------
    slots
        Slots by their names in the density.
    functions
        (Slot, statistic) -> the function of the scalar with that name.
    """

    is_bound = False
    """Its density has these functions as they are."""

    def __init__(self, owner: Stated, name: str, predictor: Predictor, role: Role) -> None:
        self._owner, self._name, self._rank = owner, name, role.rank
        self._where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
        if role.of_scalar is None:
            raise ConjugacyError(
                f"{self._where} must be known: no family is conjugate here. Give a number or an array"
            )
        self._of: OfScalar = role.of_scalar
        self.letter_sizes: dict[str, int] = {}
        self.functions: dict[tuple[str, str], Function] = {}
        self._affine = self._read(predictor)
        self._key, self._weights_key = f"{name}.0", f"{name}.1"
        self.slots = {self._key: Slot(name, placed(self._affine.scalar, owner), SCALAR)}
        if self._affine.weights is not None:
            self.slots[self._weights_key] = Slot(name, self._affine.weights, WEIGHTS)
            owner.dimension = agreed_dimension(owner, name, self._affine.weights, WEIGHTS)
        self._refuse_several()
        self._check_support()

    def _read(self, predictor: Predictor) -> _Affine:
        """Return the scalar in a sum, with its coefficient.

        Raises
        ------
        ConjugacyError, ModelError
            If the sum is not one of a single scalar and known numbers.
        """
        scalars: list[Node | Indexed] = []
        weights: list[Constant] = []
        scale = shift = 0.0
        for addend in predictor.addends:
            coefficient, vectors, hidden = self._told_apart(addend)
            weights += vectors
            scalars += hidden
            scale += coefficient * len(hidden)
            shift += coefficient * (not hidden)
        distinct = list({_identity(scalar): scalar for scalar in scalars}.values())
        if len(distinct) > 1:
            names = " and ".join(f"'{_node(own).name}'" for own in distinct)
            raise ConjugacyError(
                f"{self._where} depends on {names}, and functions of a sum of two hidden numbers have no expectation "
                f"in closed form. {self._of.advice}"
            )
        if not distinct:
            raise ModelError(
                f"{self._where} takes no sum or product of known values; give a number or an array"
            )
        if weights and (len(weights) > 1 or shift):
            raise ModelError(
                f"{self._where} takes a hidden scalar times one known vector, without a sum; add known "
                f"numbers to the vector"
            )
        return _Affine(distinct[0], scale, weights[0] if weights else None, shift)

    def _told_apart(self, addend: Addend) -> tuple[float, list[Constant], list[Node | Indexed]]:
        """Return the parts of a product: known numbers, known vectors, and at most one hidden number."""
        coefficient, vectors, hidden = addend.coefficient, [], []
        if addend.dots:
            raise ModelError(f"{self._where} takes no dot product")
        for number in addend.numbers:
            node: Any = _node(number)
            if isinstance(node, Constant) and not node.plates and not node.event_rank:
                coefficient *= float(node.value)
            elif isinstance(node, Constant) and not node.plates and self._rank:
                vectors.append(node)
            elif isinstance(node, Constant | Data):
                raise ModelError(
                    f"{self._where} takes a hidden scalar times a number{' or a known vector' if self._rank else ''}; "
                    f"'{node.name}' differs between repetitions, and each would need another function. "
                    f"Give the hidden scalar these plates instead"
                )
            else:
                hidden.append(number)
        if len(hidden) > 1:
            names = " and ".join(f"'{_node(own).name}'" for own in hidden)
            raise ConjugacyError(
                f"{self._where} is the product of {names}, and functions of a product of hidden numbers "
                f"have no expectation in closed form. Make all but one of them known numbers"
            )
        return coefficient, vectors, hidden

    def _refuse_several(self) -> None:
        """Refuse sums with an unknown number for each category, and unknown shares of a Dirichlet."""
        node: Any = _node(self._affine.scalar)
        if not self._rank or not isinstance(node, Stated):
            return
        own = [plate for plate in node.plates if plate not in self._owner.plates]
        if isinstance(self._affine.scalar, Node) and len(own) == 1 and own[0].size is not None:
            raise ConjugacyError(
                f"{self._where} takes an unknown number for each category, alone or times one known "
                f"number ({node.name} or 2.0 * {node.name}), without a sum"
            )
        if node.value_rank == 1:
            raise ConjugacyError(
                f"{self._where} cannot be the {type(node).__name__} '{node.name}'. Give an unknown number for each "
                f"category, Gamma('{node.name}', 1, 0.1, plates=Plate('category', {node.dimension})); unknown shares "
                f"are 4.0 * StickBreaking('{node.name}', 1.0, truncation={node.dimension}), with a known number or, "
                f"for a wide bound, a Gamma in the place of 4.0"
            )

    def _check_support(self) -> None:
        node: Any = _node(self._affine.scalar)
        if not isinstance(node, Stated) or not can_be_tabulated(node.own_family):
            # the slot's own check refuses it
            return
        scale, shift = self._affine.scale, self._affine.shift
        least = self._of.least
        if scale and not support_of(node.own_family).is_positive(scale, shift - least):
            above, instead = (
                (f"above {least:g}", f"{least:g} + a Gamma") if least else ("positive", "a Gamma")
            )
            raise ModelError(
                f"{self._where} must be {above} for every value of '{node.name}', which "
                f"{_spelled(scale, shift, node.name)} is not. Give {instead}, or a known value"
            )

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return a statistic of the sum as functions of the scalar."""
        _, scale, weights, shift = self._affine
        if target.statistic == "x":
            found: list[_Piece] = []
            if scale:
                own = (Factor(self._key, "x", ""),)
                if weights is not None:
                    own += (Factor(self._weights_key, "x", target.letters),)
                found.append((scale, own))
                self.functions[self._key, "x"] = PLAIN["x"]
            return [*found, (shift, ())] if shift else found
        known, functions = self._functions(target.statistic)
        found = []
        for coefficient, function in functions:
            self.functions[self._key, function.name] = function
            found.append((coefficient, (Factor(self._key, function.name, ""),)))
        return [*found, (known, ())] if known else found

    def _functions(self, statistic: str) -> tuple[float, Sequence[tuple[float, Function]]]:
        """Return a known number and functions of the scalar whose sum a statistic is."""
        _, scale, weights, shift = self._affine
        if statistic == "log_beta":
            size = self._owner.dimension
            if weights is None and size is None:
                raise ModelError(
                    f"{self._where} is one number for all categories; give the number of categories: "
                    f"categories=K"
                )
            if shift:
                raise ModelError(f"{self._where} takes a hidden scalar times known numbers, without a sum")
            values = np.ones(size or 1) if weights is None else weights.value
            return 0.0, [(1.0, LogBeta.of(scale * values))]
        known, found = self._of.constant, []
        for own_scale, own_shift in self._of.log_gammas:
            if scale:
                found.append((1.0, LogGamma(scale * own_scale, shift * own_scale + own_shift)))
            else:
                known += float(gammaln(shift * own_scale + own_shift))
        return known, found


def _node(expression: Any) -> Any:
    return expression.node if isinstance(expression, Indexed) else expression


def _identity(expression: Any) -> tuple[int, ...]:
    if isinstance(expression, Indexed):
        return (id(expression.node), *(id(index) for index in expression.indices))
    return (id(expression),)
