"""The objective: every term of the expected log joint, and every entropy, each kept so that one update touches few."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Variable
from ..compiled.own_terms import OwnTerms, loses_digits
from ..local.statistics import Summary
from .problem import Problem

_EPS = float(np.finfo(float).eps)

_ROUNDED = 16.0
"""Times that the largest product of a sum is rounded, about."""

_FEW = 16
"""Numbers that take less time one by one than as an array."""

ZEROS_BY_ROUNDING = 1e-9
"""Zeros that a row meets by rounding alone."""


class Objective:
    """The objective, held term by term, so that an update recomputes only what it touches."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._terms = problem.compiled.terms
        # floats: for few numbers, arrays take longer to index than to add up
        self._values = [0.0] * len(self._terms)
        self._own: dict[str, float] = {}
        self._zeros = problem.compiled.zero_terms
        self._is_impossible = False
        self._diverging: dict[Variable, float] = {}
        """Variables whose own terms are told as a divergence, and the size of these terms."""
        self.value = 0.0
        """Sum of all terms and entropies; minus infinity where factors meet a known probability of zero."""

    @classmethod
    def of(cls, problem: Problem, values: Array, own: Mapping[str, float]) -> Objective:
        """Return the objective of these values of the terms and entropies."""
        objective = cls(problem)
        if values.shape != (len(objective._terms),):
            raise ValueError(f"{values.shape} values of {len(objective._terms)} terms")
        objective._values, objective._own = values.tolist(), dict(own)
        # which of them are divergences is not told: constants are looked at again
        objective._diverging = dict.fromkeys(problem.own_terms, 0.0)
        objective._summed()
        return objective

    @property
    def values(self) -> Array:
        """Value of each term."""
        return np.array(self._values)

    @property
    def own(self) -> Mapping[str, float]:
        """Entropy of each factor, by its variable, or the first of them; not to be changed."""
        return self._own

    def copy(self) -> Objective:
        """Return a copy whose changes leave this one alone."""
        other = Objective.__new__(Objective)
        other.problem, other._terms = self.problem, self._terms
        other._values, other._own, other.value = self._values.copy(), dict(self._own), self.value
        other._zeros, other._is_impossible = self._zeros, self._is_impossible
        other._diverging = dict(self._diverging)
        return other

    @np.errstate(all="ignore")
    def set_rows(self, arrays: Mapping[Hashable, Array], summary: Summary) -> float:
        """Return the objective after a pass over the rows."""
        values_of_terms = self.problem.values_of_terms
        for i in self.problem.terms_of_rows:
            self._values[i] = values_of_terms[i](arrays)
        self._own |= summary.entropies
        return self._summed(arrays)

    def set_factor(
        self,
        variable: Variable,
        factor: Any,
        arrays: Mapping[Hashable, Array],
        messages: Sequence[Array],
    ) -> float:
        """Return the objective after the update of a global factor.

        Parameters
        ----------
        messages
            What the terms said to it: a term is its message times the factor's statistic.
        """
        update = self.problem.updates[variable]
        update.tell(self._values, messages, arrays)
        for i in update.others:
            self._values[i] = self.problem.values_of_terms[i](arrays)
        self._own[variable.name] = self.problem.own_entropy(variable, factor)
        own = self.problem.own_terms.get(variable)
        if own is not None:
            self._without_cancellation(own, factor, arrays)
        return self._summed(arrays)

    @np.errstate(all="ignore")
    def set_all(self, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array], summary: Summary) -> float:
        """Return the objective, everything computed anew."""
        self._values = [value(arrays) for value in self.problem.values_of_terms]
        for i in self.problem.untold_terms:
            self._values[i] = 0.0
        self._own = {
            variable.name: self.problem.own_entropy(variable, factor) for variable, factor in q.items()
        }
        for variable, own in self.problem.own_terms.items():
            if variable in q:
                self._without_cancellation(own, q[variable], arrays)
        self._own |= summary.entropies
        return self._summed(arrays)

    def _without_cancellation(self, own: OwnTerms, factor: Any, arrays: Mapping[Hashable, Array]) -> None:
        """Put the divergence of a factor from its prior in the place of its terms and entropy, where they cancel."""
        variable = own.variable
        if variable in self._diverging:
            del self._diverging[variable]
            self._values[own.where] = [value(arrays) for value in self.problem.values_of_terms[own.where]]
        values = self._values[own.where]
        if not loses_digits(values, self._own[variable.name]) or factor.learnt is not factor:
            return
        divergence = own.divergence(factor)
        if divergence is not None:
            self._diverging[variable] = sum(map(abs, values))
            self._values[own.where], self._own[variable.name] = [0.0] * len(values), -divergence

    def _summed(self, arrays: Mapping[Hashable, Array] | None = None) -> float:
        if self._zeros and arrays is not None:
            self._is_impossible = bool(impossible_variable(self.problem, arrays))
        if self._is_impossible:
            self.value = -np.inf
            return self.value
        self.value = sum(self._values) + sum(self._own.values())
        return self.value

    @property
    def scale(self) -> float:
        """Size of what is summed, against which rounding is judged."""
        terms = sum(map(abs, self._values)) + sum(self._diverging.values())
        return terms + sum(map(abs, self._own.values()))

    def is_small(self, arrays: Mapping[Hashable, Array], most: float) -> bool:
        """Whether all that is summed is in all less than so many nats, however it cancels; often enough, if it is."""
        sizes = {key: _sum_of_sizes(array) for key, array in arrays.items()}
        total = sum(map(abs, self._own.values()))
        for term in self._terms:
            total += term.contraction.largest_magnitude(sizes)
        return total < most

    def largest(self, arrays: Mapping[Hashable, Array]) -> tuple[str, float]:
        """Return the variable with the term of largest size, and that size in nats.

        The size of a term is that of the products which it is the sum of, however these cancel.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = [
                (term.contraction.magnitude(arrays) if value else 0.0, term.owner.name)
                for term, value in zip(self._terms, self._values, strict=True)
            ]
        names = {factor.key: factor.name for factor in self.problem.factors}
        sizes += [(abs(value), names.get(key, key)) for key, value in self._own.items()]
        size, name = max(sizes, default=(0.0, ""))
        return (name, size) if np.isfinite([size for size, _ in sizes]).all() else ("", 0.0)

    def rounding(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return how many nats rounding may be: products that cancel, as of collinear columns, leave few digits."""
        return _ROUNDED * _EPS * self.largest(arrays)[1]

    def by_factor(self) -> dict[str, float]:
        """Return the objective by factor: expected log density of its variables plus its entropy."""
        names: dict[str, str] = {}
        totals: dict[str, float] = {}
        for factor in self.problem.factors:
            names.update(dict.fromkeys((variable.name for variable in factor.variables), factor.name))
        for term, value in zip(self._terms, self._values, strict=True):
            name = names.get(term.owner.name, term.owner.name)
            totals[name] = totals.get(name, 0.0) + value
        for key, value in self._own.items():
            name = names.get(key, key)
            totals[name] = totals.get(name, 0.0) + value
        return totals


def _sum_of_sizes(array: Array) -> float:
    """Return the sum of the sizes of numbers; few take less time one by one."""
    return sum(map(abs, array.ravel().tolist())) if array.size <= _FEW else float(np.abs(array).sum())


def impossible_variable(problem: Problem, arrays: Mapping[Any, Array]) -> str:
    """Return the name of a variable in whose density factors meet known probabilities of zero, or nothing.

    Parameters
    ----------
    arrays
        Expected statistics of the globals, and sums over the rows.
    """
    for term in problem.compiled.zero_terms:
        if term.contraction.value(arrays) > ZEROS_BY_ROUNDING * problem.bound.n_rows:
            return term.owner.name
    return ""
