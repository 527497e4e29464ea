"""Columns: what the rows of a sample bring beside the values of leaves: labels and known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...._typing import AnyArray, Array
from ....language import Data
from ...design.keys import ColumnKey
from ...rows.subsample import Sample
from ..guesses.basis import Guess


def labels_of(sample: Sample, index: Any, guess: Guess) -> AnyArray | None:
    """Return the labels of the rows, (n,), known or guessed; None where they are neither, or are not of the rows."""
    labels = _known(sample, index) if isinstance(index, Data) else guess.get(index)
    if labels is None or np.shape(labels) != (sample.n_rows,):
        return None
    return np.asarray(labels, dtype=np.int64)


def columns_of(sample: Sample, node: Data) -> Array | None:
    """Return a known number or vector of each row as columns, (n, p); None where there are none."""
    found = _known(sample, node)
    return None if found is None else np.asarray(found, dtype=np.float64).reshape(sample.n_rows, -1)


def _known(sample: Sample, node: Data) -> AnyArray | None:
    """Return what each row has of a known array; None where it is sparse, or missing in part."""
    key = ColumnKey(node.name)
    found = sample.columns.get(key)
    return None if found is None or issparse(found) or key.observed in sample.columns else np.asarray(found)
