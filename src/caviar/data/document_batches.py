"""Documents as they come from files, queries and Arrow: a batch of them at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from .._errors import DataError, ParameterError
from .._typing import AnyArray
from ..files.naming import listed, named
from .files.arrow_numbers import number_type
from .files.table_files import ParquetFiles, find_files
from .tables import connected, relation_of, tables_extra

_BATCH_DOCUMENTS, _BATCH_WORDS = 4_096, 65_536
_BUFFER_BYTES = 2**20

DocumentBatch: TypeAlias = tuple[AnyArray, Any, AnyArray]
"""Words of each document, (B,), and of one after another the words, an Arrow array (E,), and their counts, (E,)."""


@dataclass(frozen=True)
class Layout:
    """The columns that documents are in; see :func:`caviar.scan_documents`."""

    words: str
    counts: str | None
    document: str | None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name in (self.document, self.words, self.counts) if name is not None]

    @property
    def batch_rows(self) -> int:
        """Rows that are read together."""
        return _BATCH_DOCUMENTS if self.document is None else _BATCH_WORDS


def label_of(source: Any, sql: str | None) -> str:
    """Return what the documents are called in messages."""
    if sql is not None:
        return "the query"
    return str(source) if isinstance(source, str | os.PathLike) else "the documents"


def batches_of(source: Any, sql: str | None, layout: Layout) -> Iterator[DocumentBatch]:
    """Yield the documents of a source, which is read once.

    Raises
    ------
    DataError
        If there is no such file or column, or lists or counts are impossible.
    ParameterError
        If neither a source nor a query is given.
    """
    tables_extra("pyarrow")
    tables = _tables(source, sql, layout)
    columns = (_columns_of(table, layout) for table in tables)
    return _of_lists(columns, layout) if layout.document is None else _of_runs(columns, layout)


def _tables(source: Any, sql: str | None, layout: Layout) -> Iterator[Any]:
    """Yield tables or record batches."""
    if sql is not None or isinstance(source, str | os.PathLike):
        files = None if source is None else find_files(source)
        if isinstance(files, ParquetFiles) and sql is None:
            yield from _of_parquet(files, layout)
            return
        with connected(label_of(source, sql)) as connection:
            # through the view, where columns of a CSV file that are numbers throughout are numbers
            query = "SELECT * FROM data" if sql is None else sql
            yield from _of_relation(relation_of(connection, files, query), layout)
    elif hasattr(source, "to_arrow_reader") or hasattr(source, "fetch_arrow_reader"):
        yield from _of_relation(source, layout)
    elif hasattr(source, "to_batches"):
        yield from source.to_batches()
    elif hasattr(source, "column_names") or hasattr(source, "num_rows"):
        yield source
    elif hasattr(source, "__iter__"):
        yield from source
    else:
        raise ParameterError(
            f"scan_documents takes a file, a query sql=, a table or batches of Arrow, or a relation of DuckDB; got "
            f"{type(source).__name__}"
        )


def _of_parquet(files: ParquetFiles, layout: Layout) -> Iterator[Any]:
    parquet = import_module("pyarrow.parquet")
    for path in files.paths:
        try:
            with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
                _require_columns(file.schema_arrow.names, layout)
                for group in range(file.num_row_groups):
                    yield from file.iter_batches(
                        layout.batch_rows, [group], columns=layout.columns, use_threads=False
                    )
        except (OSError, import_module("pyarrow").ArrowException) as error:
            raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _of_relation(relation: Any, layout: Layout) -> Iterator[Any]:
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    yield from reader(layout.batch_rows)


def _require_columns(names: Any, layout: Layout) -> None:
    for name in layout.columns:
        if name not in names:
            hint = "; pass counts=None if each entry is one token" if name == layout.counts else ""
            raise DataError(f"the documents have no column {named(name)}, but {listed(list(names))}{hint}")


def _columns_of(table: Any, layout: Layout) -> list[Any]:
    """Return the columns of a table or a record batch, each in one piece: documents, words, counts, or None."""
    names = table.schema.names
    _require_columns(names, layout)
    own = (layout.document, layout.words, layout.counts)
    return [None if name is None else _in_one_piece(table.column(names.index(name))) for name in own]


def _in_one_piece(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "chunks") else column


def _of_lists(columns: Iterator[list[Any]], layout: Layout) -> Iterator[DocumentBatch]:
    """Yield documents that are a row each."""
    compute, types = import_module("pyarrow.compute"), import_module("pyarrow.types")
    for _, words, counts in columns:
        for name, column in ((layout.words, words), (layout.counts, counts)):
            if column is not None and not (types.is_list(column.type) or types.is_large_list(column.type)):
                raise DataError(
                    f"column {named(str(name))} must have a list for each document; its type is {column.type}. If a "
                    f"row is a word of a document, name the column of the documents: document='...'"
                )
        lengths = _lengths(words, compute)
        flat, own = words.flatten(), None
        if counts is not None:
            others = _lengths(counts, compute)
            if (others != lengths).any():
                place = int(np.argmax(others != lengths))
                raise DataError(
                    f"a document has {lengths[place]} entries in {named(layout.words)} and {others[place]} in "
                    f"{named(str(layout.counts))}; give a count for each word"
                )
            own = counts.flatten()
        yield lengths, flat, _numbers(own, len(flat), layout)


def _lengths(column: Any, compute: Any) -> AnyArray:
    return compute.fill_null(compute.list_value_length(column), 0).to_numpy(zero_copy_only=False)


def _of_runs(columns: Iterator[list[Any]], layout: Layout) -> Iterator[DocumentBatch]:
    """Yield documents that are several rows each, one document after the other."""
    arrow, kept = import_module("pyarrow"), None
    for document, words, counts in columns:
        own = _numbers(counts, len(words), layout)
        document, words = (
            each.dictionary_decode() if hasattr(each, "dictionary_decode") else each
            for each in (document, words)
        )
        if document.null_count:
            raise DataError(f"column {named(str(layout.document))} has a missing value; drop such rows")
        if kept is not None:
            document, words = (
                arrow.concat_arrays([a, b]) for a, b in zip(kept[:2], (document, words), strict=True)
            )
            own = np.concatenate([kept[2], own])
        if not len(document):
            continue
        starts = _starts(document, layout)
        # the last document may go on in the next batch
        last = int(starts[-1])
        if last:
            yield np.diff(starts), words[:last], own[:last]
        kept = document[last:], words[last:], own[last:]
    if kept is not None:
        yield np.array([len(kept[1])]), kept[1], kept[2]


def _starts(document: Any, layout: Layout) -> AnyArray:
    """Return where each document begins.

    Raises
    ------
    DataError
        If they are not in ascending order.
    """
    compute = import_module("pyarrow.compute")
    before, after = document[:-1], document[1:]
    if len(before) and compute.any(compute.less(after, before)).as_py():
        place = compute.index(compute.less(after, before), True).as_py()
        raise DataError(
            f"the rows must be in ascending order of {named(str(layout.document))}, so that the rows of a "
            f"document are together; {after[place].as_py()!r} comes after {before[place].as_py()!r}. Order "
            "them by a query: sql='select * from data order by ...'"
        )
    new = compute.not_equal(after, before).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(new) + 1])


def _numbers(counts: Any, length: int, layout: Layout) -> AnyArray:
    """Return counts as numbers; 1 for each where there are none.

    Raises
    ------
    DataError
        If one is missing, negative or infinite.
    """
    if counts is None:
        return np.ones(length)
    if number_type(counts.type) is None or counts.null_count:
        what = f"type {counts.type}" if number_type(counts.type) is None else "a missing value"
        raise DataError(f"column {named(str(layout.counts))} must have numbers; it has {what}")
    found = np.asarray(counts.to_numpy(zero_copy_only=False), dtype=np.float64)
    wrong = found[~(np.isfinite(found) & (found >= 0))]
    if len(wrong):
        raise DataError(
            f"column {named(str(layout.counts))} must have finite numbers that are not negative; got {wrong[0]:g}"
        )
    return found
