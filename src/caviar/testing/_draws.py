"""Log densities of many draws together: the model repeated over a plate of draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from caviar._typing import AnyArray, Array
from caviar.language import Node, Plate, Variable
from caviar.language.replication import replicated
from caviar.posterior.simulation import log_densities, one_by_one

__all__ = ["log_joints", "stacked"]


def stacked(values: Sequence[Any]) -> Any:
    """Return values of several draws with the draws as first axis; those of joint factors are pairs."""
    if isinstance(values[0], tuple):
        return type(values[0])(*(np.stack(part) for part in zip(*values, strict=True)))
    return np.stack(values)


def log_joints(
    nodes: Sequence[Node],
    known: Mapping[str, Any],
    draws: Mapping[str, Any],
    n_draws: int,
    counted: Mapping[str, AnyArray] | None = None,
) -> Array:
    """Return the log density of each draw together with known values, shape (draws,); a flat prior has density 1.

    Parameters
    ----------
    nodes
        Of the model, each variable before its parents.
    known
        Name -> values that are the same in all draws.
    draws
        Name -> values, (draws, shape of one...).
    counted
        Name of a variable -> which repetitions count, shape (plates...); without a name all.
    """
    total, every = np.zeros(n_draws), [node for node in nodes if isinstance(node, Variable)]
    # chains are distributions of whole sequences, and the rows of nested plates are laid out draw by draw
    is_nested = any(plate.within is not None for node in nodes for plate in node.plates)
    apart = [variable.name for variable in every if is_nested or variable.summed]
    together = [variable.name for variable in every if variable.name not in apart]
    for name, density in _together(nodes, known, draws, n_draws, together).items():
        total += _summed(density, name, counted)
    for number, drawn in enumerate(one_by_one(draws, n_draws if apart else 0)):
        for name, density in log_densities(nodes, {**known, **drawn}, apart).items():
            total[number] += _summed(density[np.newaxis], name, counted)[0]
    return total


def _together(
    nodes: Sequence[Node], known: Mapping[str, Any], draws: Mapping[str, Any], n_draws: int, of: Sequence[str]
) -> dict[str, AnyArray]:
    """Return the log densities of some variables in all draws, (draws, plates...)."""
    if not of:
        return {}
    plate = Plate(" ".join(node.name for node in nodes) + " draw", n_draws)
    copies, _ = replicated(nodes, [], plate, {}, {}, _value_of)
    dense = {name: value.toarray() if issparse(value) else value for name, value in known.items()}
    repeated = {name: np.broadcast_to(value, (n_draws, *np.shape(value))) for name, value in dense.items()}
    return log_densities(copies, {**repeated, **draws}, of)


def _value_of(constant: Any) -> Array:
    return constant.value


def _summed(density: AnyArray, name: str, counted: Mapping[str, AnyArray] | None) -> Array:
    marked = (counted or {}).get(name)
    return (density if marked is None else density[:, marked]).reshape(len(density), -1).sum(axis=1)
