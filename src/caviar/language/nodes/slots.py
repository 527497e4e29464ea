"""Slots: what was passed to a distribution, made into nodes of the right rank and plates, and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..._errors import ConjugacyError, ModelError, PlateError
from ..._typing import Array
from ...families.tabulated.scalar import can_be_tabulated
from .algebra import Diagonal, Link, LinkOfProbability, Predictor, as_predictor
from .constants import Constant, as_known, refuse_link
from .instead_of_links import INSTEAD_OF_ABSENT, INSTEAD_OF_CHANCES, instead_of_link
from .node import Data, Expression, Indexed, Label, Node, Part, placed
from .plates import Plate
from .roles import (
    LOCATION,
    LOCATION_AND_PRECISION,
    LOCATION_AND_PRECISION_MATRIX,
    LOCATION_VECTOR,
    PRECISION,
    PRECISION_MATRIX,
    PROBABILITY,
    RATE,
    SCALAR,
    Role,
)
from .stated import Stated
from .templates import Summand

RoleOfDimension: TypeAlias = Callable[[int], Role]

_TAKE_SUMS = (LOCATION, LOCATION_VECTOR, PRECISION, PRECISION_MATRIX, RATE)
_JOINT = (LOCATION_AND_PRECISION, LOCATION_AND_PRECISION_MATRIX)
_VALUES = ("a number", "a vector", "a square matrix")


@dataclass(frozen=True, init=False)
class Slot:
    """What fills a slot of a distribution, and what the slot needs of it."""

    name: str
    expression: Node | Indexed
    role: Role
    dimension: int | None = None
    """Length that a vector in a dot product must have."""
    along: Plate | None = None
    """The plate that runs along the event axis of the owner: of a diagonal."""
    part: Part | None = None
    """The part of a joint factor that was stated here."""
    node: Node = field(init=False, repr=False, compare=False)
    """The node itself, without its index."""
    index: Label | Data | None = field(default=None, init=False, repr=False, compare=False)
    """The Categorical, or the known labels, that choose the node's plate, if any."""
    through: Indexed | None = field(default=None, init=False, repr=False, compare=False)
    """Of a label of groups that chooses, the label of each record: chosen by known labels."""

    chosen: tuple[Indexed, ...] = field(default=(), init=False, repr=False, compare=False)
    """What each index chooses."""
    gates: tuple[Indexed, ...] = field(default=(), init=False, repr=False, compare=False)
    """What each Categorical chooses."""
    choices: tuple[Indexed, ...] = field(default=(), init=False, repr=False, compare=False)
    """What known labels choose from: plates of the node, or the label of groups that chooses from it."""

    def __init__(
        self,
        name: str,
        expression: Node | Indexed,
        role: Role,
        dimension: int | None = None,
        along: Plate | None = None,
        part: Part | None = None,
    ) -> None:
        # a frozen dataclass would set its fields one by one, also those that have their default
        own = vars(self)
        own["name"], own["expression"], own["role"] = name, expression, role
        if dimension is not None or along is not None or part is not None:
            own.update(dimension=dimension, along=along, part=part)
        if isinstance(expression, Indexed):
            own.update(_choices_of(expression))
        else:
            own["node"] = expression

    def chosen_by(self, gate: Node) -> Indexed | None:
        """Return what this node chooses here; None if it chooses nothing."""
        return next((own for own in (*self.chosen, *self.gates) if own.by is gate), None)


def _choices_of(own: Indexed) -> dict[str, Any]:
    """Return what a slot tells of an indexed node: the node, its indices, and what each of them chooses."""
    chosen = (own, *own.others)
    gates = [gate for own in chosen for gate in (own.givens or (own,)) if isinstance(gate.by, Label)]
    known = [own if own.through is None else own.through for each in chosen for own in (each, *each.givens)]
    choices = tuple([own for own in known if isinstance(own.by, Data)])
    told = {"node": own.node, "index": own.by, "through": own.through, "chosen": chosen}
    return {**told, "gates": tuple(gates), "choices": choices}


def _where(owner: Stated, slot: str) -> str:
    return f"'{slot}' of {type(owner).__name__} '{owner.name}'"


def _has_chances(value: object) -> bool:
    """Whether a sum or product has a chance or a number 0 or 1 in it, of which a link is none."""
    operands = (
        [own for addend in value.addends for own in addend.operands] if isinstance(value, Predictor) else []
    )
    nodes = [own.node if isinstance(own, Indexed) else own for own in operands]
    stated = [node for node in nodes if isinstance(node, Stated)]
    return any(own.is_zero_or_one or "log_complement" in own.own_family.statistics for own in stated)


