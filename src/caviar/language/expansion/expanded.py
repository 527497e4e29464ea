"""Expansion: a density with a sum or product in a slot, written out in statistics of what the sum is made of.

A predictor ``m = sum_a c_a`` enters a density through ``m`` and ``m^2 = sum_ab c_a c_b``. Products of different
variables become products of their statistics; a variable that meets itself gives its second moment. What is
left is multilinear, or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any

import numpy as np

from ..._errors import ConjugacyError, ModelError, PlateError
from ...families.tabulated.scalar_functions import Function
from ..nodes.algebra import Addend, Diagonal, Predictor, PredictorAlong, as_predictor
from ..nodes.constants import Constant
from ..nodes.node import Indexed, Part, placed
from ..nodes.plates import Plate
from ..nodes.roles import LINEAR, LINEAR_VECTOR, PRECISION, PRECISION_MATRIX, RATE, ZERO_OR_ONE, Role
from ..nodes.slots import RoleOfDimension, Slot, agreed_dimension, resolve_role, takes_scalar
from ..nodes.stated import Stated
from ..nodes.templates import Density, Factor, Summand
from .concentrations import ConcentrationOfWeights, holds_weights
from .functions_of_scalars import FunctionOfScalar
from .joining import joined
from .operands import Operands, event_rank_of, length_of, vector_of, whole_vector
from .products_with_zeros import SparseDots
from .rate_sums import SPLIT, RateSum
from .unknown_concentrations import UnknownConcentrations

_LETTERS = "abcdefghmnopqrstuvwxyz" + ascii_uppercase + "".join(map(chr, range(0xC0, 0x180)))
"""Event letters of dot products; those of a variable's own axes (i, j, k, l) are left out."""

_Piece = tuple[float, tuple[Factor, ...]]
"""A coefficient and the statistics it multiplies; a factor may have become a sum of several."""


@dataclass
class Expansion:
    """Slots and density of a variable with sums and products written out.

    Attributes
    ----------
    slots
        Slots by the name they have in the density.
    density
        Its log density.
    letter_sizes
        Length of the event axes of dot products.
    functions
        (Slot, statistic) -> the statistic as a function of the hidden scalar in the slot, where it is tabulated.
    is_bound
        Whether the density has become a bound.
    """

    slots: dict[str, Slot]
    density: Density
    letter_sizes: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], Function] = field(default_factory=dict)
    is_bound: bool = False


def expand(
    owner: Stated,
    density: Density,
    stated: Mapping[str, Predictor | Diagonal],
    arguments: Mapping[str, tuple[Any, Role | RoleOfDimension]],
) -> Expansion:
    """Return the slots and the density that a variable has with sums or products in some of its slots.

    Parameters
    ----------
    owner, density
        The variable, and its log density with whole slots.
    stated
        Slot -> the sum or product in it.
    arguments
        Slot -> what was stated, and its role.

    Raises
    ------
    ConjugacyError
        If the density would not be linear in the statistics of each variable.
    ModelError
        If a slot takes no sum or product.
    """
    expansion = Expansion({}, density)
    if not stated:
        return expansion
    roles = {name: role for name, (_, role) in arguments.items()}
    letters = iter(_LETTERS)
    for name, expression in stated.items():
        if isinstance(expression, Diagonal):
            _expand_diagonal(owner, expansion, name, expression)
            continue
        role = roles[name]
        if takes_scalar(role):
            functions = _of_scalars(owner, name, expression, role)
            expansion.density = _rewritten(expansion.density, name, functions)
            expansion.slots |= functions.slots
            expansion.functions |= functions.functions
            expansion.letter_sizes |= functions.letter_sizes
            expansion.is_bound |= functions.is_bound
            continue
        writer: _LocationSum | _PositiveProduct | RateSum
        if isinstance(expression, PredictorAlong):
            writer = _SumAlong(owner, name, expression, letters)
        elif SPLIT in roles and roles[name] is RATE:
            writer = RateSum(owner, name, expression, letters)
        elif _is_location(density, name):
            writer = _LocationSum(owner, name, expression, letters)
        else:
            writer = _PositiveProduct(owner, name, expression, RATE if roles[name] is RATE else PRECISION)
        expansion.slots |= writer.slots
        expansion.letter_sizes |= writer.letter_sizes
        expansion.density = _rewritten(expansion.density, name, writer)
    expansion.slots, expansion.density = joined(owner, expansion.slots, expansion.density)
    return expansion


