"""Messages of rows: to a global factor, the derivative of their terms by its statistics; else a number for each row.

In one category of the local Categorical, each term is a contraction of what is known of a row and at most one factor. A
factor that rows choose from by a known label is looked up: nothing has an entry for each row and label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Indexed, Node, Operand, Term, Variable, base_terms_of, terms_of, zero_terms_of
from ..binding.bound_model import BoundModel
from ..binding.clamped.factor import PointMass
from ..binding.coordinates import Coordinates
from ..binding.known_statistics import known_statistic
from ..binding.missing.values import OBSERVED
from ..compiled.labels_that_meet import is_label_of_rows
from ..design.contraction import Contraction
from ..design.gather import Factor, Gather

Measured: TypeAlias = tuple[Coordinates, Mapping[Variable, Any]]
"""A frame, and the global factors measured from its points."""

_FACTOR = "factor"
"""Key of what a row speaks to, in a contraction; of what is known, the place in a list."""


@dataclass(frozen=True)
class Choice:
    """How a row chooses along one plate of a factor.

    Attributes
    ----------
    by
        The local Categorical, or labels that are known.
    place
        Of the plate that is chosen from, among those of the factor.
    """

    by: Node
    place: int


Choices: TypeAlias = tuple[Choice, ...]
"""How a row chooses one of the repetitions of a factor; empty where it speaks to all of them."""


@dataclass(frozen=True)
class RowsInCategory:
    """Rows in one category of each of their labels, and what is known of the globals.

    Attributes
    ----------
    bound
        The rows.
    measured
        The points that locations are measured from, and the global factors measured from these.
    held
        The local Categoricals, each with its value.
    """

    bound: BoundModel
    measured: Measured
    held: Mapping[Variable, int]

    @property
    def q(self) -> Mapping[Variable, Any]:
        """The global factors."""
        return self.measured[1]

    @property
    def data_axis(self) -> Axis:
        """The axis of the rows."""
        assert self.bound.data_plate is not None
        return Axis(self.bound.data_plate)

    @property
    def owners(self) -> list[Variable]:
        """The variables whose densities are factors of a row."""
        observed = [variable for variable in self.bound.observed if self.bound.is_local(variable)]
        return [*observed, *self.held]

    def terms(self, owner: Variable) -> Sequence[Term]:
        """Return the terms of a variable's log density, of an observed one with its base measure."""
        return terms_of(owner) if owner in self.held else (*terms_of(owner), *base_terms_of(owner))

    def zero_terms(self, owner: Variable) -> Sequence[Term]:
        """Return the terms that count the known probabilities of zero in a variable's density, of points too."""
        return zero_terms_of(owner, lambda node: node.is_known or isinstance(self.q.get(node), PointMass))  # type: ignore[arg-type]

    def latent(self, term: Term) -> list[Operand]:
        """Return the operands that q leaves open: neither known, nor a point, nor a label that is held."""
        return [
            operand
            for operand in term.operands
            if not self.bound.is_known(operand.node)
            and operand.node not in self.held
            and not isinstance(self.q.get(operand.node), PointMass)  # type: ignore[arg-type]
        ]

    def settled(self, term: Term) -> dict[Axis, int]:
        """Return the axes along which a term's parents are chosen, each with the category that settles it.

        In the density of a label itself its own axis runs over the probabilities that it is drawn with.
        """
        return {Axis(label, "k"): own for label, own in self.held.items() if label is not term.owner}

    def choices(self) -> dict[Variable, set[Choices]]:
        """Return how rows choose from each factor that they speak to."""
        found: dict[Any, set[Choices]] = {}
        for owner in self.owners:
            for term in (*self.terms(owner), *self.zero_terms(owner)):
                for operand in self.latent(term):
                    found.setdefault(operand.node, set()).add(self._choices(term, operand))
        return found

    def _choices(self, term: Term, operand: Operand) -> Choices:
        choosing = {axis: label.node for axis, label in self._labels(term).items()}
        # whatever else chooses, the categories are known
        choosing = {**{axis: axis.of for axis in self.settled(term)}, **choosing}
        found = tuple(
            Choice(node, operand.axes.index(axis)) for axis, node in choosing.items() if axis in operand.axes
        )
        # a statistic that is shared along the plate lacks its axis
        expression = None if operand.slot is None else operand.slot.expression
        if not found and isinstance(expression, Indexed) and expression.by in choosing.values():
            return (Choice(expression.by, expression.node.plates.index(expression.plate)),)
        return tuple(sorted(found, key=lambda choice: choice.place))

    def _labels(self, term: Term) -> dict[Axis, Operand]:
        """Return the known labels by which a term can be looked up, by the axis that they choose along.

        What a row has for each label itself is not a table that rows share.
        """
        labels = {
            operand.axes[-1]: operand
            for operand in term.operands
            if operand.node is not term.owner and is_label_of_rows(operand, self.bound)
        }
        rest = [operand for operand in term.operands if operand not in labels.values()]
        of_rows = {axis for operand in rest if self.data_axis in operand.axes for axis in operand.axes}
        return {axis: label for axis, label in labels.items() if axis not in of_rows}

    def labels_of(self, choice: Choice) -> AnyArray:
        """Return the label of each row by which it chooses, (rows,); of one that is held one number, without axes."""
        if choice.by in self.held:
            return np.asarray(self.held[choice.by])  # type: ignore[index]
        return self.bound.values_of(choice.by).astype(np.intp)

    def share(self, term: Term) -> Array:
        """Return a term in which all is known, (rows or 1,)."""
        contraction, arrays = self._contraction(term, (), frozenset(self._labels(term)))
        along = contraction.along(self.data_axis, arrays)
        return np.array([contraction.value(arrays)]) if along is None else along

    def message(
        self,
        term: Term,
        operand: Operand,
        choices: Choices,
        meaning: Callable[[Array], Array] = np.asarray,
    ) -> Array:
        """Return the message of a term to a factor: a ``meaning`` of the derivative by its statistic.

        Returns
        -------
        Array
            Of shape (rows or 1, plates that are not chosen from..., event axes...), of length one along what it does
            not vary with.
        """
        settled, node = self.settled(term), operand.node
        looked_up = {
            axis
            for axis, label in self._labels(term).items()
            if axis not in operand.axes or any(choice.by is label.node for choice in choices)
        }
        target = Factor(_FACTOR, tuple(axis for axis in operand.axes if axis not in settled))
        contraction, arrays = self._contraction(term, (target,), looked_up)
        found = meaning(contraction.derivative(0, keep=self.data_axis)(arrays))
        if len(node.letters[operand.statistic]) == 2:  # type: ignore[union-attr]
            # only the symmetric part of m_i x_j matters to a symmetric statistic
            found = 0.5 * (found + np.swapaxes(found, -1, -2))
        return found

    def _contraction(
        self, term: Term, targets: tuple[Factor, ...], looked_up: set[Axis] | frozenset[Axis]
    ) -> tuple[Contraction, dict[Any, Array]]:
        """Return a term as a contraction, and the arrays of what is known in it that rows differ in."""
        data, settled = self.data_axis, self.settled(term)
        labels = {axis: label for axis, label in self._labels(term).items() if axis in looked_up}
        gather = None
        if labels:
            each = {axis: self.labels_of(Choice(label.node, 0)) for axis, label in labels.items()}
            gather = Gather(data, each)
        constants, factors, arrays = [], list(targets), {}
        for place, (array, axes) in enumerate(self._known(term, list(labels.values()))):
            if data in axes or not labels.keys().isdisjoint(axes):
                factors.append(Factor(place, axes))
                arrays[place] = array
            else:
                constants.append((array, axes))
        axes = [axis for axis in term.axes if axis is not data and axis not in (*settled, *labels)]
        return Contraction(term.coefficient, factors, constants, axes, self.bound.size, gather), arrays

    def _known(self, term: Term, labels: Sequence[Operand]) -> Iterator[tuple[Array, tuple[Axis, ...]]]:
        """Yield the arrays that a term multiplies, labels excepted, and what their axes mean."""
        owner, settled = term.owner, self.settled(term)
        for operand in term.operands:
            node: Any = operand.node
            if operand in labels:
                continue
            if self.bound.is_known(node):
                array, axes = known_statistic(self.bound, self.measured[0], owner, operand)
            elif node in self.held:
                if owner is node or operand.slot is not None:
                    yield np.eye(node.dimension)[self.held[node]], operand.axes[-1:]
                continue
            elif isinstance(self.q.get(node), PointMass):
                array, axes = _at_point(self.q[node], operand), operand.axes
            else:
                continue
            for axis in settled.keys() & set(axes):
                array = np.take(array, settled[axis], axis=axes.index(axis))
                axes = tuple(own for own in axes if own is not axis)
            yield array, axes
        if self.bound.of(owner).observed is not None:
            observed = Operand(owner, OBSERVED, tuple(Axis(plate) for plate in owner.plates))
            yield known_statistic(self.bound, self.measured[0], owner, observed)


def _at_point(point: PointMass, operand: Operand) -> Array:
    """Return a statistic of a point, or whether the probabilities that it is are zero."""
    if operand.slot is not None and operand.statistic in operand.slot.role.zeros:
        return operand.slot.role.zeros[operand.statistic](np.asarray(point.value))
    return point.expected_statistics[point.family.statistics.index(operand.statistic)]
