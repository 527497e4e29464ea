r"""Added locations: the part of a sum that is measured from another point together with what has the sum for its mean.

In :math:`y \sim N(m + b_g + \langle w, u \rangle, \tau)` nothing changes if y and m are both measured from a point p,

.. math:: y - (m + b_g + \langle w, u \rangle) = (y - p) - ((m - p) + b_g + \langle w, u \rangle).

What is multiplied cannot be moved so, and of what is added only one addend: the point is subtracted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...language import Constant, Indexed, Node, Normal, Predictor, Slot, Variable
from .bound_model import BoundModel

__all__ = ["location_slot", "multiplied_in", "plain_addend"]


def location_slot(bound: BoundModel, variable: Variable) -> Slot | None:
    """Return the slot of the location that moves with a variable: its mean, or the plain addend of the sum it has."""
    mean = variable.slots.get("mean")
    return plain_addend(bound, variable) if mean is None else mean


def plain_addend(bound: BoundModel, owner: Variable) -> Slot | None:
    """Return the slot of the addend of a variable's mean that may be moved with it, or None.

    It is a latent Normal added once and as it is, chosen by known labels or none; the same for all if there is one,
    of others one with a latent mean, then with the widest known prior: what the level of the data is in.
    """
    stated = owner.stated.get("mean")
    if not isinstance(owner, Normal) or not isinstance(stated, Predictor):
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
        and isinstance(slot.node, Normal)
        and not bound.is_known(slot.node)
        and (slot.index is None or bound.is_known(slot.index))
    ]
    return min(slots, key=lambda slot: _rank(slot.node), default=None)


def multiplied_in(bound: BoundModel, owner: Variable) -> Iterator[Node]:
    """Yield what cannot be moved because of the sum or product that a variable has in a slot, maybe itself."""
    slots, plain = [slot for slot in owner.slots.values() if slot.role.adds_up], plain_addend(bound, owner)
    if slots and plain is None:
        # nor can what has the sum for its mean, where it is the mean of something else
        yield owner
    yield from (slot.node for slot in slots if slot is not plain)


def _node_of(operand: object) -> object:
    return operand.node if isinstance(operand, Indexed) else operand


def _rank(location: object) -> tuple[int, float]:
    """Return how little the level of the data is expected in a location: the least is moved."""
    assert isinstance(location, Variable)
    mean, precision = location.slots.get("mean"), location.slots.get("precision")
    if mean is None or not isinstance(mean.node, Constant):
        return 0, 0.0
    if bool(mean.node.value.any()):
        return 1, 0.0
    if precision is None or not isinstance(precision.node, Constant):
        return 3, 0.0
    return 2, float(precision.node.value.max())
