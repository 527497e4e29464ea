"""The factor of a chain: one factor over the rows of each sequence, exact inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._errors import DataError, ModelError
from ...._typing import AnyArray, Array
from ....language import Node, Variable
from ...binding.bound_model import BoundModel
from ...design.keys import ColumnKey, StatisticKey
from ...design.scratch import Scratch
from ..local_factor import LocalFactor
from ..statistics import Arrays
from .steps import Inputs, Starts, Steps


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


@dataclass(frozen=True)
class Beside:
    """What is known of the other hidden values of all rows when a chain is forecast.

    Attributes
    ----------
    means
        Name -> expectation of its x, (..., N).
    paths
        Name of a chain -> the distribution of its states, with a forecast.
    moves
        Name of a chain of labels -> probabilities of the next state, (K, K), if all steps ahead have the same.
    """

    means: Mapping[str, Array]
    paths: Mapping[str, Any]
    moves: Mapping[str, Array | None]


@dataclass(frozen=True)
class Said:
    """What is said of the states of whole sequences.

    Attributes
    ----------
    natural
        What each row says of its state, natural parameters (E, B).
    steps
        Facts about each row.
    sums
        Key of a statistic summed over the rows -> its natural parameter.
    """

    natural: Array
    steps: Steps
    sums: Mapping[Hashable, Array]


@dataclass(frozen=True)
class Ahead:
    """All rows of a chain that is forecast: those after the last observation of each sequence among them.

    Attributes
    ----------
    natural
        What all rows say, (E, N).
    is_counted
        Which of all rows lead to an observation, shape (N,).
    steps
        Facts about all rows.
    means
        Slot of the chain -> expectation of its parent.
    beside
        Other hidden values of the rows.
    """

    natural: Array
    is_counted: AnyArray
    steps: Steps
    means: Mapping[str, Array]
    beside: Beside


class ChainFactor(LocalFactor):
    """The factor of a variable whose rows depend on each other.

    What a row says of its state is a factor a row, so that all that needs marginals only is shared. The marginals come
    from whole sequences, by :meth:`path`; rows alone give those of a start, which knows no neighbours.

    Attributes
    ----------
    starts
        Where sequences begin.
    inputs
        Known inputs, or None.
    choosing
        Columns of known labels that choose how a step goes.
    """

    starts: Starts
    inputs: Inputs | None = None
    choosing: tuple[ColumnKey, ...] = ()

    def _is_along(self, bound: BoundModel) -> None:
        """Take the starts of sequences and the inputs from the model."""
        variable = self.variables[0]
        self.starts, self.inputs = _starts_of(bound, variable), _inputs_of(bound, variable)
        chosen = (own.by for slot in variable.slots.values() for own in slot.chosen)
        known = dict.fromkeys(by for by in chosen if bound.is_known(by) and bound.is_local(by))
        self.choosing = tuple(ColumnKey(by.name) for by in known)
        self._summed = [StatisticKey(variable.name, statistic) for statistic in variable.summed]

    def steps(self, columns: Mapping[ColumnKey, AnyArray], n_rows: int) -> Steps:
        """Return the facts about steps that some rows hold."""
        inputs = None if self.inputs is None else self.inputs.among(columns, n_rows)
        choices = {key.name: columns[key] for key in self.choosing}
        return Steps(self.starts.among(columns, n_rows), inputs, choices=choices)

    def _keyed(self, found: Mapping[str, Any]) -> Arrays:
        """Return sums over the rows by key, from sums by the name of the statistic."""
        return {key: np.asarray(found[key.statistic], dtype=np.float64) for key in self._summed}

    @abstractmethod
    def path(self, said: Said) -> Any:
        """Return the distribution of the states of whole sequences."""

    @abstractmethod
    def continued(self, path: Any, ahead: Ahead) -> Any:
        """Return the distribution of the states of all rows, from that of the rows that lead to an observation."""

    def moves(self, path: Any) -> Array | None:
        """Return the probabilities of the next state, (K, K), by which a path is forecast; None if there are none."""
        return None

    def distributions_of_path(self, path: Any) -> dict[Variable, Any]:
        """Return the factors of its variables in all rows, from what :meth:`path` or :meth:`continued` gave."""
        return {self.variables[0]: path}

    def smoothing(self, said: Said, scratch: Scratch) -> Any:
        """Return the moments of the states of whole sequences and sums over their rows, with their ``entropy``.

        They may lie in the scratch.
        """
        return self.path(said).smoothing

    @abstractmethod
    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        """Return how the states of whole sequences respond to D changes.

        Parameters
        ----------
        changes
            Of what each row says of its state, (D, E, B).
        of_sums
            Of the natural parameters of statistics summed over the rows, by key; none where one does not change.
        """

    @abstractmethod
    def expected(self, smoothing: Any) -> Array:
        """Return the expected statistics of the rows, (E, B)."""

    @abstractmethod
    def expected_of_path(self, path: Any) -> Array:
        """Return the expected statistics of all rows of a path, including forecasts, (E, N)."""

    @abstractmethod
    def sums(self, smoothing: Any, steps: Steps) -> Arrays:
        """Return the sums over the rows by key."""

    @abstractmethod
    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        """Return the sums over the rows, states independent with these statistics (E, B)."""

    def beside_others(self, expected: Array, steps: Steps) -> Array:
        """Return expected statistics (E, B) with those of steps, if there are any, of states that are independent."""
        return expected

    def sums_of_none(self) -> Arrays:
        """Return the sums over no rows."""
        return self.sums_given(np.zeros((self.n_rows, 0)), self.no_steps(0))

    def no_steps(self, n_rows: int) -> Steps:
        """Return steps without any facts yet."""
        inputs = None if self.inputs is None else np.zeros((n_rows, self._n_inputs))
        choices = {key.name: np.zeros(n_rows, dtype=np.intp) for key in self.choosing}
        return Steps(np.zeros(n_rows, dtype=bool), inputs, choices=choices)

    @property
    def _n_inputs(self) -> int:
        return self.variables[0].letter_sizes["w"]

    @abstractmethod
    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return statistics (E, n) of distinct rows for a start, from what each says of its state, (E, n)."""


