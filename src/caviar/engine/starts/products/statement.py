"""Products: which hidden locations a statement multiplies in the sum of a leaf, and along what each is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....language import (
    Bernoulli,
    Constant,
    Exponential,
    Indexed,
    Label,
    LinearGaussianChain,
    Link,
    MultivariateNormal,
    Node,
    Nonnegative,
    Normal,
    Part,
    Plate,
    Predictor,
    SparseVector,
    Variable,
)
from ....language.nodes.algebra import Addend
from ...ascent.problem import Problem
from ...local.family import FamilyFactor
from ...local.gated import SwitchedFactor

_LOCATIONS = (Normal, MultivariateNormal, Nonnegative, SparseVector, LinearGaussianChain)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the locations that are multiplied.

    Attributes
    ----------
    variable
        The location.
    index
        The labels that choose among its repetitions, or None.
    chosen
        The plate that they choose from, or None.
    variance
        The prior variance of an entry, if that is known.
    along
        The plate of numbers that a dot product is summed along, or None.
    """

    variable: Variable
    index: Any
    chosen: Plate | None
    variance: float | None
    along: Plate | None = None

    @property
    def size(self) -> int:
        """Length of the vectors; 1 of numbers."""
        return self.variable.dimension or 1


@dataclass(frozen=True, eq=False)
class Product:
    """Two hidden locations that are multiplied in the sum of a leaf.

    Attributes
    ----------
    leaf
        The observed variable.
    addend
        Their product, one of those that are added up in its mean.
    given
        The side that a start guesses.
    other
        The side that follows from it.
    """

    leaf: Variable
    addend: Addend
    given: Side
    other: Side


def sum_of(leaf: Variable) -> Predictor | None:
    """Return the sum that a leaf has for its mean, or for what its probability follows from; None without a sum."""
    stated = leaf.stated.get("probability" if isinstance(leaf, Bernoulli) else "mean")
    found = stated.predictor if isinstance(stated, Link) else stated
    return found if isinstance(found, Predictor) and isinstance(leaf, Normal | Bernoulli) else None


def products_of(problem: Problem) -> dict[Variable, list[Product]]:
    """Return the products in the sums of the leaves of the rows, by the location that is guessed; one of each sum.

    That is the one of the rows where there is one. None are returned of locations that are known in part, or from an
    earlier fit: their axes are told.
    """
    found: dict[Variable, list[Product]] = {}
    for leaf in problem.compiled.sources:
        for product in _products(problem, leaf) if isinstance(leaf, Variable) else ():
            several = found.setdefault(product.given.variable, [])
            if all(own.leaf is not leaf for own in several):
                several.append(product)
    return found


def _products(problem: Problem, leaf: Variable) -> Iterator[Product]:
    stated = sum_of(leaf)
    for addend in () if stated is None else stated.addends:
        sides = free_sides(problem, leaf, addend)
        if len(sides) != 2:
            continue
        one, other = sides
        if problem.bound.is_local(other.variable):
            one, other = other, one
        if not problem.bound.is_local(other.variable):
            yield Product(leaf, addend, one, other)


def free_sides(problem: Problem, leaf: Variable, addend: Addend) -> list[Side]:
    """Return the different hidden locations whose product an addend is; none if anything else is in it.

    Hidden numbers 0 or 1 that are global are left out: a start has them at 1.
    """
    sides = [_side(problem, leaf, own) for own in addend.operands if not _is_present(problem, own)]
    found = [side for side in sides if side is not None and is_free(problem, side.variable)]
    return found if len(found) == len(sides) == len({side.variable for side in found}) else []


def _is_present(problem: Problem, operand: Any) -> bool:
    node: Node = operand.node if isinstance(operand, Indexed) else operand
    return isinstance(node, Variable) and node.is_zero_or_one and node in problem.order


def _side(problem: Problem, leaf: Variable, operand: Any) -> Side | None:
    """Return an operand as a location, None if it is none."""
    node: Node = operand.node if isinstance(operand, Indexed | Part) else operand
    if not isinstance(node, _LOCATIONS):
        return None
    for slot in leaf.slots.values():
        by = operand.by if isinstance(operand, Indexed) else None
        if slot.node is node and slot.index is by:
            chosen = slot.expression.plate if isinstance(slot.expression, Indexed) else None
            return Side(node, by, chosen, _variance(problem, node))
    return None


def _variance(problem: Problem, location: Variable) -> float | None:
    """Return the prior variance of an entry of a location, if that is known."""
    name = "rate" if isinstance(location, Exponential) else "precision"
    slot = None if isinstance(location, LinearGaussianChain) else location.slots.get(name)
    if slot is None or slot.index is not None or not isinstance(slot.node, Constant):
        return None
    precision = problem.bound.values_of(slot.node)
    if isinstance(location, Exponential):
        # the mean square
        return float(2 / precision.mean() ** 2)
    if slot.role.rank == 2:
        precision = precision.diagonal(axis1=-2, axis2=-1)
    return float(1 / precision.mean()) if precision.mean() > 0 else None


def is_free(problem: Problem, variable: Variable) -> bool:
    """Whether a location is hidden with all its repetitions, and known only by the statement."""
    own = problem.bound.of(variable)
    if own.clamped is not None or own.prior is not None or own.in_part is not None:
        return False
    return variable in problem.order or any(
        variable in factor.variables
        for factor in problem.factors
        if isinstance(factor, FamilyFactor | SwitchedFactor)
    )


def with_told_axes(problem: Problem) -> set[Variable]:
    """Return the locations of the products whose axes priors tell: known means of one side's repetitions differ."""
    products = (own for several in products_of(problem).values() for own in several)
    sides = ((own.given.variable, own.other.variable) for own in products)
    return {location for both in sides if any(_is_told(problem, v) for v in both) for location in both}


def _is_told(problem: Problem, location: Variable) -> bool:
    slot = None if isinstance(location, LinearGaussianChain) else location.slots.get("mean")
    if slot is None or slot.index is not None or not isinstance(slot.node, Constant):
        return False
    means = problem.bound.values_of(slot.node)
    repeated = means.reshape(-1, *means.shape[means.ndim - slot.role.rank :])
    return bool((repeated != repeated[:1]).any())


def multiplies_chains(problem: Problem) -> bool:
    """Whether a leaf has a product of the vectors of a chain and another hidden location in its mean."""
    return any(isinstance(v, LinearGaussianChain) for v in products_of(problem))


def multiplies_labels(problem: Problem) -> bool:
    """Whether a leaf has a product of what several hidden labels choose, for its mean, rate or precision."""
    return any(
        len(_hidden_labels(problem, addend)) > 1
        for leaf in problem.compiled.sources
        if isinstance(leaf, Variable)
        for stated in leaf.stated.values()
        if isinstance(stated, Predictor)
        for addend in stated.addends
    )


def _hidden_labels(problem: Problem, addend: Addend) -> set[Any]:
    labels = {operand.by for operand in addend.operands if isinstance(operand, Indexed)}
    return {label for label in labels if isinstance(label, Label) and not problem.bound.is_known(label)}
