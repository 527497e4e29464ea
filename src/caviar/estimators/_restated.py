"""Statements that an estimator makes again and again: of many fits, most differ in the values of constants alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ..fitting.model import Model
from ..language.structure import Structure

_MOST_STATEMENTS = 64
"""Statements that are remembered, those that were asked for last."""

_SEEN: Any = object()
"""In the place of a statement that was made once."""


class Restated:
    """Models of estimators by what they depend on besides values that the data give, without these values.

    What is stated once is stated in full. From the second time on the structure is kept, with the constants that do not
    depend on the data; further models are these with other values, after the slots have looked at them.
    """

    def __init__(self) -> None:
        # without a lock, as the structures themselves
        self._kept: dict[Hashable, tuple[Structure, Mapping[str, Array]]] = {}

    def model(self, key: Hashable, values: Mapping[str, Array], state: Callable[[], Model]) -> Model:
        """Return a model.

        Parameters
        ----------
        key
            What its statement depends on besides ``values``; equal keys must mean equal statements.
        values
            Of those constants, and smallest variances of precisions, that depend on the data, by name.
        state
            Returns it as it is stated in full.
        """
        found = self._kept.pop(key, None)
        if found is None or found is _SEEN:
            model = state()
            if found is None:
                found = _SEEN
            elif model.structure.nodes[0] is not model.nodes[0] and _are_constants_of(model, values):
                same = {name: own for name, own in model.constants.items() if name not in values}
                found = model.structure, same
        elif found[0].problem(values):
            # which the statement says in words
            model = state()
        else:
            # as the statement keeps them: also a number is an array
            arrays = {name: np.asarray(own, dtype=np.float64) for name, own in values.items()}
            model = Model._of(found[0], {**found[1], **arrays})
        self._kept[key] = found
        if len(self._kept) > _MOST_STATEMENTS:
            self._kept.pop(next(iter(list(self._kept))), None)
        return model


def _are_constants_of(model: Model, values: Mapping[str, Array]) -> bool:
    """Whether values are those that the statement has of its constants."""
    own = model.constants
    return all(name in own and np.array_equal(own[name], value) for name, value in values.items())


RESTATED = Restated()
"""Those of this process."""