def _starts_of(bound: BoundModel, variable: Variable) -> Starts:
    """Return where the sequences of a chain begin."""
    if "starts" not in variable.slots:
        return Starts(None)
    node = variable.slots["starts"].node
    return (
        Starts(ColumnKey(node.name))
        if bound.is_local(node)
        else Starts(None, bool(np.any(bound.values_of(node))))
    )


def _inputs_of(bound: BoundModel, variable: Variable) -> Inputs | None:
    """Return the inputs of a chain."""
    if "inputs" not in variable.slots:
        return None
    node = variable.slots["inputs"].node
    if bound.is_local(node):
        return Inputs(ColumnKey(node.name))
    return Inputs(None, np.asarray(bound.values_of(node), dtype=np.float64))


def chains_of(factors: Sequence[LocalFactor]) -> tuple[ChainFactor, ...]:
    """Return the chains among the factors."""
    return tuple(factor for factor in factors if isinstance(factor, ChainFactor))


def begins_of(chains: Sequence[ChainFactor], columns: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
    """Return the rows at which sequences of all chains begin, (B,), where rows may be cut into blocks."""
    begins = np.ones(n_rows, dtype=bool)
    for chain in chains:
        begins &= chain.starts.among(columns, n_rows)
    return begins


def _chains_among(nodes: Sequence[Node]) -> list[Variable]:
    return [node for node in nodes if isinstance(node, Variable) and node.summed]


def check_chains(bound: BoundModel) -> None:
    """Check that chains are hidden and run along the data plate.

    Raises
    ------
    ModelError, DataError
        If not.
    """
    for node in bound.fact("chains", lambda: _chains_among(bound.nodes)):
        kind = type(node).__name__
        if bound.is_known(node):
            raise DataError(f"{kind} '{node.name}' is hidden and cannot be given as data; leave it out")
        if not bound.is_local(node):
            plate = "none" if bound.data_plate is None else f"'{bound.data_plate.name}'"
            raise ModelError(
                f"{kind} '{node.name}' runs along plate '{node.plates[0].name}', but the data plate is {plate}"
            )
