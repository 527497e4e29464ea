"""Tables by group: from a list, a mapping, or one table with a column of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray
from ...data.frames import frame_of
from ...names import Placed
from ...numerics.cached import cached_property
from .kinds import ManyStatements, Table

_SPREAD = 1.25
"""Rows of the largest group of a batch, in those of the smallest."""

_FEWEST = 100
"""Groups of a part of a batch, at least, where there are so many."""

_NUMBERS = 2**21
"""Numbers of the data of a part, at most about."""

_PARTS = 4
"""Parts of a batch at least, for as many threads: each more costs its own calls, and less new memory."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The data of groups.

    Attributes
    ----------
    keys
        What each group is called.
    tables
        Data of each, arrays by name.
    """

    keys: tuple[Any, ...]
    tables: Sequence[Table]

    @cached_property
    def counts(self) -> AnyArray:
        """Number of rows of each group, shape (G,)."""
        return np.array([len(next(iter(table.values()))) for table in self.tables], dtype=np.intp)

    def of(self, groups: AnyArray) -> Tables:
        """Return the data of some groups alone."""
        if len(groups) == len(self.keys):
            return self
        return Tables(tuple(self.keys[own] for own in groups), [self.tables[own] for own in groups])

    def stacked(self, groups: AnyArray) -> dict[str, AnyArray]:
        """Return the data of some groups along a first axis, (G, N, ...); rows that a group lacks are 0."""
        most = int(self.counts[groups].max())
        found = {}
        for name, first in self.tables[groups[0]].items():
            # tables are made when they are asked for: all at once would start the garbage collector
            values = [self.tables[number][name] for number in groups]
            if self.counts[groups].min() == most:
                found[name] = np.concatenate(values).reshape(len(values), *first.shape)
                continue
            kind = np.result_type(*{own.dtype for own in values})
            found[name] = np.zeros((len(values), most, *first.shape[1:]), dtype=kind)
            for place, own in enumerate(values):
                found[name][place, : len(own)] = own
        return found


def tables_of(statements: ManyStatements, tables: Any, by: str | None) -> Tables:
    """Return the data of groups.

    Raises
    ------
    ParameterError
        If there is no group, or ``by`` names no column.
    DataError
        If a group has no name.
    """
    if by is not None:
        return _by_column(statements, tables, by)
    if frame_of(tables) is not None:
        raise ParameterError("one table needs by=, the name of the column with the groups; got none")
    if isinstance(tables, Mapping):
        keys, every = tuple(tables), list(tables.values())
    elif isinstance(tables, Iterable):
        every = list(tables)
        keys = tuple(range(len(every)))
    else:
        raise ParameterError(
            f"tables must be a list of tables, or a mapping from names of groups to tables; got {tables!r}"
        )
    if not every:
        raise ParameterError("there is no group: tables is empty")
    return Tables(keys, statements.tables_of(every))


def _by_column(statements: ManyStatements, table: Any, by: str) -> Tables:
    frame = frame_of(table)
    if frame is None:
        raise ParameterError(
            f"by={by!r} names a column of a table of pandas, Polars or Arrow; got {table!r:.80}"
        )
    if by not in frame.columns:
        raise ParameterError(f"by={by!r} names no column; the table has {', '.join(frame.columns)}")
    labels = np.asarray(frame.column(by))
    if any(own is None or own != own for own in set(labels.tolist())):
        raise DataError(f"column {by!r} has rows without a group; drop them, or give them one")
    if not len(labels):
        raise ParameterError("there is no group: the table has no rows")
    keys, places = np.unique(labels, return_inverse=True)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(len(keys) + 1))
    return Tables(tuple(keys.tolist()), statements.parts_of(frame, by, order, bounds))


def batches(tables: Tables) -> Iterator[list[AnyArray]]:
    """Yield the numbers of groups whose shapes agree, those with about as many rows together, in parts of a batch.

    They do not depend on the number of threads, and neither do results.
    """
    counts, kinds = tables.counts, {}
    for number, table in enumerate(tables.tables):
        # labels that are texts have as many places as names
        names = tuple(table.names.along.items()) if isinstance(table, Placed) else ()
        key = (names, *[(name, own.shape[1:], own.dtype.kind) for name, own in table.items()])
        kinds.setdefault(key, []).append(number)
    for numbers in kinds.values():
        own = np.array(numbers)[np.argsort(counts[numbers], kind="stable")]
        first = tables.tables[own[0]]
        width = sum(int(np.prod(values.shape[1:])) for values in first.values())
        start = 0
        while start < len(own):
            stop = int(np.searchsorted(counts[own], _SPREAD * max(counts[own[start]], 1), side="right"))
            most = max(1, _NUMBERS // max(1, width * int(counts[own[stop - 1]])))
            share = min(most, max(-(-(stop - start) // _PARTS), _FEWEST))
            yield [own[at : min(at + share, stop)] for at in range(start, stop, share)]
            start = stop
