"""How contractions change with their operands: each operand in turn in the place of its change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ..design.contraction import Contraction, Derivative
from ..local.statistics import Arrays


@dataclass(frozen=True, eq=False)
class _Message:
    """What a term says to one of its operands.

    Attributes
    ----------
    target
        What it is added to.
    derivative
        The contraction of the other operands.
    others
        Their keys, and how often each is among them.
    """

    target: Hashable
    derivative: Derivative
    others: Mapping[Hashable, int]


class Multilinear:
    """Sums of derivatives of contractions, by what they are added to.

    Parameters
    ----------
    uses
        What a derivative is added to, the contraction, and the position of the operand that is left out.
    """

    def __init__(self, uses: Iterable[tuple[Hashable, Contraction, int]]) -> None:
        self._messages: list[_Message] = []
        for target, contraction, position in uses:
            others = Counter(contraction.keys[:position] + contraction.keys[position + 1 :])
            if others:
                self._messages.append(_Message(target, contraction.derivative(position), others))

    def change(self, arrays: Mapping[Hashable, Array], changes: Mapping[Hashable, Array]) -> Arrays:
        """Return by how much each sum changes, with axes of length one where it does not vary; no change is left out.

        Parameters
        ----------
        arrays
            All operands.
        changes
            Of some of them.
        """
        found: Arrays = {}
        moved = dict(arrays)
        for message in self._messages:
            for key, times in message.others.items():
                if key not in changes:
                    continue
                if times == 1:
                    moved[key] = changes[key]
                    value = message.derivative(moved)
                else:
                    value = self._of_product(message.derivative, moved, key, changes[key])
                moved[key] = arrays[key]
                before = found.get(message.target)
                found[message.target] = value if before is None else before + value
        return found

    @staticmethod
    def _of_product(derivative: Derivative, moved: Arrays, key: Hashable, change: Array) -> Array:
        """Return the change of what an operand is in twice: exact, for it is of the second degree."""
        base = moved[key]
        largest = np.abs(change).max(initial=0.0)
        # a step as large as the operand loses no digits
        step = max(np.abs(base).max(initial=0.0), 1.0) / largest if largest else 1.0
        moved[key] = base + step * change
        above = derivative(moved)
        moved[key] = base - step * change
        return (above - derivative(moved)) / (2.0 * step)
