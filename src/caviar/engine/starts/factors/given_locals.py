"""Given local factors: labels, probabilities or values that a user starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...._errors import ModelError, ParameterError
from ...._typing import AnyArray, Array
from ....language import (
    Axis,
    Label,
    NormalGamma,
    NormalWishart,
    Plate,
    Predictor,
    Variable,
)
from ...ascent.problem import Problem, statistics_of
from ...design.keys import ColumnKey, StatisticKey
from ...local.categorical import CategoricalFactor
from ...local.family import FamilyFactor
from ...local.gated import SwitchedFactor
from ...local.known_in_part import KnownInPartFactor
from ...local.label_frequencies import FrequenciesFactor
from ...local.local_factor import LocalFactor
from ...local.statistics import LocalState, Rows
from ...rows.row_map import RowMap


class GivenLocals:
    """Local factors of any block of rows from given values; those that are not given follow from the globals.

    Parameters
    ----------
    problem, q
        The globals, and the problem they are measured by.
    values
        Variable -> labels (N,), probabilities (N, K), or values (N, ...) of all rows, as `checked_values` returns them.
    row_map
        Passes over the rows.
    """

    def __init__(
        self,
        problem: Problem,
        q: Mapping[Variable, Any],
        values: Mapping[Variable, AnyArray],
        row_map: RowMap,
    ) -> None:
        self._problem = problem
        self._row_map = row_map
        self._coefficients = problem.rows.coefficients(statistics_of(problem, q))
        self._values = values
        self.are_all = all(self._is_given(factor) for factor in problem.factors)
        """Whether every local factor has a given value."""

    def __call__(self, rows: Rows) -> LocalState:
        """Return expected statistics (E, B) of every local factor, of those that are not given at their optimum."""
        given: LocalState = {}
        for factor in filter(self._is_given, self._problem.factors):
            own = {v: self._values[v][rows.where] for v in factor.variables if v in self._values}
            given[factor.key] = expected_of(self._problem, factor, own, rows)
        if self.are_all:
            return given
        found = self._row_map.at(self._problem.rows).natural_of(rows, self._coefficients, given)
        for factor in self._problem.factors:
            if factor.key in given:
                continue
            of_labels = {
                label: _one_hot(label, self._values[label][rows.where])
                for label in factor.labels
                if label in self._values
            }
            if of_labels and isinstance(factor, SwitchedFactor):
                factor.infer_given(found[factor.key], of_labels)
            else:
                factor.infer(found[factor.key])
        return {**found, **given}

    def _is_given(self, factor: LocalFactor) -> bool:
        """Whether all labels of a factor have values, or a variable of one without labels."""
        if factor.labels:
            return all(label in self._values for label in factor.labels)
        return any(variable in self._values for variable in factor.variables)


def checked_values(problem: Problem, values: Mapping[Variable, Any], n_rows: int) -> dict[Variable, AnyArray]:
    """Return given values of local variables as arrays of a row each.

    Raises
    ------
    ParameterError
        If values do not fit their variable or the number of rows.
    """
    return {variable: _checked(problem, variable, value, n_rows) for variable, value in values.items()}


def _checked(problem: Problem, variable: Variable, value: Any, n_rows: int) -> AnyArray:
    if isinstance(variable, NormalGamma | NormalWishart):
        raise ParameterError(
            f"{variable.in_words} with a value for each row, takes no init: its factor "
            f"follows from the data and the other factors. Leave it out, and give a value of another variable"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise ParameterError(
            f"init of '{variable.name}' must be an array of numbers, a row each; got {value!r}"
        )
    if len(array) != n_rows:
        raise ParameterError(f"init of '{variable.name}' has {len(array)} rows; the data have {n_rows}")
    if not np.isfinite(array).all():
        raise ParameterError(f"init of '{variable.name}' must be finite")
    plates = [problem.bound.sizes[p] for p in variable.plates if p is not problem.bound.data_plate]
    if isinstance(variable, Label):
        _check_categories(variable, array, (n_rows, *plates))
    else:
        expected = (n_rows, *plates, *(variable.dimension or 1,) * variable.value_rank)
        if array.shape != expected:
            raise ParameterError(f"init of '{variable.name}' must have shape {expected}; got {array.shape}")
    return array


def _check_categories(variable: Variable, array: AnyArray, labels: tuple[int, ...]) -> None:
    if array.shape == labels:
        problem = variable.problem_with(array)
        if problem:
            raise ParameterError(f"init of '{variable.name}' {problem}")
    elif array.shape != (*labels, variable.dimension):
        behind = "".join(f" {size}," for size in labels[1:])
        shapes = f"(N,{behind[:-1]}) for labels or (N,{behind} {variable.dimension}) for probabilities"
        raise ParameterError(f"init of '{variable.name}' must have shape {shapes}; got {array.shape}")
    elif (array < 0).any() or not np.allclose(array.sum(axis=-1), 1, rtol=0, atol=1e-6):
        raise ParameterError(f"init of '{variable.name}': the probabilities of a row must sum to one")


def expected_of(
    problem: Problem, factor: LocalFactor, given: Mapping[Variable, AnyArray], rows: Rows
) -> Array:
    """Return expected statistics (E, B) of a factor from values of its labels, or of its variable."""
    if factor.labels:
        return with_labels(problem, factor, given, rows)
    ((variable, values),) = given.items()
    if not isinstance(factor, FamilyFactor | KnownInPartFactor):
        raise ModelError(f"init of '{variable.name}' is not possible inside the joint factor '{factor.name}'")
    reference = problem.coordinates.of(variable)
    values = values if reference is None else values - reference
    expected = np.zeros((factor.n_rows, len(values)))
    for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
        factor.view(expected, StatisticKey(variable.name, name))[...] = np.moveaxis(statistic, 0, -1)
    return factor.with_known(expected, rows.columns)


def with_labels(
    problem: Problem,
    factor: LocalFactor,
    labels: Mapping[Variable, AnyArray],
    rows: Rows,
    given: Mapping[Variable, Array] | None = None,
    drawn: LocalState | None = None,
) -> Array:
    """Return expected statistics of a factor whose Categoricals are known.

    What they gate has values that are given, (B, ...), or else those of :func:`_seen_below`; labels without values are
    as they were ``drawn``.
    """
    if isinstance(factor, CategoricalFactor):
        (label,) = factor.labels
        states = np.zeros((factor.n_rows, rows.n_rows))
        factor.view(states, StatisticKey(label.name, "x"))[...] = _one_hot(label, labels[label])
        return states
    if isinstance(factor, FrequenciesFactor):
        (label,) = factor.labels
        return factor.given(_one_hot(label, labels[label]), rows.columns)
    assert isinstance(factor, SwitchedFactor)
    expected = np.zeros((factor.n_rows, rows.n_rows))
    table = factor.table(expected)
    table[...] = 1.0
    for label in factor.labels:
        if label in labels:
            own = _one_hot(label, labels[label])
        else:
            assert drawn is not None
            own = factor.view(drawn[factor.key], StatisticKey(label.name, "x"))
        table *= factor.stretched(own, (Axis(label, "k"),))
    factor.write_marginals(expected)
    for variable in factor.switched:
        known = None if given is None else given.get(variable)
        values = _seen_below(problem, variable, rows) if known is None else known
        for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
            view = factor.view(expected, StatisticKey(variable.name, name))
            view[...] = np.moveaxis(statistic, 0, -1) * factor.over(table, view)
    return expected


def _one_hot(label: Variable, values: AnyArray) -> Array:
    """Return labels, or probabilities, rows first, as probabilities of the categories (plates..., K, B)."""
    turned = np.moveaxis(values, 0, -1)
    if values.ndim == len(label.plates):
        turned = turned[..., np.newaxis, :] == np.arange(label.dimension or 0)[:, np.newaxis]
    return np.ascontiguousarray(turned, dtype=np.float64)


def _seen_below(problem: Problem, variable: Variable, rows: Rows) -> Array:
    """Return a value of a gated variable for each row: what its children show that lie about it; one without any.

    The mean of those that were observed, and where none was, that of all rows.
    """
    plates = [plate for plate in variable.plates if plate is not problem.bound.data_plate]
    event = (variable.dimension or 1,) * variable.value_rank
    shape = (rows.n_rows, *(problem.bound.sizes[plate] for plate in plates), *event)
    shown = [
        np.broadcast_to(_by_plates(problem, leaf, plates, rows), shape)
        for leaf in _located_by(problem, variable)
    ]
    if not shown:
        return np.ones(shape)
    values = _mean_of_seen(np.stack(shown), 0)
    seen = ~np.isnan(values)
    each = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    weights = each.reshape(-1, *(1,) * (values.ndim - 1)) * seen
    total = np.sum(weights * np.nan_to_num(values), axis=0)
    middle = np.divide(total, weights.sum(axis=0), out=np.zeros_like(total), where=weights.any(axis=0))
    return np.where(seen, values, middle)


def _located_by(problem: Problem, variable: Variable) -> list[Variable]:
    """Return the observed variables whose mean is this variable, or that record it.

    If there are none, those whose mean contains it.
    """
    leaves = [leaf for leaf in problem.compiled.sources if isinstance(leaf, Variable)]
    direct = [
        leaf
        for leaf in leaves
        if any(
            slot.node is variable and (slot.role.moves or slot.role.is_recorded)
            for slot in leaf.slots.values()
        )
    ]
    return direct or [leaf for leaf in leaves if _is_added_alone(variable, leaf)]


def _is_added_alone(variable: Variable, leaf: Variable) -> bool:
    """Whether a variable is an addend of a sum, times nothing."""
    return any(
        addend.coefficient == 1 and len(addend.operands) == 1 and addend.operands[0] is variable
        for stated in leaf.stated.values()
        if isinstance(stated, Predictor)
        for addend in stated.addends
    )


def _by_plates(problem: Problem, leaf: Variable, plates: Sequence[Plate], rows: Rows) -> Array:
    """Return the mean of a leaf's values for each row and plate, NaN where none was observed.

    Along plates that the leaf lacks, since labels choose from them, all are the same.
    """
    values = np.moveaxis(problem.compiled.sources[leaf].values(rows.columns), -1, 0)
    seen = rows.columns.get(ColumnKey(leaf.name).observed)
    if seen is not None:
        values = np.where(seen.reshape(seen.shape + (1,) * (values.ndim - seen.ndim)), values, np.nan)
    below = [plate for plate in leaf.plates if plate is not problem.bound.data_plate]
    mean = _mean_of_seen(values, tuple(i for i, plate in enumerate(below, 1) if plate not in plates))
    kept = [plate for plate in below if plate in plates]
    order = [1 + kept.index(plate) for plate in plates if plate in kept]
    turned = mean.transpose(0, *order, *range(1 + len(order), mean.ndim))
    return turned[(slice(None), *(slice(None) if plate in kept else None for plate in plates))]


def _mean_of_seen(values: Array, axes: int | tuple[int, ...]) -> Array:
    """Return the mean over axes of the entries that are not NaN; NaN if all are."""
    count = np.sum(~np.isnan(values), axis=axes)
    total = np.nansum(values, axis=axes)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
