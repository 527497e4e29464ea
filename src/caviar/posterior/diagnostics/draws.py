"""Draws of the globals from q, with their densities under q and under the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ...engine.ascent.problem import Problem
from ...engine.evaluation.log_joints import log_joints
from ...engine.rows.row_map import RowMap
from ...families.shared.coupled_normals import by_variable
from ..simulation import nth_of, one_by_one


@dataclass(frozen=True)
class Draws:
    """Draws of all globals.

    Attributes
    ----------
    values
        Name -> draws, shape (n, plates..., event...); a pair (mean, precision) of these for a joint factor.
    log_q
        Log density of each draw under q, shape (n,), in nats. A point mass, and what is known, has none and adds 0.
    """

    values: Mapping[str, Any]
    log_q: Array

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the values of one draw after another by name."""
        yield from one_by_one(self.values, len(self.log_q))

    def log_joint(self, problem: Problem, row_map: RowMap, most_apart: float = np.inf) -> Array:
        """Return log p(x, globals) of each draw, the local variables integrated out: shape (n,).

        More than ``most_apart`` that would be evaluated one after another are refused with a ``ModelError``.
        """
        return log_joints(problem, self.values, row_map, most_apart)


def draws_of(factors: Mapping[str, Any], n: int, rng: np.random.Generator) -> Draws:
    """Return draws of independent factors, with their log densities."""
    values = {name: factor.sample(n, rng) for name, factor in factors.items()}
    log_q = np.zeros(n)
    for name, factor in factors.items():
        if factor.learnt is None:
            continue
        if factor.learnt is factor:
            log_q += factor.log_density(values[name]).reshape(n, -1).sum(axis=1)
        else:
            each = [factor.log_density(nth_of(values[name], i)) for i in range(n)]
            log_q += np.reshape(each, (n, -1)).sum(axis=1)
    return Draws(by_variable(values), log_q)
