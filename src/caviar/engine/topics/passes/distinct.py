"""Documents that are equal, as one of their weight together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._typing import Array
from ...design.keys import ColumnKey
from ...rows.subsample import hash_rows


def distinct_documents(counts: Any, weights: Array | None) -> tuple[Any, Array | None]:
    """Return each document once, where it comes first, and the weight of all that are equal to it.

    Passes in which documents take turns begin in the same way for a document of weight 2 as for two equal ones.
    Documents of weight 0 are left out.

    Parameters
    ----------
    counts
        Of words, a sparse array by rows without zeros, shape (D, V).
    weights
        Of the documents, or None for 1 each.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> counts, weights = distinct_documents(csr_array([[1, 0], [0, 2], [1, 0]]), None)
    >>> counts.toarray(), weights
    (array([[1, 0],
           [0, 2]]), array([2., 1.]))
    """
    each = np.ones(counts.shape[0]) if weights is None else weights
    (places,) = np.nonzero(each)
    hashes = hash_rows({ColumnKey("counts"): counts})[places]
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) == counts.shape[0]:
        return counts, weights
    order = np.argsort(first)
    together: Array = np.bincount(group, each[places]).astype(np.float64)
    return counts[places[first[order]]], together[order]
