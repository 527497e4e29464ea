"""Rates: Gammas that are multiplied in the rates of counts, of the rows or of groups, as factors of a table.

Where counts are Poisson with a rate ``dot(u, v)``, the table has a row for each repetition of u beside the plate of the
dot product, and a column for each of v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from ....._typing import Array
from .....families import Gamma
from .....language import Constant, Data, Indexed, NegativeBinomial, Plate, Poisson, Predictor, Variable
from .....language import Gamma as GammaVariable
from .....language.nodes.algebra import Addend
from .....language.nodes.slots import Slot
from ....ascent.problem import Problem
from ..columns import Setting, sampled_values
from ..statement import Side, is_free
from ..tables import repetitions
from .factors_of_counts import Counts, GammaFactor, GammaPrior, factors_of_counts

_MOST_CELLS = 5_000_000
"""Pairs of repetitions that counts are told of."""


@dataclass(frozen=True, eq=False)
class _Product:
    """Two hidden Gammas whose products, summed along a plate, are in the rate of a leaf.

    Attributes
    ----------
    leaf
        The observed counts.
    addend
        The products, and what multiplies them.
    given, other
        The Gammas, that of the rows first.
    along
        The plate.
    """

    leaf: Variable
    addend: Addend
    given: Side
    other: Side
    along: Plate


def rates_of(setting: Setting, rng: np.random.Generator, **draws: int) -> dict[Variable, Gamma]:
    """Return factors of the Gammas that are multiplied in rates, near an optimum of these alone; none without such.

    Tables of counts with the same Gamma for their rows are side by side.
    """
    by_given: dict[Variable, list[_Product]] = {}
    for product in _products(setting.problem):
        by_given.setdefault(product.given.variable, []).append(product)
    found: dict[Variable, Gamma] = {}
    for given, products in by_given.items():
        tables: dict[Variable, tuple[Side, csr_array, Array]] = {}
        for product in products:
            other = product.other.variable
            read = None if {given, other} & found.keys() or other in tables else _counts(setting, product)
            if read is not None:
                tables[other] = product.other, *read
        if not tables:
            continue
        sides, counts, exposures = zip(*tables.values(), strict=True)
        whole = Counts.of(csr_array(hstack(counts, format="csr")), np.concatenate(exposures, axis=1))
        priors = [_prior(setting.problem, own) for own in (given, sides[0].variable)]
        size = setting.problem.bound.sizes[products[0].along]
        one, others = factors_of_counts(whole, priors, size, rng, **draws)
        found[given] = _laid_out(setting, products[0].given, one)
        edges = np.cumsum([own.shape[1] for own in exposures])[:-1]
        for side, *own in zip(sides, *(np.split(array, edges) for array in others), strict=True):
            found[side.variable] = _laid_out(setting, side, GammaFactor(*own))
    return found


def _products(problem: Problem) -> Iterator[_Product]:
    for leaf in problem.compiled.sources:
        if not isinstance(leaf, Poisson | NegativeBinomial):
            continue
        stated = leaf.stated.get("rate" if isinstance(leaf, Poisson) else "mean")
        for addend in stated.addends if isinstance(stated, Predictor) else ():
            sides = [_side(problem, leaf, operand) for pair in addend.dots for operand in pair]
            found = [side for side in sides if side is not None]
            if not len(found) == len(sides) == len({side.variable for side in found}) == 2:
                continue
            one, other = found
            if problem.bound.is_local(other.variable):
                one, other = other, one
            if one.along is not None and not problem.bound.is_local(other.variable):
                yield _Product(leaf, addend, one, other, one.along)


def _side(problem: Problem, leaf: Variable, operand: Any) -> Side | None:
    """Return an operand of a dot product as a hidden Gamma, None if it is none."""
    node = operand.node if isinstance(operand, Indexed) else operand
    by = operand.by if isinstance(operand, Indexed) else None
    if not isinstance(node, GammaVariable) or not is_free(problem, node):
        return None
    for slot in leaf.slots.values():
        if slot.node is node and slot.index is by and slot.along is not None:
            chosen = slot.expression.plate if isinstance(slot.expression, Indexed) else None
            return Side(node, by, chosen, None, slot.along)
    return None


def _counts(setting: Setting, product: _Product) -> tuple[csr_array, Array] | None:
    """Return the counts of a product, and by what rates are multiplied there in all, (n, m) both.

    None if they depend on labels that are not known, or there are too many.
    """
    read = sampled_values(setting.problem, setting.sample, product.leaf)
    if read is None:
        return None
    values, plates = read
    sides = product.given, product.other
    places = [repetitions(setting, side, values.shape, plates) for side in sides]
    exposure = _exposure(setting, product.addend, values.shape, plates)
    known = [own for own in places if own is not None]
    shape = tuple(_n_repetitions(setting, side) for side in sides)
    if exposure is None or len(known) < len(places) or shape[0] * shape[1] > _MOST_CELLS:
        return None
    weights = setting.sample.row_weights.reshape(-1, *(1,) * (values.ndim - 1))
    seen = ~np.isnan(values) & (weights > 0)
    row, column = (own[seen] for own in known)
    exposures, counts = (np.broadcast_to(weights * own, values.shape)[seen] for own in (exposure, values))
    total = csr_array((exposures, (row, column)), shape=shape).toarray()
    met = counts > 0
    if not met.any():
        return None
    return csr_array((counts[met], (row[met], column[met])), shape=shape), total


def _exposure(
    setting: Setting, addend: Addend, shape: tuple[int, ...], plates: Sequence[Plate]
) -> Array | None:
    """Return the known numbers that multiply a product, along the axes of its leaf; None if there are others.

    Hidden ones count as 1: what multiplies them takes their part at first.
    """
    bound, found = setting.problem.bound, np.full((1,) * len(shape), addend.coefficient)
    for node in addend.numbers:
        if isinstance(node, Indexed):
            return None
        if not isinstance(node, Data | Constant):
            continue
        axes, stated = [plate for plate in plates if plate in node.plates], list(node.plates)
        if isinstance(node, Data) and bound.data_plate in stated:
            values, stated = setting.columns_of(node), setting.plates_of(node)
        else:
            values = bound.values_of(node)
        sizes = [size for plate, size in zip(plates, shape, strict=True) if plate in axes]
        if values is None or axes != stated or np.size(values) != math.prod(sizes):
            return None
        lengths = [size if plate in axes else 1 for plate, size in zip(plates, shape, strict=True)]
        found = found * np.reshape(values, lengths)
    return found


def _n_repetitions(setting: Setting, side: Side) -> int:
    """Return the number of repetitions of a side, beside those that are summed."""
    both = zip(setting.plates_of(side.variable), setting.sizes_of(side.variable), strict=True)
    return math.prod(size for plate, size in both if plate is not side.along)


def _laid_out(setting: Setting, side: Side, factor: GammaFactor) -> Gamma:
    """Return the factor of a side along its plates, that of the rows first."""
    plates = setting.plates_of(side.variable)
    along = next(place for place, plate in enumerate(plates) if plate is side.along)
    sizes = [n for place, n in enumerate(setting.sizes_of(side.variable)) if place != along]
    return Gamma(
        *(np.moveaxis(own.reshape(*sizes, own.shape[1]), -1, along) for own in (factor.shape, factor.rate))
    )


def _prior(problem: Problem, variable: Variable) -> GammaPrior:
    """Return the prior of a Gamma, on average over its repetitions, where it is known."""
    shape, rate = (_known(problem, variable.slots[name]) for name in ("shape", "rate"))
    return GammaPrior(shape or 1.0, rate if shape else None)


def _known(problem: Problem, slot: Slot) -> float | None:
    """Return a known positive number of a slot, on average; None of others."""
    if slot.index is not None or not isinstance(slot.node, Constant):
        return None
    return float(problem.bound.values_of(slot.node).mean()) or None
