r"""Products of three hidden locations, or more: factors of a table with as many ways, by alternating least squares.

No update moves the locations of such a product while two of them are at 0, and from a draw the noise soon takes what
they have in common. So all of them begin where least squares have them, and the noise is what these leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, linear_sum_assignment

from ....._typing import Array
from .....language import Nonnegative, Normal, Plate, Variable
from .....language.nodes.algebra import Addend
from ..columns import Setting, sampled_values
from ..residuals import residuals
from ..statement import Side, free_sides, sum_of
from ..tables import repetitions
from .alternating import Cells, alternated, is_too_large

_FEWEST_WAYS = 3
"""Locations of a product that has several ways."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Products of numbers that are repeated along the same ways, each of them a component.

    Attributes
    ----------
    addends
        The products, and what they are multiplied by.
    sides
        The numbers of each, in the same order of ways.
    """

    addends: list[Addend]
    sides: list[list[Side]]


def factors_of(setting: Setting, rng: np.random.Generator) -> dict[Variable, Array]:
    """Return values of all locations of the products with three or more; none where a statement has no such products.

    Where a leaf has products along several ways, those before are taken away from it.
    """
    found: dict[Variable, Array] = {}
    for leaf in setting.problem.compiled.sources:
        if not isinstance(leaf, Normal):
            continue
        blocks = _blocks(setting, leaf)
        read = sampled_values(setting.problem, setting.sample, leaf) if blocks else None
        if read is None:
            continue
        values, plates = read
        left = residuals(setting, leaf, blocks[0].addends[0], values, plates[1:])
        values = np.ascontiguousarray(left)
        for block in blocks:
            cells = _cells(setting, block, values, plates)
            if cells is None or is_too_large(cells, len(block.addends)):
                continue
            factors = alternated(cells, len(block.addends), rng)
            _take_away(values, cells, factors)
            found.update(_shared_out(setting, block, factors))
    return found


def _blocks(setting: Setting, leaf: Normal) -> list[_Block]:
    """Return the products of a leaf with several ways, those along the same ones together, the most first."""
    stated = sum_of(leaf)
    blocks: dict[object, _Block] = {}
    met: set[Variable] = set()
    for addend in () if stated is None else stated.addends:
        sides = free_sides(setting.problem, leaf, addend)
        variables = {side.variable for side in sides}
        if len(sides) < _FEWEST_WAYS or variables & met or not all(map(_is_number, variables)):
            continue
        met |= variables
        ordered = sorted(sides, key=_way)
        block = blocks.setdefault(tuple(map(_way, ordered)), _Block([], []))
        block.addends.append(addend)
        block.sides.append(ordered)
    return sorted(blocks.values(), key=lambda block: -len(block.addends))


def _is_number(variable: Variable) -> bool:
    return isinstance(variable, Normal | Nonnegative)


def _way(side: Side) -> tuple[object, ...]:
    """Return along what a number is repeated, and how it is chosen there."""
    plates = tuple(sorted(plate.name for plate in side.variable.plates))
    return plates, "" if side.index is None else side.index.name, isinstance(side.variable, Nonnegative)


def _cells(setting: Setting, block: _Block, values: Array, plates: Sequence[Plate]) -> Cells | None:
    """Return the observed cells of a leaf and their places; None if these depend on labels that are not known."""
    sides = block.sides[0]
    places = [repetitions(setting, side, values.shape, plates) for side in sides]
    by_row = setting.sample.row_weights.reshape(-1, *(1,) * (values.ndim - 1))
    weights = np.broadcast_to(by_row, values.shape).ravel()
    seen = np.flatnonzero(~np.isnan(values.ravel()) & (weights > 0))
    known = [own.ravel()[seen] for own in places if own is not None]
    if len(known) < len(places) or not len(seen) or not np.any(values.ravel()[seen]):
        return None
    left = values.ravel()[seen]
    return Cells(
        seen,
        known,
        [setting.n_repetitions(side.variable) for side in sides],
        left,
        weights[seen],
        _wide_enough([side.variance for side in sides], float(np.square(left).mean())),
        [isinstance(side.variable, Nonnegative) for side in sides],
    )


def _wide_enough(variances: Sequence[float | None], square: float) -> list[float]:
    """Return variances of the sides of a product, those that are known or more, that allow for a mean square of it."""
    known = [own for own in variances if own is not None]
    missing = square / float(np.prod(known))
    if len(known) < len(variances):
        each = missing ** (1 / (len(variances) - len(known)))
        return [each if own is None else own for own in variances]
    return [own * max(1.0, missing) ** (1 / len(known)) for own in known]


def _take_away(values: Array, cells: Cells, factors: Sequence[Array]) -> None:
    """Take what products explain away from the values of a leaf, in place."""
    chosen = [own[place] for own, place in zip(factors, cells.places, strict=True)]
    values.reshape(-1)[cells.which] -= np.prod(chosen, axis=0).sum(axis=1)


def _shared_out(setting: Setting, block: _Block, factors: Sequence[Array]) -> dict[Variable, Array]:
    """Return the values of the numbers of each product, as wide as they are at the optimum, nearly.

    Each component is in the product whose prior it fits best.
    """
    found: dict[Variable, Array] = {}
    numbers = [len(own) for own in factors]
    variances = [[side.variance for side in sides] for sides in block.sides]
    widths = np.stack([np.sqrt(np.square(own).mean(axis=0)) for own in factors])
    sizes = np.maximum(widths.prod(axis=0), np.finfo(float).tiny)
    wanted = [
        [widths_of_sides(size / abs(addend.coefficient), own, numbers) for size in sizes.tolist()]
        for addend, own in zip(block.addends, variances, strict=True)
    ]
    gains = [
        [_gain(each, own, numbers) for each in several]
        for several, own in zip(wanted, variances, strict=True)
    ]
    for product, component in zip(*linear_sum_assignment(gains, maximize=True), strict=True):
        to = np.sign(block.addends[product].coefficient), *[1.0] * (len(numbers) - 1)
        for way, side in enumerate(block.sides[product]):
            width = wanted[product][component][way] * to[way]
            own = factors[way][:, component] * (width / max(widths[way, component], np.finfo(float).tiny))
            found[side.variable] = own.reshape(setting.sizes_of(side.variable))
    return found


def _gain(widths: Sequence[float], variances: Sequence[float | None], numbers: Sequence[int]) -> float:
    """Return what a component adds to the ELBO in the place of a product, beside what is the same in all places."""
    squares = [own**2 / v for own, v in zip(widths, variances, strict=True) if v is not None]
    known = [number for number, v in zip(numbers, variances, strict=True) if v is not None]
    return float(np.dot(known, 0.5 * (np.log(squares) - squares))) if known else 0.0


def widths_of_sides(size: float, variances: Sequence[float | None], numbers: Sequence[int]) -> list[float]:
    r"""Return the roots of the mean squares of numbers at the optimum, nearly, whose product is ``size``.

    Each side pays for its mean squares, and its posterior is narrower the larger the others' are. So the ELBO is
    highest where :math:`n_m (s_m^2 / v_m - 1)` is the same for all sides, of which there are n with prior variance v.
    Sides whose variance is learnt adapt to the others.
    """
    known = [own for own in variances if own is not None]
    if len(known) < len(variances):
        rest = size / float(np.prod(known)) ** 0.5
        each = rest ** (1 / (len(variances) - len(known)))
        return [each if own is None else own**0.5 for own in variances]
    prior, counts = np.array(known), np.array(numbers, dtype=np.float64)

    def squares(above: float) -> Array:
        return prior * ((counts - counts.min() + above) / counts)

    def excess(above: float) -> float:
        return float(0.5 * np.log(squares(above)).sum() - np.log(size))

    low, high = np.finfo(float).tiny, counts.max() * (1 + size ** (2 / len(prior)) / prior.min())
    above = brentq(excess, low, high) if excess(low) < 0 < excess(high) else counts.min()
    return np.sqrt(squares(above)).tolist()
