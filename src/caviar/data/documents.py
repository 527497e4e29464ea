"""Documents in files: counts of words, copied once to a temporary file and read a block of documents at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._errors import DataError, ParameterError
from .._typing import AnyArray
from ..files.naming import named
from ..lazy.sparse_rows import SparseRows
from .document_batches import Layout, batches_of, label_of
from .files.raw_file import Workspace

_WORD, _COUNT, _START = np.dtype(np.int32), np.dtype(np.float64), np.dtype(np.int64)


def scan_documents(
    source: Any = None,
    *,
    words: str = "words",
    counts: str | None = "counts",
    document: str | None = None,
    vocabulary: Sequence[str] | None = None,
    sql: str | None = None,
    directory: str | os.PathLike[str] | None = None,
) -> Documents:
    """Return documents on disk as word counts that are read in blocks of documents.

    Parameters
    ----------
    source
        A Parquet or CSV file, a folder of Parquet files, or a pattern; or an Arrow table, a reader or iterator of
        record batches, or a DuckDB relation.
    words
        Name of the column with the words: texts, or word numbers from 0.
    counts
        Name of the column with the count of each word; None if each entry is one token.
    document
        None if each row is a document, with lists in these two columns. Otherwise the name of the column that
        identifies the document of each row; a row is then one word, and the rows must be sorted by this column.
    vocabulary
        The words to count, in the order of the columns; other words are left out. By default all words in order of
        first occurrence.
    sql
        A DuckDB query whose result is read. In it, ``data`` is the table of ``source``, if that is a file.
    directory
        Folder for the temporary copy; by default ``TMPDIR``, or /var/tmp. The copy takes 12 bytes for each distinct
        word of each document, and is deleted with the documents, or when Python ends.

    Returns
    -------
    Documents
        Word counts for :class:`caviar.LatentDirichletAllocation`, or for a model of documents.

    Raises
    ------
    DataError
        If the file or a column does not exist, a word or count is missing or invalid, or rows are not sorted.
    ImportError
        If Arrow or DuckDB is missing.

    Notes
    -----
    The source is read once, in this call. Memory holds one batch of documents and the vocabulary, for any number
    of documents.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table(
    ...     {"words": [["goal", "ball"], ["law"], ["goal", "goal"]], "counts": [[3, 1], [2], [1, 1]]}
    ... )
    >>> documents = scan_documents(table)
    >>> documents.shape, documents.column_names, documents.total
    ((3, 3), ('goal', 'ball', 'law'), 8.0)
    >>> documents[1:3].toarray()
    array([[0., 0., 2.],
           [2., 0., 0.]])
    """
    layout = Layout(words, counts, document)
    label, numbering, workspace = label_of(source, sql), Numbering(vocabulary, words), Workspace(directory)
    n_documents, total, start = 0, 0.0, 0
    try:
        with (
            open(workspace.path / "words", "wb") as of_words,
            open(workspace.path / "counts", "wb") as of_counts,
            open(workspace.path / "starts", "wb") as of_starts,
        ):
            of_starts.write(np.zeros(1, _START).tobytes())
            for lengths, texts, own in batches_of(source, sql, layout):
                block = _counted(lengths, numbering.numbers(texts, own), own, numbering.size)
                of_words.write(block.indices.astype(_WORD).tobytes())
                of_counts.write(block.data.astype(_COUNT).tobytes())
                of_starts.write((block.indptr[1:].astype(_START) + start).tobytes())
                n_documents, total = n_documents + block.shape[0], total + float(block.data.sum())
                start += block.nnz
    except OSError as error:
        raise DataError(
            f"{label}: cannot write its temporary copy to {workspace.path.parent}: {error.strerror or error}; give a "
            f"directory= with more room"
        ) from error
    if not n_documents:
        raise DataError(f"{label} has no documents")
    shape = (n_documents, numbering.size)
    return Documents(workspace.path, label, shape, total, numbering, owner=workspace)


def _counted(lengths: AnyArray, words: AnyArray, counts: AnyArray, n_words: int) -> csr_array:
    """Return counts (documents, words) from the words of one document after another; those below 0 are left out."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    kept = np.concatenate([[0], np.cumsum(words >= 0)])[ends]
    is_known = words >= 0
    block = csr_array((counts[is_known], words[is_known], kept), shape=(len(lengths), n_words))
    block.sum_duplicates()
    block.eliminate_zeros()
    return block


