"""Documents of words: read from text files, and counted."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from .._errors import DataError, ParameterError
from ..files.naming import listed, named
from ..numerics.arguments import require_whole

_WORD = re.compile(r"[^\W\d_]{2,}")
_SUFFIX = ".txt"


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Number of occurrences of each word in each document.

    Attributes
    ----------
    counts
        Shape (documents, words), sparse.
    words
        The word of each column.
    left_out
        Number of tokens whose words have no column.
    """

    counts: csr_array
    words: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, eq=False)
class TextFiles(Sequence[str]):
    """Texts in files, each read when it is accessed.

    Attributes
    ----------
    names
        Name of each text: the path of its file within the folder, or the name of its file.
    paths
        The files.
    encoding
        Encoding of the files.
    """

    names: tuple[str, ...]
    paths: tuple[Path, ...]
    encoding: str = "utf-8"

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> str:  # type: ignore[override]
        """Return a text.

        Raises
        ------
        DataError
            If its file cannot be read, or is written in another encoding.
        """
        path = self.paths[place]
        try:
            # a mark of the byte order at the start belongs to the encoding
            return path.read_text(self.encoding).removeprefix("\ufeff")
        except UnicodeError as error:
            raise DataError(
                f"{path} is not a text in {self.encoding}; say another encoding=, such as 'latin-1', or save the file "
                f"in UTF-8"
            ) from error
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def read_texts(source: str | os.PathLike[str], *, encoding: str = "utf-8") -> TextFiles:
    """Return the texts of a folder, one from each file.

    Parameters
    ----------
    source
        A folder, whose ``*.txt`` files are read, including those of subfolders; a pattern such as ``'2024-*.txt'``; or
        one file. Files are sorted by name.
    encoding
        Encoding of the files.

    Raises
    ------
    DataError
        If no file is found.
    ParameterError
        If the encoding is unknown.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, text in {"a.txt": "The goal.", "b.txt": "A vote, a law."}.items():
    ...     _ = (folder / name).write_text(text)
    >>> texts = read_texts(folder)
    >>> texts.names, texts[1]
    (('a.txt', 'b.txt'), 'A vote, a law.')
    """
    try:
        "".encode(encoding)
    except LookupError as error:
        raise ParameterError(
            f"encoding must be the name of one, such as 'utf-8' or 'latin-1'; got {encoding!r}"
        ) from error
    folder = Path(source)
    if folder.is_dir():
        paths = [path for path in folder.rglob(f"*{_SUFFIX}") if path.is_file()]
        if not paths:
            raise DataError(f"the folder {folder} holds no text file (*{_SUFFIX})")
        names = {path: path.relative_to(folder).as_posix() for path in paths}
    else:
        paths = [folder] if folder.is_file() else _matching(str(source))
        names = {path: str(path) for path in paths}
    paths.sort(key=names.__getitem__)
    return TextFiles(tuple(map(names.__getitem__, paths)), tuple(paths), encoding)


def _matching(pattern: str) -> list[Path]:
    """Return the files of a pattern."""
    if not glob.has_magic(pattern):
        raise DataError(f"there is no file {pattern}")
    found = [Path(name) for name in glob.glob(pattern, recursive=True) if Path(name).is_file()]
    if not found:
        raise DataError(f"no file matches {pattern}")
    return found


