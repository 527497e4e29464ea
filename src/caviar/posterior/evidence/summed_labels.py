r"""The log density of draws together with known values, hidden labels summed out.

.. math:: \log p(x, \theta) = \log p(\theta)
    + \sum_n \log \sum_k p(z_n = k \mid \theta)\, p(x_n \mid z_n = k, \theta)

Labels of a row of which something depends on several are summed over all their combinations. As in the log joint
density, the densities are those of the families: nothing here knows of terms or of passes over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Node, Plate, Variable
from ...language.nodes.node import Label
from .log_joint import LogJoint

_MOST_COMBINATIONS = 256
"""Of the labels of a row, each of which takes an evaluation of the densities."""


@dataclass(frozen=True, eq=False)
class LabelSet:
    """Hidden labels of the same repetitions that are summed out together, since something depends on several of them.

    Attributes
    ----------
    labels
        In any order.
    dependent
        The labels, and the variables that depend on them.
    records
        Name of a variable that depends on labels of groups -> names of the known labels which say of which group each
        of its repetitions is.
    """

    labels: tuple[Variable, ...]
    dependent: tuple[Variable, ...]
    records: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the first label."""
        return self.labels[0].name

    @property
    def plates(self) -> tuple[Plate, ...]:
        """The plates of the labels."""
        return self.labels[0].plates

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each label has."""
        return tuple(n_values_of(own) for own in self.labels)

    @property
    def n_combinations(self) -> int:
        """How many values they have together."""
        return math.prod(self.sizes)

    @property
    def why_not(self) -> str:
        """Return why they cannot be summed out repetition by repetition; empty if they can."""
        if any(set(own.plates) != set(self.plates) for own in self.labels):
            names = " and ".join(f"'{own.name}'" for own in self.labels)
            return f"something depends on both {names}, which have different plates"
        for own in self.dependent:
            if own.summed or any(plate.within is not None for plate in own.plates):
                return f"'{own.name}' depends on labels of several rows"
            n_ways = len(self.records.get(own.name, ()))
            has_plates = set(self.plates) <= set(own.plates)
            if has_plates == bool(n_ways) or n_ways > 1 or (n_ways and len(self.plates) > 1):
                return f"each '{own.name}' depends on several of the labels '{self.name}'"
        if self.n_combinations > _MOST_COMBINATIONS:
            return f"the hidden labels of each row have {self.n_combinations:,} combinations"
        return ""


def n_values_of(variable: Variable) -> int:
    """Return how many values a hidden label has; 0 of a variable that is no label of its own repetition."""
    if variable.summed:
        return 0
    if isinstance(variable, Label):
        return variable.categories or 0
    return 2 * variable.is_zero_or_one


def label_sets(variables: Collection[Variable], hidden: Collection[str]) -> tuple[LabelSet, ...]:
    """Return the sets of hidden labels that have nothing in common.

    Parameters
    ----------
    variables
        Of the model, without those that links bring along.
    hidden
        The names of the labels.
    """
    depends = {
        own.name: {node.name for node in own.drawn_given if node.name in hidden} | ({own.name} & {*hidden})
        for own in variables
    }
    joined: list[set[str]] = []
    for names in filter(None, depends.values()):
        apart = [own for own in joined if not own & names]
        joined = [*apart, names.union(*(own for own in joined if own & names))]
    found = []
    for names in joined:
        labels = tuple(own for own in variables if own.name in names)
        dependent = tuple(own for own in variables if depends[own.name] & names)
        found.append(LabelSet(labels, dependent, _records_of(dependent, names)))
    return tuple(found)


def _records_of(dependent: Collection[Variable], labels: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return which known labels say of which group each repetition of a variable is."""
    found: dict[str, list[str]] = {}
    for own in dependent:
        for slot in own.slots.values():
            through = [each.through for each in slot.chosen if each.by.name in labels]
            chosen = [each for each in through if each is not None]
            chosen += slot.choices if slot.node.name in labels else ()
            found.setdefault(own.name, []).extend(each.by.name for each in chosen)
    return {name: tuple(dict.fromkeys(own)) for name, own in found.items() if own}