def _of_scalars(
    owner: Stated, name: str, expression: Predictor, role: Role | RoleOfDimension
) -> FunctionOfScalar | ConcentrationOfWeights | UnknownConcentrations:
    """Return what writes out a slot that depends on hidden scalars or weights through functions of them."""
    if isinstance(expression, PredictorAlong):
        return UnknownConcentrations(owner, name, expression)
    own = role if isinstance(role, Role) else resolve_role(owner, name, role)
    kind = ConcentrationOfWeights if holds_weights(expression) else FunctionOfScalar
    return kind(owner, name, expression, own)


def _is_location(density: Density, slot: str) -> bool:
    return any(f.slot == slot and f.statistic == "xx" for summand in density for f in summand.factors)


def _rewritten(
    density: Density,
    slot: str,
    writer: _LocationSum
    | _PositiveProduct
    | FunctionOfScalar
    | ConcentrationOfWeights
    | UnknownConcentrations
    | RateSum,
) -> Density:
    summands = []
    for summand in density:
        target = next((f for f in summand.factors if f.slot == slot), None)
        if target is None:
            summands.append(summand)
            continue
        others = tuple(f for f in summand.factors if f is not target)
        for coefficient, factors in writer.pieces(target):
            letters = dict.fromkeys(summand.letters)
            letters.update(dict.fromkeys("".join(f.letters for f in factors)))
            product = summand.coefficient * coefficient
            new = replace(summand, coefficient=product, factors=others + factors, letters="".join(letters))
            summands.append(new)
    return tuple(summands)


