r"""Concentrations of a Dirichlet that are a number times hidden weights: hierarchical Dirichlet processes.

With :math:`c_{jk} = \alpha \beta_k + m_{jk}`, weights :math:`\beta` of a StickBreaking and known :math:`m \ge 0`, the
density has the logarithm of its normaliser, :math:`\log\Gamma(c_{j+}) - \sum_k \log\Gamma(c_{jk})`. If
:math:`\alpha` is known these are functions of single weights, which become statistics of them:

.. math:: \log\Gamma(\alpha \beta_k) = \log\Gamma(\alpha \beta_k + 1) - \log\alpha - \log\beta_k

If :math:`\alpha` is hidden, :math:`\log\Gamma` is bounded by its chord between :math:`\beta_k = 0` and 1, which is
multilinear. Where nothing is added that is the bound of Hughes, Kim and Sudderth (2015),
:math:`(K - 1) \log\alpha + \sum_k \log\beta_k`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from ..._errors import ConjugacyError, ModelError
from ..._typing import Array
from ...families.tabulated.scalar_functions import PLAIN, Function, LogGamma
from ..nodes.algebra import Addend, Predictor
from ..nodes.constants import Constant
from ..nodes.node import Data, Indexed, placed
from ..nodes.plates import Plate
from ..nodes.roles import KNOWN_NUMBER, KNOWN_VECTOR, MEAN_WEIGHTS, SCALAR, Role
from ..nodes.slots import Slot, agreed_dimension
from ..nodes.stated import Stated
from ..nodes.templates import Factor

_Piece = tuple[float, tuple[Factor, ...]]

_MOST_VALUES = 50
"""Different numbers that may be added to a weight: each needs a function of its own."""


def holds_weights(predictor: Predictor) -> bool:
    """Whether hidden weights that sum to one are in a sum."""
    return any(_is_weights(number) for addend in predictor.addends for number in addend.numbers)


def _is_weights(operand: Any) -> bool:
    node = operand.node if isinstance(operand, Indexed) else operand
    return isinstance(node, Stated) and node.is_stick


class ConcentrationOfWeights:
    """The concentration of a Dirichlet as a number times hidden weights, with known numbers added.

    Attributes
    ----------
    slots
        Slots by their names in the density.
    functions
        (Slot, statistic) -> the function of what is in the slot with that name.
    letter_sizes
        None.
    is_bound
        Whether its normaliser is bounded.
    """

    def __init__(self, owner: Stated, name: str, predictor: Predictor, role: Role) -> None:
        self._owner, self._name = owner, name
        self._where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
        if role.name != "concentration":
            raise ConjugacyError(f"{self._where} takes no hidden weights; give a number or a Gamma")
        self.letter_sizes: dict[str, int] = {}
        self.functions: dict[tuple[str, str], Function] = {}
        self.slots: dict[str, Slot] = {}
        self._added: list[tuple[float, str]] = []
        own = [a for a in predictor.addends if any(map(_is_weights, a.numbers))]
        if len(own) > 1:
            raise ConjugacyError(
                f"{self._where} is a sum of {len(own)} products of hidden weights, whose functions have no expectation "
                f"in closed form; let one product be hidden, as alpha * beta, and add known numbers"
            )
        self._alpha, self._total_key = 1.0, ""
        self._weights_key = self._read(own[0])
        owner.dimension = agreed_dimension(
            owner, name, self.slots[self._weights_key].expression, MEAN_WEIGHTS
        )
        self._size = owner.dimension or 0
        more, self._more_plates = self._known([a for a in predictor.addends if a is not own[0]])
        self._more = more
        self._values = [float(value) for value in np.unique(more)]
        if len(self._values) > _MOST_VALUES:
            raise ModelError(
                f"{self._where} adds {len(self._values)} different numbers to hidden weights; at most "
                f"{_MOST_VALUES} are possible, because each needs another function"
            )
        self.is_bound = bool(self._total_key)

    def _slot(self, expression: Any, role: Role) -> str:
        key = f"{self._name}.{len(self.slots)}"
        self.slots[key] = Slot(self._name, placed(expression, self._owner), role)
        return key

    def _read(self, addend: Addend) -> str:
        """Keep what is in the product of hidden weights, and return the slot of the weights."""
        if addend.dots:
            raise ModelError(f"{self._where} takes no dot product")
        self._alpha = addend.coefficient
        weights = [number for number in addend.numbers if _is_weights(number)]
        hidden = []
        for number in addend.numbers:
            node: Any = number.node if isinstance(number, Indexed) else number
            if isinstance(node, Constant) and not node.plates and not node.event_rank:
                self._alpha *= float(node.value)
            elif isinstance(node, Constant | Data):
                raise ModelError(
                    f"{self._where} takes one number times hidden weights; '{node.name}' has several. Give a number or "
                    f"a Gamma"
                )
            elif number not in weights:
                hidden.append(number)
        if len(weights) > 1 or len(hidden) > 1:
            raise ConjugacyError(
                f"{self._where} takes the product of hidden weights and at most one hidden number; got {addend!r}"
            )
        if not self._alpha > 0:
            raise ModelError(f"{self._where} must be positive; its factor {self._alpha:g} is not")
        key = self._slot(weights[0], MEAN_WEIGHTS)
        if hidden:
            self._total_key = self._slot(hidden[0], SCALAR)
        return key

    def _known(self, addends: list[Addend]) -> tuple[Array, tuple[Plate, ...]]:
        """Return what is added to the weights, (plates..., K), and the plates; with a slot for each array."""
        plates: list[Plate] = []
        parts: list[tuple[float, Constant | None]] = []
        for addend in addends:
            numbers = [number for number in addend.numbers if _is_number(number)]
            scale = addend.coefficient * float(np.prod([number.value for number in numbers]))
            arrays: list[Any] = [number for number in addend.numbers if not _is_number(number)]
            if addend.dots or len(arrays) > 1 or not all(isinstance(own, Constant) for own in arrays):
                raise ModelError(
                    f"{self._where} takes hidden weights plus known numbers, as alpha * beta + Constant('more', "
                    f"array); {addend!r} is neither"
                )
            parts.append((scale, arrays[0] if arrays else None))
            plates += [own for array in arrays for own in array.plates if own not in plates]
        total = np.zeros((*(plate.size or 1 for plate in plates), self._size))
        for scale, array in parts:
            total = total + scale * (1.0 if array is None else self._along(array, plates))
            if array is not None:
                self._added.append((scale, self._slot(array, KNOWN_VECTOR)))
            else:
                self._added.append((scale, ""))
        if not (np.isfinite(total).all() and (total >= 0).all()):
            raise ModelError(f"{self._where} adds numbers to hidden weights that are negative or not finite")
        return total, tuple(plates)

    def _along(self, array: Constant, plates: list[Plate]) -> Array:
        """Return a known array with an axis for each plate."""
        value = np.asarray(array.value)
        if array.event_rank not in (0, 1) or (array.event_rank and value.shape[-1] != self._size):
            raise ModelError(
                f"{self._where} has {self._size} hidden weights; '{array.name}' has values of shape "
                f"{value.shape[len(array.plates) :]}"
            )
        own = [plate for plate in plates if plate in array.plates]
        events = (len(array.plates),) if array.event_rank else ()
        turned = value.transpose([*(array.plates.index(plate) for plate in own), *events])
        if not events:
            turned = turned[..., np.newaxis]
        return turned[tuple(slice(None) if plate in own else np.newaxis for plate in plates)]

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return a statistic of the concentration in statistics of its parts."""
        if target.statistic == "x":
            return self._itself(target.letters)
        return self._bounded_normaliser() if self.is_bound else self._normaliser()

    def _itself(self, letters: str) -> list[_Piece]:
        own = (self._factor(PLAIN["x"], letters),)
        if self._total_key:
            own += (Factor(self._total_key, "x", ""),)
        found: list[_Piece] = [(self._alpha, own)]
        for scale, key in self._added:
            if scale and not key:
                found.append((scale, (Factor("", "", letters),)))
            elif scale:
                array: Any = self.slots[key].node
                found.append((scale, (Factor(key, "x", letters if array.event_rank else ""),)))
        return found

    def _factor(self, function: Function, letters: str, key: str = "") -> Factor:
        """Return a function of a weight, or of the hidden number, as a statistic."""
        slot = key or self._weights_key
        self.functions[slot, function.name] = function
        return Factor(slot, function.name, letters)

    def _where_added(self, value: float) -> tuple[Factor, ...]:
        """Return an indicator of the weights to which a number is added; nothing if it is added to all."""
        if len(self._values) == 1:
            return ()
        name = f"{self._owner.name}.{self._name}.where_{self._values.index(value)}"
        marks = Constant.of_known(name, (self._more == value).astype(np.float64), self._more_plates)
        return (Factor(self._slot(marks, KNOWN_VECTOR), "x", "k"),)

    def _number(self, of_rows: Array, name: str) -> _Piece:
        """Return a known number of each repetition."""
        if not self._more_plates:
            return float(of_rows), ()
        constant = Constant.of_known(f"{self._owner.name}.{self._name}.{name}", of_rows, self._more_plates)
        return 1.0, (Factor(self._slot(constant, KNOWN_NUMBER), "x", ""),)

    def _normaliser(self) -> list[_Piece]:
        """Return the logarithm of the Beta function for a known number."""
        found: list[_Piece] = []
        for value in self._values:
            where = self._where_added(value)
            found.append((1.0, (self._factor(LogGamma(self._alpha, value or 1.0), "k"), *where)))
            if not value:
                found.append((-1.0, (Factor(self._weights_key, "log_x", "k"), *where)))
        known = -(self._more == 0).sum(axis=-1) * np.log(self._alpha)
        return [*found, self._number(known - gammaln(self._alpha + self._more.sum(axis=-1)), "known")]

    def _bounded_normaliser(self) -> list[_Piece]:
        """Return a bound from above of the logarithm of the Beta function for a hidden number."""
        key, alpha = self._total_key, self._alpha
        empty = (self._more == 0).sum(axis=-1)
        found = [self._number(-empty * np.log(alpha), "known")]
        log_of = Factor(key, "log_x", "")
        if len(self._values) == 1 and not self._values[0]:
            # the chords of all weights make up log Gamma(alpha + 1), and log alpha is left
            return [
                *found,
                (-1.0, (Factor(self._weights_key, "log_x", "k"),)),
                (1.0 - self._size, (log_of,)),
                (float(np.log(alpha)), ()),
            ]
        for value in self._values:
            where = self._where_added(value)
            chord = self._factor(LogGamma(alpha, value or 1.0), "", key)
            weight = self._factor(PLAIN["x"], "k")
            found.append((1.0, (weight, chord, *where)))
            if value:
                found.append((-float(gammaln(value)), (weight, *where)))
                found.append((float(gammaln(value)), (Factor("", "", "k"), *where)))
            else:
                found += [(-1.0, (Factor(self._weights_key, "log_x", "k"), *where))]
                found += [(-1.0, (log_of, Factor("", "", "k"), *where))]
        return [*found, *self._totals()]

    def _totals(self) -> list[_Piece]:
        """Return minus log-gamma of the sum of the concentrations, a function of the hidden number."""
        totals = self._more.sum(axis=-1)
        found: list[_Piece] = []
        for place, total in enumerate(np.unique(totals)):
            where: tuple[Factor, ...] = ()
            if self._more_plates:
                marks = Constant.of_known(
                    f"{self._owner.name}.{self._name}.total_{place}",
                    (totals == total).astype(np.float64),
                    self._more_plates,
                )
                where = (Factor(self._slot(marks, KNOWN_NUMBER), "x", ""),)
            function = LogGamma(self._alpha, float(total))
            found.append((-1.0, (self._factor(function, "", self._total_key), *where)))
        return found


def _is_number(operand: Any) -> bool:
    return isinstance(operand, Constant) and not operand.plates and not operand.event_rank
