r"""The log joint density at many values of the globals at once.

With the globals at points it is a sum of contractions, in which every statistic gets a first axis of the draws, and of
the log-partitions of local factors, whose natural parameters are one stack of matrix products W T. For small data this
takes hardly more than the calls of a single pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import Array
from ...language import Axis, Plate
from ..ascent.problem import Problem, statistics_of
from ..ascent.state import begin
from ..compiled.global_update import in_products
from ..design.backend import Workspace
from ..design.contraction import Contraction
from ..design.keys import StatisticKey, SumKey
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients
from ..rows.recentring import TOLERATED_LOSS
from ..rows.row_map import RowMap
from ..rows.tasks import blocks_of, rows_at
from ..rows.terms.products import layouts_of
from ..rows.terms.row_term import BlockWork
from .at_points import log_joint_at, points_of
from .given_by_passes import why_apart

_DRAWS = Axis(Plate("draws"))
"""The first axis of the statistics of several draws."""

_MOST_NUMBERS = 4e6
"""Natural parameters of local factors, or numbers of an operand, that are held for several draws together."""

Values = Callable[[Mapping[Hashable, Array]], Any]
"""Returns a number for each draw, or one for all."""


def log_joints(
    problem: Problem, values: Mapping[str, Any], row_map: RowMap, most_apart: float = np.inf
) -> Array:
    """Return log p(x, globals) of n draws in nats, the local variables integrated out, (n,).

    Parameters
    ----------
    problem
        In which every global is a point mass.
    values
        Name of each global -> its n values, (n, plates..., event...); a pair (mean, precision) of a joint factor.
    most_apart
        How many draws may be evaluated one after another, each in a pass over the rows.

    Raises
    ------
    ModelError
        If they would be more: draws of some models cannot be evaluated together, and others would lose digits.
    """
    points = {own.name: own.best_given(values) for own in problem.order if own.is_brought}
    values = {**values, **{name: own for name, own in points.items() if own is not None}}
    n = min((len(_first(own)) for own in values.values()), default=0)
    together = n > 1 and why_apart(problem) == ""
    found = np.full(n, np.nan)
    if together:
        every = _Together(problem, _cut(values, 0), row_map)
        if every.is_able:
            for start in range(0, n, every.most):
                own = slice(start, start + every.most)
                found[own] = every.at(_cut(values, own))
    apart = np.flatnonzero(np.isnan(found))
    if len(apart) > most_apart:
        raise ModelError(f"{len(apart):,} draws would be evaluated one after another")
    for number in apart:
        found[number] = log_joint_at(problem, _cut(values, int(number)), row_map)
    return found


class _Together:
    """Many draws of a problem as arrays with a first axis.

    Parameters
    ----------
    values
        Of one draw: what depends on no draw is taken from its state.
    """

    def __init__(self, problem: Problem, values: Mapping[str, Any], row_map: RowMap) -> None:
        state = begin(problem, points_of(problem, values), row_map)
        self._problem = problem = state.problem
        self.is_able = why_apart(problem) == ""
        self._row_map = state.rows
        self._fixed = {key: own for key, own in state.arrays.items() if isinstance(key, SumKey)}
        inside = {number for own in in_products(problem.compiled).values() for number in own}
        terms = [own.contraction for number, own in enumerate(problem.compiled.terms) if number not in inside]
        terms += [own for variable in problem.order for own in problem.base_of(variable)]
        self._values = [_value_of(own) for own in terms]
        self._messages: list[tuple[SumKey, Values]] = []
        for number in sorted(inside):
            term = problem.compiled.terms[number].contraction
            for place, key in enumerate(term.keys):
                if isinstance(key, SumKey) and key.local:
                    self._messages.append((key, _with_draws(term).derivative(place, keep=_DRAWS)))
        self._layouts = layouts_of(
            problem.compiled.tables, problem.compiled.parts.values(), problem.compiled.facts
        )
        largest = max((_numbers_of(own) for own in terms), default=1.0)
        rows = max((own.n_rows for own in problem.factors), default=1) * problem.rows.block_rows
        self.most = max(1, int(_MOST_NUMBERS / max(largest, min(rows, problem.bound.n_rows * 64.0), 1.0)))

    def at(self, values: Mapping[str, Any]) -> Array:
        """Return the log joint density of some draws, (n,); NaN of those that lose digits here."""
        problem = self._problem
        arrays: Arrays = {**self._fixed, **statistics_of(problem, points_of(problem, values))}
        n = len(_first(next(iter(values.values()))))
        total = np.zeros(n)
        for value in self._values:
            total += value(arrays)
        for factor in problem.factors:
            total += self._log_partitions(factor, arrays, n)
        return total

    def _log_partitions(self, factor: LocalFactor, arrays: Arrays, n: int) -> Array:
        """Return the log-partitions of a local factor, summed over the rows, (n,)."""
        layout = self._layouts[factor.key]
        coefficients: Arrays = {}
        for key, message in self._messages:
            own = message(arrays)
            coefficients[key] = coefficients[key] + own if key in coefficients else own
        matrices = layout.packed_each(coefficients, n)
        total, largest, scratch = np.zeros(n), np.zeros(layout.table.n_rows), Workspace()
        for bounds in blocks_of(self._problem.rows, self._row_map.source):
            rows = rows_at(self._row_map.source, bounds)
            if not rows.n_rows:
                continue
            features = BlockWork(rows, Coefficients({}, {}), scratch, {}).features(layout.table)
            largest = np.maximum(largest, np.abs(features).max(axis=1))
            natural = (matrices @ features).swapaxes(0, 1).reshape(factor.n_rows, -1)
            gains = factor.infer(natural).log_partition
            gains = np.broadcast_to(gains, (*gains.shape[:-1], n * rows.n_rows))
            gains = gains.reshape(*gains.shape[:-1], n, rows.n_rows)
            seen = factor.seen(rows.columns)
            if seen is not None:
                gains = np.where(seen[..., None, :], gains, 0.0)
            gains = gains.reshape(-1, n, rows.n_rows).sum(axis=0)
            total += gains.sum(axis=1) if rows.weights is None else gains @ rows.weights
        if self._problem.recentrings:
            losses = np.finfo(float).eps * (np.abs(matrices) @ largest).max(axis=1)
            total[losses > TOLERATED_LOSS] = np.nan
        return total


def _with_draws(contraction: Contraction) -> Contraction:
    """Return a contraction in which every statistic of a global has the axis of the draws first."""
    for place, key in enumerate(contraction.keys):
        if isinstance(key, StatisticKey):
            contraction = contraction.replaced(place, key, _DRAWS)
    return contraction


def _value_of(contraction: Contraction) -> Values:
    """Return what returns the value of a contraction for each draw, or a number where it is the same for all."""
    return _with_draws(contraction).kept_along(_DRAWS) or contraction.value


def _numbers_of(contraction: Contraction) -> float:
    """Return how many numbers the largest operand has, those that are looked up by label spread over all labels."""
    sizes = [math.prod(map(contraction.size, own.axes)) for own in contraction.formula.looked_up]
    return float(max(sizes, default=1))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def _cut(values: Mapping[str, Any], which: int | slice) -> dict[str, Any]:
    return {
        name: type(own)(*(part[which] for part in own)) if isinstance(own, tuple) else own[which]
        for name, own in values.items()
    }