def _may_be_absent(value: object) -> bool:
    """Whether something is a product of a number 0 or 1 and others."""
    several = [own.operands for own in value.addends] if isinstance(value, Predictor) else []
    nodes = [[own.node if isinstance(own, Indexed) else own for own in operands] for operands in several]
    return any(
        len(own) > 1 and any(isinstance(node, Stated) and node.is_zero_or_one for node in own)
        for own in nodes
    )


def _instead_of_a_sum(role: Role | RoleOfDimension, value: Predictor | Diagonal) -> str:
    if role is not PROBABILITY:
        return "give a variable, a number or an array"
    link = "use its logistic(...) or probit(...), which is a probability"
    if (
        isinstance(value, Predictor)
        and sorted(own.coefficient for own in value.addends) == [-1, 1]
        and sorted(len(own.operands) for own in value.addends) == [0, 1]
    ):
        return f"{link}. For 1 - p model the other outcome: p is the probability of 1 - y = 1"
    if _may_be_absent(value):
        return link + INSTEAD_OF_ABSENT
    return INSTEAD_OF_CHANCES if _has_chances(value) else link


def as_expression(
    owner: Stated, slot: str, value: Expression, role: Role | RoleOfDimension
) -> Node | Indexed | Predictor | Diagonal | Array:
    """Return what was passed as a node, an indexed node, a sum or product, or an array.

    Raises
    ------
    ModelError
        If nothing was passed, or something else.
    """
    # roles are compared by what they are only where they may not be the same object, after unpickling
    is_joint = role is LOCATION_AND_PRECISION or role is LOCATION_AND_PRECISION_MATRIX
    if isinstance(value, (Node, Indexed)):
        node = value.node if isinstance(value, Indexed) else value
        if (role is LOCATION or role is LOCATION_VECTOR) and node.is_anchored:
            return as_predictor(value)
        if (
            takes_scalar(role)
            and isinstance(node, Stated)
            and (can_be_tabulated(node.own_family) or node.is_stick)
        ):
            return as_predictor(value)
        if not (is_joint and node.is_known):
            return value
    elif type(value) is float and not is_joint:
        return np.array(value)
    where = _where(owner, slot)
    if isinstance(value, (float, int)) and not is_joint:
        return as_known(value, where)
    if isinstance(value, Part):
        if value.event_rank or role not in (LOCATION, PRECISION):
            raise ConjugacyError(f"{where} cannot be {value!r}. {parts_remedy(value)}")
        return as_predictor(value)
    if isinstance(value, Predictor | Diagonal) and not is_joint:
        if role not in _TAKE_SUMS and not takes_scalar(role):
            raise ModelError(f"{where} takes no sum or product; {_instead_of_a_sum(role, value)}")
        return value
    if isinstance(value, Link):
        is_probability = isinstance(value, LinkOfProbability)
        refuse_link(value, where, instead_of_link(type(owner).__name__, slot, value, is_probability))
    if value is None:
        raise ModelError(f"{where} is missing: give a number, an array or a variable")
    if is_joint:
        joint = "NormalGamma" if role is LOCATION_AND_PRECISION else "NormalWishart"
        raise ModelError(
            f"{_where(owner, 'precision')} is missing; only a joint factor ({joint}) includes one"
        )
    return as_known(value, where)


def takes_scalar(role: Role | RoleOfDimension) -> bool:
    """Whether a slot accepts functions of one hidden scalar; a role that depends on the dimension decides later."""
    return not isinstance(role, Role) or role.of_scalar is not None


def parts_remedy(part: Part) -> str:
    """Return where the parts of this joint factor may be used."""
    name = part.whole_name
    if part.node.precision_rank:
        return f"Use them together, as in MultivariateNormal('x', {name}.mean, {name}.precision), and nowhere else."
    mean = f"dot(X, {name}.mean)" if part.node.value_rank else f"{name}.mean"
    return (
        f"The parts of a joint factor are used together, as mean and precision of one Normal: Normal('y', {mean}, "
        f"{name}.precision). For a mean and a precision that are independent, state a Normal and a Gamma."
    )


def agreed_dimension(
    owner: Stated, slot: str, expression: Node | Indexed | Array, role: Role | RoleOfDimension
) -> int | None:
    """Return the dimension that the owner has once this slot is known.

    Raises
    ------
    PlateError
        If the slot has another length than what is known already.
    """
    if not isinstance(role, Role) or role.rank == 0 or role.is_apart:
        return owner.dimension
    node = expression.node if isinstance(expression, Indexed) else expression
    if isinstance(node, Stated) and node.value_rank != role.rank:
        # a variable of the wrong kind: its size is beside the point
        _check_statistics(owner, Slot(slot, expression, role), node)  # type: ignore[arg-type]
    if isinstance(expression, np.ndarray):
        size = expression.shape[-1] if expression.ndim else None
    else:
        size = (expression.node if isinstance(expression, Indexed) else expression).dimension
    if size is None or owner.dimension in (None, size):
        return owner.dimension if size is None else size
    raise PlateError(
        f"{_where(owner, slot)} has length {size}, but the rest of '{owner.name}' has dimension {owner.dimension}"
    )


