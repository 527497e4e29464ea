"""What the loop needs from a model for a block of rows, derived by the compiler or written by hand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Protocol

from ..._typing import Array
from ..design.backend import Workspace
from ..design.features import FeatureTable
from ..design.keys import ColumnKey, FactorKey
from ..local.chains.chain import ChainFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Summary, Sums


class FactorsApart(Protocol):
    """Local factors one at a time, each given the others."""

    @property
    def stages(self) -> list[ChainFactor | list[LocalFactor]]:
        """The factors that depend on each other, in the order of a sweep: a chain, or factors of rows alone."""
        ...

    @property
    def coupled(self) -> list[LocalFactor]:
        """The factors of rows alone that depend on others."""
        ...

    @property
    def kept(self) -> list[LocalFactor]:
        """The factors of rows alone that the next pass starts from: also those whose own parts depend on each other."""
        ...

    @property
    def movable(self) -> Sequence[LocalFactor]:
        """The kept factors that may be moved between two passes; of these a pass leaves what it started from, too."""
        ...

    def best_labels(self, rows: Rows, coefficients: Coefficients, scratch: Workspace) -> LocalState:
        """Return labels that depend on each other, at the most probable combination of each row alone."""
        ...

    @property
    def begins_with_states(self) -> bool:
        """Whether the states of the only chain can begin before what depends on them."""
        ...

    def said_first(
        self, chain: LocalFactor, rows: Rows, coefficients: Coefficients, scratch: Workspace
    ) -> Array:
        """Return what rows say of the states of a chain, (K, B), with what depends on these integrated out."""
        ...

    def natural_of(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        scratch: Workspace,
        state: LocalState | None = None,
    ) -> Array:
        """Return the natural parameters (E, B) of a factor, stored in the scratch.

        Parameters
        ----------
        state
            Statistics of the factors that it depends on.
        """
        ...

    def updated(
        self,
        factors: Sequence[LocalFactor],
        rows: Rows,
        coefficients: Coefficients,
        scratch: Workspace,
        state: LocalState,
    ) -> LocalState:
        """Return the statistics of factors of rows alone, each at its optimum given the others."""
        ...

    def change_of(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        change: Coefficients,
        scratch: Workspace,
        state: LocalState,
    ) -> Array:
        """Return the changes of the natural parameters (E, B) of a factor with the coefficients, in the scratch."""
        ...

    def said_by_others(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        moved: LocalState,
        scratch: Workspace,
    ) -> Array:
        """Return the changes of the natural parameters (E, B) of a factor with the statistics of the others."""
        ...

    def moved(
        self,
        rows: Rows,
        coefficients: Coefficients,
        changes: Sequence[Coefficients],
        state: LocalState,
        scratch: Workspace,
        given: Mapping[FactorKey, Sequence[Array]],
    ) -> list[LocalState]:
        """Return the changes of the statistics of :attr:`coupled` factors with each of the changes.

        Parameters
        ----------
        given
            Changes of the chains, which are known.
        """
        ...


class RowModel(Protocol):
    """Local factors of a block of rows at their optimum, and the sums that the globals need."""

    @property
    def factors(self) -> tuple[LocalFactor, ...]:
        """The local factors, in the order of their updates."""
        ...

    @property
    def block_rows(self) -> int:
        """Rows of a block; depends on the model alone."""
        ...

    @property
    def operations_a_row(self) -> float:
        """Operations for one row, which decide whether batches of rows are worth an update of the globals."""
        ...

    @property
    def n_sums(self) -> int:
        """Numbers that the sums over rows consist of."""
        ...

    @property
    def keeps_locals(self) -> bool:
        """Whether a pass starts from the local factors that the last one left."""
        ...

    @property
    def within_sets(self) -> RowModel | None:
        """The same rows, which keep the sets of values that their labels may have; None where these may have any."""
        ...

    @property
    def with_new_sets(self) -> RowModel | None:
        """The same rows, whose labels get new sets of values in each pass, whatever they had; None as above."""
        ...

    @property
    def maximises(self) -> bool:
        """Whether updates of local factors cannot lower the objective, for any values of the globals."""
        ...

    @property
    def has_centres(self) -> bool:
        """Whether some category is measured from a separate point."""
        ...

    @property
    def begins_anew(self) -> bool:
        """Whether local factors restart from scratch in each pass, as long as that raises the objective."""
        ...

    @property
    def chains(self) -> tuple[ChainFactor, ...]:
        """The local factors along which successive rows depend on each other."""
        ...

    @property
    def apart(self) -> FactorsApart:
        """The local factors one at a time, of rows along which chains run."""
        ...

    @property
    def most_sweeps(self) -> int:
        """Largest number of sweeps to their optimum, if there is no earlier pass."""
        ...

    @property
    def entries(self) -> Sequence[ColumnKey]:
        """The columns that say which entries of partly missing vectors were observed."""
        ...

    @property
    def parts_of_messages(self) -> Set[Hashable]:
        """The parts of the coefficients that a block of rows needs besides the matrices."""
        ...

    @property
    def has_static(self) -> bool:
        """Whether there are sums that no factor enters."""
        ...

    def static_of(self, weight: float) -> Sums | None:
        """Return these sums over rows of this total weight, where they are no more than that; None elsewhere."""
        ...

    @property
    def tables(self) -> Mapping[LocalFactor, FeatureTable]:
        """Features of the matrix product of each local factor that has one."""
        ...

    @property
    def n_kept(self) -> int:
        """Numbers of a row that a pass keeps for the next one where all rows are few."""
        ...

    @property
    def buffer_rows(self) -> int:
        """Numbers of each row of a block that a pass holds in its buffers, about."""
        ...

    def thorough(self) -> RowModel:
        """Return the same model with passes that iterate every row to its optimum."""
        ...

    def why_inexact(self) -> str:
        """Return why local variables cannot be integrated out exactly given the globals; nothing if they can."""
        ...

    def why_not_on_a_device(self) -> str:
        """Return why no passes can be made on a device; nothing if they can."""
        ...

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need of the globals."""
        ...

    def starting_coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need where the globals are not known yet."""
        ...

    def summarize(
        self,
        rows: Rows,
        coefficients: Coefficients,
        before: LocalState,
        scratch: Workspace,
        given: LocalState | None = None,
    ) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the local factors at their optimum, and what the next pass starts from."""
        ...

    def sums_of(self, rows: Rows, state: LocalState, coefficients: Coefficients, scratch: Workspace) -> Sums:
        """Return the sums over a block for given local statistics; their entropies count as zero."""
        ...

    def matrices(self, parts: Mapping[Hashable, Array]) -> dict[FactorKey, Array]:
        """Return the matrix of each local factor that meets features of the data."""
        ...

    def zeros_of(self, factor: LocalFactor, zeros: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return how many known probabilities of zero each statistic meets, for any other local variables."""
        ...

    def static_coefficients(self, parts: Arrays) -> Coefficients:
        """Return the coefficients of what no local variable enters, as :meth:`static_by_row` takes them."""
        ...

    def static_by_row(self, coefficients: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return the terms of each row that no local variable enters, shape (B,)."""
        ...

    def sum_static(self, rows: Rows, scratch: Workspace) -> Sums:
        """Return the sums over a block that no factor enters."""
        ...

    def infer(
        self, rows: Rows, coefficients: Coefficients, scratch: Workspace, given: LocalState | None = None
    ) -> LocalState:
        """Return the natural parameters of every local factor for a block of rows, but of those that are given."""
        ...

    def changed(self, parts: Arrays, coefficients: Coefficients) -> Coefficients:
        """Return the changes of coefficients, zeros where there are none.

        Parameters
        ----------
        parts
            Changes of what meets the sums over the rows, by the keys of these.
        coefficients
            What they are changes of.
        """
        ...

    def respond(
        self,
        rows: Rows,
        coefficients: Coefficients,
        changes: Sequence[Coefficients],
        before: LocalState,
        scratch: Workspace,
        given: Mapping[FactorKey, Sequence[Array]] | None = None,
    ) -> Sums:
        """Return by how much the sums over a block change with the coefficients, an axis of the changes first."""
        ...

    @property
    def is_dense(self) -> bool:
        """Whether each local factor depends on the rows, and is summed, in one dense matrix product alone."""
        ...

    @property
    def n_curved(self) -> int:
        """Numbers that :meth:`curvature` sums over the rows."""
        ...

    def curvature(self, rows: Rows, coefficients: Coefficients, scratch: Workspace) -> Sums:
        """Return the sums of a pass, and how those of dense products change with pairs of entries of their matrices."""
        ...

    def whole_curvature(self, summed: Sums) -> dict[FactorKey, Array]:
        """Take the change of each sum of a factor with each entry of its matrix out of the sums of curvature."""
        ...

    def curved(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Arrays:
        """Return by how much all sums change with n changes of the coefficients, which have an axis of these first."""
        ...

    def curved_between(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Array:
        """Return what such changes of the sums are along n changes of the coefficients again, (n, n)."""
        ...

    def why_no_response(self) -> str:
        """Return why the response of the sums to the coefficients cannot be computed; nothing if it can."""
        ...

    def with_entropies(self, sums: Sums, coefficients: Coefficients) -> Sums:
        """Return sums with entropies in the place of log-partitions, which were made with these coefficients."""
        ...

    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the reduced sums of a pass in the shapes that the global terms expect."""
        ...
