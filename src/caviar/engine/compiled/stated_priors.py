"""Priors made of the parameters that were stated, and which of them are so certain that their terms lose digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._errors import ImproperError, ParameterError
from ..._typing import Array
from ...families import ExponentialFamily
from ...language import Axis, Constant, Node, Plate, Variable

_LARGE = 1e4
"""Nats of a row's prior from which on the divergence from it is told in the place of its terms and entropy."""


def stated_prior(
    variable: Variable,
    values_of: Callable[[Node], Array],
    plates: Sequence[Plate] | None = None,
    other: Mapping[str, Array] | None = None,
) -> Any:
    """Return the prior made of the parameters that were stated, which natural parameters may have rounded away.

    None where they are not all constants of its own, whose values ``values_of`` returns. Its batch has an axis for each
    of the plates, by default those of the variable in their order, of length 1 where nothing varies. ``other`` values
    of some slots are in the place of those that were stated.
    """
    slots = variable.slots.values()
    is_plain = all(isinstance(s.node, Constant) and s.index is None and s.along is None for s in slots)
    if not is_plain or variable.tied is not None or variable.slots.keys() != variable.stated.keys():
        return None
    over = variable.plates if plates is None else plates
    values = {slot.name: values_of(slot.node) for slot in slots} | ({} if other is None else dict(other))
    own = variable.distribution_given(
        {slot.name: _over_plates(over, slot.node, values[slot.name]) for slot in slots}
    )
    return variable.family.widened(own)


def certain_priors(
    variables: Sequence[Variable], data_axis: Axis, values_of: Callable[[Node], Array]
) -> dict[Variable, ExponentialFamily]:
    """Return the priors of local variables whose terms are large, their rows first.

    Their terms are many orders larger than what a row says of them; so where these are summed, digits of it are lost.
    """
    found = {variable: _certain_prior(variable, data_axis, values_of) for variable in variables}
    return {variable: prior for variable, prior in found.items() if prior is not None}


def _certain_prior(
    variable: Variable, data_axis: Axis, values_of: Callable[[Node], Array]
) -> ExponentialFamily | None:
    """Return the prior of a local variable where its terms are large, its rows first; None where they are not.

    Of locations, which are measured from other points than they were stated from, it is always None: the terms of
    their prior are as large as what it says of them.
    """
    slots, rows = variable.slots.values(), data_axis.of
    assert isinstance(rows, Plate)
    if any(slot.role.moves or rows in slot.node.plates for slot in slots):
        return None
    try:
        others = (plate for plate in variable.plates if plate is not rows)
        prior = stated_prior(variable, values_of, [rows, *others])
    except (ImproperError, ParameterError):
        return None
    if prior is None:
        return None
    with np.errstate(all="ignore"):
        products = [
            np.abs(eta * mean) for eta, mean in zip(prior.natural, prior.expected_statistics, strict=True)
        ]
    return prior if _LARGE < max(own.max(initial=0.0) for own in products) < np.inf else None


def _over_plates(plates: Sequence[Plate], node: Node, value: Array) -> Array:
    """Return a value of a constant with an axis for each plate, of length 1 where it does not vary."""
    present = [plate for plate in plates if plate in node.plates]
    order = [node.plates.index(plate) for plate in present]
    turned = value.transpose(*order, *range(len(order), value.ndim))
    return turned[tuple(slice(None) if plate in present else None for plate in plates)]