def resolve_role(owner: Stated, slot: str, role: Role | RoleOfDimension) -> Role:
    """Return the role of a slot, for those that depend on the dimension."""
    if isinstance(role, Role):
        return role
    if owner.dimension is None:
        raise PlateError(
            f"the dimension D of '{owner.name}' does not follow from its arguments, and {_where(owner, slot)} "
            f"depends on it; give one of them as a vector of length D or a D x D matrix"
        )
    return role(owner.dimension)


def slot_of(owner: Stated, name: str, expression: Node | Indexed | Array, role: Role) -> Slot:
    """Return the slot; an anonymous array becomes a constant over the last plates of the owner.

    Raises
    ------
    PlateError
        If the array has more leading axes than the owner has plates.
    """
    if not isinstance(expression, np.ndarray):
        return Slot(name, placed(expression, owner), role)
    value = expression
    if value.ndim < role.rank:
        value = _of_full_rank(owner, name, value, role)
    leading = value.ndim - role.rank
    constant = f"{owner.name}.{name}"
    if not leading:
        return Slot(name, Constant.of_known(constant, value, ()), role)
    possible = owner.plates_of_slot(name)
    if leading > len(possible):
        plates = ", ".join(plate.name for plate in possible) or "none"
        if name in owner.shared_slots and owner.tied is not None:
            raise PlateError(
                f"{_where(owner, name)} has shape {expression.shape}, {leading} axes more than "
                f"{_VALUES[role.rank]}, but its precision is one and the same along plate '{owner.tied.name}' (tied=); "
                f"what it is repeated over: {plates}. Give one value for each of these"
            )
        raise PlateError(
            f"{_where(owner, name)} has shape {expression.shape}, {leading} axes more than {_VALUES[role.rank]}, but "
            f"'{owner.name}' has plates: {plates}. Write plates=Plate('component', {value.shape[0]}) if it is repeated."
        )
    plates = possible[len(possible) - leading :]
    sizes = list(zip(plates, value.shape, strict=False))
    # an axis of length one counts for all repetitions
    kept = [(plate, size) for plate, size in sizes if size != 1 or plate.size == 1]
    value = value.reshape(tuple(size for _, size in kept) + value.shape[leading:])
    return Slot(name, Constant.of_known(constant, value, tuple(plate for plate, _ in kept)), role)


def _of_full_rank(owner: Stated, slot: str, value: Array, role: Role) -> Array:
    if owner.dimension is None:
        raise PlateError(
            f"the dimension of '{owner.name}' is not determined by its arguments; write {slot}=np.full(D, {value}) "
            f"with the length D that you mean"
        )
    size = owner.dimension
    if value.ndim == 0 and role.rank == 1:
        return np.full(size, value)
    if value.ndim == 0 and not value:
        return np.zeros((size, size))
    hint = f"; write {value} * np.eye({size}) for a multiple of the identity" if value.ndim == 0 else ""
    raise PlateError(
        f"{_where(owner, slot)} must be a {size} x {size} matrix, not of shape {value.shape}{hint}"
    )


def check_slot(owner: Stated, slot: Slot) -> None:
    """Check that what fills a slot has the plates, the rank and the statistics that its place needs.

    Raises
    ------
    PlateError, ModelError, ConjugacyError
        The message names the owner, the slot, its parent, and what would do.
    """
    node = slot.node
    if node.plates or slot.index is not None:
        _check_plates(owner, slot)
    if isinstance(node, Constant):
        if node.event_rank != slot.role.rank:
            shapes = f"must be {_VALUES[slot.role.rank]}; '{node.name}' is {_VALUES[node.event_rank]}"
            raise PlateError(f"{_where(owner, slot.name)} {shapes}")
        problem = slot.role.problem(node.value)
        if problem:
            value = np.array2string(node.value, threshold=8)
            raise ModelError(f"{_where(owner, slot.name)} {problem}; got {value}")
    elif isinstance(node, Stated):
        _check_statistics(owner, slot, node)


