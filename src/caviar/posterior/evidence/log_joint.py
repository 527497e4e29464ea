"""The log joint density of many draws together: the model repeated over a plate of draws.

Nothing here knows of terms: densities are those of the families, and of answers behind a link given their predictor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._typing import AnyArray, Array
from ...language import Node, Plate, Variable
from ...language.replication import replicated
from ..simulation import log_densities, one_by_one


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
    return LogJoint(nodes, known, n_draws, counted)(draws)


class LogJoint:
    """The log density of draws together with known values, of several sets of as many draws.

    Parameters
    ----------
    nodes, known, n_draws, counted
        As for :func:`log_joints`.
    left_out
        Names of variables that are not part of the density, as the hidden number of each answer behind a link: the
        answer has its own density given the predictor.
    of
        Names of the variables of which the density is wanted; None: all.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        known: Mapping[str, Any],
        n_draws: int,
        counted: Mapping[str, AnyArray] | None = None,
        left_out: Collection[str] = (),
        of: Collection[str] | None = None,
    ) -> None:
        every_node, nodes = nodes, [node for node in nodes if node.name not in left_out]
        self._nodes, self._known, self._n_draws, self._counted = nodes, known, n_draws, counted or {}
        variables = [node for node in nodes if isinstance(node, Variable)]
        every = [own for own in variables if of is None or own.name in of]
        # chains are distributions of whole sequences, and the rows of nested plates are laid out draw by draw
        is_nested = any(plate.within is not None for node in nodes for plate in node.plates)
        self._apart = [variable.name for variable in every if is_nested or variable.summed]
        self._together = [variable.name for variable in every if variable.name not in self._apart]
        if self._together:
            plate = Plate(" ".join(node.name for node in nodes) + " draw", n_draws)
            # what is left out may be told of by what is not
            copies, _ = replicated(every_node, [], plate, {}, {}, _value_of)
            self._copies = [node for node in copies if node.name not in left_out]
            dense = {name: own.toarray() if issparse(own) else own for name, own in known.items()}
            self._repeated = {
                name: np.broadcast_to(own, (n_draws, *np.shape(own))) for name, own in dense.items()
            }

    def __call__(self, draws: Mapping[str, Any]) -> Array:
        """Return the log density of each draw, shape (draws,)."""
        total = np.zeros(self._n_draws)
        for name, density in self.each(draws).items():
            total += self._summed(density, name)
        for number, drawn in enumerate(one_by_one(draws, self._n_draws if self._apart else 0)):
            for name, density in log_densities(self._nodes, {**self._known, **drawn}, self._apart).items():
                total[number] += self._summed(density[np.newaxis], name)[0]
        return total

    def each(self, draws: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Return the log density of each repetition of what is evaluated together, by name: (draws, plates...)."""
        if not self._together:
            return {}
        return log_densities(self._copies, {**self._repeated, **draws}, self._together)

    def _summed(self, density: AnyArray, name: str) -> Array:
        marked = self._counted.get(name)
        return (density if marked is None else density[:, marked]).reshape(len(density), -1).sum(axis=1)


def _value_of(constant: Any) -> Array:
    return constant.value