class LogMarginal:
    """The log density of draws together with known values, hidden labels summed out.

    Parameters
    ----------
    nodes, known, n_draws, counted, left_out
        As for :class:`~caviar.posterior.evidence.log_joint.LogJoint`. Labels that are known in some repetitions have
        their values in ``known``, NaN in the others.
    labels
        What is summed out, with the shape of its repetitions.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        known: Mapping[str, Any],
        n_draws: int,
        labels: Sequence[tuple[LabelSet, tuple[int, ...]]],
        counted: Mapping[str, AnyArray] | None = None,
        left_out: Collection[str] = (),
    ) -> None:
        self._n_draws, self._labels, self._counted = n_draws, labels, counted or {}
        summed = {own.name for each, _ in labels for own in each.labels}
        self._known = known
        others = {name: own for name, own in known.items() if name not in summed}
        dependent = [{own.name for own in each.dependent} for each, _ in labels]
        variables = [node for node in nodes if isinstance(node, Variable)]
        rest = [own for own in variables if own.name not in {*left_out}.union(*dependent)]
        needed = {own.name for own in rest}.union(*({node.name for node in own.drawn_given} for own in rest))
        unseen = {own.name for own in variables if own.name not in needed} | {*left_out, *summed}
        self._rest = LogJoint(nodes, others, n_draws, counted, unseen, of=[own.name for own in rest])
        self._given = [
            LogJoint(nodes, others, n_draws * each.n_combinations, None, left_out, of=names)
            for (each, _), names in zip(labels, dependent, strict=True)
        ]

    def __call__(self, draws: Mapping[str, Any]) -> Array:
        """Return the log density of each draw, shape (draws,)."""
        total = self._rest(draws)
        for number in range(len(self._labels)):
            total = total + self._summed_out(number, draws).reshape(self._n_draws, -1).sum(axis=1)
        return total

    def each(self, draws: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Return the log density of each repetition of what is evaluated together, by name: (draws, plates...).

        That of labels and of what depends on them is under the name of the first label.
        """
        found = self._rest.each(draws)
        return found | {
            own.name: self._summed_out(place, draws) for place, (own, _) in enumerate(self._labels)
        }

    def _summed_out(self, number: int, draws: Mapping[str, Any]) -> Array:
        """Return the log density of the repetitions of some labels and of what depends on these, (draws, plates...)."""
        own, shape = self._labels[number]
        n_combinations = own.n_combinations
        values = {name: _tiled(value, n_combinations) for name, value in draws.items()}
        combinations = np.unravel_index(np.arange(n_combinations), own.sizes)
        total = np.zeros((n_combinations, self._n_draws, *shape))
        for label, codes in zip(own.labels, combinations, strict=True):
            along = codes.reshape(-1, 1, *(1,) * len(shape))
            own_shape = tuple(shape[own.plates.index(plate)] for plate in label.plates)
            every = np.broadcast_to(along, (n_combinations, self._n_draws, *own_shape))
            values[label.name] = every.reshape(-1, *own_shape)
            known = self._known.get(label.name)
            if known is not None:
                known = _moved(np.asarray(known, dtype=np.float64)[np.newaxis], label.plates, own.plates)[0]
                total += np.where(np.isnan(known) | (known == along), 0.0, -np.inf)
        for name, density in self._given[number].each(values).items():
            variable = next(each for each in own.dependent if each.name == name)
            marked = self._counted.get(name)
            counted = density if marked is None else np.where(marked, density, 0.0)
            total += self._by_repetition(own, shape, variable, counted).reshape(total.shape)
        return np.logaddexp.reduce(total, axis=0)

    def _by_repetition(
        self, own: LabelSet, shape: tuple[int, ...], variable: Variable, density: AnyArray
    ) -> AnyArray:
        """Return the log density of a variable, (n, its plates...), summed to the repetitions of labels, (n, ...)."""
        records = own.records.get(variable.name)
        if not records:
            return _moved(density, variable.plates, own.plates).reshape(len(density), *shape, -1).sum(axis=-1)
        of_group = np.asarray(self._known[records[0]]).astype(np.intp)
        found = np.zeros((*shape, len(density)))
        np.add.at(found, of_group.ravel(), density.reshape(len(density), of_group.size, -1).sum(axis=-1).T)
        return found.T


def _moved(value: AnyArray, plates: Sequence[Plate], first: Sequence[Plate]) -> AnyArray:
    """Return values, (n, plates...), with some plates first."""
    return np.moveaxis(value, [1 + plates.index(plate) for plate in first], range(1, 1 + len(first)))


def _tiled(value: Any, n: int) -> Any:
    """Return the values of draws n times, one after the other; those of a joint factor are a pair."""
    if isinstance(value, tuple):
        return type(value)(*(_tiled(part, n) for part in value))
    return np.tile(value, (n, *(1,) * (np.ndim(value) - 1)))
