"""Codes: which indicators of a row are 1, guessed from values that are sums of a vector for each of these.

Rows that differ in one indicator differ by its vector, wherever the others are. Clusters that do not know this mix
several vectors up. So codes and vectors are found in turn by least squares, from vectors that are drawn many times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....._typing import Array
from .....language import Indexed, Part, Predictor, Variable
from .....language.nodes.algebra import Addend
from ..columns import Setting, filled, sampled_values
from ..residuals import residuals
from ..statement import sum_of

_MOST = 4
"""Indicators of a row: each combination is a code, and of more too few draws lead to the best vectors."""

_DRAWS = 64
"""Times that vectors are drawn: of three about every fourth ends at the best, of four every twentieth."""

_ROUNDS = 30

_SAME = 1e-9
"""Spread over rows of what is the same for all of them, in units of that of the values."""

_MOST_ROWS = 400
"""Rows of the sample that vectors are found from."""


@dataclass(frozen=True, eq=False)
class _Found:
    """Vectors of the indicators, (K, d), the level of rows without any, (d,), and the squares that are left."""

    vectors: Array
    level: Array
    left: float

    def codes_of(self, points: Array) -> Array:
        """Return the code of each row that is nearest, (n, K)."""
        codes = _all_codes(len(self.vectors))
        return codes[_squares(points, self.level + codes @ self.vectors).argmin(axis=1)]

    def turned(self, origin: Array) -> _Found:
        """Return the same places, with the level at the one next to the origin: there some vectors are reversed."""
        codes = _all_codes(len(self.vectors))
        levels = self.level + codes @ self.vectors
        place = np.square(levels - origin).sum(axis=1).argmin()
        return _Found((1 - 2 * codes[place])[:, None] * self.vectors, levels[place], self.left)


def codes_of(setting: Setting, numbers: Sequence[Variable], rng: np.random.Generator) -> Array | None:
    """Return which indicators of each row are 1, (n, K); None where they are more than that, or too many.

    Parameters
    ----------
    setting
        The model and its sample.
    numbers
        The indicators of a row.
    rng
        For the draws.
    """
    leaves = [leaf for leaf in setting.problem.bound.observed if _addends_with(leaf, numbers)]
    if not 0 < len(numbers) <= _MOST or not all(_is_same_in_rows(setting, leaf, numbers) for leaf in leaves):
        return None
    columns = [_values(setting, leaf, numbers) for leaf in leaves]
    read = [own for own in columns if own is not None]
    if len(read) < len(columns) or not read:
        return None
    points, weights = np.concatenate(read, axis=1), setting.sample.row_weights
    has_level = any(_has_more(leaf, numbers) for leaf in leaves)
    if len(points) < 2 ** len(numbers):
        return None
    middle = np.average(points, axis=0, weights=weights) * has_level
    points = points - middle
    few, counts = points[:_MOST_ROWS], weights[:_MOST_ROWS]
    draws = [_from_a_draw(few, counts, len(numbers), has_level, rng) for _ in range(_DRAWS)]
    best = min(draws, key=lambda one: one.left)
    return (best.turned(-middle) if has_level else best).codes_of(points)


def _addends_with(leaf: Variable, numbers: Sequence[Variable]) -> list[Addend]:
    """Return the addends of the mean of a leaf that have an indicator in them."""
    stated = leaf.stated.get("mean")
    addends = stated.addends if isinstance(stated, Predictor) else ()
    return [own for own in addends if any(_node(operand) in numbers for operand in own.operands)]


def _has_more(leaf: Variable, numbers: Sequence[Variable]) -> bool:
    """Whether anything else is added: rows without any indicator are not at 0."""
    stated = leaf.stated["mean"]
    return isinstance(stated, Predictor) and len(_addends_with(leaf, numbers)) < len(stated.addends)


def _is_same_in_rows(setting: Setting, leaf: Variable, numbers: Sequence[Variable]) -> bool:
    """Whether each indicator of a leaf is multiplied by one hidden location, the same in all rows."""
    for addend in _addends_with(leaf, numbers):
        others = [operand for operand in addend.operands if _node(operand) not in numbers]
        is_alone = len(others) == 1 and len(addend.operands) == 2
        if not is_alone or not isinstance(others[0], Variable) or setting.is_of_rows(others[0]):
            return False
    return True


def _values(setting: Setting, leaf: Variable, numbers: Sequence[Variable]) -> Array | None:
    """Return the values of a leaf less what else is added, (n, d), in units of their spread."""
    found = sampled_values(setting.problem, setting.sample, leaf)
    if found is None:
        return None
    values, plates = found
    reference = setting.problem.coordinates.of(leaf)
    values = values if reference is None else values + reference
    if sum_of(leaf) is not None and _has_more(leaf, numbers):
        left = residuals(setting, leaf, _addends_with(leaf, numbers)[0], values, plates[1:])
        # what is the same for all rows is a level, which the codes have too
        is_level = filled(values - left).std(axis=0).max(initial=0.0) <= _SAME * filled(values).std()
        values = values if is_level else left
    points = filled(values).reshape(len(values), -1)
    return points / (float(points.std()) or 1.0)


def _node(operand: Any) -> Any:
    return operand.node if isinstance(operand, Indexed | Part) else operand


def _from_a_draw(
    points: Array, weights: Array, n_numbers: int, has_level: bool, rng: np.random.Generator
) -> _Found:
    """Return vectors and codes found in turn, from differences of rows that are drawn."""
    drawn = points[rng.choice(len(points), n_numbers + has_level, replace=False)]
    level = drawn[-1] if has_level else np.zeros(points.shape[1])
    best, codes = _Found(drawn[:n_numbers] - level, level, np.inf), _all_codes(n_numbers)
    roots = np.sqrt(weights)[:, None]
    for _ in range(_ROUNDS):
        squares = _squares(points, best.level + codes @ best.vectors)
        own = squares.argmin(axis=1)
        left = float(weights @ squares[np.arange(len(points)), own])
        if not left < best.left * (1 - 1e-9):
            break
        columns = np.column_stack([codes[own], np.ones((len(points), int(has_level)))])
        solved = np.asarray(np.linalg.lstsq(roots * columns, roots * points, rcond=None)[0], dtype=np.float64)
        best = _Found(solved[:n_numbers], solved[-1] if has_level else level, left)
    return best


def _all_codes(n_numbers: int) -> Array:
    return (np.arange(2**n_numbers)[:, None] >> np.arange(n_numbers) & 1).astype(np.float64)


def _squares(points: Array, centres: Array) -> Array:
    """Return the squared distances of rows and centres, (n, C)."""
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.maximum(lengths - 2 * points @ centres.T, 0.0)
