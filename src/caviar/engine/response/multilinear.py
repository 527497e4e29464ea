"""How contractions change with their operands: each operand in turn in the place of its change."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Plate
from ..design.contraction import Contraction, Derivative
from ..local.statistics import Arrays

_CHANGES = Axis(Plate("changes"))
"""The axis of several changes of an operand."""


@dataclass(frozen=True, eq=False)
class _Message:
    """The message of a term to one of its operands.

    Attributes
    ----------
    target
        What it is added to.
    contraction
        The term.
    position
        Of the operand that is left out.
    moved
        The messages of the same term with several changes in the place of another operand, by its position; made when
        they are needed.
    """

    target: Hashable
    contraction: Contraction
    position: int
    moved: dict[int, Derivative] = field(default_factory=dict)

    def change(self, place: int, arrays: Mapping[Hashable, Array], changes: Array) -> Array:
        """Return by how much the message changes with those of the operand at a place, (n, ...) both."""
        if self.contraction.gather is None:
            return self._moved(place)({**arrays, _CHANGES: changes})
        # an array of all combinations of labels for each of many changes would be large
        return np.stack([self._moved(place)({**arrays, _CHANGES: own})[()] for own in changes])

    def _moved(self, place: int) -> Derivative:
        if place not in self.moved:
            axis = _CHANGES if self.contraction.gather is None else None
            other = self.contraction.replaced(place, _CHANGES, axis)
            self.moved[place] = other.derivative(self.position, keep=axis)
        return self.moved[place]


class Multilinear:
    """Sums of derivatives of contractions, by what they are added to.

    Parameters
    ----------
    uses
        What a derivative is added to, the contraction, and the position of the operand that is left out.
    """

    def __init__(self, uses: Iterable[tuple[Hashable, Contraction, int]]) -> None:
        self._messages = [_Message(*own) for own in uses if len(own[1].keys) > 1]

    def change(
        self, arrays: Mapping[Hashable, Array], changes: Mapping[Hashable, Array], n: int
    ) -> tuple[Arrays, AnyArray]:
        """Return by how much each sum changes, and which of n changes it is that change any of them.

        Parameters
        ----------
        arrays
            All operands.
        changes
            Of some of them, with an axis of the changes before all others, as in what comes back, which has axes of
            length one where a sum does not vary.
        """
        found: Arrays = {}
        concerned = np.zeros(n, dtype=bool)
        which = {key: own.reshape(n, -1).any(axis=1) for key, own in changes.items()}
        for message in self._messages:
            for place, key in enumerate(message.contraction.keys):
                if place == message.position or key not in changes or not which[key].any():
                    continue
                own = which[key]
                concerned |= own
                value = message.change(place, arrays, changes[key][own])
                if not own.all():
                    several = np.zeros((n, *value.shape[1:]))
                    several[own] = value
                    value = several
                before = found.get(message.target)
                found[message.target] = value if before is None else before + value
        return found, concerned
