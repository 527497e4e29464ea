"""Checkpoints: the state of a fit and the ends of its starts as plain values, and restored to the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..ascent.driver import Result
from ..ascent.plain_states import by_name, by_variable, factors_of, in_frame_of, plain_frame
from ..ascent.problem import Problem
from ..ascent.schedule import Schedule
from ..ascent.status import Status
from ..rows.row_map import RowMap
from .plain_values import plain, restored


@dataclass(frozen=True)
class States:
    """States of a fit as plain values, and again from them.

    Attributes
    ----------
    schedule
        What the states are.
    problem, rows
        Of the model and its data.
    """

    schedule: Schedule[Any]
    problem: Problem
    rows: RowMap

    def plain(self, state: Any) -> dict[str, Any]:
        """Return where a fit is as plain values.

        Raises
        ------
        ParameterError
            If something of it cannot be kept: the schedule says what.
        """
        return {name: plain(value) for name, value in self.schedule.to_plain(state).items()}

    def restored(self, document: Mapping[str, Any]) -> Any:
        """Return where a fit was, which plain values hold.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If they hold no state.
        """
        return self.schedule.from_plain(_restored(document), self.problem, self.rows)


def plain_result(result: Result) -> dict[str, Any]:
    """Return the end of a start as plain values."""
    document = {
        "centres": plain_frame(result.problem),
        "q": by_name(result.q),
        "elbo": float(result.elbo),
        "trace": np.array(result.trace),
        "terms": {name: float(value) for name, value in result.by_factor().items()},
        "status": result.status.value,
        "n_iter": result.n_iter,
        "fell_at": result.fell_at,
        "lost_in": result.lost_in,
        "lost": float(result.lost),
        "beliefs": [[name, belief] for name, belief in result.beliefs.items()],
    }
    return {name: plain(value) for name, value in document.items()}


def restored_result(document: Mapping[str, Any], problem: Problem) -> Result:
    """Return the end that plain values hold, of a problem of the same model and data.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they hold none.
    """
    document = _restored(document)
    # where globals share factors, starts begin without these, and end with them
    problem = in_frame_of(document["centres"], problem.together)
    kept = {name: document[name] for name in ("elbo", "trace", "n_iter", "fell_at", "lost_in", "lost")}
    return Result(
        problem=problem,
        q=factors_of(document["q"], problem),
        by_factor=partial(dict, document["terms"]),
        status=Status(document["status"]),
        beliefs={v.name: belief for v, belief in by_variable(document["beliefs"], problem).items()},
        **kept,
    )


def _restored(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: restored(value) for name, value in document.items()}