def _check_plates(owner: Stated, slot: Slot) -> None:
    every = slot.chosen
    chosen, along = [own.plate for own in every], [plate for own in every for plate in own.along]
    needed = [plate for plate in slot.node.plates if plate not in chosen and plate is not slot.along]
    needed += [plate for plate in along if plate is not slot.along]
    for plate in needed:
        if plate in owner.plates_of_slot(slot.name):
            continue
        if plate is owner.tied:
            hint = "the precision is tied along it, one and the same; leave the plate out"
        elif plate.name in [own.name for own in owner.plates]:
            hint = f"two Plate objects are both named '{plate.name}': use the same object"
        elif plate in along:
            own = next(own for own in every if plate in own.along)
            once = f"'{own.by.name}' chooses once for each of its repetitions"
            hint = f"{once}: add plate '{plate.name}' to '{owner.name}'"
            if own.through is None and not own.by.is_known and owner.plates:
                label = f"{own.by.name}[Data('{plate.name}', plates={owner.plates[0].name})]"
                hint += f", or give the '{plate.name}' of each of its repetitions: {slot.node.name}[{label}]"
        else:
            choose = f"choose from it with a Categorical: {slot.node.name}[z]"
            hint = f"add plate '{plate.name}' to '{owner.name}', or {choose}"
            if chosen and isinstance(slot.node, Constant) and slot.role.rank == 2:
                hint = (
                    f"known matrices are repeated over what chooses them: Constant('{slot.node.name}', array, "
                    f"plates={chosen[0].name})"
                )
            nested = next(
                (own for own in owner.plates if own.within is not None and own.within in chosen), None
            )
            if nested is not None and nested.within is not None:
                # a known label may have taken the plate of the groups
                group = f"Data('{nested.within.name}', plates={nested.name})"
                hint = (
                    f"say which '{nested.within.name}' each '{nested.name}' is in, as one more index: {group}"
                )
        raise PlateError(
            f"{_where(owner, slot.name)} is repeated over plate '{plate.name}', but '{owner.name}' is not; {hint}"
        )


def _check_statistics(owner: Stated, slot: Slot, node: Stated) -> None:
    missing = slot.role.statistics.keys() - set(node.own_family.statistics)
    if slot.role is SCALAR and not can_be_tabulated(node.own_family):
        missing = {"x"}
    if not missing and node.value_rank == slot.role.rank:
        return
    where, kind = _where(owner, slot.name), type(node).__name__
    if missing and slot.role in _JOINT:
        (joint,) = slot.role.would_do
        raise ConjugacyError(
            f"{_where(owner, 'precision')} is missing: only a joint factor ({joint}) includes one, and "
            f"'{node.name}' is a {kind}. Give a precision, or a {joint} as mean."
        )
    if missing and slot.role.moves and "precision" in node.family.statistics:
        raise ConjugacyError(
            f"{where} is the joint factor '{node.name}', a {kind}, which includes the precision: "
            f"leave precision= out"
        )
    if missing:
        uses = (
            s for s in owner.density if any(f.slot == slot.name and f.statistic in missing for f in s.factors)
        )
        term = next(uses, None)
        in_term = "" if term is None else f", in its term {_read(term)},"
        raise ConjugacyError(
            f"{where} cannot be the {kind} '{node.name}'. {_remedy(slot.role)}{_link(owner, node)} Its log "
            f"density{in_term} needs the "
            f"expected {', '.join(slot.role.statistics)} there; a {kind} has {', '.join(node.own_family.statistics)}."
        )
    raise ConjugacyError(
        f"{where} must be {_VALUES[slot.role.rank]}, but the {kind} '{node.name}' is "
        f"{_VALUES[node.value_rank]}. {_remedy(slot.role)}"
    )


def _read(summand: Summand) -> str:
    words = " ".join(f"{factor.slot}.{factor.statistic}" for factor in summand.factors)
    return f"{summand.coefficient:g} {words}"


_LINKS = {
    "Bernoulli": "For a regression write logistic({0}) or probit({0}).",
    "Binomial": "For a regression write logistic({0}).",
    "Categorical": "For a regression write softmax(...) of a predictor for each category.",
    "Poisson": "For a regression of counts state NegativeBinomial(name, exp({0}), size).",
}
"""Distribution of what is observed -> what to write where a real number is its parent."""


_INSTEAD = {
    ("Normal", "Gamma"): "A positive number in a mean is a HalfNormal.",
    ("Poisson", "Bernoulli"): "For counts with too many zeros let a Categorical z choose a rate of almost 0: "
    "Constant('there', [1e-9, 1], plates=Plate('state', 2))[z] times the rate.",
}
"""Distribution of what is observed, and of a parent that it cannot have -> what to write."""


def _link(owner: Stated, node: Stated) -> str:
    """Return what to write in the place of a parent, as a link of a real number; empty where nothing is known."""
    instead = _INSTEAD.get((type(owner).__name__, type(node).__name__))
    if instead:
        return f" {instead}"
    link = _LINKS.get(type(owner).__name__)
    return f" {link.format(node.name)}" if link and node.own_family.statistics == ("x", "xx") else ""


def _remedy(role: Role) -> str:
    if role.would_do:
        return f"Use a {' or a '.join(role.would_do)}, or a known value."
    if role.name == "concentration":
        return (
            "Give a number, an array, a Gamma for each category, or one Gamma, which may be times known shares or a "
            "StickBreaking."
        )
    return "No family is conjugate here. Give a number or an array."
