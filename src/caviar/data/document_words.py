"""Words and their columns: texts are numbered as they first occur, or as a vocabulary says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from .._errors import DataError, ParameterError
from .._typing import AnyArray
from ..files.naming import named


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
