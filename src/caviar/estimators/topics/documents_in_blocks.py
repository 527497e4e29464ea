"""Documents that are read in blocks, for what an estimator of topics does outside the passes of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from ..._errors import ParameterError
from ..._typing import Array
from ...engine.topics.passes.distinct import distinct_documents
from ...lazy.sparse_rows import SparseRows
from .collapsed import COLLAPSED

_MOST_NUMBERS = 1 << 25
"""Numbers (counts above zero x topics) that collapsed passes keep of documents that are not in memory: 256 MB."""

_PLACES = 64
"""Places of the documents that a sample of them comes from."""


def total_of(counts: Any, weights: Array | None) -> float:
    """Return the weight of all words."""
    if weights is None:
        return float(counts.sum())
    if not isinstance(counts, SparseRows):
        return float(weights @ counts.sum(axis=1))
    return float(sum(weights[at : at + block.shape[0]] @ block.sum(axis=1) for at, block in counts.blocks()))


def for_collapsed_passes(
    method: str, counts: Any, weights: Array | None, n_topics: int
) -> tuple[csr_array, Array | None]:
    """Return the documents that collapsed passes see: all distinct ones, or those from places all over the files.

    Raises
    ------
    ParameterError
        If the passes are to be the fit, and the documents are not in memory.
    """
    if not isinstance(counts, SparseRows):
        return distinct_documents(counts, weights)
    if method == COLLAPSED:
        raise ParameterError(
            "method='collapsed' keeps numbers for each word of each document, and these documents are read in blocks: "
            "leave method= out (doc_topic_prior='learn' learns from a sample), or pass documents.to_numpy()"
        )
    n_documents = len(counts)
    step = -(-n_documents // _PLACES)
    each = max(int(_MOST_NUMBERS * n_documents / (counts.n_counts * n_topics * min(_PLACES, n_documents))), 1)
    places = [slice(at, min(at + each, at + step)) for at in range(0, n_documents, step)]
    sample = csr_array(vstack([counts[place] for place in places], format="csr"))
    if weights is None:
        return sample, np.full(sample.shape[0], n_documents / sample.shape[0])
    own = np.concatenate([weights[place] for place in places])
    return sample, own * (weights.sum() / max(own.sum(), np.finfo(float).tiny))