class _LocationSum:
    """A sum in the slot of a location: ``x`` and ``xx`` of it, written out.

    In that of a vector, each product has one vector, and numbers.
    """

    def __init__(self, owner: Stated, name: str, predictor: Predictor, letters: Iterator[str]) -> None:
        operands = Operands(owner, name)
        self.letter_sizes: dict[str, int] = {}
        self.slots = operands.slots
        self._sparse = SparseDots(operands, predictor)
        # coefficient, and for each operand its letter in m and its second letter in m^2
        self._addends: list[tuple[float, dict[str, tuple[str, str]]]] = []
        for addend in predictor.addends:
            self._addends.append((addend.coefficient, self._usage(operands, addend, letters)))

    def _usage(
        self, operands: Operands, addend: Addend, letters: Iterator[str]
    ) -> dict[str, tuple[str, str]]:
        used: dict[str, tuple[str, str]] = {}

        twice: list[Any] = []

        def use(key: str, pair: tuple[str, str]) -> None:
            if key in used:
                twice.append(self.slots[key].node)
            used[key] = pair

        whole = whole_vector(operands, addend) if operands.owner.value_rank else None
        for number in addend.numbers:
            if isinstance(number, Part) and (number.which, number.event_rank) != ("mean", 0):
                operands.refuse(number)
            if number is whole:
                use(self._vector_key(operands, number), _OF_OWNER)
            else:
                use(operands.add(number, _role_of(number)), ("", ""))
        for one, other in addend.dots:
            vectors = (vector_of(operands, one), vector_of(operands, other))
            size = length_of(operands, vectors)
            try:
                pair = (next(letters), next(letters))
            except StopIteration:
                raise ModelError(
                    f"'{operands.name}' of '{operands.owner.name}' has too many dot products; gather known columns in "
                    f"one design matrix"
                ) from None
            self.letter_sizes |= dict.fromkeys(pair, size)
            roles = self._sparse.roles(vectors)
            keys = [operands.add(*own, size) for own in zip(vectors, roles, strict=True)]
            for key in keys:
                use(key, pair)
            self._sparse.met(*keys)
        if twice:
            node = min(twice, key=lambda own: own.is_known)
            raise ConjugacyError(
                f"'{node.name}' appears twice in one product of '{operands.name}' of '{operands.owner.name}', whose "
                f"square would need its fourth moment. Use two variables, or square a known column beforehand."
            )
        return used

    @staticmethod
    def _vector_key(operands: Operands, vector: Any) -> str:
        owner, name = operands.owner, operands.name
        owner.dimension = agreed_dimension(owner, name, placed(vector, owner), LINEAR_VECTOR)
        return operands.add(vector, LINEAR_VECTOR, owner.dimension)

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return what a statistic of the sum is, in statistics of its operands."""
        addends = [(c, _lettered(used, target.letters)) for c, used in self._addends]
        if target.statistic == "x":
            return [
                (c, tuple(Factor(key, "x", first) for key, (first, _) in used.items())) for c, used in addends
            ]
        pieces = []
        for i, (c, used) in enumerate(addends):
            pieces += [(c * c * own, factors) for own, factors in self._square(used)]
            for d, other in addends[i + 1 :]:
                pieces.append((2 * c * d, self._product(used, other)))
        return pieces

    def _square(self, used: Mapping[str, tuple[str, str]]) -> list[_Piece]:
        """Return what the square of an addend is: second moments, of vectors with zeros squares and products apart."""
        dots, rest = self._sparse.apart(used)
        pieces: list[_Piece] = [(1.0, self._product(rest, rest))]
        for dot in dots:
            pieces = [(c * d, (*one, *other)) for c, one in pieces for d, other in dot]
        return pieces

    def _product(
        self, one: Mapping[str, tuple[str, str]], other: Mapping[str, tuple[str, str]]
    ) -> tuple[Factor, ...]:
        """Return the statistics of a product of two addends, with second moments of common variables."""
        factors = []
        for key, (first, _) in one.items():
            if key in other and self.slots[key].role is not ZERO_OR_ONE:
                factors.append(Factor(key, "xx", first + other[key][1]))
            else:
                factors.append(Factor(key, "x", first))
        factors += [Factor(key, "x", second) for key, (_, second) in other.items() if key not in one]
        return tuple(factors)


class _SumAlong(_LocationSum):
    """A sum for each repetition along a plate, which becomes an axis of the owner."""

    def __init__(self, owner: Stated, name: str, predictor: PredictorAlong, letters: Iterator[str]) -> None:
        super().__init__(owner, name, predictor, letters)
        plate, self._letter = predictor.along, predictor.letter
        self.letter_sizes[self._letter] = plate.size
        for key, slot in self.slots.items():
            if plate in slot.node.plates:
                self.slots[key] = replace(slot, along=plate)

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return what a statistic of the sum is for each k, in statistics of its operands."""
        found = super().pieces(target._replace(letters=""))
        return [(c, tuple(self._along(factor) for factor in factors)) for c, factors in found]

    def _along(self, factor: Factor) -> Factor:
        slot = self.slots[factor.slot]
        return factor if slot.along is None else factor._replace(letters=f"{self._letter}{factor.letters}")


_OF_OWNER = ("owner", "owner")
"""In the place of the letters of a vector that runs along the event axis of the variable itself."""


def _lettered(used: Mapping[str, tuple[str, str]], own: str) -> dict[str, tuple[str, str]]:
    """Return the letters of operands, those of the variable's own axes put in."""
    pair = (own[:1], own[1:])
    return {key: pair if letters is _OF_OWNER else letters for key, letters in used.items()}


def _is_matrix(density: Density, slot: str) -> bool:
    return any(f.slot == slot and f.statistic == "log_det" for summand in density for f in summand.factors)


