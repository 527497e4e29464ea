"""Columns: values of leaves, labels and known numbers of the rows of a sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from ...._typing import AnyArray, Array
from ....language import Data, Node, Plate, Variable
from ...ascent.problem import Problem
from ...design.keys import ColumnKey
from ...rows.subsample import Sample

Labels: TypeAlias = Mapping[Variable, AnyArray]
"""Guessed labels: of the rows of the sample first where they are local."""

_MOST_NUMBERS = 20_000_000
"""Numbers that values may take."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What products are found in.

    Attributes
    ----------
    problem
        The model.
    sample
        Rows in the place of all.
    labels
        Guessed labels, where they choose in a product or beside it.
    """

    problem: Problem
    sample: Sample
    labels: Labels

    def is_of_rows(self, variable: Variable) -> bool:
        """Whether a variable is repeated over the rows."""
        return self.problem.bound.is_local(variable)

    def plates_of(self, node: Node) -> list[Plate]:
        """Return the plates of a node, that of the rows first."""
        return sorted(node.plates, key=lambda plate: plate is not self.problem.bound.data_plate)

    def sizes_of(self, variable: Variable) -> tuple[int, ...]:
        """Return the numbers of repetitions of a variable along its plates, that of the rows first."""
        bound = self.problem.bound
        return tuple(
            self.sample.n_rows if plate is bound.data_plate else bound.sizes[plate]
            for plate in self.plates_of(variable)
        )

    def n_repetitions(self, variable: Variable) -> int:
        """Return the number of repetitions of a variable."""
        return math.prod(self.sizes_of(variable))

    def labels_of(self, index: Any) -> AnyArray | None:
        """Return the labels of the rows, (n,), known or guessed; None where they are neither, or not of the rows."""
        labels = self._known(index) if isinstance(index, Data) else self.labels.get(index)
        if labels is None or np.shape(labels) != (self.sample.n_rows,):
            return None
        return np.asarray(labels, dtype=np.int64)

    def columns_of(self, node: Data) -> Array | None:
        """Return a known number or vector of each row as columns, (n, p); None where there are none."""
        found = self._known(node)
        return None if found is None else np.asarray(found, dtype=np.float64).reshape(self.sample.n_rows, -1)

    def _known(self, node: Data) -> AnyArray | None:
        """Return what each row has of a known array; None where it is sparse, or missing in part."""
        key = ColumnKey(node.name)
        found = self.sample.columns.get(key)
        if found is None or issparse(found) or key.observed in self.sample.columns:
            return None
        return np.asarray(found)


def sampled_values(
    problem: Problem, sample: Sample, leaf: Variable
) -> tuple[Array, tuple[Plate, ...]] | None:
    """Return the observed values of the sample, NaN where missing, and the plates of their leading axes; or None.

    None if there are too many of them to be clustered, so that sparse rows, which are a start's like any others, may be
    filled up.
    """
    bound = problem.bound
    key = ColumnKey(leaf.name)
    rows: Any = sample.columns.get(key)
    if rows is None:
        values = bound.values_of(leaf)
        if (
            bound.data_plate in leaf.plates
            or not isinstance(values, np.ndarray)
            or values.size > _MOST_NUMBERS
        ):
            return None
        return np.array(values, dtype=np.float64), leaf.plates
    if math.prod(rows.shape) > _MOST_NUMBERS:
        return None
    dense = {**sample.columns, key: rows.toarray()} if issparse(rows) else sample.columns
    # labels that occur only together with others have no separate source
    source = problem.compiled.sources.get(leaf)
    values = np.moveaxis(source.values(dense), -1, 0) if source else dense[key].astype(np.float64)
    mask = sample.columns.get(ColumnKey(leaf.name).observed)
    if mask is not None:
        values = np.where(mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim)), values, np.nan)
    assert bound.data_plate is not None
    return values, (bound.data_plate, *(p for p in leaf.plates if p is not bound.data_plate))


def filled(values: Array) -> Array:
    """Return values with the mean over rows where one is missing; 0 where all are."""
    seen = ~np.isnan(values)
    means = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, values, means)


def values_for_sums(setting: Setting, leaf: Variable) -> Array | None:
    """Return the values of a leaf about on the scale of its predictor, (n, d), NaN where missing.

    None where they are not known, or what belongs to them, such as trials, is not.
    """
    found = sampled_values(setting.problem, setting.sample, leaf)
    if found is None:
        return None
    values = found[0].reshape(setting.sample.n_rows, -1)
    beside: dict[str, Array] = {}
    for name in leaf.beside:
        node = leaf.slots[name].node
        if isinstance(node, Data):
            known = setting.columns_of(node)
        else:
            known = setting.problem.bound.values_of(node).reshape(1, -1)
        if known is None or known.shape[1] not in (1, values.shape[1]):
            return None
        beside[name] = known
    return leaf.unlinked(values, beside)
