r"""Shifted parents: the terms of a location that is measured from other points than its mean is.

The locations of known groups are measured from where their groups are, and the population mean from one point. With
d the population's point less a group's, what a group's location is compared with is x + d, so in its density

.. math:: x \to x + d, \qquad xx' \to xx' + 2 d x' + dd'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...language import Axis, Operand, Slot, Term, Variable, plate_axes, terms_of
from ..binding.coordinates import SHIFT, SHIFT_SQUARED, Coordinates


def terms_in(coordinates: Coordinates, owner: Variable) -> Sequence[Term]:
    """Return the terms of a variable's log density, with what a shift of its mean adds, for the points of a frame."""
    terms = terms_of(owner)
    if not coordinates.is_shifted(owner):
        return terms
    return [added for term in terms for added in (term, *_added(owner, owner.slots["mean"], term))]


def _added(owner: Variable, slot: Slot, term: Term) -> Iterator[Term]:
    """Yield what the shift of the mean adds to a term that has the mean."""
    for place, operand in enumerate(term.operands):
        if operand.slot is None or operand.slot.name != slot.name:
            continue
        rank = slot.role.rank
        plates, events = operand.axes[: -2 * rank or None], operand.axes[len(operand.axes) - 2 * rank :]
        if operand.statistic == "x":
            yield _with(term, place, 1.0, [_shift(owner, SHIFT, operand.axes[len(operand.axes) - rank :])])
            continue
        x = Operand(operand.node, "x", (*plates, *events[rank:]), operand.slot)
        yield _with(term, place, 2.0, [_shift(owner, SHIFT, events[:rank]), x])
        yield _with(term, place, 1.0, [_shift(owner, SHIFT_SQUARED, events)])


def _shift(owner: Variable, statistic: str, events: Sequence[Axis]) -> Operand:
    return Operand(owner, statistic, (*plate_axes(owner), *events))


def _with(term: Term, place: int, times: float, operands: Sequence[Operand]) -> Term:
    """Return a term with other operands in the place of one."""
    rest = (*term.operands[:place], *operands, *term.operands[place + 1 :])
    return term._replace(coefficient=times * term.coefficient, operands=rest)
