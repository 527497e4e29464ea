"""Documents that are put side by side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._typing import AnyArray


def alike_documents(lengths: AnyArray, most: int) -> Iterator[AnyArray]:
    """Yield groups of documents with about the same number of different words, limited in the total number of words.

    Documents without words are left out.
    """
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    start = 0
    while start < len(order):
        # the longest of a group decides its width: take as many as fit at the width of the last
        widths = lengths[order[start : start + most]] * np.arange(1, len(order[start : start + most]) + 1)
        stop = start + max(1, int(np.searchsorted(widths, most, side="right")))
        yield order[start:stop]
        start = stop
