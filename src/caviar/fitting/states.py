"""The state of a fit before its first iteration, for those who judge what could be changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.ascent.state import AscentState, begin
from ..engine.rows.row_map import RowMap
from ..engine.starts.from_user import given_start
from .model import Model
from .rows import as_executor, bound_of, rows_of


def state_at(
    model: Model, data: Mapping[str, Any], init: Mapping[str, Any], sample_weight: Any = None
) -> AscentState:
    """Return the state in which a fit with these arguments begins, as :meth:`caviar.Model.fit` takes them."""
    met = model._met(data, None)
    bound = bound_of(model, met, sample_weight, None, None, ((), None))
    problem = model._problem(bound, (), None)
    rows = RowMap(problem.rows, rows_of(problem.bound), as_executor(None))
    begun, q = given_start(problem, init, rows).start
    return begin(begun, q, rows)
