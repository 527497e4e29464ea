r"""Expectations under q of the arguments of one variable: locations, inverse precisions, probabilities.

The operands of a predictor :math:`\eta = \sum_i c_i` are independent under q, and each is at most once in a
product; :mod:`.products` has the moments of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...engine.binding.clamped.factor import PointMass
from ...families.shared.coupled_normals import CoupledNormals
from ...language import Constant, Diagonal, Indexed, Node, Part, Plate, Predictor, Slot, Variable
from ...language.nodes.algebra import Addend, PredictorAlong, as_predictor
from ...language.nodes.roles import RATE, SCALAR
from ...language.values_in_slots import known_value, laid_out, operand_slot, slot_value, value_along, value_at
from ...numerics.cached import cached_property
from ...numerics.linalg import inverse
from .products import Operand, Product, contracted, covariance, moments_of_sum, of_entries, with_letters

SAMPLES = "posterior.predictive(data=..., n_draws=...) draws from it."
"""The way out where there is no closed form."""


def refuse(owner: Variable, why: str) -> NoReturn:
    """Say why the moments of a variable have no closed form."""
    kind = f"{type(owner).__name__} '{owner.name}'"
    raise ModelError(f"mean and variance of the {kind} have no closed form here: {why}. {SAMPLES}")


def coupled_among(factors: Mapping[str, Any]) -> dict[str, CoupledNormals]:
    """Return the shared factor of each variable that has one."""
    joint = [own for own in factors.values() if isinstance(own, CoupledNormals)]
    return {name: own for own in joint for name in own.names}


class Joint(Protocol):
    """Covariances of locations: those of shared factors, or of variables that the factors treat as independent."""

    def between(self, one: str, i: AnyArray, other: str, j: AnyArray) -> Array | None:
        """Return the covariances of numbers of two locations, by their places among the entries; i and j broadcast.

        None if they are independent, or their covariance is not known.
        """
        ...


@dataclass(frozen=True)
class SharedGaussians:
    """The covariances of variables that share a Gaussian factor; the others are independent.

    Attributes
    ----------
    by_variable
        The shared factor of each variable that has one.
    """

    by_variable: Mapping[str, CoupledNormals]

    def between(self, one: str, i: AnyArray, other: str, j: AnyArray) -> Array | None:
        """Return the covariances of numbers of two variables, by their places; None if they share no factor."""
        joint = self.by_variable.get(one)
        if joint is None or joint is not self.by_variable.get(other):
            return None
        return joint.covariance(one, i, other, j)


@dataclass(frozen=True)
class Expectations:
    """Expectations of the arguments of ``owner``, with an axis for each of its plates.

    Attributes
    ----------
    owner
        The variable.
    known
        Name -> values of known arrays, of observed variables, and of the Categoricals that are held at a category.
    factors
        Name -> distribution of each latent variable, batched over its plates.
    joint
        Covariances of different variables, and of different repetitions of one; None for those of shared factors.
    place
        A place along the plate of a predictor that runs along one, where that is what is asked of.
    """

    owner: Variable
    known: Mapping[str, Any]
    factors: Mapping[str, Any]
    joint: Joint | None = None
    place: int | None = None

    def location(self, name: str = "mean") -> tuple[Array, Array]:
        """Return mean and variance of a location, a node or a predictor; of a vector those of each entry."""
        stated = self.owner.stated[name]
        if isinstance(stated, Predictor):
            return self.predictor(stated)
        mean, covariance = self._moments(self.owner.slots[name])
        if covariance is None:
            return mean, np.zeros_like(mean)
        return mean, np.diagonal(covariance, axis1=-2, axis2=-1) if self.owner.value_rank else covariance

    def vector(self) -> tuple[Array, Array]:
        """Return mean and covariance of a location that is a vector."""
        mean, covariance = self._moments(self.owner.slots["mean"])
        return mean, np.zeros((*mean.shape, mean.shape[-1])) if covariance is None else covariance

    def predictor(self, stated: Predictor) -> tuple[Array, Array]:
        """Return mean and variance of a sum of products; the factors of two that share an operand meet once.

        Of a vector they are those of each entry, which numbers have in common.
        """
        mean, variance = np.zeros(()), np.zeros(())
        for i, addend in enumerate(stated.addends):
            product = list(self._operands(addend))
            mean = mean + addend.coefficient * contracted([(m, letters) for _, m, _, letters in product])
            for j, other in enumerate(stated.addends[: i + 1]):
                shared = list(self._operands(other))
                scale = addend.coefficient * other.coefficient * (1.0 if i == j else 2.0)
                variance = variance + scale * covariance(product, shared)
                variance = variance + scale * self._covariance_between(product, shared)
        # rounding may leave a variance of zero just below
        return mean, np.maximum(variance, 0.0)

    @cached_property
    def _joint(self) -> Joint | None:
        """The covariances between variables; None where all are independent."""
        shared = coupled_among(self.factors) if self.joint is None else {}
        return SharedGaussians(shared) if shared else self.joint

    def _covariance_between(self, one: Sequence[Operand], other: Sequence[Operand]) -> Array:
        """Return what covariances between variables add to the covariance of two products, to first order."""
        total, slots, joint = np.zeros(()), {id(own): own for own in self.owner.slots.values()}, self._joint
        if joint is None:
            return total
        for mine, theirs in itertools.product(one, other):
            first, second = slots.get(mine[0]), slots.get(theirs[0])
            # what is known has no covariance
            if first is None or second is None or first is second or mine[2] is None or theirs[2] is None:
                continue
            i, j = self._numbers(first), self._numbers(second)
            if theirs[3]:
                i, j = i[..., None], j[..., None, :] if mine[3] else j
            elif mine[3]:
                j = j[..., None]
            covariance = joint.between(first.node.name, i, second.node.name, j)
            if covariance is None:
                continue
            rest = [(m, letter) for key, m, _, letter in one if key != mine[0]]
            rest += [(m, letter.upper()) for key, m, _, letter in other if key != theirs[0]]
            total = total + contracted([*rest, (covariance, mine[3] + theirs[3].upper())])
        return total

    def _numbers(self, slot: Slot) -> AnyArray:
        """Return which entries of a variable are in a slot, over the plates of the owner."""
        shape = np.shape(self._factor(slot.node).mean)
        numbers: Any = np.arange(math.prod(shape)).reshape(shape)
        numbers = self._laid_out(slot, numbers).astype(np.intp)
        is_number = len(shape) == len(slot.node.plates)
        return numbers[..., None] if self.owner.value_rank and is_number else numbers

    def normal(self, predictor: Predictor) -> tuple[Array, Array]:
        """Return mean and variance of a predictor, and refuse one that is not Normal under q.

        That is a product of two variables, or a variable of another kind.
        """
        for addend in predictor.addends:
            latent = []
            for operand in addend.operands:
                node: Any = operand.node if isinstance(operand, Indexed | Part) else operand
                factor = self.factors.get(node.name) if isinstance(node, Node) else None
                if factor is not None and factor.learnt is not None:
                    latent.append(node.name)
                    if not isinstance(factor.learnt, families.Normal | families.MultivariateNormal):
                        self.refuse(f"'{node.name}' in its predictor is not Normal under q")
            if len(latent) > 1:
                names = " and ".join(f"'{name}'" for name in latent)
                self.refuse(f"the product of {names} in its predictor is not Normal under q")
        return self.predictor(predictor)

    def normals(self, predictor: PredictorAlong) -> tuple[Array, Array]:
        """Return means and variances of a predictor along its plate, and refuse those that are not independent."""
        for addend in predictor.addends:
            named = (own for own in addend.operands if isinstance(own, Node | Indexed | Part))
            for slot in (operand_slot(self.owner, own) for own in named):
                is_known = self._is_known(slot.node) or self._factor(slot.node).learnt is None
                if slot.along is None and not is_known:
                    self.refuse(f"the predictors of all categories share '{slot.node.name}'")
        if self.joint is not None:
            self.refuse("linear response has the predictors of different categories correlated")
        each = [replace(self, place=k).normal(predictor) for k in range(predictor.along.size)]
        means, variances = zip(*each, strict=True)
        shape = np.broadcast_shapes(*map(np.shape, (*means, *variances)))
        return tuple(
            np.stack([np.broadcast_to(own, shape) for own in side], axis=-1) for side in (means, variances)
        )  # type: ignore[return-value]

    def refuse(self, why: str) -> NoReturn:
        """Say why mean and variance of the variable have no closed form."""
        refuse(self.owner, why)

    def expected(self, name: str) -> Array:
        """Return the mean of a node in a slot, or of a product of numbers."""
        if isinstance(self.owner.stated.get(name), Predictor):
            return self.positive(name)[0]
        slot = self.owner.slots[name]
        if self._is_known(slot.node):
            return np.asarray(slot_value(self.owner, slot, self.known), dtype=np.float64)
        return self._laid_out(slot, self._factor(slot.node).mean)

    def entries(self, name: str) -> tuple[Array, Array]:
        """Return mean and variance of a node in a slot, entry by entry."""
        return self._entries(self.owner.slots[name])

    def _entries(self, slot: Slot) -> tuple[Array, Array]:
        if self._is_known(slot.node):
            value = np.asarray(slot_value(self.owner, slot, self.known), dtype=np.float64)
            return value, np.zeros_like(value)
        factor = self._factor(slot.node)
        if factor.learnt is None:
            value = self._laid_out(slot, factor.value)
            return value, np.zeros_like(value)
        return self._laid_out(slot, factor.mean), self._laid_out(slot, factor.variance)

    def scalar(self, name: str) -> tuple[Array, Array]:
        """Return mean and variance of a number in a slot, or of one hidden scalar times a number plus another."""
        stated = self.owner.stated[name]
        if not isinstance(stated, Predictor):
            return self.entries(name)
        shift, scale = np.zeros(()), np.zeros(())
        hidden: Any = None
        for addend in stated.addends:
            coefficient = np.asarray(addend.coefficient)
            latent = None
            for operand in addend.numbers:
                if isinstance(operand, Constant):
                    coefficient = coefficient * operand.value
                else:
                    latent = operand
            shift, scale = (shift + coefficient, scale) if latent is None else (shift, scale + coefficient)
            hidden = hidden if latent is None else latent
        mean, variance = self._entries(operand_slot(self.owner, hidden))
        return scale * mean + shift, np.square(scale) * variance

    def tabulated(self) -> dict[str, tuple[Array, list[Array]]]:
        """Return the hidden scalars with tabulated factors of which slots hold functions.

        Returns
        -------
        dict
            Name -> numbers of the table, (n, plates of the scalar...), and the probability of each over the plates of
            the owner.
        """
        found: dict[str, tuple[Array, list[Array]]] = {}
        for slot in self.owner.slots.values():
            if slot.role is not SCALAR or self._is_known(slot.node) or slot.node.name in found:
                continue
            learnt = self._factor(slot.node).learnt
            if isinstance(learnt, families.Tabulated):
                numbers, probabilities = learnt.places()
                found[slot.node.name] = numbers, [self._laid_out(slot, own) for own in probabilities]
        return found

    def positive(self, name: str) -> tuple[Array, Array]:
        r"""Return mean and variance of a positive number, or of a sum of products of independent ones.

        .. math:: \mathrm{Var} \prod_i r_i = \prod_i (m_i^2 + v_i) - \prod_i m_i^2
        """
        stated = self.owner.stated[name]
        if not isinstance(stated, Predictor):
            return self._entries(self.owner.slots[name])
        return moments_of_sum([product for addend in stated.addends for product in self._products(addend)])

    def _products(self, addend: Addend) -> Iterator[Product]:
        """Yield the products of numbers that an addend is the sum of: several if it has a dot product."""
        common: Product = {"": (np.asarray(addend.coefficient), np.zeros(()))}
        for operand in addend.numbers:
            slot = operand_slot(self.owner, operand)
            common[id(slot)] = self._entries(slot)
        if not addend.dots:
            yield common
            return
        slots = [operand_slot(self.owner, operand) for operand in addend.dots[0]]
        moments = [self._entries(slot) for slot in slots]
        for k in range(moments[0][0].shape[-1]):
            own = zip(slots, moments, strict=True)
            yield {
                **common,
                **{(id(slot), k): (mean[..., k], spread[..., k]) for slot, (mean, spread) in own},
            }

    def inverse(self, name: str) -> tuple[Array, Array]:
        """Return the expected inverse of a precision or rate, and of its square; of a matrix the diagonal of the first.

        It is infinite where the factor has too small a shape: b / (a - 1) and b^2 / ((a - 1) (a - 2)) of a Gamma, and
        B / (nu - D - 1) of a Wishart. The operands of a product are independent.
        """
        stated = self.owner.stated.get(name)
        if isinstance(stated, Diagonal):
            return self._diagonal(stated)
        coefficient, slots = self._product(name)
        first, second, vector = 1.0 / coefficient, coefficient**-2.0, None
        for slot in slots:
            one, two = self._inverse(slot)
            if one.ndim > len(self.owner.plates):
                vector = one
            else:
                first, second = first * one, second * two
        return (first if vector is None else first[..., None] * vector), second

    def log_precision(self, name: str) -> tuple[Array, Array] | None:
        """Return mean and variance of the logarithm of a precision, of a matrix those of each entry by itself.

        None where they have no closed form, as for a tabulated one.
        """
        if isinstance(self.owner.stated.get(name), Diagonal):
            return None
        coefficient, slots = self._product(name)
        mean, variance = np.log(coefficient), np.zeros(())
        vector: tuple[Array, Array] | None = None
        for slot in slots:
            told = self._log_precision(slot)
            if told is None:
                return None
            if told[0].ndim > len(self.owner.plates):
                vector = told
            else:
                mean, variance = mean + told[0], variance + told[1]
        if vector is None:
            return mean, variance
        return mean[..., None] + vector[0], variance[..., None] + vector[1]

    def _log_precision(self, slot: Slot) -> tuple[Array, Array] | None:
        factor = None if self._is_known(slot.node) else self._factor(slot.node)
        if factor is None or factor.learnt is None:
            log = -np.log(self._inverse(slot)[0])
            return log, np.zeros_like(log)
        if factor.learnt.log_moments() is None:
            return None

        def of_point(point: PointMass) -> tuple[Array, Array]:
            log = -np.log(point.family.inverse_of(point.value)[0])
            return log, np.zeros_like(log)

        mean, variance = factor.each(lambda learnt: learnt.log_moments(), of_point)
        plates = slot.node.plates_of("precision")
        return self._laid_out(slot, mean, plates), self._laid_out(slot, variance, plates)

    def covariance(self, name: str = "precision") -> Array:
        """Return the expected inverse of a matrix, of which :meth:`inverse` has the diagonal; it may be infinite."""
        stated = self.owner.stated.get(name)
        if isinstance(stated, Diagonal):
            entries = self._diagonal(stated)[0]
            return entries[..., None] * np.eye(entries.shape[-1])
        coefficient, slots = self._product(name)
        scale, matrix = 1.0 / coefficient, None
        for slot in slots:
            one = self._inverse(slot)[0]
            if one.ndim > len(self.owner.plates):
                matrix = self._inverse_matrix(slot)
            else:
                scale = scale * one
        return scale if matrix is None else scale[..., None, None] * matrix

    def _product(self, name: str) -> tuple[Array, list[Slot]]:
        """Return the number and the slots of which a precision or rate is the product."""
        stated = self.owner.stated.get(name)
        if not isinstance(stated, Predictor):
            # a whole joint factor is in the slot of the mean, and has its precision too
            return np.ones(()), [self.owner.slots["mean" if stated is None else name]]
        (addend,) = stated.addends
        coefficient = np.asarray(addend.coefficient, dtype=np.float64)
        return coefficient, [operand_slot(self.owner, number) for number in addend.numbers]

    def _inverse_matrix(self, slot: Slot) -> Array:
        if self._is_known(slot.node):
            return inverse(np.asarray(slot_value(self.owner, slot, self.known), dtype=np.float64))
        matrices = self._factor(slot.node).each(_inverse_matrix_of_learnt, _inverse_matrix_of_point)
        return self._laid_out(slot, matrices, slot.node.plates_of("precision"))

    def _diagonal(self, stated: Diagonal) -> tuple[Array, Array]:
        product, *others = as_predictor(stated.entries).addends
        if others or any(isinstance(number, Indexed) for number in product.numbers):
            self.refuse("the entries of its diagonal are a sum, or are chosen by a label")
        entries = np.asarray(1.0 / product.coefficient)
        for node in product.numbers:
            slot = operand_slot(self.owner, node)
            if slot.along is None:
                entries = entries * self._inverse(slot)[0][..., None]
                continue
            if self._is_known(node):
                value = 1.0 / np.asarray(known_value(node, self.known))
            else:
                value = self._inverse_moments(node)[0]
            entries = entries * laid_out(value, node.plates[:-1], self.owner, {})
        # a forecast has one entry where all are the same
        entries = np.broadcast_to(entries, (*entries.shape[:-1], self.owner.dimension or 1))
        return entries, np.square(entries)

    def _inverse(self, slot: Slot) -> tuple[Array, Array]:
        if self._is_known(slot.node):
            value = np.asarray(slot_value(self.owner, slot, self.known), dtype=np.float64)
            kind = families.Wishart if value.ndim > len(self.owner.plates) else families.Gamma
            return kind.inverse_of(value)
        first, second = self._inverse_moments(slot.node)
        plates = slot.node.plates_of("precision")
        return self._laid_out(slot, first, plates), self._laid_out(slot, second, plates)

    def _inverse_moments(self, node: Node) -> tuple[Array, Array]:
        first, second = self._factor(node).each(
            lambda learnt: learnt.inverse_moments() or self.refuse(f"E[1 / {node.name}] is not known"),
            lambda point: point.family.inverse_of(point.value),
        )
        return first, second

    def _operands(self, addend: Addend) -> Iterator[tuple[int, Array, Array | None, str]]:
        """Yield for each operand of a product: its key, mean, covariance (None if known), event letter."""
        for operand, letter in with_letters(addend):
            if not isinstance(operand, Node | Indexed | Part):
                plain = np.asarray(operand, dtype=np.float64)
                yield id(operand), plain.reshape((1,) * len(self.owner.plates) + plain.shape), None, letter
                continue
            slot = operand_slot(self.owner, operand)
            own, covariance = self._moments(slot)
            if self.owner.value_rank and not letter:
                own, covariance = of_entries(own, covariance, is_vector=slot.role.rank == 1)
            yield id(slot), own, covariance, letter

    def _moments(self, slot: Slot) -> tuple[Array, Array | None]:
        if self._is_known(slot.node):
            node = slot.node
            if slot.along is not None:
                return self._laid_out(slot, known_value(node, self.known)), None
            return np.asarray(slot_value(self.owner, slot, self.known), dtype=np.float64), None
        factor = self._factor(slot.node)
        if factor.learnt is None:
            return self._laid_out(slot, np.asarray(factor.location, dtype=np.float64)), None
        mean, covariance = factor.each(
            lambda learnt: (
                learnt.location_moments() or self.refuse(f"its predictor holds a {type(learnt).__name__}")
            ),
            lambda point: (np.asarray(point.location, dtype=np.float64), 0.0),
        )
        return self._laid_out(slot, mean), self._laid_out(slot, covariance)

    def _laid_out(self, slot: Slot, array: Array, plates: tuple[Plate, ...] | None = None) -> Array:
        if slot.along is not None and self.place is not None:
            return value_at(self.owner, slot, self.place, array, self.known)
        if slot.along is not None and slot.role is RATE:
            return value_along(self.owner, slot, array, self.known)
        return np.asarray(slot_value(self.owner, slot, {**self.known, slot.node.name: array}, plates))

    def _is_known(self, node: Node) -> bool:
        return isinstance(node, Constant) or node.name in self.known

    def _factor(self, node: Node) -> Any:
        if node.name not in self.factors:
            self.refuse(
                f"'{node.name}' has a value for each row, and depends on variables that are not known"
            )
        return self.factors[node.name]


def _inverse_matrix_of_learnt(factor: Any) -> Array:
    surplus = (factor.df - factor.inverse_scale.shape[-1] - 1)[..., None, None]
    return np.where(surplus > 0, factor.inverse_scale / np.where(surplus > 0, surplus, 1.0), np.inf)


def _inverse_matrix_of_point(point: PointMass) -> Array:
    value = point.value[1] if isinstance(point.value, tuple) else point.value
    return inverse(np.asarray(value, dtype=np.float64))
