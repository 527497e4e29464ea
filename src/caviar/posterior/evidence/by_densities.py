r"""The log density of rows and globals from the densities of the statement, whatever the rows hide behind a link.

.. math:: \log p(x, \theta) = \log p(\theta)
    + \sum_n \log \int p(u_n \mid \theta) \prod_j p(x_{nj} \mid u_n, \theta)\, du_n

An answer behind a link has a density of its own given its predictor, without the number that makes its updates
conjugate. One number of a row besides, u, is integrated out on a grid about the maximum of its density given each draw,
which Newton's steps from its factor lead to: globals that are far from their means move it by many standard deviations
of the factor. The grid is :math:`u = c + s \sinh t` with equal steps of t, close in the middle and wide at its ends. Of
a smooth density that falls to nothing at both ends the sum over equal steps is exact to many digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...engine.ascent.problem import Problem
from ...engine.evaluation.at_points import why_inexact
from ...engine.evaluation.given_by_passes import why_apart
from ...language import Normal, Plate, Variable
from .summed_labels import LabelSet, LogMarginal, label_sets, n_values_of

_MOST_NUMBERS = 2e5
"""Densities that are held at a time: those that a cache holds."""

_OF_ALL_DRAWS, _FEWEST_DRAWS = 1e7, 200
"""Densities of all draws that are few for any fit, less than a second; and draws below which they tell too little."""

MOST_ROWS = int(_OF_ALL_DRAWS / (2.0 * _FEWEST_DRAWS))
"""Rows beyond which even the fewest draws cost more."""

_LIKE_A_PASS = 3e4
"""Densities of a draw that take about as long as a pass over the rows: of more rows passes are faster, where exact."""

_STEP = 0.25
_PLACES = np.arange(-4.0, 4.0 + _STEP / 2, _STEP)
_GRID, _LOG_STEPS = np.sinh(_PLACES), np.log(np.cosh(_PLACES) * _STEP)
"""Grid about a maximum, in standard deviations as the curvature there tells them, to 27; and the logs of its steps."""

_THREE = np.array([-1.0, 0.0, 1.0])
"""Points of which a parabola tells the maximum of a Normal density exactly, and that of others step by step."""

_MOST_STEPS, _FEW_STEPS = 30, 3
"""Steps to a maximum at most, and as a rule."""

_FURTHEST, _WIDTH = 1e3, 5.0
"""Standard deviations that a step moves at most, and the factor by which it changes these at most, where the density is
no parabola."""

_LOWEST = -1e300
"""Log density in the place of none, of which differences are numbers."""

_NEAR, _SIMILAR = 0.3, 1.3
"""Last step, and the factor of the last change of widths, at which the grid is close enough."""


@dataclass(frozen=True, eq=False)
class ByDensities:
    """The log density of rows and values of the globals, the hidden numbers of the rows integrated out.

    Attributes
    ----------
    model
        What is stated.
    known
        Name -> values of what is observed.
    counted
        Name of a variable -> how often its repetitions count, for those of which not all count once.
    rows
        The plate of the rows.
    n_rows
        How many there are.
    hidden
        The number of each row that is integrated out, where it is not known; None where links alone hide something.
    center, scale
        Mean and standard deviation of its factor, (rows,): where the search of its maximum given a draw begins. The
        latter is 0 where the number is known.
    weights
        How often each row counts, (rows,); None: once.
    labels
        What is summed out of each row. Then no number is hidden besides.
    """

    model: Any
    known: Mapping[str, AnyArray]
    counted: Mapping[str, AnyArray]
    rows: Plate
    n_rows: int
    hidden: Variable | None = None
    center: Array = field(default_factory=lambda: np.zeros(0))
    scale: Array = field(default_factory=lambda: np.ones(0))
    weights: Array | None = None
    labels: tuple[LabelSet, ...] = ()

    @property
    def size(self) -> int:
        """Densities of a draw, about."""
        observed = [leaf.name for leaf in self.model.leaves if leaf is not self.hidden]
        of_leaves = sum(np.size(self.known[name]) for name in observed)
        if self.hidden is None:
            return max(1, of_leaves) * max((own.n_combinations for own in self.labels), default=1)
        return (len(_GRID) + _FEW_STEPS * len(_THREE)) * (of_leaves + self.n_rows)

    def n_draws_of_little_cost(self, most: float) -> int:
        """Return how many draws cost very little, beside the pilot draws; 0 where those tell too little."""
        # of labels there are more pilot draws, whose densities are functions of a link, too
        share = 16.0 if self.labels else 2.0
        n = int(min(most, _OF_ALL_DRAWS / (share * self.size)))
        return n if n >= _FEWEST_DRAWS else 0

    def __call__(self, values: Mapping[str, Any]) -> Array:
        """Return the log density of each of n draws of all globals, (n,)."""
        n = min(len(_first(own)) for own in values.values())
        most = int(max(1, min(n, _MOST_NUMBERS // self.size)))
        parts = [_cut(values, start, start + most) for start in range(0, n, most)]
        densities: dict[int, LogMarginal] = {}
        found = []
        for part in parts:
            size = min(len(_first(own)) for own in part.values())
            found.append(self._of(densities, part, size))
        return np.concatenate(found)

    def _density(self, densities: dict[int, LogMarginal], n: int) -> LogMarginal:
        """Return the log density of n values of all variables, made once."""
        if n not in densities:
            brought = [name for name, own in self.model.variables.items() if own.is_brought]
            labels = [(own, (self.n_rows,)) for own in self.labels]
            densities[n] = LogMarginal(self.model.nodes, self.known, n, labels, left_out=brought)
        return densities[n]

    def _of(self, densities: dict[int, LogMarginal], values: Mapping[str, Any], n: int) -> Array:
        if self.hidden is None:
            total, each = self._at(self._density(densities, n), values, n)
        else:
            center, scale = self._maxima(densities, values, n)
            at = center + scale * _GRID[:, np.newaxis, np.newaxis]
            total, of_rows = self._with_hidden(densities, values, at)
            is_hidden = self.scale > 0
            steps = _LOG_STEPS[:, np.newaxis, np.newaxis] + np.log(np.where(is_hidden, scale, 1.0))
            each = np.where(is_hidden, np.logaddexp.reduce(of_rows + steps, axis=0), of_rows[0])
        if self.weights is not None:
            # what does not count may have no density
            each = np.where(self.weights > 0, each, 0.0) * self.weights
        return total + each.sum(axis=1)

    def _maxima(
        self, densities: dict[int, LogMarginal], values: Mapping[str, Any], n: int
    ) -> tuple[Array, Array]:
        """Return where the hidden numbers are likeliest given each draw, and about how wide their densities are.

        Each step is that to the maximum of the parabola through three points. Both are (n, rows).
        """
        center, scale = (np.tile(own, (n, 1)) for own in (self.center, self.scale))
        for _ in range(_MOST_STEPS):
            _, found = self._with_hidden(
                densities, values, center + scale * _THREE[:, np.newaxis, np.newaxis]
            )
            before, here, after = np.nan_to_num(found, nan=_LOWEST, neginf=_LOWEST)
            slope, curvature = 0.5 * (after - before), 2.0 * here - before - after
            is_peaked = curvature > 0
            safe = np.where(is_peaked, curvature, 1.0)
            move = np.where(is_peaked, slope / safe, np.sign(slope)).clip(-_FURTHEST, _FURTHEST)
            width = np.where(is_peaked, 1.0 / np.sqrt(safe), 1.0).clip(1.0 / _WIDTH, _WIDTH)
            center, scale = center + scale * move, scale * width
            is_near = (np.abs(move) < _NEAR * width) & (np.maximum(width, 1.0 / width) < _SIMILAR)
            if is_near.all():
                break
        return center, scale

    def _with_hidden(
        self, densities: dict[int, LogMarginal], values: Mapping[str, Any], at: Array
    ) -> tuple[Array, Array]:
        """Return the log densities of draws of globals, (n,), and of their rows at values of what these hide.

        The values are (Q, n, rows), as are the densities of the rows.
        """
        n_points, n, _ = at.shape
        values = {name: _each(own, lambda part: _repeated(part, n_points)) for name, own in values.items()}
        assert self.hidden is not None
        values[self.hidden.name] = at.reshape(n_points * n, -1)
        with np.errstate(over="ignore"):
            # far from a maximum
            total, of_rows = self._at(self._density(densities, n_points * n), values, n_points * n)
        return total[:n], of_rows.reshape(at.shape)

    def _at(self, density: LogMarginal, values: Mapping[str, Any], n: int) -> tuple[Array, Array]:
        """Return the log densities of n values of the globals, (n,), and of their rows, (n, rows)."""
        total, of_rows = np.zeros(n), np.zeros((n, self.n_rows))
        for name, found in density.each(values).items():
            variable = self.model.variables[name]
            if self.rows not in variable.plates:
                total += self._counting(found, name).reshape(n, -1).sum(axis=1)
                continue
            by_row = np.moveaxis(found, 1 + variable.plates.index(self.rows), 1)
            of_rows += by_row.reshape(n, self.n_rows, -1).sum(axis=2)
        return total, of_rows

    def _counting(self, density: AnyArray, name: str) -> AnyArray:
        """Return densities, 0 of what does not count, which may have none."""
        marked = self.counted.get(name)
        return density if marked is None else np.where(marked, density, 0.0)


def by_densities(
    posterior: Any,
    data: Any,
    sample_weight: Any,
    problem: Problem,
    counted: Mapping[str, AnyArray],
    *,
    is_asked: bool = True,
) -> ByDensities | None:
    """Return the log density of rows and globals, (n,) of n draws; None where passes tell it, or densities do not.

    Densities do if rows hide labels or at most one Normal, besides what links bring along, in tables that fit into
    memory. Passes are as exact, and draws go through them together, if local variables meet the rows in matrix
    products.

    Parameters
    ----------
    posterior, data, sample_weight
        A fit and its data.
    problem
        Of the fit, or that in which every global is a point mass.
    counted
        Which repetitions of globals count.
    is_asked
        Whether it may cost much. Otherwise, if draws of little cost are too few, only the cost is told: the factors of
        the rows are not found.
    """
    model = posterior.model
    # the variables of a problem may be those of an equal statement
    names = [own.name for factor in problem.factors for own in factor.variables if not own.is_brought]
    hidden = [model.variables[name] for name in names]
    rows = _rows_of(posterior, problem)
    is_exact_by_passes = not why_inexact(problem)
    labels = [own for own in hidden if n_values_of(own)]
    if rows is None or (is_exact_by_passes and not why_apart(problem)):
        return None
    sets = _sets_of(model, labels, rows)
    if sets is None or len(hidden) > max(1, len(labels)):
        return None
    values = posterior._evaluator.named(data).values
    if not isinstance(values, Mapping) or any(own.has_parts and own.name in values for own in model.nodes):
        return None
    # a number that is known in some rows has its values in its factor
    names = [name for name in values if labels or not hidden or name != hidden[0].name]
    values = {
        name: np.asarray(own) if isinstance(own := values[name], list | tuple) else own for name in names
    }
    if not all(map(_is_complete, values.values())):
        return None
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    found = ByDensities(model, values, counted, rows, problem.bound.n_rows, weights=weights, labels=sets)
    if labels or not hidden:
        return None if is_exact_by_passes and found.size > _LIKE_A_PASS else found
    (variable,) = hidden
    if not isinstance(variable, Normal) or variable.plates != (rows,):
        return None
    found = replace(found, hidden=variable)
    if is_exact_by_passes and found.size > _LIKE_A_PASS:
        return None
    if not is_asked and not found.n_draws_of_little_cost(np.inf):
        return found
    factor = posterior.local(data)[variable.name]
    return replace(found, center=np.asarray(factor.mean), scale=np.sqrt(factor.variance))


def _sets_of(model: Any, labels: Sequence[Variable], rows: Plate) -> tuple[LabelSet, ...] | None:
    """Return the sets of hidden labels of the rows; None if they cannot be summed out row by row."""
    variables = [own for own in model.variables.values() if not own.is_brought]
    found = label_sets(variables, [own.name for own in labels])
    is_known = all(own.plates == (rows,) for own in labels) and not any(own.why_not for own in found)
    return found if is_known else None


def _rows_of(posterior: Any, problem: Problem) -> Plate | None:
    """Return the plate of the rows as the model has it; None where rows or variables are more than their densities."""
    variables, rows = list(posterior.model.variables.values()), problem.bound.data_plate
    if rows is None or not problem.factors or problem.chains or posterior._evaluator.prior is not None:
        return None
    if any(own.summed or own.is_point or own.has_zeros for own in variables):
        return None
    plates = [plate for own in posterior.model.nodes for plate in own.plates]
    if any(plate.within is not None for plate in plates):
        return None
    return next((plate for plate in plates if plate.name == rows.name), None)


def _is_complete(values: Any) -> bool:
    """Whether values are an array of numbers of which none is missing."""
    return isinstance(values, np.ndarray) and not (values.dtype.kind == "f" and np.isnan(values).any())


def _first(value: Any) -> AnyArray:
    return value[0] if isinstance(value, tuple) else value


def _each(value: Any, change: Callable[[AnyArray], AnyArray]) -> Any:
    """Return a value changed, or both parts of the value of a joint factor."""
    return type(value)(*map(change, value)) if isinstance(value, tuple) else change(value)


def _cut(values: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    return {name: _each(own, lambda part: part[start:stop]) for name, own in values.items()}


def _repeated(value: AnyArray, n: int) -> AnyArray:
    """Return an array n times along its first axis."""
    return np.tile(value, (n, *[1] * (value.ndim - 1)))
