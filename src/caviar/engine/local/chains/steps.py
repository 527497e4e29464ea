"""What is known of the steps of a chain: where sequences begin, inputs, weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...._typing import AnyArray, Array
from ...design.keys import ColumnKey


@dataclass(frozen=True)
class Starts:
    """Where sequences begin, as the rows say.

    Attributes
    ----------
    column
        The column of the rows that tells it, or None.
    everywhere
        Without a column, whether each row is a sequence; otherwise all rows are one.
    """

    column: ColumnKey | None
    everywhere: bool = False

    def among(self, columns: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
        """Return whether a sequence begins at each row; the first row always begins one."""
        return np.full(n_rows, self.everywhere) if self.column is None else columns[self.column].astype(bool)


@dataclass(frozen=True)
class Inputs:
    """The known inputs of a chain, from the rows or the same for all steps.

    Attributes
    ----------
    column
        The column of the rows that tells it, or None.
    everywhere
        If there is no column, the inputs of each step, shape (P,).
    """

    column: ColumnKey | None
    everywhere: Array | None = None

    def among(self, columns: Mapping[ColumnKey, AnyArray], n_rows: int) -> Array:
        """Return the inputs of each row, (B, P)."""
        if self.column is not None:
            return np.asarray(columns[self.column], dtype=np.float64)
        assert self.everywhere is not None
        return np.broadcast_to(self.everywhere, (n_rows, len(self.everywhere)))


@dataclass(frozen=True)
class Steps:
    """Known facts about successive steps.

    Attributes
    ----------
    starts
        Whether a sequence begins at each step, shape (B,).
    inputs
        Inputs of each step, (B, P), or None.
    weights
        How often the sequence of each step counts, (B,); None if all count once.
    choices
        Known labels of each step that choose how it goes, (B,) by name.
    """

    starts: AnyArray
    inputs: Array | None = None
    weights: Array | None = None
    choices: Mapping[str, AnyArray] = field(default_factory=dict)

    def at(self, places: slice | AnyArray) -> Steps:
        """Return the facts about some of the steps."""
        inputs, weights = (None if own is None else own[places] for own in (self.inputs, self.weights))
        choices = {name: own[places] for name, own in self.choices.items()}
        return Steps(self.starts[places], inputs, weights, choices)

    def put(self, places: slice | AnyArray, steps: Steps) -> None:
        """Copy the facts about some of the steps from others."""
        self.starts[places] = steps.starts
        if self.inputs is not None:
            self.inputs[places] = steps.inputs
        for name, own in self.choices.items():
            own[places] = steps.choices[name]

    @property
    def after(self) -> AnyArray:
        """Positions of the steps that follow another step."""
        return np.flatnonzero(~self.starts[1:]) + 1
