"""Labels of groups whose frequencies are in predictors: which of them count, where groups are padded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._typing import AnyArray
from ....language import Frequencies, Plate, Variable
from ....lazy.rows import in_memory
from .values import Observations, is_above, rows_first


def with_seen_labels(came: Observations, found: Mapping[Variable, Any]) -> dict[Variable, Any]:
    """Return which hidden repetitions count, (plates...), with those of labels that have frequencies among them.

    A label has one if its weight among the frequencies is not 0 and something was observed that depends on these, or if
    something was observed that depends on the label itself.

    Frequencies follow from their labels and have no repetitions that do not count.

    Parameters
    ----------
    found
        Which count of each variable; none where all do.
    """
    plate, observed, masks = came.plate, came.observed, came.masks
    counting = {variable: own for variable, own in found.items() if not isinstance(variable, Frequencies)}
    if plate is None:
        return counting
    for own in came.latent:
        if not isinstance(own, Frequencies) or own.plates != (plate,):
            continue
        label, weights = own.labels, in_memory(came.values[own.slots["weights"].node])
        direct = [
            leaf for leaf in observed if is_above(label, leaf) and set(label.plates) <= set(leaf.plates)
        ]
        if not all(leaf in masks for leaf in direct):
            continue
        answered = np.zeros(came.n_rows, dtype=bool)
        for leaf in (leaf for leaf in observed if is_above(own, leaf)):
            answered |= _any_of_row(in_memory(masks[leaf]), leaf, plate) if leaf in masks else True
        seen = (weights != 0) & answered[:, None]
        for leaf in direct:
            mask = rows_first(in_memory(masks[leaf]), leaf, plate)
            kept = [other for other in leaf.plates if other is not plate]
            seen = seen | mask.any(
                axis=tuple(i for i, other in enumerate(kept, 1) if other not in label.plates)
            )
        if label in came.told:
            seen |= came.told[label]
        if not seen.all():
            counting[label] = seen
    return counting


def _any_of_row(mask: AnyArray, leaf: Variable, plate: Plate) -> AnyArray:
    rows = rows_first(mask, leaf, plate)
    return rows.reshape(len(rows), -1).any(axis=1)
