"""Rows judged by fits without them: how rare they are, and how probable their component is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ..seen import Seen, judged_by_others
from .judged import JudgedRows, judge


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
    if not isinstance(rows, np.ndarray):
        return f"fits without some of {len(rows):,} rows are not tried for a report"
    other = copy.copy(estimator)

    def judge_some(posterior: Any, own: AnyArray) -> JudgedRows:
        other._keep(posterior)
        return judge(other, rows[own])

    found = judged_by_others(estimator.posterior_, {"x": estimator._values(rows)}, len(rows), judge_some)
    if isinstance(found, str):
        return found
    judged = [own for _, own in found.parts]
    return HeldOut(
        np.concatenate([own.tails for own in judged]),
        np.concatenate([own.certainty for own in judged]),
        found.words,
    )
