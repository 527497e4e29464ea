"""One joint factor of a Categorical of a row and the variables that it switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from ... import families
from ..._typing import Array
from ...families import ExponentialFamily
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.features import row_major
from ..design.inferred import Inferred
from ..design.keys import StatisticKey
from .categorical import responding, softmax_inplace
from .local_factor import LocalFactor, own_axes


@dataclass(frozen=True)
class Switched:
    """A variable's distribution given each value of a Categorical, and the probabilities of these.

    Attributes
    ----------
    probabilities
        Of the K categories, shape (B, K).
    conditional
        The family member given each category, batch (B, K, plates...).
    """

    probabilities: Array
    conditional: Any

    @property
    def mean(self) -> Array:
        """Mean over the categories, shape (B, plates..., event...)."""
        mean = np.asarray(self.conditional.mean)
        weights = self.probabilities.reshape(self.probabilities.shape + (1,) * (mean.ndim - 2))
        return (weights * mean).sum(axis=1)

    def translate(self, delta: Array) -> Switched:
        """Return the distributions of the variable moved by ``delta``, given each category."""
        return Switched(self.probabilities, self.conditional.translate(delta))


class SwitchedFactor(LocalFactor):
    """One joint factor q(z) q(t | z) of a local Categorical and the local variables that it gates.

    Its statistics are those of z, and those of each t times the one-hot of z. Given z the factors of the t are their
    families'; their log-partitions enter the log-probabilities of z, so that the joint optimum is exact.
    """

    def __init__(
        self,
        gate: Variable,
        others: Sequence[Variable],
        evidence: Sequence[Evidence],
        data_axis: Axis,
        size: Callable[[Axis], int],
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        category = Axis(gate, "k")
        axes: dict[StatisticKey, tuple[Axis, ...]] = {StatisticKey(gate.name, "x"): (category,)}
        for variable in others:
            for statistic in variable.family.statistics:
                axes[StatisticKey(variable.name, statistic)] = (
                    category,
                    *own_axes(variable, statistic, data_axis),
                )
        super().__init__([gate, *others], evidence, axes, size, certain)
        self.gate = self.label = gate
        self.category = category

    def _conditionals(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each gated variable, batch (K, B, plates...)."""
        conditionals = {}
        for variable in self.variables[1:]:
            arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
            conditionals[variable] = variable.family.from_natural(
                tuple(np.moveaxis(a, -1, 1) for a in arrays)
            )
        return conditionals

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics."""
        logits = self.view(natural, StatisticKey(self.gate.name, "x"))
        conditionals = self._conditionals(natural)
        entropies = np.zeros(logits.shape)
        for variable, distribution in conditionals.items():
            logits += distribution.log_partition.reshape(*logits.shape, -1).sum(axis=-1)
            entropies += self.entropy(variable, distribution).reshape(*logits.shape, -1).sum(axis=-1)
        log_normaliser = softmax_inplace(logits)
        entropy = (logits * entropies - xlogy(logits, logits)).sum(axis=0)
        for variable, distribution in conditionals.items():
            for statistic, value in zip(
                variable.family.statistics, distribution.expected_statistics, strict=True
            ):
                view = self.view(natural, StatisticKey(variable.name, statistic))
                weights = logits.reshape(len(logits), *(1,) * (view.ndim - 2), -1)
                np.multiply(np.moveaxis(value, 1, -1), weights, out=view)
        return Inferred(log_normaliser, entropy)

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change: those of the gate with all that its categories say, and given each."""
        gate = StatisticKey(self.gate.name, "x")
        probabilities, conditionals = self.view(expected, gate), self._conditionals(natural)

        def respond(change: Array) -> Array:
            logits, found = self.view(change, gate).copy(), np.empty_like(change)
            inside: list[tuple[StatisticKey, Array, Array]] = []
            for variable, distribution in conditionals.items():
                keys = [StatisticKey(variable.name, s) for s in variable.family.statistics]
                changes = tuple(np.moveaxis(self.own(change, variable, k.statistic), -1, 1) for k in keys)
                means = distribution.expected_statistics
                for own, mean in zip(changes, means, strict=True):
                    logits += (own * mean).reshape(*logits.shape, -1).sum(axis=-1)
                inside += zip(keys, means, distribution.response(changes), strict=True)
            moved = responding(probabilities, logits)
            self.view(found, gate)[...] = moved
            for key, mean, own in inside:
                view = self.view(found, key)
                shape = (len(moved), *(1,) * (view.ndim - 2), -1)
                mean, own = (np.moveaxis(values, 1, -1) for values in (mean, own))
                view[...] = moved.reshape(shape) * mean + probabilities.reshape(shape) * own
            return found

        return respond

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each row, and each gated variable given its categories."""
        logits = self.view(natural, StatisticKey(self.gate.name, "x")).copy()
        conditionals = self._conditionals(natural)
        for distribution in conditionals.values():
            logits += distribution.log_partition.reshape(*logits.shape, -1).sum(axis=-1)
        softmax_inplace(logits)
        probabilities = np.ascontiguousarray(logits.T)
        found: dict[Variable, Any] = {self.gate: families.Categorical(probabilities)}
        for variable in self.variables[1:]:
            arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
            by_row = variable.family.from_natural(tuple(map(row_major, arrays)))
            found[variable] = Switched(probabilities, by_row)
        return found
