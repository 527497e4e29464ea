"""What the loop needs from a model for a block of rows, derived by the compiler or written by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence, Set

import numpy as np

from ..._errors import ModelError
from ..._typing import Array
from ..design.backend import Workspace
from ..design.features import FeatureTable
from ..design.keys import ColumnKey, FactorKey
from ..local.chains.chain import ChainFactor
from ..local.kept import KeptKey
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Summary, Sums
from .terms.row_term import BlockWork, FactorOfRows, RowTerm

OWN: FactorKey = ""
"""In the place of a local factor: the number 1 of each row, which what no local variable enters is multiplied with."""

_NOT_DENSE = "sums are formed by pairs of features only where rows have dense products alone"


class FactorsApart:
    """Local factors one at a time, needed if some of them are chains, which see whole sequences.

    Parameters
    ----------
    inferences
        Local factors with the row terms that speak to each, in the order of their updates.
    products
        Row terms that meet the data in the matrix products.
    contracted
        The others.

    Attributes
    ----------
    of
        Local factors with the row terms that speak to each, by key.
    in_turn
        Local factors in the order of a pass that goes on from the last one.
    movable
        Those that may be moved between two passes; of these a pass leaves what it started from, too.
    """

    def __init__(
        self,
        inferences: Sequence[FactorOfRows] = (),
        products: Sequence[RowTerm] = (),
        contracted: Sequence[RowTerm] = (),
    ) -> None:
        self.of = {own.factor.key: own for own in inferences}
        self.products, self.contracted = products, contracted
        self.in_turn, self.movable = _in_turn(inferences)

    def left_by(self, work: BlockWork, before: LocalState) -> LocalState:
        """Return what a pass leaves of a block for the next one: statistics, and of factors that may move more.

        Parameters
        ----------
        before
            What the pass has started from.
        """
        state = work.state
        for factor in self.movable:
            natural = KeptKey(factor.key, "natural")
            if natural in before:
                state[KeptKey(factor.key, "natural before")] = before[natural]
                state[KeptKey(factor.key, "expected before")] = before[factor.key]
            state[natural] = work.natural[factor.key]
        return state

    @property
    def stages(self) -> list[ChainFactor | list[LocalFactor]]:
        """The factors that depend on each other, in the order of a sweep: a chain, or factors of rows alone."""
        found: list[ChainFactor | list[LocalFactor]] = []
        for own in self.of.values():
            if isinstance(own.factor, ChainFactor):
                found.append(own.factor)
            elif own.is_coupled and found and isinstance(found[-1], list):
                found[-1].append(own.factor)
            elif own.is_coupled:
                found.append([own.factor])
        return found

    @property
    def coupled(self) -> list[LocalFactor]:
        """The factors of rows alone that depend on others."""
        return [own for stage in self.stages if not isinstance(stage, ChainFactor) for own in stage]

    @property
    def kept(self) -> list[LocalFactor]:
        """The factors of rows alone that the next pass starts from: also those whose own parts depend on each other."""
        others = [own for own in self.of.values() if own.factor.couples and not own.is_coupled]
        return [*self.coupled, *(own.factor for own in others)]


def _in_turn(
    inferences: Sequence[FactorOfRows],
) -> tuple[Sequence[FactorOfRows], tuple[LocalFactor, ...]]:
    """Return local factors in the order of a pass that goes on from the last one, and those that may be moved.

    The largest one that depends on others is the first: its update forgets where it was, so it need not be moved with
    the others. None are moved beside chains, where some repetitions do not count, or where the update of a factor goes
    on from its own statistics.
    """
    coupled = [own for own in inferences if own.is_coupled]
    if not coupled or any(isinstance(own.factor, ChainFactor) or own.factor.couples for own in inferences):
        return inferences, ()
    first = list(inferences).index(max(coupled, key=lambda own: own.factor.n_rows))
    turned = [*inferences[first:], *inferences[:first]]
    others = tuple(own.factor for own in turned[1:] if own.is_coupled)
    return (inferences, ()) if any(own.has_unseen for own in others) else (turned, others)


class RowModel(ABC):
    """Local factors of a block of rows at their optimum, and the sums that the globals need.

    Attributes
    ----------
    factors
        The local factors, in the order of their updates.
    parts_of_messages
        The parts of the coefficients that a block of rows needs besides the matrices.
    keeps_locals
        Whether a pass starts from the local factors that the last one left.
    maximises
        Whether updates of local factors cannot lower the objective, for any values of the globals.
    has_centres
        Whether some category is measured from a separate point.
    begins_anew
        Whether local factors restart from scratch in each pass, as long as that raises the objective.
    chains
        The local factors along which successive rows depend on each other.
    apart
        The local factors one at a time, of rows along which chains run.
    most_sweeps
        Largest number of sweeps to their optimum, if there is no earlier pass.
    entries
        The columns that say which entries of partly missing vectors were observed.
    tables
        Features of the matrix product of each local factor that has one.
    static_terms
        The terms that no local variable enters.
    """

    factors: tuple[LocalFactor, ...]
    parts_of_messages: Set[Hashable]
    keeps_locals: bool = False
    maximises: bool = True
    has_centres: bool = False
    begins_anew: bool = False
    chains: tuple[ChainFactor, ...] = ()
    apart: FactorsApart = FactorsApart()
    most_sweeps: int = 1
    entries: Sequence[ColumnKey] = ()
    tables: Mapping[LocalFactor, FeatureTable] = {}
    static_terms: Sequence[RowTerm] = ()

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """Rows of a block; depends on the model alone."""

    @property
    @abstractmethod
    def n_sums(self) -> int:
        """Numbers that the sums over rows consist of."""

    @property
    def operations_a_row(self) -> float:
        """Operations for one row, which decide whether batches of rows are worth an update of the globals."""
        return 0.0

    @property
    def n_kept(self) -> int:
        """Numbers of a row that a pass keeps for the next one where all rows are few: its dense features."""
        return sum([table.n_dense for table in self.tables.values()])

    @property
    def within_sets(self) -> RowModel | None:
        """The same rows, which keep the sets of values that their labels may have; None where these may have any."""
        return None

    @property
    def with_new_sets(self) -> RowModel | None:
        """The same rows, whose labels get new sets of values in each pass, whatever they had; None as above."""
        return None

    @property
    def is_dense(self) -> bool:
        """Whether each local factor depends on the rows, and is summed, in one dense matrix product alone."""
        return False

    @property
    def n_curved(self) -> int:
        """Numbers that :meth:`curvature` sums over the rows, at most."""
        raise ModelError(_NOT_DENSE)

    @abstractmethod
    def thorough(self) -> RowModel:
        """Return the same model with passes that iterate every row to its optimum."""

    @abstractmethod
    def why_inexact(self) -> str:
        """Return why local variables cannot be integrated out exactly given the globals; nothing if they can."""

    @abstractmethod
    def why_not_on_a_device(self) -> str:
        """Return why no passes can be made on a device; nothing if they can."""

    def why_no_response(self) -> str:
        """Return why the response of the sums to the coefficients cannot be computed; nothing if it can."""
        return ""

    @abstractmethod
    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need of the globals."""

    def starting_coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need where the globals are not known yet."""
        return self.coefficients(arrays)

    @abstractmethod
    def summarize(self, work: BlockWork, given: LocalState | None = None) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the local factors at their optimum, and what the next pass starts from.

        Parameters
        ----------
        work
            The block with what the last pass has left.
        given
            Local statistics (E, B) of factors that are inferred elsewhere, to be overwritten.
        """

    @abstractmethod
    def sums_of(self, work: BlockWork) -> Sums:
        """Return the sums over a block for the local statistics that it has; their entropies count as zero."""

    def matrices(self, parts: Mapping[Hashable, Array]) -> dict[FactorKey, Array]:
        """Return the matrix of each local factor that meets features of the data."""
        return {}

    @abstractmethod
    def zeros_of(self, factor: LocalFactor, zeros: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return how many known probabilities of zero each statistic meets, for any other local variables."""

    @abstractmethod
    def infer(self, work: BlockWork) -> LocalState:
        """Return the natural parameters (E, B) of every local factor but of those whose statistics a block has."""

    @abstractmethod
    def changed(self, parts: Arrays, coefficients: Coefficients) -> Coefficients:
        """Return the changes of coefficients, zeros where there are none.

        Parameters
        ----------
        parts
            Changes of what meets the sums over the rows, by the keys of these.
        coefficients
            What they are changes of.
        """

    @abstractmethod
    def respond(
        self,
        work: BlockWork,
        changes: Sequence[Coefficients],
        given: Mapping[FactorKey, Sequence[Array]] | None = None,
    ) -> Sums:
        """Return by how much the sums over a block change with the coefficients, an axis of the D changes first.

        Parameters
        ----------
        work
            The block with local statistics near their optimum where local factors depend on each other; of what is
            given at it.
        changes
            Of the coefficients.
        given
            Local factors that are inferred elsewhere: how their statistics (E, B) change with each of the changes.
        """

    def curvature(self, work: BlockWork) -> Sums:
        """Return the sums of a pass, and how those of dense products change with pairs of entries of their matrices."""
        raise ModelError(_NOT_DENSE)

    def whole_curvature(self, summed: Sums) -> dict[FactorKey, Array]:
        """Take the change of each sum of a factor with each entry of its matrix, (E F, E F), out of such sums."""
        raise ModelError(_NOT_DENSE)

    def curved(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Arrays:
        """Return by how much all sums change with n changes of the coefficients.

        Parameters
        ----------
        whole
            Of :meth:`whole_curvature`.
        parts
            Changes of coefficients by key, with an axis of the changes before all others, as those that come back.
        """
        raise ModelError(_NOT_DENSE)

    def curved_between(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Array:
        """Return what such changes of the sums are along n changes of the coefficients again, (n, n)."""
        raise ModelError(_NOT_DENSE)

    def static_of(self, weight: float) -> Sums | None:
        """Return the sums that no factor enters, over rows of this total weight, where they are nothing but counted."""
        return None

    def sum_static(self, rows: Rows, scratch: Workspace) -> Sums:
        """Return the sums over a block that no factor enters."""
        sums, work = Sums.zero(), BlockWork(rows, Coefficients({}, {}), scratch)
        work.counted[OWN] = np.ones((1, rows.n_rows))
        work.weigh(in_place=True)
        for term in self.static_terms:
            term.backward(work, sums)
        return sums

    def static_coefficients(self, parts: Arrays) -> Coefficients:
        """Return the coefficients of what no local variable enters, as :meth:`static_by_row` takes them."""
        return Coefficients({}, parts)

    def static_by_row(self, coefficients: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return the terms of each row that no local variable enters, shape (B,)."""
        work, total = BlockWork(rows, coefficients, scratch), np.zeros((1, rows.n_rows))
        for term in self.static_terms:
            term.forward(OWN, work, coefficients, total)
        return total[0]

    @abstractmethod
    def with_entropies(self, sums: Sums, coefficients: Coefficients) -> Sums:
        """Return sums with entropies in the place of log-partitions, which were made with these coefficients."""

    @abstractmethod
    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the reduced sums of a pass in the shapes that the global terms expect."""
