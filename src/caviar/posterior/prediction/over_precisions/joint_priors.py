r"""The joint prior of variables that share a Gaussian factor, given values of their precisions.

The mean of a variable is linear in the others, so that its deviation from that mean is :math:`D\theta - c` with the
numbers of all variables, :math:`\theta`. Its density adds :math:`D' \Lambda D` to their joint precision and
:math:`D' \Lambda c` to what this is multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...._typing import Array, Statistics
from ....families._coupled_member import Member
from ....families.coupled_normals import CoupledLayout
from ....language import Variable
from ...simulation import conditional


class _Deviation(NamedTuple):
    """Of one variable from its mean: D and c of this file, (own numbers, numbers) and (own numbers,)."""

    variable: Variable
    member: Member
    slopes: Any
    constant: Array


class JointPrior:
    """The prior of the variables that share a Gaussian factor. Flat ones add nothing to it.

    Parameters
    ----------
    layout, variables
        Of the factor; the variables in their order there.
    known
        Name -> some value of each precision.
    """

    def __init__(
        self, layout: CoupledLayout, variables: Sequence[Variable], known: Mapping[str, Any]
    ) -> None:
        self._layout = layout
        self._deviations = [
            _Deviation(own, layout.members[place], *self._deviation(place, own, variables, known))
            for place, own in enumerate(variables)
            if not own.is_flat
        ]

    def natural(self, known: Mapping[str, Any]) -> Statistics:
        """Return its natural parameters given values of the precisions, by name."""
        size = self._layout.pattern.size
        linear, precision = np.zeros(size), sparse.csr_array((size, size))
        somewhere = self._values(linear)
        for variable, member, slopes, constant in self._deviations:
            count, width = member.part
            own: Any = conditional(variable, {**known, **somewhere})
            full = (*member.shape, *member.event_shape, *member.event_shape)
            blocks = np.broadcast_to(own.precision, full).reshape(count, width, width)
            weighted = slopes.T @ sparse.bsr_array((blocks, np.arange(count), np.arange(count + 1)))
            linear, precision = linear + weighted @ constant, precision + weighted @ slopes
        return _natural(self._layout, linear, precision.toarray())

    def _deviation(
        self, place: int, variable: Variable, variables: Sequence[Variable], known: Mapping[str, Any]
    ) -> tuple[Any, Array]:
        """Return the slopes and the constant of a variable's deviation from its mean."""
        size, own = self._layout.pattern.size, self._layout.place(place)
        constant = self._mean(place, variable, known, np.zeros(size))
        slopes = sparse.lil_array((own.stop - own.start, size))
        slopes[:, own] = np.eye(own.stop - own.start)
        above = {node.name for node in variable.drawn_given}
        for other, node in enumerate(variables):
            for number in range(size)[self._layout.place(other)] if node.name in above else ():
                unit = np.zeros(size)
                unit[number] = 1.0
                slopes[:, [number]] = (constant - self._mean(place, variable, known, unit))[:, None]
        return slopes.tocsr(), constant

    def _mean(self, place: int, variable: Variable, known: Mapping[str, Any], numbers: Array) -> Array:
        """Return the mean of a variable at values of the numbers of all, (own numbers,)."""
        member = self._layout.members[place]
        own: Any = conditional(variable, {**known, **self._values(numbers)})
        return np.broadcast_to(own.mean, (*member.shape, *member.event_shape)).ravel()

    def _values(self, numbers: Array) -> dict[str, Array]:
        """Return the values of all variables by name."""
        return {
            own.name: numbers[self._layout.place(place)].reshape((*own.shape, *own.event_shape))
            for place, own in enumerate(self._layout.members)
        }


def _natural(layout: CoupledLayout, linear: Array, precision: Array) -> Statistics:
    """Return the natural parameters for what a precision (numbers, numbers) is multiplied with, (numbers,)."""
    n_own, found = 2 * len(layout.members), []
    for number, ((i, j), shape) in enumerate(zip(layout.pairs_of_statistics(), layout.shapes, strict=True)):
        if number < n_own:
            own = -0.5 * precision[i, j] if number % 2 else linear[i]
        else:
            # of a pair both entries
            own = -precision[i, j]
        found.append(own.reshape(shape))
    return tuple(found)
