"""Tables of numbers in memory, under scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..._errors import DataError
from ..._typing import AnyArray
from ...data import LazyTable, WordCounts
from ...data.columns.lost_digits import refuse_lost_digits
from ...data.columns.missing_codes import tell_of_codes
from ...data.rows import on_host
from ...datasets import Corpus
from .given_tables import MIXED, quiet, require_table, validated, words_told
from .lazy_rows import checked_rows, lazy_rows, whole

_CALLER = 6
"""Frames from :func:`rows_of_numbers` to the call of ``fit``."""

_STACKED = (
    "Stack sequences of equal length by X.reshape(-1, X.shape[2]), and give lengths=[X.shape[1]] * len(X)"
)


_CATEGORIES = "give emission='categorical', which takes one column of categories"


def rows_of_numbers(estimator: Any, X: Any, *, reset: bool) -> AnyArray:
    """Return rows of a sequence: finite numbers, or NaN where an entry is missing, (N, D), in double precision.

    Parameters
    ----------
    estimator
        Remembers number and names of the columns (``reset``), or has those of the fit.
    X
        An array or a table; one that is read in blocks has to fit in memory.

    Raises
    ------
    ValueError
        If they are no such rows.
    """
    found = numbers_as_given(estimator, X, reset=reset, hint=_STACKED, instead=_CATEGORIES)
    rows = np.asarray(whole(found, "a sequence"), dtype=np.float64)
    if reset:
        tell_of_codes(rows, getattr(estimator, "feature_names_in_", None), _CALLER)
    return rows


def numbers_as_given(estimator: Any, X: Any, *, reset: bool, hint: str = "", instead: str = MIXED) -> Any:
    """Return rows as :func:`rows_of_numbers` does, an array in its own precision, or lazy as they came.

    ``hint`` says what else could help with an array of three axes, and ``instead`` what takes words.
    """
    require_table(X, hint)
    X = on_host(X)
    if reset:
        refuse_lost_digits(X, "X")
    rows = lazy_rows(X)
    if rows is not None and (rows.ndim == 2 or not isinstance(X, np.ndarray)):
        return checked_rows(estimator, X, rows, reset=reset)
    with np.errstate(invalid="ignore"), words_told(X, instead):
        found = validated(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")
        # a table of Polars with a column of texts comes as objects
        return quiet(found.astype(np.float64) if found.dtype.kind in "OU" else found)


def refuse_no_counts(counts: csr_array, names: Sequence[str] | None) -> None:
    """Refuse word counts that are missing or below 0.

    Parameters
    ----------
    counts
        Documents x words.
    names
        The words, for the message; None if they are not known.

    Raises
    ------
    DataError
        If there is one. Its text has the words that scikit-learn's checks look for.
    """
    with np.errstate(invalid="ignore"):
        wrong = ~(counts.data >= 0)
    if not wrong.any():
        return
    place = int(np.argmax(wrong))
    row = int(np.searchsorted(counts.indptr, place, side="right")) - 1
    column = int(counts.indices[place])
    where = f"in row {row}, column {column if names is None else repr(names[column])}"
    if np.isnan(counts.data[place]):
        raise DataError(
            f"X has a missing value (NaN) {where}, and topics are fitted to word counts: a word that a document "
            f"does not have counts 0. Fill missing counts with 0, as by frame.fillna(0) or numpy.nan_to_num(X)"
        )
    raise DataError(
        f"X has {counts.data[place]:g} {where}, and topics are fitted to word "
        f"counts, which are 0 or more. Negative values in data passed to LatentDirichletAllocation are refused"
    )


def refuse_texts(X: Any) -> None:
    """Refuse texts, whose words have to be counted first, and counts that are together with their words.

    Raises
    ------
    DataError
        If the first document is a text, X has counts and words, as a Corpus or WordCounts, or is read in blocks.
    """
    if isinstance(X, LazyTable):
        raise DataError(
            "X is a table of scan(...), which topics do not read: documents that are larger than memory come from "
            "scan_documents(...); a table of counts that fits into memory is an array, a sparse matrix or a DataFrame, "
            "as from pandas.read_csv or read_parquet"
        )
    if isinstance(X, Corpus | WordCounts):
        raise DataError(
            f"X is a {type(X).__name__}, counts of words together with the words: give vocabulary=X.words to the "
            f"estimator, and X.counts in place of X"
        )
    is_array = isinstance(X, np.ndarray) or hasattr(X, "to_numpy")
    is_flat = isinstance(X, list | tuple) or (is_array and getattr(X, "ndim", 2) == 1)
    what = _words_in(X) if is_flat else None
    if what is not None:
        raise DataError(
            f"X has {what}, but topics are fitted to word counts, documents x words. Count the words with "
            "found = caviar.data.count_words(texts), then pass vocabulary=found.words to the estimator and "
            "found.counts as X (or use scikit-learn's CountVectorizer)"
        )
    if is_flat and _has_pairs(X):
        raise DataError(
            "X has pairs of a word and its count, as gensim's bags of words, but topics are fitted to word counts, "
            "documents x words: pass gensim.matutils.corpus2csc(corpus, num_terms=len(dictionary)).T, a sparse array"
        )


def _words_in(X: Any) -> str | None:
    """Return what the first document with anything in it is, if it has words."""
    for row, own in enumerate(X):
        if isinstance(own, str):
            return f"a text in row {row}"
        if isinstance(own, list | tuple | np.ndarray) and len(own):
            return f"a list of words in row {row}" if isinstance(own[0], str) else None
    return None


def _has_pairs(X: Any) -> bool:
    """Whether the first document with anything in it is a list of pairs."""
    first = next((own for own in X if isinstance(own, list) and own), [()])
    return isinstance(first[0], tuple) and len(first[0]) == 2
