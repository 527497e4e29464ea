"""What fits without them say of rows: predictions of what was observed, and how probable their groups are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ...._typing import AnyArray, Array
from ..seen import FOLDS, folds_told, n_folds_tried
from .subject import Subject

__all__ = ["HeldOut", "held_out_of"]


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


def held_out_of(subject: Subject, leaves: Sequence[str], groups: Sequence[str]) -> HeldOut | str:
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
    n_rows = int((posterior.data_summary or {}).get("rows", 0))
    n_tried = n_folds_tried(n_rows)
    if not n_tried:
        return f"fits without some of {n_rows:,} rows are not tried for a report"
    found: list[tuple[AnyArray, dict[str, tuple[Array, Array]], dict[str, Array]]] = []
    try:
        for rows, other in islice(posterior.cross_validate(data, n_folds=FOLDS), n_tried):
            if not other.converged:
                return "fits without some of the rows did not settle"
            told = {name: _predicted(other, data, name, rows) for name in leaves}
            local = other.local(data) if groups else {}
            sure = {name: np.asarray(local[name].probabilities)[rows].max(axis=-1) for name in groups}
            found.append((rows, told, sure))
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    rows = np.concatenate([own for own, *_ in found])
    return HeldOut(
        rows,
        {
            name: (
                np.concatenate([told[name][0] for _, told, _ in found]),
                np.concatenate([told[name][1] for _, told, _ in found]),
            )
            for name in leaves
        },
        {name: np.concatenate([sure[name] for *_, sure in found]) for name in groups},
        folds_told(n_tried),
    )


def _predicted(posterior: Any, data: Mapping[str, Any], name: str, rows: AnyArray) -> tuple[Array, Array]:
    """Return mean and standard deviation of predictions of an observed variable for some of the rows."""
    told = posterior.predict({other: value for other, value in data.items() if other != name})[name]
    return np.asarray(told.mean)[rows], np.asarray(told.standard_deviation)[rows]
