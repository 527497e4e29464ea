r"""Origins of rows that a regression fits nearly exactly: what known numbers make of a point near its coefficients.

In :math:`y \sim N(x'w + \dots, \tau^{-1})` the sum of squares is :math:`y^2 - 2\,y\,x'\langle w\rangle + \dots`. Where
the residuals are small beside y, that is a small difference of large sums. Nothing changes if w is measured from a
point :math:`w_0` and y from :math:`x'w_0`; with least squares for a point, what is summed is as small as the residuals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Constant, Data, Node, Normal, Part, Predictor, Variable
from ...lazy.rows import LazyRows, in_memory
from .bound_model import BoundModel

_ROWS = 1024
"""Rows that are looked at, the first of a weight."""

_SMALL = 1e-6
"""Share of the sum of squares of y that the residuals leave, below which digits are worth a point."""


_RIDGE = 1e-12
"""Share by which the diagonal of X'X is raised, for columns that are collinear or zero."""


@dataclass(frozen=True, eq=False)
class DesignOrigin:
    """What known numbers of each row make of a point.

    Attributes
    ----------
    coefficients
        The variable that is measured from the point.
    design
        The known numbers, (rows, D).
    point
        Shape (D,).
    """

    coefficients: Variable
    design: Node
    point: Array

    def of(self, known: Callable[[Node], AnyArray]) -> AnyArray:
        """Return the product of each row with the point, (B,), from the known arrays of the rows."""
        # each row by itself, so that its digits do not depend on the block that it is in
        return np.einsum("bd,d->b", np.asarray(known(self.design), dtype=np.float64), self.point)


def design_origins_of(bound: BoundModel, taken: Sequence[Variable]) -> dict[Variable, DesignOrigin]:
    """Return the origins of the rows of observed variables that a product with known numbers fits nearly exactly.

    Parameters
    ----------
    bound
        The model with data.
    taken
        Variables that are measured from other points already.
    """
    found: dict[Variable, DesignOrigin] = {}
    for leaf in bound.nodes:
        if not isinstance(leaf, Normal) or leaf in taken or not bound.is_known(leaf):
            continue
        if bound.data_plate is None or leaf.plates != (bound.data_plate,):
            continue
        for coefficients, design in _products(bound, leaf):
            point = _nearly_exact(bound, leaf, design)
            if point is not None:
                found[leaf] = DesignOrigin(coefficients, design, point)
                break
    return found


def _products(bound: BoundModel, leaf: Variable) -> Iterator[tuple[Variable, Node]]:
    """Yield coefficients and known numbers of the plain products in a mean, of those that may be measured elsewhere."""
    stated = leaf.stated.get("mean")
    if not isinstance(stated, Predictor):
        return
    uses = Counter(
        slot.node for node in bound.nodes if isinstance(node, Variable) for slot in node.slots.values()
    )
    operands = [_whole(operand) for addend in stated.addends for operand in addend.operands]
    for addend in stated.addends:
        if addend.coefficient != 1 or addend.numbers or len(addend.dots) != 1:
            continue
        (one, other) = addend.dots[0]
        design, coefficients = (one, _whole(other)) if isinstance(one, Data) else (other, _whole(one))
        if not isinstance(design, Data) or design.plates != leaf.plates:
            continue
        if not isinstance(coefficients, Variable) or coefficients.plates:
            continue
        if sum(own is coefficients for own in operands) > 1:
            continue
        mean = coefficients.slots.get("mean")
        is_free = uses[coefficients] == _parts_used(leaf, coefficients) and coefficients in bound.latent
        if is_free and mean is not None and mean.role.moves and isinstance(mean.node, Constant):
            yield coefficients, design


def _whole(operand: Any) -> Any:
    return operand.whole if isinstance(operand, Part) else operand


def _parts_used(leaf: Variable, coefficients: Variable) -> int:
    """Return how many slots of a leaf hold coefficients: a joint factor is also its precision."""
    return sum(slot.node is coefficients for slot in leaf.slots.values())


def _nearly_exact(bound: BoundModel, leaf: Variable, design: Node) -> Array | None:
    """Return the least squares of the first rows, if they leave next to nothing of the sum of squares."""
    y, X = bound.values_of(leaf), bound.values_of(design)
    if not all(isinstance(array, np.ndarray | LazyRows) for array in (y, X)):
        return None
    rows = np.asarray(in_memory(X[:_ROWS]), dtype=np.float64)
    values = np.asarray(in_memory(y[:_ROWS]), dtype=np.float64)
    kept = np.isfinite(values)
    if bound.row_weights is not None:
        kept &= np.asarray(in_memory(bound.row_weights[:_ROWS])) > 0
    rows, values = rows[kept], values[kept]
    if len(rows) <= rows.shape[1]:
        return None
    point = _near_least_squares(rows, values)
    residuals = values - rows @ point
    is_small = np.sum(residuals**2) < _SMALL * np.sum(values**2)
    return point if is_small and np.isfinite(point).all() else None


def _near_least_squares(X: Array, y: Array) -> Array:
    """Return coefficients near the least squares, at less cost than these: a residual is left for a second step."""
    square = X.T @ X
    square[np.diag_indices_from(square)] *= 1.0 + _RIDGE
    square[np.diag_indices_from(square)] += np.finfo(float).tiny
    point = np.linalg.solve(square, X.T @ y)
    return point + np.linalg.solve(square, X.T @ (y - X @ point))
