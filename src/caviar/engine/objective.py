"""The objective: every term of the expected log joint, and every entropy, each kept so that one update touches few."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ..language import Variable
from .impossible import impossible_variable
from .plan import Plan
from .sums import Summary

__all__ = ["Objective"]


class Objective:
    """The objective, held term by term, so that an update recomputes only what it touches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._terms = plan.compiled.terms
        self._values = np.zeros(len(self._terms))
        self._own: dict[Hashable, float] = {}
        self._zeros = plan.compiled.zero_terms
        self._is_impossible = False
        self.value = 0.0
        """Sum of all terms and entropies; minus infinity where factors meet a known probability of zero."""
        self._with_parts = [
            i
            for i, t in enumerate(self._terms)
            if plan.factors and any(not _is_global(key, plan) for key in t.contraction.keys)
        ]

    @classmethod
    def of(cls, plan: Plan, values: Array, own: Mapping[Hashable, float]) -> Objective:
        """Return the objective of these values of the terms and entropies."""
        objective = cls(plan)
        if values.shape != objective._values.shape:
            raise ValueError(f"{values.shape} values of {len(objective._terms)} terms")
        objective._values, objective._own = values, dict(own)
        objective._summed()
        return objective

    @property
    def values(self) -> Array:
        """Value of each term; not to be changed."""
        return self._values

    @property
    def own(self) -> Mapping[Hashable, float]:
        """Entropy of each factor; not to be changed."""
        return self._own

    def copy(self) -> Objective:
        """Return a copy whose changes leave this one alone."""
        other = Objective.__new__(Objective)
        other.plan, other._terms, other._with_parts = self.plan, self._terms, self._with_parts
        other._values, other._own, other.value = self._values.copy(), dict(self._own), self.value
        other._zeros, other._is_impossible = self._zeros, self._is_impossible
        return other

    def set_rows(self, arrays: Mapping[Hashable, Array], summary: Summary) -> float:
        """Return the objective after a pass over the rows."""
        for i in self._with_parts:
            self._values[i] = self._terms[i].contraction.value(arrays)
        self._own |= summary.entropies
        return self._summed(arrays)

    def set_factor(self, variable: Variable, factor: Any, arrays: Mapping[Hashable, Array]) -> float:
        """Return the objective after the update of a global factor."""
        for i in self.plan.updates[variable].terms:
            self._values[i] = self._terms[i].contraction.value(arrays)
        self._own[variable] = self.plan.own_entropy(variable, factor)
        return self._summed(arrays)

    def set_all(self, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array], summary: Summary) -> float:
        """Return the objective, everything computed anew."""
        for i, term in enumerate(self._terms):
            self._values[i] = term.contraction.value(arrays)
        self._own = {variable: self.plan.own_entropy(variable, factor) for variable, factor in q.items()}
        self._own |= summary.entropies
        return self._summed(arrays)

    def _summed(self, arrays: Mapping[Hashable, Array] | None = None) -> float:
        if self._zeros and arrays is not None:
            self._is_impossible = bool(impossible_variable(self.plan, arrays))
        if self._is_impossible:
            self.value = -np.inf
            return self.value
        # of a factor at the edge of its domain it is infinite or NaN: the loop's to judge, not a warning
        with np.errstate(over="ignore", invalid="ignore"):
            self.value = float(np.add.reduce(self._values)) + sum(self._own.values())
        return self.value

    @property
    def scale(self) -> float:
        """Size of what is summed, against which rounding is judged."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.abs(self._values).sum()) + sum(abs(v) for v in self._own.values())

    def largest(self) -> tuple[str, float]:
        """Return the variable with the term of largest size, and that size in nats."""
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.abs(self._values)
        if not sizes.size or not np.isfinite(sizes).all():
            return "", 0.0
        number = int(np.argmax(sizes))
        return self._terms[number].owner.name, float(sizes[number])

    def by_factor(self) -> dict[str, float]:
        """Return the objective by factor: expected log density of its variables plus its entropy."""
        names: dict[Hashable, str] = {}
        totals: dict[str, float] = {}
        for factor in self.plan.factors:
            names.update(dict.fromkeys(factor.variables, factor.name))
        for term, value in zip(self._terms, self._values, strict=True):
            name = names.get(term.owner, term.owner.name)
            totals[name] = totals.get(name, 0.0) + float(value)
        for key, value in self._own.items():
            name = key.name  # type: ignore[attr-defined]
            totals[name] = totals.get(name, 0.0) + value
        return totals


def _is_global(key: Hashable, plan: Plan) -> bool:
    """Whether a key is that of a global variable's statistic, which no pass over the rows changes."""
    return isinstance(key, tuple) and key[0] in plan.updates
