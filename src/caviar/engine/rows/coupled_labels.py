"""Labels of a row that depend on each other, at their most probable combination: where a cold start begins.

A number 0 or 1 of a row is a label, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Array
from ..local.statistics import LocalState
from .inference import FactorOfRows
from .terms.row_term import BlockWork

_MOST_COMBINATIONS = 64
"""Combinations of labels of a row that are tried before local factors are brought to their optimum one by one."""

_NEVER = 1e100
"""Nats that a known probability of zero costs a combination of labels."""


def best_labels(unknown: Sequence[FactorOfRows], work: BlockWork) -> LocalState:
    """Return labels of a row that depend on each other, at their most probable combination; none where few do.

    Each factor by itself, the first one without the others, would be caught where two labels are wrong together. A
    combination is scored by the natural parameters of each factor given those before it.
    """
    coupled = [
        (own, values) for own in unknown if own.is_coupled and (values := own.factor.values) is not None
    ]
    sizes = [values.shape[1] for _, values in coupled]
    if len(coupled) < 2 or np.prod(np.array(sizes, dtype=float)) > _MOST_COMBINATIONS:
        return {}
    n_rows = work.rows.n_rows
    best = np.full(n_rows, -np.inf)
    labels = np.zeros((len(coupled), n_rows), dtype=np.intp)

    def visit(chosen: list[int], score: Array) -> None:
        nonlocal best
        own, values = coupled[len(chosen)]
        scores = _scores(own, values, work)
        if len(chosen) + 1 < len(coupled):
            for label, value in enumerate(values.T):
                work.state[own.factor.key] = np.repeat(value[:, None], n_rows, axis=1)
                visit([*chosen, label], score + scores[label])
            del work.state[own.factor.key]
            return
        last = scores.argmax(axis=0)
        total = score + scores.max(axis=0)
        is_better = total > best
        labels[:, is_better] = np.vstack([*(np.full(len(last), c) for c in chosen), last])[:, is_better]
        best = np.where(is_better, total, best)

    visit([], np.zeros(n_rows))
    return {own.factor.key: values[:, chosen] for (own, values), chosen in zip(coupled, labels, strict=True)}


def _scores(own: FactorOfRows, values: Array, work: BlockWork) -> Array:
    """Return what each value adds to the log density of each row, (V, B), given the other factors."""
    natural = own.natural(work).copy()
    if work.coefficients.zeros is not None:
        natural -= _NEVER * own.zeros(work, work.coefficients.zeros)
    # labels that are excluded have minus infinity, which counts in their own score only
    return np.stack([natural[value != 0].sum(axis=0) for value in values.T])
