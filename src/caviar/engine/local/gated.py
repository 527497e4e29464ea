"""One joint factor of the Categoricals of a row and the variables that they switch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import xlogy

from ... import families
from ..._typing import AnyArray, Array
from ...families import ExponentialFamily, JointLabels
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.features import row_major
from ..design.inferred import Inferred
from ..design.keys import ColumnKey, StatisticKey, together
from .categorical import responding, softmax_inplace
from .local_factor import LocalFactor, is_other, own_axes


@dataclass(frozen=True)
class Switched:
    """A variable's distribution given each value of a Categorical, and the probabilities of these.

    Attributes
    ----------
    probabilities
        Of the K categories, shape (B, K); of several Categoricals those of their combinations, the last label fastest.
    conditional
        The family member given each category, batch (B, K, plates...).
    names
        The Categoricals.
    """

    probabilities: Array
    conditional: Any
    names: tuple[str, ...]

    @property
    def mean(self) -> Array:
        """Mean over the categories, shape (B, plates..., event...)."""
        mean = np.asarray(self.conditional.mean)
        weights = self.probabilities.reshape(self.probabilities.shape + (1,) * (mean.ndim - 2))
        return (weights * mean).sum(axis=1)

    def translate(self, delta: Array) -> Switched:
        """Return the distributions of the variable moved by ``delta``, given each category."""
        return replace(self, conditional=self.conditional.translate(delta))


Inside: TypeAlias = list[tuple[StatisticKey, Array, Array]]
"""What is gated changes given the labels: statistic, its mean, and by how much that changes."""


class SwitchedFactor(LocalFactor):
    """One joint factor q(z) q(t | z) of local Categoricals z and the local variables t that they gate.

    Its statistics are those of each label, of the sets of labels that meet in terms, of all labels at once, and those
    of each t times the one-hot of all labels. Given z the factors of the t are their families'; their log-partitions
    enter the log-probabilities of z, so that the joint optimum is exact.

    Parameters
    ----------
    gates
        The Categoricals, of one label a row each.
    others
        The variables that they gate, independent given the labels.
    evidence
        What is known of each, gates first.
    data_axis, size, certain
        As for every local factor.
    sets
        Sets of gates that meet in terms.
    """

    def __init__(
        self,
        gates: Sequence[Variable],
        others: Sequence[Variable],
        evidence: Sequence[Evidence],
        data_axis: Axis,
        size: Callable[[Axis], int],
        certain: Mapping[Variable, ExponentialFamily] | None = None,
        sets: Iterable[Collection[Variable]] = (),
    ) -> None:
        axes: dict[StatisticKey, tuple[Axis, ...]] = {}
        for own in (*((gate,) for gate in gates), *sets, gates):
            present = [gate for gate in gates if gate in own]
            axes[together(gate.name for gate in present)] = tuple([Axis(gate, "k") for gate in present])
        self._of_labels = dict(axes)
        categories = tuple([Axis(gate, "k") for gate in gates])
        for variable in others:
            for statistic in variable.family.statistics:
                own_key = StatisticKey(variable.name, statistic)
                axes[own_key] = (*categories, *own_axes(variable, statistic, data_axis))
        super().__init__([*gates, *others], evidence, axes, size, certain)
        self.labels = tuple(gates)
        self.switched = tuple(others)
        self.categories = categories
        self._all = together(gate.name for gate in gates)

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        return self._of_labels.keys()

    @property
    def values(self) -> Array | None:
        """One column for each combination of labels; None if it has other variables."""
        if self.switched or len(self.labels) == 1:
            return None
        found = np.zeros((self.n_rows, int(np.prod(self.shapes[self._all]))))
        self.choices(found)[...] = np.eye(found.shape[1])
        self.write_marginals(found)
        return found

    def table(self, values: Array) -> Array:
        """Return the view of (E, B) values that has a number for each combination of labels, (K, ..., B)."""
        return self.view(values, self._all)

    def choices(self, values: Array) -> Array:
        return values[self.rows[self._all]]

    def met(self, values: Array) -> Array:
        return self._gathered(values.copy()).reshape(-1, values.shape[1])

    def not_known(self, columns: Mapping[ColumnKey, AnyArray]) -> AnyArray:
        found: AnyArray = np.zeros((1,) * (len(self.labels) + 1), dtype=bool)
        for place, label in enumerate(self.labels):
            if label in self.labelled:
                own = is_other(columns[ColumnKey(label.name)], label.dimension or 1)
                found = found | self.stretched(own, (self.categories[place],))
        if not self.labelled:
            return found.reshape(1, 1)
        return np.broadcast_to(found, (*self.shapes[self._all], found.shape[-1])).reshape(-1, found.shape[-1])

    def stretched(self, values: AnyArray, axes: Sequence[Axis]) -> AnyArray:
        """Return values over some labels, (K, ..., B), with an axis for each label."""
        sizes = zip(self.categories, self.shapes[self._all], strict=True)
        return values.reshape(*(size if axis in axes else 1 for axis, size in sizes), values.shape[-1])

    def _gathered(self, natural: Array) -> Array:
        """Add to the table of natural parameters, in place, those of fewer labels; return it."""
        table = self.table(natural)
        for key, axes in self._of_labels.items():
            if key != self._all:
                table += self.stretched(self.view(natural, key), axes)
        return table

    def write_marginals(self, expected: Array) -> None:
        """Write the probabilities of each set of labels, from those of all in the table of expected statistics."""
        table = self.table(expected)
        for key, axes in self._of_labels.items():
            if key != self._all:
                dropped = tuple(place for place, axis in enumerate(self.categories) if axis not in axes)
                np.sum(table, axis=dropped, out=self.view(expected, key))

    def _conditionals(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each gated variable, batch (K, ..., B, plates...)."""
        conditionals, place = {}, len(self.labels)
        for variable in self.switched:
            arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
            conditionals[variable] = variable.family.from_natural(
                tuple(np.moveaxis(a, -1, place) for a in arrays)
            )
        return conditionals

    def gathered(self, natural: Array) -> tuple[Array, dict[Variable, Any]]:
        """Return the log-weights of the combinations of labels, (K, ..., B), in place, and what is gated given them."""
        conditionals = self._conditionals(natural)
        table = self._gathered(natural)
        for distribution in conditionals.values():
            table += distribution.log_partition.reshape(*table.shape, -1).sum(axis=-1)
        return table, conditionals

    def entropy_of(self, table: Array, conditionals: Mapping[Variable, Any]) -> Array:
        """Return the entropy of each row from the probabilities of the combinations of its labels."""
        entropies = np.zeros(table.shape)
        for variable, distribution in conditionals.items():
            entropies += self.entropy(variable, distribution).reshape(*table.shape, -1).sum(axis=-1)
        return (table * entropies - xlogy(table, table)).reshape(-1, table.shape[-1]).sum(axis=0)

    def write_expected(self, expected: Array, conditionals: Mapping[Variable, Any]) -> None:
        """Write all expected statistics from the probabilities of the combinations of labels in their table."""
        table, place = self.table(expected), len(self.labels)
        self.write_marginals(expected)
        for variable, distribution in conditionals.items():
            for statistic, value in zip(
                variable.family.statistics, distribution.expected_statistics, strict=True
            ):
                view = self.view(expected, StatisticKey(variable.name, statistic))
                np.multiply(np.moveaxis(value, place, -1), self.over(table, view), out=view)

    def over(self, table: Array, view: Array) -> Array:
        """Return numbers of combinations of labels with axes of length one for the others of a statistic."""
        return table.reshape(*table.shape[:-1], *(1,) * (view.ndim - table.ndim), table.shape[-1])

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics."""
        table, conditionals = self.gathered(natural)
        log_normaliser = softmax_inplace(self.choices(natural))
        # of labels alone it follows from the log-partition
        entropy = self.entropy_of(table, conditionals) if conditionals else None
        self.write_expected(natural, conditionals)
        return Inferred(log_normaliser, entropy)

    def infer_given(self, natural: Array, given: Mapping[Variable, Array]) -> None:
        """Overwrite natural parameters by expected statistics where some labels have given probabilities (K, B).

        The others are at their optimum given these.
        """
        table, conditionals = self.gathered(natural)
        softmax_inplace(self.choices(natural))
        dropped = tuple(place for place, label in enumerate(self.labels) if label not in given)
        own = table.sum(axis=dropped, keepdims=True)
        n_others = table[0].size * len(table) / own.size
        np.divide(table, own, out=table, where=own > 0)
        np.copyto(table, 1.0 / n_others, where=np.broadcast_to(own == 0, table.shape))
        for place, label in enumerate(self.labels):
            if label in given:
                table *= self.stretched(given[label], (self.categories[place],))
        self.write_expected(natural, conditionals)

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change: those of the labels with all that these say, and given each."""
        probabilities, conditionals = self.table(expected), self._conditionals(natural)

        def respond(change: Array) -> Array:
            found, inside = self.said(change, conditionals)
            flat = self.choices(found)
            flat[...] = responding(self.choices(expected), flat)
            return self.write_change(found, inside, probabilities)

        return respond

    def said(self, change: Array, conditionals: Mapping[Variable, Any]) -> tuple[Array, Inside]:
        """Return what a change says of each combination of labels, in the table, and of what these gate."""
        found, place = change.copy(), len(self.labels)
        logits = self._gathered(found)
        inside: Inside = []
        for variable, distribution in conditionals.items():
            keys = [StatisticKey(variable.name, s) for s in variable.family.statistics]
            changes = tuple(np.moveaxis(self.own(change, variable, k.statistic), -1, place) for k in keys)
            means = distribution.expected_statistics
            for own, mean in zip(changes, means, strict=True):
                logits += (own * mean).reshape(*logits.shape, -1).sum(axis=-1)
            inside += zip(keys, means, distribution.response(changes), strict=True)
        return found, inside

    def write_change(self, found: Array, inside: Inside, probabilities: Array) -> Array:
        """Write the changes of all statistics, those of the combinations of labels in their table; return them."""
        moved, place = self.table(found), len(self.labels)
        self.write_marginals(found)
        for key, mean, own in inside:
            view = self.view(found, key)
            mean, own = (np.moveaxis(values, place, -1) for values in (mean, own))
            view[...] = self.over(moved, view) * mean + self.over(probabilities, view) * own
        return found

    def shares(self, natural: Array) -> Array:
        """Return the probabilities of the combinations of labels, (K, ..., B)."""
        work = natural.copy()
        self.gathered(work)
        softmax_inplace(self.choices(work))
        return self.table(work)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each label of each row, and each gated variable given the labels."""
        return self.distributions_given(self.shares(natural), natural)

    def distributions_given(self, table: Array, natural: Array) -> dict[Variable, Any]:
        """Return the same from the probabilities of the combinations of labels, (K, ..., B)."""
        joint, names = row_major(table), tuple(label.name for label in self.labels)
        found: dict[Variable, Any] = {label: JointLabels(joint, names, label.name) for label in self.labels}
        if len(self.labels) == 1:
            found = {self.labels[0]: families.Categorical(joint)}
        probabilities = joint.reshape(len(joint), -1)
        for variable in self.switched:
            arrays = (row_major(self.own(natural, variable, s)) for s in variable.family.statistics)
            flat = tuple(a.reshape(*probabilities.shape, *a.shape[joint.ndim :]) for a in arrays)
            found[variable] = Switched(probabilities, variable.family.from_natural(flat), names)
        return found
