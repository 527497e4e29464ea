"""Labels of a row that depend on each other, at their most probable combination: where a cold start begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Array
from ..local.categorical import CategoricalFactor
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
    coupled = [own for own in unknown if _is_coupled_label(own)]
    sizes = [own.factor.n_rows for own in coupled]
    if len(coupled) < 2 or np.prod(np.array(sizes, dtype=float)) > _MOST_COMBINATIONS:
        return {}
    n_rows = work.rows.n_rows
    best = np.full(n_rows, -np.inf)
    labels = np.zeros((len(coupled), n_rows), dtype=np.intp)

    def visit(chosen: list[int], score: Array) -> None:
        nonlocal best
        own = coupled[len(chosen)]
        natural = own.natural(work).copy()
        if work.coefficients.zeros is not None:
            natural -= _NEVER * own.zeros(work, work.coefficients.zeros)
        if len(chosen) + 1 < len(coupled):
            for label in range(own.factor.n_rows):
                point = np.zeros((own.factor.n_rows, n_rows))
                point[label] = 1.0
                work.state[own.factor.key] = point
                visit([*chosen, label], score + natural[label])
            del work.state[own.factor.key]
            return
        last = natural.argmax(axis=0)
        total = score + natural.max(axis=0)
        is_better = total > best
        labels[:, is_better] = np.vstack([*(np.full(len(last), c) for c in chosen), last])[:, is_better]
        best = np.where(is_better, total, best)

    visit([], np.zeros(n_rows))
    return {
        own.factor.key: (np.arange(own.factor.n_rows)[:, None] == chosen).astype(np.float64)
        for own, chosen in zip(coupled, labels, strict=True)
    }


def _is_coupled_label(own: FactorOfRows) -> bool:
    """Whether a factor is that of one label a row, and depends on another local factor."""
    factor = own.factor
    return isinstance(factor, CategoricalFactor) and len(factor.variables[0].plates) == 1 and own.is_coupled
