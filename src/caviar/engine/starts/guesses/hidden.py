"""Hidden points: estimates, from the data alone, of values whose parents are chosen by labels of groups.

A label of groups has no values of its own: it says about which mean the hidden location of each group lies. With all
labels alike each group is brought to where its own data put it, and these places are the points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._typing import Array
from ....language import Gamma, MultivariateNormal, Normal, Variable
from ...ascent.problem import Problem
from ...local.statistics import LocalState, Rows
from ...rows.row_map import RowMap
from ...rows.subsample import Sample
from ..clustering.partitions import in_units
from ..components.gates import Gate
from ..factors.pooling import alone
from ..factors.swept import swept


def hidden_points(
    problem: Problem,
    gate: Gate,
    q: Mapping[Variable, Any],
    draws: LocalState,
    sample: Sample,
    row_map: RowMap,
) -> Array | None:
    """Return the places (groups, d) of the hidden values whose parents a label of groups chooses, if there are such.

    Parameters
    ----------
    problem, gate
        The model, and a label that is a global variable.
    q
        Globals at their priors.
    draws
        Local factors at random.
    sample, row_map
        Rows in the place of all, and passes over them.
    """
    variables = [variable for variable in problem.order if _has_chosen_parent(variable, gate)]
    if gate.factor is not None or not gate.variable.plates or not variables:
        return None

    def give(rows: Rows) -> LocalState:
        return {key: values[:, rows.where].copy() for key, values in draws.items()}

    problem, _, arrays = swept(problem, dict(q), give, sample, row_map, frozenset())
    columns = []
    for variable in variables:
        factor = alone(problem, variable, arrays)
        if factor is not None:
            own = _by_group(variable, gate, np.asarray(factor.mean))
            columns.append(in_units(own, np.ones(len(own))))
    return np.concatenate(columns, axis=1) if columns else None


def _has_chosen_parent(variable: Variable, gate: Gate) -> bool:
    return (
        isinstance(variable, Normal | MultivariateNormal | Gamma)
        and set(gate.variable.plates) <= set(variable.plates)
        and any(slot.chosen_by(gate.variable) is not None for slot in variable.slots.values())
    )


def _by_group(variable: Variable, gate: Gate, values: Array) -> Array:
    """Return values with the plates of the gate first, (groups, ...); those of a skew family as logarithms."""
    own = [variable.plates.index(plate) for plate in gate.variable.plates]
    turned = np.moveaxis(values, own, range(len(own)))
    flat = turned.reshape(int(np.prod(turned.shape[: len(own)])), -1)
    return np.log(flat) if isinstance(variable, Gamma) else flat