class _PositiveProduct:
    r"""A product in the slot of a precision or rate, with known values added to it where the slot takes them.

    The logarithm of such a sum has no expectation in closed form, but a bound: known values are positive, so
    :math:`\log|B + C| \ge \log|B|`. The density enters the ELBO through that bound.
    """

    def __init__(
        self,
        owner: Stated,
        name: str,
        predictor: Predictor,
        role: Role,
        along: Plate | None = None,
    ) -> None:
        self._owner, self._name, self._role = owner, name, role
        self._where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
        self._takes_matrix = along is None and _is_matrix(owner.density, name)
        self._operands = Operands(owner, name)
        self.letter_sizes: dict[str, int] = {}
        self.slots = self._operands.slots
        stated, known = self._told_apart(predictor)
        self._product = self._factors(stated, along)
        self._added = [self._factors(addend, along) for addend in known]
        if self._takes_matrix:
            for product in (self._product, *self._added):
                owner.dimension = agreed_dimension(
                    owner, name, self.slots[product.matrices[0]].expression, PRECISION_MATRIX
                )

    def _told_apart(self, predictor: Predictor) -> tuple[Addend, list[Addend]]:
        """Return the product, and the known values that are added to it."""
        if len(predictor.addends) == 1:
            others, known = list(predictor.addends), []
        else:
            others = [addend for addend in predictor.addends if not _is_known(addend)]
            known = [addend for addend in predictor.addends if _is_known(addend)]
        takes_known = self._name in _TAKE_KNOWN_VALUES and self._role is PRECISION
        if len(others) == 1 and not others[0].dots and (takes_known or not known):
            return others[0], known
        more = " and known values added to it," if takes_known else ""
        no = "no other sum" if takes_known else "no sum"
        raise ConjugacyError(
            f"{self._where} takes a product, as u * tau,{more} but {no} and no dot product: its logarithm "
            f"has no expectation in closed form"
        )

    def _factors(self, addend: Addend, along: Plate | None) -> _Product:
        """Return a product with a slot for each of its factors."""
        if not addend.coefficient > 0:
            raise ModelError(f"{self._where} must be positive; its factor {addend.coefficient:g} is not")
        numbers, entries, matrices = [], [], []
        for factor in addend.numbers:
            if isinstance(factor, Part) and (factor.which, factor.event_rank) != ("precision", 0):
                self._operands.refuse(factor)
            node: Any = factor.node if isinstance(factor, Indexed | Part) else factor
            if isinstance(node, Constant) and not np.any(node.value):
                raise ModelError(f"{self._where} must be positive; '{node.name}' is zero")
            before = len(self.slots)
            is_matrix = self._takes_matrix and event_rank_of(node) == 2
            key = self._operands.add(factor, PRECISION_MATRIX if is_matrix else self._role)
            if len(self.slots) == before:
                raise ConjugacyError(
                    f"'{node.name}' appears twice in the product in {self._where}; use two variables"
                )
            is_entry = along is not None and along in (
                factor.along if isinstance(factor, Indexed) else node.plates
            )
            if is_entry and isinstance(factor, Indexed):
                self._refuse_known_labels(factor)
            if is_entry:
                self.slots[key] = replace(self.slots[key], along=along)
            (matrices if is_matrix else entries if is_entry else numbers).append(key)
        if self._takes_matrix and len(matrices) != 1:
            raise ConjugacyError(
                f"{self._where} takes a product of numbers and one matrix, a Wishart or a Constant, as u "
                f"* precision; got {len(matrices)} matrices"
            )
        return _Product(addend.coefficient, numbers, entries, matrices, along is not None)

    def _refuse_known_labels(self, chosen: Indexed) -> None:
        if chosen.others or chosen.labels:
            raise ModelError(
                f"{self._where} is a diagonal whose entries are chosen by known labels or by several, {chosen!r}; only "
                f"one Categorical may choose them. Give a variable or a Constant with an entry for each"
            )

    def pieces(self, target: Factor) -> list[_Piece]:
        """Return a statistic of the sum in statistics of its parts; for its logarithm, the bound."""
        if target.statistic == "x":
            return [product.value(target.letters) for product in (self._product, *self._added)]
        return self._product.logarithm()


