"""Own tables: labels of columns, or of groups, each of which chooses among parameters of its own column.

A column that has its clusters' parameters, or those of all rows, by a label of its own, is held by whichever it began
with: what the label does not choose knows nothing of the column, and stays at its prior. No update of the label alone
corrects that. So the label of each column in turn is changed, the parameters following, and all changes that raise the
objective are made at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._errors import ImproperError
from .candidates import start_from
from .components.gates import Gate
from .exchange import labels_of
from .guesses.basis import Basis
from .guesses.of_columns import choosing_of_their_own, in_best_columns
from .moves import better, settled
from .race import Begun

_ROUNDS = 4
"""Times that the labels of all columns are changed: those of the rows follow them."""


def with_own_tables_chosen(basis: Basis, begun: Begun) -> Begun:
    """Return the start of a fit, or one with other labels of its columns if that leads higher."""
    for gate in choosing_of_their_own(basis):
        begun = _chosen(basis, gate, begun)
    return begun


def _chosen(basis: Basis, gate: Gate, begun: Begun) -> Begun:
    for _ in range(_ROUNDS):
        begun, elbo = settled(basis, begun)
        try:
            labels = labels_of(basis, begun.start)
            changed = in_best_columns(basis, gate, labels)
        except ImproperError:
            # the first pass over all rows says what is wrong with them
            return begun
        if np.array_equal(changed[gate.variable], labels[gate.variable]):
            return begun
        found = better(basis, elbo, [partial(start_from, basis, changed)])
        if found is None:
            return begun
        begun = found
    return begun
