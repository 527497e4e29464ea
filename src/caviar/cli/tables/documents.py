"""Documents of the command line: texts of files or of a column, whose words are counted, or counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy.sparse import coo_array, issparse

import caviar as cv
from caviar.files.naming import listed

from ..speaking.outputs import complain, counted, say, standard_error
from ..speaking.steps import counting_steps
from .arrays import is_numpy_file, sparse_counts
from .files_and_streams import source_name
from .non_numeric import told_where_no_numbers

_TEXT = ".txt"
_TEXTS = (_TEXT, ".text", ".md", ".rst")
_CHOOSING = ("--stop-words", "--min-documents", "--max-words")
"""Options that choose words of texts."""
_FEW_DOCUMENTS = 20
"""Number of documents below which words of one document are counted, too: few words would be left."""
_FEW = 0.5
"""Share of words that a model knows below which the documents may be of another kind."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents as counts of words.

    Attributes
    ----------
    counts
        Shape (documents, words).
    words
        The word of each column; None where they are not known.
    names
        Name of each document; None where they have none.
    how
        How they were read, which is kept with a model: the column of the texts, and the encoding.
    """

    counts: Any
    words: tuple[str, ...] | None
    names: tuple[str, ...] | None = None
    how: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Texts:
    """Texts, which may be read one by one, and their names."""

    texts: Sequence[str]
    names: tuple[str, ...] | None
    how: Mapping[str, Any]

    def counted(self, *, quiet: bool, **arguments: Any) -> cv.data.WordCounts:
        """Return counts of their words, while progress is shown."""
        with counting_steps(standard_error(), "documents read", len(self.texts), quiet=quiet) as step:
            return cv.data.count_words(_each(self.texts, step), **arguments)


def _each(texts: Sequence[str], step: Any) -> Iterator[str]:
    for text in texts:
        yield text
        step()


def are_text_files(data: str | None) -> bool:
    """Whether data are a folder of text files, a pattern of such, or one."""
    if data is None:
        return False
    folder = Path(data)
    return data.lower().endswith(_TEXTS) or (
        folder.is_dir() and next(folder.rglob(f"*{_TEXT}"), None) is not None
    )


def documents_to_fit(
    data: str | None, sql: str | None, columns: list[str] | None, options: Mapping[str, Any], *, quiet: bool
) -> Documents:
    """Return documents to fit topics to.

    Parameters
    ----------
    data, sql, columns
        Where they come from.
    options
        ``--text``, ``--encoding``, ``--stop-words``, ``--min-documents``, ``--max-words`` and ``--vocabulary``, where
        they were given.
    quiet
        Whether to say nothing of what was read.

    Raises
    ------
    BadParameter
        If options do not belong to such data.
    DataError
        If the data cannot be read.
    """
    vocabulary, column = options.get("--vocabulary"), options.get("--text")
    words = None if vocabulary is None else _words_of(Path(vocabulary))
    if column is None and not are_text_files(data):
        _refuse(options, (*_CHOOSING, "--encoding"), "belongs to texts: give --text COLUMN, or text files")
        counted = _counts(data, sql, columns, words)
        if not counted.counts.sum():
            raise cv.DataError("there is no word in the documents: all counts are 0")
        _require_whole(counted)
        return counted
    if columns is not None:
        raise typer.BadParameter("--columns chooses columns of counts, and texts have none: leave it out")
    texts = _texts(data, sql, column, options.get("--encoding") or "utf-8")
    if words is not None:
        _refuse(options, _CHOOSING, "chooses words; those to count are in --vocabulary")
        found = texts.counted(quiet=quiet, vocabulary=words)
        left_out = "other words"
    else:
        least = options.get("--min-documents") or (1 if len(texts.texts) < _FEW_DOCUMENTS else 2)
        stop_words = options.get("--stop-words") or "english"
        with _least_told(least):
            found = texts.counted(
                quiet=quiet,
                stop_words=_stop_words(stop_words),
                min_documents=least,
                max_words=options.get("--max-words"),
            )
        kinds = [
            *([] if stop_words == "none" else [f"stop words ({stop_words})"]),
            *([f"words of fewer than {least} documents"] if least > 1 else []),
            *(["rarer words"] if options.get("--max-words") else []),
        ]
        left_out = listed(kinds)
    if not quiet:
        _say_counts(found, left_out)
    return Documents(found.counts, found.words, texts.names, texts.how)


def _require_whole(found: Documents) -> None:
    """Refuse numbers that count nothing, such as the measurements of a table that has no words."""
    entries = found.counts.tocoo() if issparse(found.counts) else coo_array(found.counts)
    wrong = np.flatnonzero(np.isfinite(entries.data) & (entries.data != np.rint(entries.data)))
    if not len(wrong):
        return
    value, row, column = (own[wrong[0]] for own in (entries.data, entries.row, entries.col))
    name = f"column {column}" if found.words is None else f"column {found.words[column]!r}"
    raise cv.DataError(
        f"counts of words are whole numbers; {name} has {value:g} in row {row}. Choose columns of counts by --columns, "
        f"or a column of texts by --text"
    )


def _refuse(options: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    """Refuse options that do not belong to the data."""
    given = [name for name in names if options.get(name) is not None]
    if given:
        raise typer.BadParameter(f"{given[0]} {why}")


def _say_counts(found: cv.data.WordCounts, left_out: str) -> None:
    """Say what was counted, and what not."""
    n_documents, n_words = found.counts.shape
    total = int(found.counts.sum())
    share = found.left_out / max(total + found.left_out, 1)
    less = f"; left out {share:.0%} of all: {left_out}" if found.left_out else ""
    documents = counted(n_documents, "document")
    say(standard_error(), f"{documents}, {total:,} words, of which {n_words:,} are different{less}")


def new_documents(
    words: Sequence[str], how: Mapping[str, Any], data: str | None, sql: str | None, *, quiet: bool
) -> Documents | None:
    """Return texts as counts of the words of a model; None if the data are not texts.

    Parameters
    ----------
    words
        Those of the model.
    how
        How the documents of its fit were read.
    data, sql
        Where the new ones come from.
    quiet
        Whether to show no progress.

    Raises
    ------
    DataError
        If the column of texts is not there, and the words are not columns either.
    """
    column = None if are_text_files(data) else how.get("column")
    if column is None and not are_text_files(data):
        return None
    if column is not None:
        if is_numpy_file(data):
            return None
        there = cv.scan(data, sql=sql).columns
        if column not in there and set(words) <= set(there):
            return None
    texts = _texts(data, sql, column, how.get("encoding", "utf-8"))
    found = texts.counted(quiet=quiet, vocabulary=words)
    known = int(found.counts.sum())
    if known < _FEW * (known + found.left_out):
        share = known / (known + found.left_out)
        complain(
            "warning",
            f"the model knows {share:.0%} of the words of these documents; the others count nothing",
        )
    return Documents(found.counts, tuple(words), texts.names)


def _texts(data: str | None, sql: str | None, column: str | None, encoding: str) -> _Texts:
    """Return the texts of files, of the lines of one file, or of a column.

    Raises
    ------
    BadParameter, DataError
        If there is no text.
    """
    if column is None:
        files = cv.data.read_texts(str(data), encoding=encoding)
        how = {"encoding": encoding}
        if Path(str(data)).is_file():
            lines = [line for line in files[0].splitlines() if line.strip()]
            if not lines:
                raise cv.DataError(f"{data} has no document: each line with a word is one")
            return _Texts(lines, None, how)
        return _Texts(files, files.names, how)
    if are_text_files(data):
        raise typer.BadParameter("--text names a column of a table; DATA are text files, each a document")
    there = cv.scan(data, sql=sql).columns
    if column not in there:
        raise cv.DataError(
            f"{source_name(data) or 'the query'} has no column {column!r} of texts; its columns are {listed(there)}"
        )
    values = cv.data.read_columns(data, columns=[column], sql=sql).column(0).to_pylist()
    if not values:
        raise cv.DataError(f"{source_name(data) or 'the query'} has no rows, so there is no document")
    return _Texts(["" if value is None else str(value) for value in values], None, {"column": column})


def _words_of(path: Path) -> list[str]:
    """Return the words of a file, one a line."""
    lines = (line.strip() for line in cv.data.read_texts(path)[0].splitlines())
    return [line for line in lines if line]


def _stop_words(which: str) -> Any:
    """Return what --stop-words says."""
    if which == "none":
        return ()
    return which if which == "english" else [word.lower() for word in _words_of(Path(which))]


@contextmanager
def _least_told(least: int) -> Iterator[None]:
    """Add to the refusal of texts without a word that is frequent enough how rare ones are counted."""
    try:
        yield
    except cv.DataError as error:
        if least == 1 or "each is a stop word or is in fewer" not in str(error):
            raise
        raise cv.DataError(f"{error}; --min-documents 1 counts words of one document too") from error


def _counts(
    data: str | None, sql: str | None, columns: list[str] | None, words: Sequence[str] | None
) -> Documents:
    """Return the counts of a table with a column for each word, or of a sparse matrix in a file."""
    if is_numpy_file(data):
        counts = sparse_counts(str(data))
        if words is not None and len(words) != counts.shape[1]:
            raise cv.DataError(
                f"{data} has counts of {counts.shape[1]:,} words, but --vocabulary has {len(words):,}: give "
                f"one for each"
            )
        return Documents(counts, None if words is None else tuple(words))
    if words is not None:
        raise typer.BadParameter(
            "--vocabulary belongs to texts, or to a .npz file; a table names its words itself"
        )
    with told_where_no_numbers("or use --text COLUMN, if the column has the documents"):
        table = cv.data.read_table(data, columns=columns, sql=sql)
    return Documents(table.values, table.columns)
