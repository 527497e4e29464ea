"""Few data are copied before a fit, so that what is told of them can be found when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..engine.binding.bound_model import BoundModel
from ..engine.checkpoint.row_marks import RowMarks, marks_of
from ..engine.rows.row_map import RowMap
from ..names import NamedData, Placed
from ..posterior.looks import Looks
from ..posterior.posterior import Posterior
from .data_summary import summary_of_data

_FEW = 8_192
"""Numbers that are copied sooner than looked at."""


def of_its_own(met: NamedData, sample_weight: Any) -> tuple[NamedData, Any, bool]:
    """Return data and weights, and whether they are copies, which nobody can change: where they are few."""
    values, weight = met.values, sample_weight
    if type(values) is not Placed or not _are_arrays(
        [*values.values(), *(() if weight is None else (weight,))]
    ):
        return met, sample_weight, False
    own = Placed({name: value.copy("K") for name, value in values.items()})
    return replace(met, values=own), None if weight is None else weight.copy(), True


def _are_arrays(values: list[Any]) -> bool:
    """Whether all are plain arrays of numbers, and few of these."""
    if not all(type(own) is np.ndarray and own.dtype.kind in "biuf" for own in values):
        return False
    return sum([own.size for own in values]) <= _FEW


def looks_at(
    bound: BoundModel, row_map: RowMap, data: Any, names: list[str], prior: Posterior | None, is_own: bool
) -> Looks:
    """Return the looks at the data of a fit: to come where they are its own, and made where they are not.

    Parameters
    ----------
    bound, row_map
        The model with its data, and the map over the rows.
    data
        As they came, for the names of columns.
    names
        Of what makes a row of data.
    prior
        The posterior whose rows came before.
    is_own
        Whether the data are copies.
    """
    summary = partial(summary_of_data, bound, data)
    marks = partial(_marks, names, row_map.source, None if prior is None else (prior.row_marks,))
    if is_own:
        return Looks(summary, marks, {})
    made, marked = summary(), marks()
    return Looks(lambda: made, lambda: marked, {})


def _marks(names: list[str], source: Any, before: tuple[RowMarks | None] | None) -> RowMarks | None:
    """Return the marks of the rows of a fit, and of those of the fits before it; None where these are not known."""
    found = marks_of(names, source)
    if before is None or found is None:
        return found
    (earlier,) = before
    return None if earlier is None else earlier.and_those_of(found)
