"""Counts: what observed ones have in common, and why numbers are not counts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from ..._typing import AnyArray, Array
from ...families.approximations.by_moments import COUNTS
from .links import Answer


def no_counts(value: Any) -> str:
    """Return what is wrong with numbers that are not counts, or an empty string."""
    entries = value.data if issparse(value) else value
    wrong = (entries < 0) | (entries != np.floor(entries))
    if not np.any(wrong):
        return ""
    where = tuple(np.argwhere(wrong)[0])
    first = where[:1]
    if issparse(value):
        first = (np.searchsorted(value.indptr, where[0], side="right") - 1,)
    place = f"; row {first[0]} has" if first else "; got"
    return f"must hold counts, whole numbers from 0{place} {entries[where]:g}"


class CountAnswer(Answer):
    """An observed count, which may have a link."""

    is_discrete = True
    by_moments: ClassVar = COUNTS

    def evened(self, value: Array) -> Array:
        """Return square roots."""
        return np.sqrt(value)

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers that are not counts."""
        return no_counts(value)
