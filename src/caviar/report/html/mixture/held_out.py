"""What fits without them say of rows: how rare they are, and how probable their component is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ...._typing import Array
from ..seen import FOLDS, Seen, folds_told, n_folds_tried
from .rows import judge

__all__ = ["HeldOut", "held_out_of"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, each judged by a fit to others.

    Attributes
    ----------
    tails
        Share of rows of the fitted density that are less expected than each, (M,); NaN where it was not found out.
    certainty
        Probability of the most probable component of each, (M,).
    words
        How this was found.
    """

    tails: Array
    certainty: Array
    words: str


def held_out_of(estimator: Any, rows: Any, seen: Seen) -> HeldOut | str:
    """Return what fits without them say of the rows of a fit; or why there is nothing.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    rows
        Shape (N, D); NaN where an entry is missing.
    seen
        What the fit has seen of the rows.
    """
    if not seen.is_fit:
        return "fits without some of the rows need all rows of the fit, with their weights and labels"
    n_tried = n_folds_tried(len(rows))
    if not n_tried or not isinstance(rows, np.ndarray):
        return f"fits without some of {len(rows):,} rows are not tried for a report"
    other, found = copy.copy(estimator), []
    try:
        folds = estimator.posterior_.cross_validate({"x": estimator._values(rows)}, n_folds=FOLDS)
        for own, posterior in islice(folds, n_tried):
            if not posterior.converged:
                return "fits without some of the rows did not settle"
            other._keep(posterior)
            found.append(judge(other, rows[own]))
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    return HeldOut(
        np.concatenate([judged.tails for judged in found]),
        np.concatenate([judged.certainty for judged in found]),
        folds_told(n_tried),
    )
