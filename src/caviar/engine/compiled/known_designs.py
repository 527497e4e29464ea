"""Known rows of coefficients with zeros: which terms have them, and what their rows count."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Operand, Variable
from ...language.nodes.roles import BESIDE_SPARSE
from ..binding.bound_model import BoundModel
from ..binding.missing.values import OBSERVED
from ..design.fitted import Design


def is_of_coefficients(operand: Operand) -> bool:
    """Whether an operand is all products of the columns of known rows, of which coefficients have zeros."""
    if operand.slot is None or isinstance(operand.node, Variable):
        return False
    return operand.statistic == "xx" and operand.slot.role.name == BESIDE_SPARSE.name


class Designs:
    """The known rows of a model, each with the weights that a term gives them, made once.

    Parameters
    ----------
    bound
        The model with its data.
    """

    def __init__(self, bound: BoundModel) -> None:
        self._bound = bound
        self._axis = None if bound.data_plate is None else Axis(bound.data_plate)
        self._known: dict[Hashable, Design] = {}

    @property
    def are_any(self) -> bool:
        """Whether some were asked for."""
        return bool(self._known)

    def of(self, rows: Operand, others: Sequence[Operand]) -> Design | None:
        """Return the rows weighted by the other operands; None if these are not numbers, or rows are not at hand."""
        if rows.node.plates != (self._bound.data_plate,):
            return None
        if any(own.axes != (self._axis,) for own in others):
            return None
        key = (rows.node, *((own.node, own.statistic) for own in others))
        if key not in self._known:
            values: Any = self._bound.values_of(rows.node)
            weights = [self._weights(own) for own in others]
            if self._bound.row_weights is not None:
                weights.append(self._bound.row_weights)
            arrays = [values, *weights]
            if not all(isinstance(own, np.ndarray) for own in arrays):
                return None
            product: Any = None
            for own in weights:
                product = own if product is None else product * own
            self._known[key] = Design(_as_rows(values), product)
        return self._known[key]

    def _weights(self, operand: Operand) -> Array | None:
        """Return a number of each row; None if it is not at hand."""
        if operand.statistic == OBSERVED:
            observed = self._bound.of(operand.node).observed
            return None if observed is None else np.asarray(observed, dtype=np.float64)
        values: Any = self._bound.values_of(operand.node)
        if not isinstance(values, np.ndarray):
            return None
        number = np.asarray(values, dtype=np.float64)
        if isinstance(operand.node, Variable):
            return operand.node.statistic(operand.statistic, number)
        return None if operand.slot is None else operand.slot.role.of_known(operand.statistic, number)


def _as_rows(values: AnyArray) -> AnyArray:
    """Return rows that can be multiplied and cut."""
    return values if values.dtype in (np.float64, np.float32) else values.astype(np.float64)
