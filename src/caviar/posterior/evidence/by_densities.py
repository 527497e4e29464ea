r"""The log density of rows and globals from the densities of the statement, whatever the rows hide behind a link.

.. math:: \log p(x, \theta) = \log p(\theta)
    + \sum_n \log \int p(u_n \mid \theta) \prod_j p(x_{nj} \mid u_n, \theta)\, du_n

An answer behind a link has a density of its own given its predictor, without the number that makes its updates
conjugate. One number of a row besides, u, is integrated out on a grid about its factor: of a smooth density that falls
to nothing at both ends the sum over equal steps is exact to many digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...engine.ascent.problem import Problem
from ...engine.evaluation.at_points import why_inexact
from ...engine.evaluation.given_by_passes import why_apart
from ...language import Normal, Plate, Variable
from .log_joint import LogJoint

_MOST_NUMBERS = 2e5
"""Densities that are held at a time: those that a cache holds."""

_OF_ALL_DRAWS, _FEWEST_DRAWS = 1e7, 200
"""Densities of all draws that are few for any fit, less than a second; and draws below which they tell too little."""

MOST_ROWS = int(_OF_ALL_DRAWS / (2.0 * _FEWEST_DRAWS))
"""Rows beyond which even the fewest draws cost more."""

_REACH, _STEP = 10.0, 0.6
"""Of the grid, in standard deviations of the factor: mean field is too narrow where a number depends on another one."""


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
    hidden
        The number of each row that is integrated out, where it is not known; None where links alone hide something.
    n_rows
        How many there are.
    grid
        Its values, (Q, rows): all the same where it is known.
    weights
        How often each row counts, (rows,); None: once.
    """

    model: Any
    known: Mapping[str, AnyArray]
    counted: Mapping[str, AnyArray]
    rows: Plate
    n_rows: int
    hidden: Variable | None = None
    grid: Array = field(default_factory=lambda: np.zeros((1, 0)))
    weights: Array | None = None

    @property
    def size(self) -> int:
        """Densities of a draw, about."""
        of_leaves = sum(
            np.size(self.known[leaf.name]) for leaf in self.model.leaves if leaf is not self.hidden
        )
        return max(1, len(self.grid) * (of_leaves + self.n_rows * (self.hidden is not None)))

    @property
    def _steps(self) -> Array:
        """From one value of the grid to the next, (rows,); 0 where the number is known, or there is none."""
        return self.grid[1] - self.grid[0] if len(self.grid) > 1 else np.zeros(self.n_rows)

    def n_draws_of_little_cost(self, most: float) -> int:
        """Return how many draws cost very little, beside as many pilot draws; 0 where those tell too little."""
        n = int(min(most, _OF_ALL_DRAWS / (2.0 * self.size)))
        return n if n >= _FEWEST_DRAWS else 0

    def __call__(self, values: Mapping[str, Any]) -> Array:
        """Return the log density of each of n draws of all globals, (n,)."""
        n = min(len(_first(own)) for own in values.values())
        most = int(max(1, min(n, _MOST_NUMBERS // self.size)))
        parts = [_cut(values, start, start + most) for start in range(0, n, most)]
        density: dict[int, LogJoint] = {}
        found = []
        for part in parts:
            size = min(len(_first(own)) for own in part.values())
            if size not in density:
                density[size] = self._density(size * len(self.grid))
            found.append(self._of(density[size], part, size))
        return np.concatenate(found)

    def _density(self, n: int) -> LogJoint:
        brought = [name for name, own in self.model.variables.items() if own.is_brought]
        return LogJoint(self.model.nodes, self.known, n, left_out=brought)

    def _of(self, density: LogJoint, values: Mapping[str, Any], n: int) -> Array:
        n_points, total = len(self.grid), np.zeros(n)
        if self.hidden is not None:
            values = {name: _repeated(own, n_points) for name, own in values.items()}
            values[self.hidden.name] = np.tile(self.grid, (n, 1))
        of_rows: Array | float = 0.0
        for name, found in density.each(values).items():
            variable = self.model.variables[name]
            if self.rows not in variable.plates:
                total += self._counting(found, name)[::n_points].reshape(n, -1).sum(axis=1)
                continue
            by_row = np.moveaxis(found, 1 + variable.plates.index(self.rows), 1)
            of_rows = of_rows + by_row.reshape(n * n_points, self.n_rows, -1).sum(axis=2)
        by_point = np.asarray(of_rows).reshape(n, n_points, -1)
        each, is_hidden = by_point[:, 0], self._steps > 0
        if is_hidden.any():
            inside = np.logaddexp.reduce(by_point[:, :, is_hidden], axis=1)
            each[:, is_hidden] = inside + np.log(self._steps[is_hidden])
        if self.weights is not None:
            # what does not count may have no density
            each = np.where(self.weights > 0, each, 0.0) * self.weights
        return total + each.sum(axis=1)

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

    Densities do if rows hide at most one Normal besides what links bring along, in tables that fit into memory. Passes
    are as exact, and draws go through them together, if local variables meet the rows in matrix products.

    Parameters
    ----------
    posterior, data, sample_weight
        A fit and its data.
    problem
        Of the fit, or that in which every global is a point mass.
    counted
        Which repetitions of globals count.
    is_asked
        Whether it may cost much.
    """
    model = posterior.model
    hidden = [own for factor in problem.factors for own in factor.variables if not own.is_brought]
    rows = _rows_of(posterior, problem)
    if rows is None or len(hidden) > 1 or not (why_apart(problem) or why_inexact(problem)):
        return None
    values = posterior._evaluator.named(data).values
    if not isinstance(values, Mapping):
        return None
    # a number that is known in some rows has its values in the grid
    names = [name for name in values if not hidden or name != hidden[0].name]
    values = {
        name: np.asarray(own) if isinstance(own := values[name], list | tuple) else own for name in names
    }
    if not all(map(_is_complete, values.values())):
        return None
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    found = ByDensities(model, values, counted, rows, problem.bound.n_rows, weights=weights)
    if not hidden:
        return found
    name = hidden[0].name
    variable, points = model.variables[name], np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    if not isinstance(variable, Normal) or variable.plates != (rows,):
        return None
    if not is_asked and not replace(found, hidden=variable, grid=points[:, None]).n_draws_of_little_cost(
        np.inf
    ):
        return None
    factor = posterior.local(data)[name]
    grid = np.asarray(factor.mean) + points[:, None] * np.sqrt(factor.variance)
    return replace(found, hidden=variable, grid=grid)


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


def _repeated(value: Any, n: int) -> Any:
    return _each(value, lambda part: np.repeat(part, n, axis=0))
