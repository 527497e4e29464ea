"""The objective: all terms of the expected log joint and all entropies, each computed once for a state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ...language import Variable
from ...numerics.cached import cached_property
from ...numerics.spread import sum_of_sizes
from ..compiled.global_update import values_of
from ..local.statistics import Summary
from .problem import Factors, Problem

_EPS = float(np.finfo(float).eps)

_ROUNDED = 16.0
"""Times that the largest product of a sum is rounded, about."""

ZEROS_BY_ROUNDING = 1e-9
"""Zeros that a row meets by rounding alone."""


_LARGE = 1e4
"""Nats, and ratio of a term to the sum, from which on digits are lost that matter."""

_HUGE = 1e10
"""Nats from which on the rounding of a term matters, however large the sum is."""


class _Told(NamedTuple):
    """What an objective consists of.

    Attributes
    ----------
    values
        Of each term. Floats: for few numbers, arrays take longer to index than to add up.
    own
        Entropy of each factor.
    diverging
        Variables whose own terms are told as a divergence, and the size of these terms.
    """

    values: list[float]
    own: dict[str, float]
    diverging: dict[Variable, float]


class Objective:
    """The objective of factors and sums over rows, term by term: a value that is computed when it is first used.

    Parameters
    ----------
    problem
        Whose terms they are.
    q
        Global factors.
    arrays
        Their expected statistics, and sums over the rows; not to be changed any more.
    summary
        Of the pass over the rows that the sums are of.
    is_of_look
        Whether that was made with these global factors.
    """

    def __init__(
        self,
        problem: Problem,
        q: Factors,
        arrays: Mapping[Hashable, Array],
        summary: Summary,
        *,
        is_of_look: bool = True,
    ) -> None:
        self.problem, self.q, self.arrays = problem, q, arrays
        self._summary, self._is_of_look = summary, is_of_look

    @classmethod
    def of(
        cls,
        problem: Problem,
        values: Array,
        own: Mapping[str, float],
        value: float | None = None,
        q: Factors | None = None,
        arrays: Mapping[Hashable, Array] | None = None,
    ) -> Objective:
        """Return the objective of these values of the terms and entropies.

        Parameters
        ----------
        value
            The objective itself; their sum if it is not known.
        q, arrays
            The factors, and what follows from them, if they are known.
        """
        if values.shape != (len(problem.compiled.terms),):
            raise ValueError(f"{values.shape} values of {len(problem.compiled.terms)} terms")
        of_locals = {factor.key: own[factor.key] for factor in problem.factors if factor.key in own}
        objective = cls(problem, q or {}, arrays or {}, Summary({}, of_locals), is_of_look=False)
        # which of them are divergences is not told: terms that are 0 have no size
        told = _Told(values.tolist(), dict(own), {})
        entropies = {factor: told.own[factor.name] for factor in problem.order if factor.name in told.own}
        whole = _total(told) if value is None else value
        vars(objective).update(_told=told, _entropies=entropies, value=whole)
        return objective

    def updated(self, q: Factors, arrays: Mapping[Hashable, Array]) -> Objective:
        """Return the objective of other global factors, the sums over rows and the local factors as they are."""
        return Objective(self.problem, q, arrays, self._summary, is_of_look=False)

    def of_problem(self, problem: Problem) -> Objective:
        """Return the objective of the same factors and sums in a problem with the same terms that updates others."""
        return Objective(problem, self.q, self.arrays, self._summary, is_of_look=self._is_of_look)

    def after_look(self, arrays: Mapping[Hashable, Array], summary: Summary) -> Objective:
        """Return the objective of the same global factors after a pass over the rows with them."""
        of_others = self._summary.entropies.keys() - summary.entropies.keys()
        if of_others:
            entropies = {key: self._summary.entropies[key] for key in of_others}
            summary = Summary(summary.parts, {**entropies, **summary.entropies})
        return Objective(self.problem, self.q, arrays, summary)

    @cached_property
    @np.errstate(all="ignore")
    def value(self) -> float:
        """Sum of all terms and entropies; minus infinity where factors meet a known probability of zero."""
        problem, arrays, summary = self.problem, self.arrays, self._summary
        if problem.compiled.zero_terms and impossible_variable(problem, arrays):
            return -np.inf
        if problem.untold_terms:
            return _total(self._told)
        terms, kinds = problem.summed_terms, problem.kinds
        total = terms.beside(arrays)
        entropies: dict[Variable, float] = {}
        for variable, factor in self.q.items():
            entropy = entropies[variable] = kinds[variable].entropy(factor)
            if variable in terms.own:
                known, linear = terms.own[variable]
                values = [known, *values_of(linear, arrays)]
                together = sum(values) + entropy
                # small terms lose no digits that matter
                if not max(map(abs, values)) < _LARGE or together != together:
                    lost = _loses_digits(values, entropy)
                    divergence = self._divergence(variable, factor) if lost else None
                    together = together if divergence is None else -divergence
                total += together
            else:
                total += entropy
        vars(self)["_entropies"] = entropies
        whole = summary.log_partition if self._is_of_look else {}
        for key, entropy in summary.entropies.items():
            # with the terms of the rows an entropy is a log-partition
            total += whole.get(key, entropy)
        for key, own in terms.in_products.items():
            if key not in whole:
                total += sum([value(arrays) for value in own])
        return total

    @property
    def entropy(self) -> float:
        """The sum of the entropies of the global factors, about the measures of their families."""
        return sum(self._entropies.values())

    @cached_property
    def _entropies(self) -> dict[Variable, float]:
        """Entropy of each global factor, about the measure of its family."""
        kinds = self.problem.kinds
        return {variable: kinds[variable].entropy(factor) for variable, factor in self.q.items()}

    @cached_property
    @np.errstate(all="ignore")
    def _told(self) -> _Told:
        problem = self.problem
        values = [value(self.arrays) for value in problem.values_of_terms]
        for i in problem.untold_terms:
            values[i] = 0.0
        own, diverging = self._of_globals(values)
        own.update(self._summary.entropies)
        return _Told(values, own, diverging)

    def _of_globals(self, values: list[float]) -> tuple[dict[str, float], dict[Variable, float]]:
        """Return the entropy of each global factor, and the size of its own terms that are kept as divergences.

        Where own terms and an entropy cancel, the divergence from the prior takes the place of both.
        """
        problem = self.problem
        own: dict[str, float] = {}
        diverging: dict[Variable, float] = {}
        for variable, entropy in self._entropies.items():
            own[variable.name] = entropy
            terms = problem.own_terms.get(variable)
            if terms is None:
                continue
            told = values[terms.where]
            if not _loses_digits(told, entropy):
                continue
            divergence = self._divergence(variable, self.q[variable])
            if divergence is not None:
                diverging[variable] = sum(map(abs, told))
                values[terms.where], own[variable.name] = [0.0] * len(told), -divergence
        return own, diverging

    def _divergence(self, variable: Variable, factor: Any) -> float | None:
        """Return the divergence of a factor from its prior; None of points, and where there is no such prior."""
        return self.problem.own_terms[variable].divergence(factor) if factor.learnt is factor else None

    @property
    def values(self) -> Array:
        """Value of each term."""
        return np.array(self._told.values)

    @property
    def own(self) -> Mapping[str, float]:
        """Entropy of each factor, by its variable, or the first of them; not to be changed."""
        return self._told.own

    @property
    def scale(self) -> float:
        """Size of the summands, with which rounding errors are compared."""
        told = self._told
        terms = sum(map(abs, told.values)) + sum(told.diverging.values())
        return terms + sum(map(abs, told.own.values()))

    def is_small(self, most: float) -> bool:
        """Whether the absolute values of all summands add up to less than some nats; may be False even then."""
        sizes = {
            key: sum_of_sizes(array) if array.ndim else abs(array.item())
            for key, array in self.arrays.items()
        }
        total = sum(map(abs, (*self._entropies.values(), *self._summary.entropies.values())))
        for term in self.problem.compiled.terms:
            total += term.contraction.largest_magnitude(sizes)
        return total < most

    def largest(self) -> tuple[str, float]:
        """Return the variable with the term of largest size, and that size in nats.

        The size of a term is that of the products which it is the sum of, however these cancel.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = [
                (term.contraction.magnitude(self.arrays) if value else 0.0, term.owner.name)
                for term, value in zip(self.problem.compiled.terms, self._told.values, strict=True)
            ]
        names = {factor.key: factor.name for factor in self.problem.factors}
        sizes += [(abs(value), names.get(key, key)) for key, value in self._told.own.items()]
        size, name = max(sizes, default=(0.0, ""))
        return (name, size) if np.isfinite([size for size, _ in sizes]).all() else ("", 0.0)

    def rounding(self) -> float:
        """Return how many nats rounding may be: products that cancel, as of collinear columns, leave few digits."""
        return _ROUNDED * _EPS * self.largest()[1]

    def by_factor(self) -> dict[str, float]:
        """Return the objective by factor: expected log density of its variables plus its entropy."""
        problem = self.problem
        names, owners = problem.fact("names of factors", lambda: _names_of_factors(problem))
        totals = dict.fromkeys(owners, 0.0)
        for name, value in zip(owners, self._told.values, strict=True):
            totals[name] += value
        for key, value in self._told.own.items():
            name = names.get(key, key)
            totals[name] = totals.get(name, 0.0) + value
        return totals


def _names_of_factors(problem: Problem) -> tuple[dict[str, str], list[str]]:
    """Return the name of the local factor of each variable that has one, and that of the factor of each term."""
    names: dict[str, str] = {}
    for factor in problem.factors:
        names.update(dict.fromkeys((variable.name for variable in factor.variables), factor.name))
    return names, [names.get(term.owner.name, term.owner.name) for term in problem.compiled.terms]


def _loses_digits(values: Sequence[float], entropy: float) -> bool:
    """Whether the sum of own terms and an entropy has lost digits that matter.

    Parameters
    ----------
    values
        Of the terms.
    entropy
        Of the factor, about the measure of its family.
    """
    largest, total = max(map(abs, values)), sum(values)
    if largest < _LARGE and total == total:
        return False
    return not (largest < _HUGE and largest < _LARGE * max(1.0, abs(total + entropy)))


def _total(told: _Told) -> float:
    return sum(told.values) + sum(told.own.values())


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