def _words(text: str) -> list[str]:
    """Return the words of a text: runs of at least two letters, in lower case.

    Everything else divides words, apostrophes and hyphens too.

    Examples
    --------
    >>> _words("It's Schrödinger's state-of-the-art cat no. 9!")
    ['it', 'schrödinger', 'state', 'of', 'the', 'art', 'cat', 'no']
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def count_words(
    texts: Iterable[str | Sequence[str]],
    *,
    vocabulary: Sequence[str] | None = None,
    stop_words: Iterable[str] = (),
    min_documents: int = 1,
    max_words: int | None = None,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
) -> WordCounts:
    """Return the number of occurrences of each word in each text.

    Parameters
    ----------
    texts
        The documents, each a text or a list of its words; they are read once, one after the other.
    vocabulary
        The words to count, in the order of the columns. By default all words in alphabetical order, except those that
        the next three arguments exclude.
    stop_words
        Words that are not counted. ``"english"`` excludes common English words.
    min_documents
        Smallest number of documents that a word must occur in.
    max_words
        Largest number of words; the most frequent are kept. None keeps all.
    tokenizer
        Function that returns the words of a text. By default words are runs of at least two letters, in lower case;
        languages that are written without spaces need another tokenizer. Lists of words are counted as they are.

    Raises
    ------
    ParameterError
        If an argument is invalid, or one of the three is given together with a vocabulary.
    DataError
        If no word remains.

    Examples
    --------
    >>> found = count_words(["The goal! A goal.", "The vote"], stop_words="english")
    >>> found.words, found.counts.toarray().tolist(), found.left_out
    (('goal', 'vote'), [[2, 0], [0, 1]], 2)
    """
    if isinstance(texts, str):
        raise ParameterError("texts must be several documents, such as a list; got one text")
    stopped = _stopped(stop_words)
    require_whole("min_documents", min_documents, 1)
    if max_words is not None:
        require_whole("max_words, if it is not None,", max_words, 1)
    tokenizer = _words if tokenizer is None else tokenizer
    if vocabulary is None:
        return _chosen(*_counted(texts, tokenizer), stopped, min_documents, max_words)
    if stopped or min_documents > 1 or max_words is not None:
        raise ParameterError(
            "vocabulary lists the words to count; leave stop_words, min_documents and max_words out"
        )
    return _of_vocabulary(*_counted(texts, tokenizer), list(map(str, vocabulary)))


def _stopped(stop_words: Iterable[str]) -> frozenset[str]:
    if not isinstance(stop_words, str):
        return frozenset(stop_words)
    if stop_words != "english":
        raise ParameterError(f"stop_words must be 'english', or a list of words; got {stop_words!r}")
    return ENGLISH


def _counted(
    texts: Iterable[str | Sequence[str]], tokenizer: Callable[[str], Iterable[str]]
) -> tuple[csr_array, dict[str, int]]:
    """Return counts of all words, in the order in which they first occur, and the column of each."""
    columns: dict[str, int] = {}
    starts, places, counts = [0], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for text in texts:
        own = Counter(_words_of(text, len(starts) - 1, tokenizer))
        places.append(
            np.fromiter((columns.setdefault(word, len(columns)) for word in own), np.int64, len(own))
        )
        counts.append(np.fromiter(own.values(), np.int64, len(own)))
        starts.append(starts[-1] + len(own))
    shape = (len(starts) - 1, len(columns))
    return csr_array((np.concatenate(counts), np.concatenate(places), np.array(starts)), shape=shape), columns


def _words_of(text: object, row: int, tokenizer: Callable[[str], Iterable[str]]) -> Iterable[str]:
    """Return the words of a document, a text or a list of words."""
    if isinstance(text, str):
        return tokenizer(text)
    if isinstance(text, list | tuple) and all(isinstance(word, str) for word in text):
        return text
    raise DataError(
        f"document {row} is not a text: {named(repr(text))}; give texts or lists of words, and '' for a missing one"
    )


def _chosen(
    counts: csr_array,
    columns: dict[str, int],
    stopped: frozenset[str],
    min_documents: int,
    max_words: int | None,
) -> WordCounts:
    """Return the counts of the words that are kept, in alphabetical order."""
    totals = counts.sum(axis=0)
    documents = np.bincount(counts.indices, minlength=len(columns))
    kept = [word for word, j in columns.items() if word not in stopped and documents[j] >= min_documents]
    if not columns:
        count = f"{n:,} documents have" if (n := counts.shape[0]) != 1 else "1 document has"
        raise DataError(f"no word is left to count: {count} no word of two or more letters")
    if not kept:
        raise DataError(
            f"no word is left to count: {counts.shape[0]:,} documents have {len(columns):,} words, but "
            f"each is a stop word or is in fewer than {min_documents:,} documents"
        )
    if max_words is not None:
        kept = sorted(kept, key=lambda word: (-totals[columns[word]], word))[:max_words]
    return _of_words(counts, columns, sorted(kept))


def _of_vocabulary(counts: csr_array, columns: dict[str, int], words: list[str]) -> WordCounts:
    """Return the counts of given words, of which some may occur nowhere."""
    twice = [word for word, n in Counter(words).items() if n > 1]
    if twice:
        raise ParameterError(f"vocabulary must have each word once; got twice: {listed(twice)}")
    missing = [word for word in words if word not in columns]
    wider = csr_array(
        (counts.data, counts.indices, counts.indptr), shape=(counts.shape[0], len(columns) + len(missing))
    )
    places = {**columns, **{word: len(columns) + place for place, word in enumerate(missing)}}
    return _of_words(wider, places, words)


def _of_words(counts: csr_array, columns: dict[str, int], words: list[str]) -> WordCounts:
    # by columns of a matrix of the other order: the choice of many columns of rows takes as long as all entries
    chosen = csr_array(counts.tocsc()[:, [columns[word] for word in words]])
    chosen.sort_indices()
    return WordCounts(chosen, tuple(words), int(counts.sum() - chosen.sum()))


_WORDS = """
    about above across after again against all almost alone along already also although always am among an and another
    any anybody anyone anything anywhere are aren around as at away back be became because become becomes been before
    behind being below beside besides between beyond both but by came can cannot come comes could couldn did didn do
    does doesn doing don done down during each either else enough even ever every everybody everyone everything
    everywhere few for from further gave get gets getting give given gives go goes going gone got had hadn has hasn
    have haven having he her here hers herself him himself his how however if in indeed instead into is isn it its
    itself just keep kept less let like ll made make makes many may maybe me might mine more moreover most mostly much
    must my myself near neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once
    one ones only onto or other others otherwise ought our ours ourselves out over own per perhaps put quite rather re
    really same seem seemed seems several shall she should shouldn since so some somebody someone something sometimes
    somewhere still such take taken than that the their theirs them themselves then there therefore these they thing
    things this those though through throughout thus to together too toward towards under unless until up upon us use
    used using ve very via was wasn we well went were weren what whatever when whenever where wherever whether which
    while who whoever whole whom whose why will with within without won would wouldn yes yet you your yours yourself
    yourselves
    """

ENGLISH = frozenset(_WORDS.split())
"""Articles, pronouns, prepositions, conjunctions, auxiliary verbs, and what an apostrophe leaves of those."""
