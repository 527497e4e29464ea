"""Joining: the mean and the precision of one joint factor, stated apart, become statistics of that factor.

A Normal whose mean is a predictor with ``theta.mean`` in it, and whose precision is ``theta.precision`` or a product
with it, has terms such as precision times mean. Their expectation is not a product of expectations, for the two are
dependent; it is that of a statistic of the joint factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._errors import ConjugacyError
from ..nodes.node import Part
from ..nodes.roles import JOINT_LINEAR, JOINT_LINEAR_VECTOR
from ..nodes.slots import Slot, parts_remedy
from ..nodes.stated import Stated
from ..nodes.templates import Density, Factor, Summand


def whole_if_together(mean: Any, precision: Any, rank: int) -> tuple[Any, Any]:
    """Return the whole factor, and None, where both arguments are its bare parts; else the arguments as they are."""
    if not (isinstance(mean, Part) and isinstance(precision, Part) and mean.belongs_with(precision)):
        return mean, precision
    # a vector with one precision has no whole that a Normal, or a MultivariateNormal, could take
    fit = (mean.event_rank, precision.event_rank) == (rank, 2 * rank)
    fit = fit and (mean.which, precision.which) == ("mean", "precision")
    return (mean.whole, None) if fit else (mean, precision)


def joined(owner: Stated, slots: Mapping[str, Slot], density: Density) -> tuple[dict[str, Slot], Density]:
    """Return slots and density with the two parts of a joint factor as one operand.

    Raises
    ------
    ConjugacyError
        If a part is used without the other: the message says which, and how both would be stated.
    """
    means = [key for key, slot in slots.items() if slot.part is not None and slot.part.which == "mean"]
    precisions = [
        key for key, slot in slots.items() if slot.part is not None and slot.part.which == "precision"
    ]
    if not means and not precisions:
        return dict(slots), density
    mean, precision = _one_pair(owner, slots, means, precisions)
    role = JOINT_LINEAR_VECTOR if slots[mean].node.value_rank else JOINT_LINEAR  # type: ignore[attr-defined]
    kept = {key: slot for key, slot in slots.items() if key != precision}
    kept[mean] = replace(slots[mean], role=role)
    return kept, tuple(_joined_summand(summand, mean, precision) for summand in density)


def _one_pair(
    owner: Stated, slots: Mapping[str, Slot], means: list[str], precisions: list[str]
) -> tuple[str, str]:
    stated = [slots[key].part for key in (*means, *precisions)]
    where = f"{type(owner).__name__} '{owner.name}'"
    first = stated[0]
    assert first is not None
    if not precisions:
        raise ConjugacyError(
            f"'mean' of {where} contains {first!r}, but its precision is not "
            f"{first.whole_name}.precision: the posterior of the two would not be a "
            f"{type(first.node).__name__}. {parts_remedy(first)}"
        )
    if not means:
        raise ConjugacyError(
            f"'{slots[precisions[0]].name}' of {where} contains {first!r}, but its mean does not contain "
            f"{first.whole_name}.mean. {parts_remedy(first)}"
        )
    apart = [part for part in stated if part is not None and not part.belongs_with(first)]
    if apart or len(means) > 1 or len(precisions) > 1:
        other = (apart or stated)[-1]
        raise ConjugacyError(
            f"{where} contains {first!r} and {other!r}, parts of different joint factors or of different repetitions. "
            f"{parts_remedy(first)}"
        )
    return means[0], precisions[0]


def _joined_summand(summand: Summand, mean: str, precision: str) -> Summand:
    """Return a summand with precision times a power of the mean as one statistic of the joint factor."""
    tau = next((f for f in summand.factors if f.slot == precision), None)
    if tau is None:
        return summand
    location = next((f for f in summand.factors if f.slot == mean), None)
    if location is not None:
        statistic = Factor(mean, f"precision_{location.statistic}", location.letters)
    else:
        statistic = Factor(mean, {"x": "precision", "log_x": "log_precision"}[tau.statistic], "")
    others = tuple(f for f in summand.factors if f is not tau and f is not location)
    return replace(summand, factors=(*others, statistic))
