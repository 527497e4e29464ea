"""Rows judged by fits without them: predictions of what was observed, and how probable their groups are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....posterior.prediction.residuals import from_the_rest
from ..seen import judged_by_others


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, each judged by a fit to others.

    Attributes
    ----------
    rows
        Their numbers, (M,).
    predictions
        Name of an observed variable -> mean and standard deviation of its predictions, (M, ...).
    certainty
        Name of a hidden Categorical -> the probability of the most probable category, (M, ...).
    words
        How this was found.
    """

    rows: AnyArray
    predictions: Mapping[str, tuple[Array, Array]]
    certainty: Mapping[str, Array]
    words: str


def held_out_of(subject: Any, leaves: Sequence[str], groups: Sequence[str]) -> HeldOut | str:
    """Return what fits without them say of the rows of a fit; or why there is nothing.

    Parameters
    ----------
    subject
        What the page is about, with data.
    leaves
        Names of observed variables that known columns predict.
    groups
        Names of hidden Categoricals.
    """
    posterior, data = subject.posterior, dict(subject.data or {})
    if subject.seen is None or not subject.seen.is_fit:
        return "fits without some of the rows need all rows of the fit"

    def judge(other: Any, rows: AnyArray) -> tuple[dict[str, tuple[Array, Array]], dict[str, Array]]:
        told = {name: _predicted(other, data, name, rows) for name in leaves}
        local = other.local(data) if groups else {}
        return told, {name: np.asarray(local[name].probabilities)[rows].max(axis=-1) for name in groups}

    n_rows = int((posterior.data_summary or {}).get("rows", 0))
    found = judged_by_others(posterior, data, n_rows, judge)
    if isinstance(found, str):
        return found
    parts = [own for _, own in found.parts]
    return HeldOut(
        np.concatenate([rows for rows, _ in found.parts]),
        {
            name: (
                np.concatenate([told[name][0] for told, _ in parts]),
                np.concatenate([told[name][1] for told, _ in parts]),
            )
            for name in leaves
        },
        {name: np.concatenate([sure[name] for _, sure in parts]) for name in groups},
        found.words,
    )


def _predicted(posterior: Any, data: Mapping[str, Any], name: str, rows: AnyArray) -> tuple[Array, Array]:
    """Return mean and standard deviation of predictions of an observed variable for some of the rows."""
    told = from_the_rest(posterior, data, name)
    return np.asarray(told.mean)[rows], np.asarray(told.standard_deviation)[rows]
