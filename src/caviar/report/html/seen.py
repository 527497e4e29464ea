"""Whether a fit has seen the rows of a page, and whether figures of these rows test it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ..._errors import CaviarError
from ..._typing import AnyArray

FOLDS = 10
"""Parts of the rows, each of which is left out of a fit once."""

_MOST_ROW_PASSES = 20_000_000
"""Rows times passes over them of all fits without some of the rows."""
_PASSES = 100
"""Passes of such a fit; it begins near its end, and most take a tenth of these."""
_FEW = 0.05
"""Share of rows that may have been seen among rows that are called new."""


@dataclass(frozen=True)
class Seen:
    """Whether a fit has seen rows.

    Attributes
    ----------
    is_fit
        Whether they are the data of the fit, no more and no less.
    share
        Of the rows that were among those of the fit; NaN where it is not known.
    """

    is_fit: bool
    share: float

    @property
    def is_new(self) -> bool:
        """Whether the rows are new to the fit, which makes its predictions of them a test."""
        return not self.is_fit and self.share <= _FEW

    @property
    def label(self) -> str:
        """The word for figures of these rows; empty for new rows."""
        if self.is_new:
            return ""
        return "perhaps in-sample" if np.isnan(self.share) and not self.is_fit else "in-sample"

    @property
    def words(self) -> str:
        """Whether the fit has seen these rows, in words."""
        if self.is_fit:
            return "the fit has seen these rows"
        if np.isnan(self.share):
            return (
                "it is not known whether the fit has seen these rows, for its file is of an earlier version"
            )
        if self.is_new:
            return "the fit has not seen these rows"
        if self.share == 1:
            return "the fit has seen these rows, with others, other weights or labels"
        return f"the fit has seen about {self.share:.0%} of these rows"


def seen_of(posterior: Any, data: Mapping[str, Any]) -> Seen:
    """Return what a fit has seen of data. Two passes over them."""
    return Seen(posterior.is_fit_of(data), posterior.share_seen(data))


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows judged by fits without them.

    Attributes
    ----------
    parts
        For each part of the rows their numbers, and what a fit to the others says of them.
    words
        How this was found.
    """

    parts: list[tuple[AnyArray, Any]]
    words: str


def judged_by_others(
    posterior: Any, data: Mapping[str, Any], n_rows: int, judge: Callable[[Any, AnyArray], Any]
) -> Judged | str:
    """Return what fits without them say of the rows of a fit; or why there is nothing.

    Parameters
    ----------
    posterior
        Of the fit.
    data
        Those of the fit.
    n_rows
        Their number.
    judge
        From the posterior of another fit and the numbers of the rows that it has not seen: what it says of these.
    """
    n_tried, parts = n_folds_tried(n_rows), []
    if not n_tried:
        return f"fits without some of {n_rows:,} rows are not tried for a report"
    try:
        for rows, other in islice(posterior.cross_validate(data, n_folds=FOLDS), n_tried):
            if not other.converged:
                return "fits without some of the rows did not settle"
            parts.append((rows, judge(other, rows)))
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    return Judged(parts, folds_told(n_tried))


def n_folds_tried(n_rows: int) -> int:
    """Return how many of ten parts of rows are left out of a fit once: fewer of many rows, and none of a million.

    Examples
    --------
    >>> n_folds_tried(272), n_folds_tried(50_000), n_folds_tried(1_000_000), n_folds_tried(5)
    (10, 4, 0, 0)
    """
    return min(FOLDS, _MOST_ROW_PASSES // (_PASSES * n_rows)) if n_rows >= FOLDS else 0


def folds_told(n_tried: int) -> str:
    """Return how rows were judged that were left out.

    Examples
    --------
    >>> print(folds_told(10))
    by a fit without it (10-fold cross-validation)
    >>> print(folds_told(4))
    by a fit without it (4 of 10 folds of cross-validation)
    """
    folds = (
        f"{FOLDS}-fold cross-validation"
        if n_tried == FOLDS
        else f"{n_tried} of {FOLDS} folds of cross-validation"
    )
    return f"by a fit without it ({folds})"
