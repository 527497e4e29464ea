"""Collections of documents as counts of words."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as word counts.

    Attributes
    ----------
    counts
        Number of occurrences of each word in each document, a sparse array of shape (documents, words).
    words
        The vocabulary, in the order of the columns.
    """

    counts: csr_array
    words: tuple[str, ...]


def load_political_blogs() -> Corpus:
    """Return 500 posts of political blogs in the United States of 2008, as counts of 2,632 stemmed words.

    Notes
    -----
    Eisenstein and Xing (2010), *The CMU 2008 Political Blog Corpus*, as prepared for the R package *stm*.

    Examples
    --------
    >>> blogs = load_political_blogs()
    >>> blogs.counts.shape, int(blogs.counts.sum()), blogs.words[:3]
    ((500, 2632), 95119, ('abandon', 'abc', 'abil'))
    """
    words = tuple(_lines("political_blogs.vocab.txt.gz"))
    return Corpus(read_ldac(_lines("political_blogs.ldac.gz"), len(words)), words)


def read_ldac(lines: Iterable[str], n_words: int) -> csr_array:
    """Return the counts in lines of David Blei's LDA-C format, ``M word:count word:count ...``, a document each."""
    starts, columns, counts = [0], [], []
    for line in lines:
        for entry in line.split()[1:]:
            word, count = entry.split(":")
            columns.append(int(word))
            counts.append(int(count))
        starts.append(len(columns))
    return csr_array(
        (np.array(counts), np.array(columns), np.array(starts)), shape=(len(starts) - 1, n_words)
    )


def _lines(name: str) -> list[str]:
    return gzip.decompress((files("caviar.datasets") / name).read_bytes()).decode().splitlines()
