"""Tables: the values that products explain, with a row for each repetition of one side, a column for each of the other.

What else is added up in a leaf is taken away first. Leaves that share the side of the rows are side by side, each in
units of its spread. Where labels choose the other side for rows with factors of their own, each label has a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from ...._typing import AnyArray, Array
from ....language import Label, Plate, Variable
from .columns import Setting, sampled_values
from .low_rank import low_rank
from .residuals import residuals
from .statement import Product, Side, products_of

_MOST_CELLS = 1_000_000
"""Cells of a table whose missing entries are filled; of a larger one they count as 0."""

_FEWEST = 2
"""Rows and columns of a table, at least: the only component of one column is the column."""

_Values: TypeAlias = Mapping[Variable, tuple[Array, tuple[Plate, ...]]]
"""Values of leaves, NaN where missing, and the plates of their axes."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of residuals.

    Attributes
    ----------
    product
        What explains it; of several leaves that of the first.
    rows
        Which repetition of the given side each row is, (rows,).
    values
        Numbers about 0: an array, or a sparse matrix whose missing entries are 0.
    seen
        Which of them were seen; None if all were, and of a sparse matrix.
    weights
        Of the rows.
    size
        Components that it has at the most.
    """

    product: Product
    rows: AnyArray
    values: Any
    seen: AnyArray | None
    weights: Array
    size: int


@dataclass(frozen=True, eq=False)
class _Entries:
    """Observed values of a leaf: the place of each in the leaf, its row and column, its residual, its weight."""

    product: Product
    places: AnyArray
    rows: AnyArray
    columns: AnyArray
    values: Array
    weights: Array

    def only(self, kept: AnyArray) -> _Entries:
        """Return some of them."""
        taken = {name: own[kept] for name, own in vars(self).items() if name != "product"}
        return replace(self, **taken)


def tables_of(setting: Setting, rng: np.random.Generator) -> dict[Variable, list[Table]]:
    """Return the tables of the products of a model, by the location whose repetitions are their rows.

    Where a leaf has several products, the ones before are taken away from it.

    Parameters
    ----------
    setting
        The model, its sample, and labels where they choose.
    rng
        For what is drawn where tables are large.
    """
    by_given = {
        variable: [own for own in several if _has_table(setting, own)]
        for variable, several in products_of(setting.problem).items()
    }
    leaves = dict.fromkeys(product.leaf for several in by_given.values() for product in several)
    read = {leaf: sampled_values(setting.problem, setting.sample, leaf) for leaf in leaves}
    # what is taken away is not to be taken from the columns of the sample, of which these may be a view
    values = {leaf: (own[0].copy(), own[1]) for leaf, own in read.items() if own is not None}
    found: dict[Variable, list[Table]] = {}
    for variable, several in by_given.items():
        entries = [own for product in several if (own := _entries(setting, product, values)) is not None]
        for block in _blocks(setting, entries):
            table, where = _table(setting, block)
            if table is None:
                continue
            found.setdefault(variable, []).append(table)
            if len(by_given) > 1:
                _take_away(values, block, table, where, rng)
    return found


def _has_table(setting: Setting, product: Product) -> bool:
    """Whether a product is of the rows, or of groups that are known: of two labels each pair has one value."""
    sides = product.given, product.other
    return setting.is_of_rows(product.given.variable) or not any(isinstance(s.index, Label) for s in sides)


def _entries(setting: Setting, product: Product, values: _Values) -> _Entries | None:
    """Return what a product explains of its leaf; None if it needs labels that are not known."""
    if product.leaf not in values:
        return None
    whole, plates = values[product.leaf]
    left = residuals(setting, product.leaf, product.addend, whole, plates[1:])
    rows, columns = (
        repetitions(setting, side, left.shape, plates) for side in (product.given, product.other)
    )
    if rows is None or columns is None:
        return None
    weights = np.broadcast_to(setting.sample.row_weights.reshape(-1, *(1,) * (left.ndim - 1)), left.shape)
    places = np.flatnonzero(~np.isnan(left) & (weights > 0))
    return _Entries(product, places, *(own.ravel()[places] for own in (rows, columns, left, weights)))


def repetitions(
    setting: Setting, side: Side, shape: tuple[int, ...], plates: Sequence[Plate]
) -> AnyArray | None:
    """Return the repetition of a side that belongs to each value of a leaf; None if it is not known."""
    found: AnyArray = np.zeros((1,) * len(shape), dtype=np.int64)
    for plate, size in zip(setting.plates_of(side.variable), setting.sizes_of(side.variable), strict=True):
        if plate is side.along:
            continue
        if plate is side.chosen:
            axis, own = 0, setting.labels_of(side.index)
        else:
            axis, own = (plates.index(plate), np.arange(size)) if plate in plates else (0, None)
        if own is None:
            return None
        found = found * size + own.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return np.broadcast_to(found, shape)


def _blocks(setting: Setting, entries: Sequence[_Entries]) -> Iterator[list[_Entries]]:
    """Yield the entries of each table."""
    labels = None
    for own in entries:
        if labels is None and setting.is_of_rows(own.product.given.variable):
            labels = setting.labels_of(own.product.other.index)
    if labels is None:
        yield list(entries)
        return
    n_each = setting.n_repetitions(entries[0].product.given.variable) // setting.sample.n_rows
    for label in np.unique(labels):
        yield [own.only(labels[own.rows // n_each] == label) for own in entries]


def _table(setting: Setting, entries: Sequence[_Entries]) -> tuple[Table | None, tuple[AnyArray, AnyArray]]:
    """Return a table, None if it has too few rows or columns, and the row and column in it of each entry."""
    if not entries:
        return None, (np.zeros(0), np.zeros(0))
    product = entries[0].product
    scaled = [own.values / _spread(own, entries) for own in entries]
    n_columns = [setting.n_repetitions(own.product.other.variable) for own in entries]
    starts = np.cumsum([0, *n_columns])[:-1]
    columns, column = np.unique(
        np.concatenate([own.columns + start for own, start in zip(entries, starts, strict=True)]),
        return_inverse=True,
    )
    rows, row = np.unique(np.concatenate([own.rows for own in entries]), return_inverse=True)
    if min(len(rows), len(columns)) < _FEWEST:
        return None, (row, column)
    weights, shape = np.concatenate([own.weights for own in entries]), (len(rows), len(columns))
    values, counts = (
        csr_matrix((own, (row, column)), shape=shape) for own in (weights * np.concatenate(scaled), weights)
    )
    values.data /= counts.data
    # rows of the table that are rows of the data have their weights, groups count alike
    is_local = setting.is_of_rows(product.given.variable)
    of_rows = np.bincount(row, weights) / np.bincount(row) if is_local else np.ones(len(rows))
    size = min(product.given.size, *shape)
    if len(rows) * len(columns) > _MOST_CELLS:
        return Table(product, rows, values, None, of_rows, size), (row, column)
    seen = None if counts.nnz == len(rows) * len(columns) else counts.toarray() > 0
    return Table(product, rows, values.toarray(), seen, of_rows, size), (row, column)


def _spread(own: _Entries, several: Sequence[_Entries]) -> float:
    """Return the unit of a leaf: its spread, if there are several leaves."""
    return float(np.std(own.values)) or 1.0 if len(several) > 1 and len(own.values) else 1.0


def _take_away(
    values: _Values,
    entries: Sequence[_Entries],
    table: Table,
    where: tuple[AnyArray, AnyArray],
    rng: np.random.Generator,
) -> None:
    """Take what a product explains away from the values, in place."""
    found = low_rank(table.values, table.seen, table.weights, table.size, "spread", rng)
    row, column = where
    explained = np.einsum("ek,ek->e", found.scores[row], found.loadings[column])
    start = 0
    for own in entries:
        stop = start + len(own.places)
        values[own.product.leaf][0].reshape(-1)[own.places] -= _spread(own, entries) * explained[start:stop]
        start = stop