@dataclass(frozen=True)
class _Product:
    """A coefficient times numbers, times a matrix or what the entries of a diagonal are made of: keys of slots."""

    coefficient: float
    numbers: Sequence[str]
    entries: Sequence[str]
    matrices: Sequence[str]
    is_diagonal: bool

    def value(self, letters: str) -> _Piece:
        """Return the product itself."""
        factors = tuple(Factor(key, "x", "") for key in self.numbers)
        factors += tuple(Factor(key, "x", "i") for key in self.entries)
        return self.coefficient, factors + tuple(Factor(key, "x", letters) for key in self.matrices)

    def logarithm(self) -> list[_Piece]:
        """Return the addends of its logarithm; of log|c u L| = D (log c + log u) + log|L|, D as a sum over i."""
        dimension = (Factor("", "", "i"),) if self.matrices or self.is_diagonal else ()
        pieces: list[_Piece] = [(1.0, (Factor(key, "log_x", ""), *dimension)) for key in self.numbers]
        pieces += [(1.0, (Factor(key, "log_x", "i"),)) for key in self.entries]
        pieces += [(1.0, (Factor(key, "log_det", ""),)) for key in self.matrices]
        if self.coefficient != 1:
            pieces.append((float(np.log(self.coefficient)), dimension))
        return pieces


_TAKE_KNOWN_VALUES = ("rate", "inverse_scale")
"""Slots that take known values added to a product; elsewhere the expected inverse of the sum may be asked for."""


def _is_known(addend: Addend) -> bool:
    """Whether all that is multiplied is known when the model is stated."""
    return all(isinstance(operand, Constant) for operand in addend.operands)


def _expand_diagonal(owner: Stated, expansion: Expansion, name: str, stated: Diagonal) -> None:
    where = f"'{name}' of {type(owner).__name__} '{owner.name}'"
    if owner.value_rank not in (1, 2) or not _is_matrix(owner.density, name):
        raise ModelError(f"{where} takes no diagonal(...), which is the precision of a MultivariateNormal")
    plate = stated.plate
    if plate.size is None:
        raise PlateError(
            f"{where} is diagonal over plate '{plate.name}', which needs a size: Plate('{plate.name}', D)"
        )
    size = owner.dimension or plate.size
    if plate.size != size:
        raise PlateError(
            f"{where} is diagonal over plate '{plate.name}' of size {plate.size}, but '{owner.name}' has dimension "
            f"{size}"
        )
    owner.dimension = size
    writer = _PositiveProduct(owner, name, as_predictor(stated.entries), PRECISION, along=plate)
    expansion.slots |= writer.slots
    expansion.density = tuple(
        written for summand in expansion.density for written in _written_along(summand, name, writer)
    )


def _written_along(summand: Summand, slot: str, writer: _PositiveProduct) -> list[Summand]:
    """Return a summand with a diagonal matrix in a slot written out in its entries, a sum over the letter i."""
    target = next((f for f in summand.factors if f.slot == slot), None)
    if target is None:
        return [summand]
    others = tuple(f for f in summand.factors if f is not target)
    if target.statistic == "x":
        others = tuple(Factor(f.slot, f.statistic, f.letters.replace("j", "i")) for f in others)
    return [
        replace(
            summand, coefficient=summand.coefficient * coefficient, factors=(*others, *factors), letters="i"
        )
        for coefficient, factors in writer.pieces(target)
    ]


def _role_of(number: Any) -> Role:
    node: Any = number.node if isinstance(number, Indexed | Part) else number
    return ZERO_OR_ONE if isinstance(node, Stated) and node.is_zero_or_one else LINEAR
