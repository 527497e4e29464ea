"""The factor of a chain: one factor over the rows of each sequence, exact inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..._errors import DataError, ModelError
from ..._typing import AnyArray, Array
from ...language import Variable
from ..binding.bound_model import BoundModel
from ..design.keys import ColumnKey
from ..design.scratch import Scratch
from .local_factor import LocalFactor
from .statistics import Arrays


class Path(Protocol):
    """The distribution of the states of some whole sequences."""

    @property
    def smoothing(self) -> Any:
        """Moments of the states and sums over the rows, with their ``entropy``."""
        ...


@dataclass(frozen=True)
class Starts:
    """Where sequences begin, told by the rows themselves.

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
        """Return whether a sequence begins at each row; the first row of all begins one, whatever it says."""
        return np.full(n_rows, self.everywhere) if self.column is None else columns[self.column].astype(bool)


@dataclass(frozen=True)
class SequenceResponse:
    """How the states of whole sequences respond to D changes.

    Attributes
    ----------
    expected
        Expected statistics of the rows, (E, B).
    changes
        Theirs, (D, E, B).
    sums
        Of the sums over the rows by key, an axis of the changes first.
    """

    expected: Array
    changes: Array
    sums: Arrays


class ChainFactor(LocalFactor):
    """The factor of a variable whose rows depend on each other.

    What a row says of its state is a factor a row, so that all that needs marginals only is shared. The marginals come
    from whole sequences, by :meth:`path`; rows alone give those of a start, which knows no neighbours.

    Attributes
    ----------
    starts
        Where sequences begin.
    """

    starts: Starts

    @abstractmethod
    def path(self, natural: Array, starts: AnyArray, sums: Mapping[Hashable, Array]) -> Path:
        """Return the distribution of the states of whole sequences.

        Parameters
        ----------
        natural
            What each row says of its state, natural parameters (E, B).
        starts
            Whether a sequence begins at each row, shape (B,).
        sums
            Key of a statistic summed over the rows -> its natural parameter.
        """

    @abstractmethod
    def continued(self, path: Any, is_counted: AnyArray, starts: AnyArray, means: Mapping[str, Array]) -> Any:
        """Return the distribution of the states of more rows: forecasts after the last observation of each sequence.

        Parameters
        ----------
        path
            The distribution of the rows that lead to an observation.
        is_counted
            Which of all rows these are, shape (N,).
        starts
            Whether a sequence begins at each of all rows, shape (N,).
        means
            Slot of the chain -> expectation of what is there.
        """

    def smoothing(
        self, natural: Array, starts: AnyArray, sums: Mapping[Hashable, Array], scratch: Scratch
    ) -> Any:
        """Return the moments of the states of whole sequences and sums over their rows; they may lie in the scratch."""
        return self.path(natural, starts, sums).smoothing

    @abstractmethod
    def response_of_sequences(
        self,
        natural: Array,
        starts: AnyArray,
        sums: Mapping[Hashable, Array],
        changes: Array,
        changes_of_sums: Sequence[Mapping[Hashable, Array]],
    ) -> SequenceResponse:
        """Return how the states of whole sequences respond to D changes.

        Parameters
        ----------
        natural, starts, sums
            As for :meth:`path`.
        changes
            Of what each row says of its state, (D, E, B).
        changes_of_sums
            Of the natural parameters of statistics summed over the rows, by key; none where one does not change.
        """

    @abstractmethod
    def expected(self, smoothing: Any) -> Array:
        """Return the expected statistics of the rows, (E, B)."""

    @abstractmethod
    def expected_of_path(self, path: Any) -> Array:
        """Return the expected statistics of the rows of a whole path, forecasts too, (E, N)."""

    @abstractmethod
    def sums(self, smoothing: Any) -> Arrays:
        """Return the sums over the rows by key."""

    @abstractmethod
    def sums_given(self, expected: Array, starts: AnyArray) -> Arrays:
        """Return the sums over the rows, states independent with these statistics (E, B)."""

    @abstractmethod
    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return statistics (E, n) of distinct rows for a start, from what each says of its state, (E, n)."""


def starts_of(bound: BoundModel, variable: Variable) -> Starts:
    """Return where the sequences of a chain begin."""
    if "starts" not in variable.slots:
        return Starts(None)
    node = variable.slots["starts"].node
    return (
        Starts(ColumnKey(node.name))
        if bound.is_local(node)
        else Starts(None, bool(np.any(bound.values_of(node))))
    )


def chains_of(factors: Sequence[LocalFactor]) -> tuple[ChainFactor, ...]:
    """Return the chains among the factors."""
    return tuple(factor for factor in factors if isinstance(factor, ChainFactor))


def begins_of(chains: Sequence[ChainFactor], columns: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
    """Return at which rows sequences of all the chains begin, (B,): there the rows may be cut into blocks."""
    begins = np.ones(n_rows, dtype=bool)
    for chain in chains:
        begins &= chain.starts.among(columns, n_rows)
    return begins


def check_chains(bound: BoundModel) -> None:
    """Check that chains are hidden and run along the data plate.

    Raises
    ------
    ModelError, DataError
        If not.
    """
    for node in bound.nodes:
        if not isinstance(node, Variable) or not node.summed:
            continue
        kind = type(node).__name__
        if bound.is_known(node):
            raise DataError(f"{kind} '{node.name}' is hidden and cannot be given as data; leave it out")
        if not bound.is_local(node):
            plate = "none" if bound.data_plate is None else f"'{bound.data_plate.name}'"
            raise ModelError(
                f"{kind} '{node.name}' runs along plate '{node.plates[0].name}', but the data plate is {plate}"
            )
