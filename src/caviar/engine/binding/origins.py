r"""Origins of rows: the point that each row is measured from if a common point would cost digits.

A difference from one common point has the digits that the distance leaves. So the rows of known groups
(``mean[group]``) are measured from the median of their group, as the group's location is, and rows with a known mean of
their own from that: then their values are the residuals. Where rows have precisions of their own, digits matter where
these are large.

What is added up is measured from one point: in :math:`y \sim N(m + b_g + \langle w, u \rangle, \tau)` nothing changes
if y and m are both measured from it. What is multiplied cannot be moved so, and of what is added only one addend, since
the point is subtracted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._typing import AnyArray, Array
from ...language import (
    Axis,
    Constant,
    Data,
    Indexed,
    MultivariateNormal,
    Node,
    Normal,
    Plate,
    Predictor,
    Slot,
    Variable,
)
from .bound_model import BoundModel


@dataclass(frozen=True, eq=False)
class PointOfLabel:
    """The point that a row's known label chooses.

    Attributes
    ----------
    label
        The labels.
    points
        Of each category, (K, shape of a row's value).
    """

    label: Node
    points: Array

    def of(self, known: Callable[[Node], AnyArray]) -> AnyArray:
        """Return the point of each row, (B, ...), from the known arrays of the rows."""
        return self.points[np.asarray(known(self.label)).astype(np.intp)]


@dataclass(frozen=True, eq=False)
class OwnMean:
    """A known mean of each row.

    Attributes
    ----------
    mean
        These means.
    place
        Index that gives a block of them an axis for each of a row's value.
    """

    mean: Node
    place: tuple[slice | None, ...]

    def of(self, known: Callable[[Node], AnyArray]) -> AnyArray:
        """Return the mean of each row, to be broadcast over its values, from the known arrays of the rows."""
        return np.asarray(known(self.mean), dtype=np.float64)[self.place]


@dataclass(frozen=True)
class KnownLocation:
    """What is known of where each row is.

    Attributes
    ----------
    node
        The location that all leaves have: latent, known for each row, or known for each category.
    plate
        The one that known labels choose from, or None.
    """

    node: Node
    plate: Plate | None

    def origin(self, leaf: Variable, bound: BoundModel) -> PointOfLabel | OwnMean:
        """Return the known location of a leaf's rows as what these are measured from."""
        node: Any = self.node
        if self.plate is None:
            return OwnMean(node, _place(leaf, node.plates, bound.data_plate))
        others = tuple(plate for plate in node.plates if plate is not self.plate)
        chosen = np.moveaxis(bound.values_of(node), node.plates.index(self.plate), 0)
        index = leaf.slots["mean"].index
        assert index is not None
        return PointOfLabel(index, chosen[_place(leaf, others, bound.data_plate)])


def known_location_of(
    bound: BoundModel, members: Sequence[Variable], leaves: Sequence[Variable]
) -> KnownLocation | None:
    """Return the location whose points determine those of the rows of all leaves, or None.

    It is a latent one that known labels choose from, or a known one: for each row, or chosen by known labels.
    """
    locations = {_stated_location(bound, leaf) for leaf in leaves}
    if len(locations) != 1 or (found := locations.pop()) is None:
        return None
    node, rest = found.node, [member for member in members if member not in leaves]
    if isinstance(node, Variable):
        return found if node in rest and _can_move(bound, node, rest) else None
    return None if rest else found


def _can_move(bound: BoundModel, location: Variable, latent: Sequence[Variable]) -> bool:
    """Whether each repetition of a location may be measured from a separate point: no other is compared with it.

    What a latent label chooses as its mean is not moved: its rows tell the label by where they are.
    """
    slot = location.slots.get("mean")
    below = [v for v in latent if "mean" in v.slots and v.slots["mean"].node is location]
    if slot is None or below or bound.of(location).clamped is not None or any(map(bound.is_local, latent)):
        return False
    if isinstance(slot.node, Variable):
        is_plain = set(slot.role.statistics) == {"x", "xx"} and slot.node in latent
        return is_plain and (slot.index is None or bound.is_known(slot.index))
    return isinstance(slot.node, Constant) and latent == [location]


def _stated_location(bound: BoundModel, leaf: Variable) -> KnownLocation | None:
    """Return the location of a leaf, if it differs from row to row in a way that is known."""
    slot, rows = leaf.slots.get("mean"), bound.data_plate
    if slot is None or not slot.role.moves or bound.of(leaf).entries is not None or rows not in leaf.plates:
        return None
    node, others = slot.node, [plate for plate in leaf.plates if plate is not rows]
    if isinstance(slot.expression, Indexed):
        label, plate = slot.expression.by, slot.expression.plate
        if not bound.is_known(label) or label.plates != (rows,) or slot.expression.others:
            return None
        kept = [own for own in node.plates if own is not plate]
        is_known = isinstance(node, Constant) and kept == [own for own in others if own in kept]
        return KnownLocation(node, plate) if is_known or isinstance(node, Variable) else None
    is_own = isinstance(node, Data) and node.plates[:1] == (rows,)
    in_order = [plate for plate in others if plate in node.plates] == list(node.plates[1:])
    return KnownLocation(node, None) if is_own and in_order else None


def _place(leaf: Variable, plates: Sequence[Plate], rows: Plate | None) -> tuple[slice | None, ...]:
    """Return the index that gives an array, rows or categories first, an axis for each of a row's value of a leaf.

    Parameters
    ----------
    plates
        What its other axes run over, in the order of the leaf's plates.
    rows
        The plate of the rows.
    """
    others = [plate for plate in leaf.plates if plate is not rows]
    return (slice(None), *(slice(None) if plate in plates else None for plate in others))


def has_precisions_of_rows(bound: BoundModel, members: Sequence[Variable]) -> bool:
    """Whether the precision of a member differs from row to row: where digits matter is then not told by all rows."""
    return any(_differs(bound, member, slot) for member in members for slot in member.slots.values())


def _differs(bound: BoundModel, member: Variable, slot: Slot) -> bool:
    """Whether a slot holds a precision for each row, or one that a label chooses which does not choose the location."""
    if slot.role.moves and "precision" not in slot.role.statistics:
        return False
    mean = member.slots.get("mean")
    chosen = slot.index is not None and (mean is None or mean.index is not slot.index)
    return bound.is_local(slot.node) or (chosen and slot.index is not None and bound.is_local(slot.index))


def location_slot(bound: BoundModel, variable: Variable) -> Slot | None:
    """Return the slot of the location that moves with a variable: its mean, or the plain addend of the sum it has."""
    mean = variable.slots.get("mean")
    return _plain_addend(bound, variable) if mean is None else mean


def _plain_addend(bound: BoundModel, owner: Variable) -> Slot | None:
    """Return the slot of the addend of a variable's mean that may be moved with it, or None.

    It is a latent Normal, of a vector a MultivariateNormal, added once and as it is, chosen by known labels or none;
    the same for all if there is one, of others one with a latent mean, then with the widest known prior: what the level
    of the data is in.
    """
    stated = owner.stated.get("mean")
    if not isinstance(owner, Normal | MultivariateNormal) or not isinstance(stated, Predictor):
        return None
    times = Counter(id(_node_of(operand)) for addend in stated.addends for operand in addend.operands)
    alone = {
        id(_node_of(addend.operands[0]))
        for addend in stated.addends
        if addend.coefficient == 1 and len(addend.operands) == 1
    }
    slots = [
        slot
        for slot in owner.slots.values()
        if slot.role.adds_up
        and slot.part is None
        and id(slot.node) in alone
        and times[id(slot.node)] == 1
        and type(slot.node) is type(owner)
        and not bound.is_known(slot.node)
        and (slot.index is None or bound.is_known(slot.index))
    ]
    return min(slots, key=lambda slot: _rank(bound, slot.node), default=None)


def moving_slots(bound: BoundModel, variable: Variable) -> list[Slot]:
    """Return the slots whose values move with a variable."""
    plain = _plain_addend(bound, variable)
    return [slot for slot in variable.slots.values() if slot.role.moves or slot is plain]


def multiplied_in(bound: BoundModel, owner: Variable) -> Iterator[Node]:
    """Yield what cannot be moved because of the sum or product that a variable has in a slot, maybe itself."""
    plain = _plain_addend(bound, owner)
    slots = [slot for slot in owner.slots.values() if slot.role.adds_up]
    if slots and plain is None:
        # nor can what has the sum for its mean, where it is the mean of something else
        yield owner
    yield from (slot.node for slot in slots if slot is not plain)


def _node_of(operand: object) -> object:
    return operand.node if isinstance(operand, Indexed) else operand


def _rank(bound: BoundModel, location: object) -> tuple[int, float]:
    """Return how little the level of the data is expected in a location: the least is moved."""
    assert isinstance(location, Variable)
    mean, precision = location.slots.get("mean"), location.slots.get("precision")
    if mean is None or not isinstance(mean.node, Constant):
        return 0, 0.0
    if bool(bound.values_of(mean.node).any()):
        return 1, 0.0
    if precision is None or not isinstance(precision.node, Constant):
        return 3, 0.0
    return 2, float(bound.values_of(precision.node).max())


def has_sums(bound: BoundModel) -> bool:
    """Whether some mean is a sum or a product."""
    return any(isinstance(n, Variable) and isinstance(n.stated.get("mean"), Predictor) for n in bound.nodes)


def connected(bound: BoundModel) -> list[tuple[Variable, ...]]:
    """Return the sets of variables that location slots connect, but those of which one is also in a predictor.

    What is multiplied cannot be measured from another point, nor can the states of a chain, which multiply their
    transition; of what is added one addend can. Known values of rows are measured from one point each, so they connect
    as variables do.
    """
    group_of: dict[Node, set[Node]] = {}
    multiplied: set[Node] = set()
    for node in (own for own in bound.nodes if isinstance(own, Variable)):
        multiplied.update(multiplied_in(bound, node))
        for slot in moving_slots(bound, node):
            if isinstance(slot.node, Variable) and slot.node.summed:
                multiplied.add(slot.node)
            members = group_of.setdefault(node, {node})
            if isinstance(slot.node, Variable) or bound.data_plate in slot.node.plates:
                members |= group_of.setdefault(slot.node, {slot.node})
                for member in members:
                    group_of[member] = members
    distinct = {id(members): members for members in group_of.values() if not members & multiplied}
    places = {node: place for place, node in enumerate(bound.nodes)}
    return [
        tuple(node for node in sorted(members, key=places.__getitem__) if isinstance(node, Variable))
        for members in distinct.values()
    ]


class Together(NamedTuple):
    """What is known of the members of a group without the values of the data.

    Attributes
    ----------
    observed
        The first observed one; None of a group without data.
    common, axes
        The plates that all have, and their axes.
    has_precisions
        Whether the precision of a member differs from row to row.
    location
        What is known of where each row is.
    """

    observed: Variable | None
    common: list[Plate]
    axes: tuple[Axis, ...]
    has_precisions: bool
    location: KnownLocation | None


def together(bound: BoundModel, members: tuple[Variable, ...]) -> Together:
    """Return what is known of the members of a group without the values of the data."""
    observed = next((member for member in members if bound.is_known(member)), None)
    if observed is None:
        return Together(None, [], (), False, None)
    along_rows = {slot.node for m in members for slot in m.slots.values() if slot.role.moves}
    known = [node for node in along_rows if bound.is_known(node) and bound.data_plate in node.plates]
    common = [
        p
        for p in observed.plates
        if p is not bound.data_plate and all(p in node.plates for node in (*members, *known))
    ]
    location = known_location_of(bound, members, [own for own in members if bound.is_known(own)])
    axes = tuple([Axis(plate) for plate in common])
    return Together(observed, common, axes, has_precisions_of_rows(bound, members), location)