class Documents(SparseRows):
    """Word counts, documents x words, that are read in blocks of documents; see :func:`scan_documents`.

    ``documents[start:stop]`` is a sparse array; ``documents.to_numpy()`` returns all documents, in memory.

    Attributes
    ----------
    shape
        (documents, words).
    total
        Number of tokens.
    column_names
        The words; None if they were given as numbers.
    left_out
        Number of tokens whose words are not in the vocabulary.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        shape: tuple[int, int],
        total: float,
        numbering: Numbering,
        first: int = 0,
        owner: Workspace | None = None,
    ) -> None:
        self.shape, self.label, self.total = shape, label, total
        self.column_names, self.left_out = numbering.words, numbering.left_out
        self._folder, self._numbering, self._first, self._owner = folder, numbering, first, owner

    def read(self, start: int, stop: int) -> Any:
        """Return the counts of documents ``start`` to ``stop``, a sparse array by rows."""
        stop = max(start, stop)
        starts = self._numbers("starts", _START, self._first + start, stop - start + 1)
        begin, length = int(starts[0]), int(starts[-1] - starts[0])
        words = self._numbers("words", _WORD, begin, length)
        counts = self._numbers("counts", _COUNT, begin, length)
        block = csr_array(
            (counts, words, (starts - begin).astype(_WORD)), shape=(stop - start, self.shape[1])
        )
        block.has_canonical_format = True
        return block

    def between(self, start: int, stop: int) -> Documents:
        """Return documents ``start`` to ``stop`` as a separate object."""
        total = sum(
            float(self.read(at, min(at + 8_192, stop)).data.sum()) for at in range(start, stop, 8_192)
        )
        shape = (stop - start, self.shape[1])
        return Documents(
            self._folder, self.label, shape, total, self._numbering, self._first + start, self._owner
        )

    @property
    def n_counts(self) -> int:
        """Number of stored counts."""
        first, last = (
            int(self._numbers("starts", _START, at, 1)[0]) for at in (self._first, self._first + len(self))
        )
        return last - first

    @property
    def n_counts_of_rows(self) -> AnyArray:
        """Number of different words of each document, shape (D,)."""
        return np.diff(self._numbers("starts", _START, self._first, len(self) + 1))

    def _numbers(self, name: str, dtype: np.dtype[Any], first: int, length: int) -> AnyArray:
        path = self._folder / name
        try:
            values = np.fromfile(path, dtype, length, offset=first * dtype.itemsize)
        except OSError as error:
            raise DataError(
                f"{self.label}: its temporary copy {path} cannot be read: {error.strerror or error}. Scan the "
                f"documents again; other machines need a directory= that they see"
            ) from error
        if len(values) < length:
            raise DataError(f"{self.label}: its temporary copy {path} was cut off; scan the documents again")
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_owner": None}

    def __repr__(self) -> str:
        n_documents, n_words = self.shape
        return f"<{n_documents:,} documents, {self.total:,.0f} tokens of {n_words:,} words, of {self.label}>"


class Numbering:
    """The column of each word, which grows while documents are read unless a vocabulary is given.

    Parameters
    ----------
    vocabulary
        The words, or None.
    column
        Name of the column that they come from, for messages.
    """

    def __init__(self, vocabulary: Iterable[str] | None, column: str) -> None:
        self._column, self._is_fixed, self._largest = column, vocabulary is not None, -1
        self._of_word: dict[str, int] = {}
        self.left_out = 0.0
        """Tokens whose words have no column."""
        if vocabulary is None:
            return
        if isinstance(vocabulary, str | Mapping | set):
            raise ParameterError(
                f"vocabulary must be a list with the word of each column; got a {type(vocabulary).__name__}"
            )
        words = [str(word) for word in vocabulary]
        self._of_word = {word: number for number, word in enumerate(words)}
        if len(self._of_word) < len(words):
            raise ParameterError("vocabulary has a word twice; give each word once")

    @property
    def words(self) -> tuple[str, ...] | None:
        """The word of each column; None where words came as numbers alone."""
        return tuple(self._of_word) if self._of_word else None

    @property
    def size(self) -> int:
        """Number of columns so far."""
        return max(len(self._of_word), self._largest + 1)

    def numbers(self, words: Any, counts: AnyArray) -> AnyArray:
        """Return the column of each word of an Arrow array, and -1 for those that have none.

        Raises
        ------
        DataError
            If a word is missing, or they are neither texts nor numbers of columns.
        """
        types = import_module("pyarrow.types")
        if words.null_count:
            raise DataError(f"column {named(self._column)} has a missing word; drop such entries")
        if types.is_null(words.type):
            return np.empty(0, dtype=np.int32)
        kind = words.type.value_type if types.is_dictionary(words.type) else words.type
        if types.is_integer(kind) or (types.is_floating(kind) and _are_whole(words)):
            found = self._checked(words.dictionary_decode() if types.is_dictionary(words.type) else words)
        elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            found = self._looked_up(words)
        else:
            raise DataError(
                f"column {named(self._column)} must have texts, or numbers of words counted from 0; its type is {kind}"
            )
        self.left_out += float(counts[found < 0].sum())
        return found

    def _checked(self, words: Any) -> AnyArray:
        found = words.to_numpy(zero_copy_only=False)
        least, largest = (int(found.min()), int(found.max())) if len(found) else (0, -1)
        if least < 0 or largest > np.iinfo(np.int32).max:
            wrong = least if least < 0 else largest
            raise DataError(f"column {named(self._column)} must have words numbered from 0; got {wrong}")
        if self._is_fixed and largest >= len(self._of_word):
            raise DataError(
                f"column {named(self._column)} has word number {largest}, and vocabulary has {len(self._of_word)} words"
            )
        self._largest = max(self._largest, largest)
        return found.astype(np.int32)

    def _looked_up(self, words: Any) -> AnyArray:
        types = import_module("pyarrow.types")
        coded = words if types.is_dictionary(words.type) else words.dictionary_encode()
        table = np.empty(len(coded.dictionary), dtype=np.int32)
        places = coded.indices.to_numpy(zero_copy_only=False)
        # a dictionary may have words that do not occur here
        table[:] = -1
        texts = coded.dictionary.to_pylist()
        for place in np.unique(places).tolist():
            word = texts[place]
            if self._is_fixed:
                table[place] = self._of_word.get(word, -1)
            else:
                table[place] = self._of_word.setdefault(word, len(self._of_word))
        return table[places]


def _are_whole(words: Any) -> bool:
    """Whether untyped numbers, as in a CSV file, are whole."""
    values = words.to_numpy(zero_copy_only=False)
    return bool((values == np.floor(values)).all())
