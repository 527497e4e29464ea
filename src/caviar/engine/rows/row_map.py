"""RowMap: a map over blocks of rows and one sum, on any executor. It has no memory of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ..._typing import Array
from ...numerics.cached import cached_property
from ...numerics.sums.pairwise import pairwise_sum
from ..design.backend import Workspace
from ..local.chains.chain import Ahead, Beside, ChainFactor, Said
from ..local.statistics import Coefficients, LocalState, Rows, Summary, Sums
from .executor import Executor
from .row_model import RowModel
from .sequences import SequencesAtWork, given_sequences, sequence_bounds, tiles_of
from .subsample import Sample, rows_from
from .sums_by_batch import SumsByBatch
from .tasks import Chunk, InferBlocks, RowSource, SumStatic, blocks_of, chunked, chunks_of, kept_rows, rows_at
from .terms.row_term import BlockWork

T = TypeVar("T")

Warm: TypeAlias = Mapping[int, Any]
"""Local factors that the last pass left, by number of the chunk; opaque where an executor keeps them with the rows."""

COLD: Warm = {}
"""No local factors yet."""

_PLACES = 32
"""Places of the source that a share of its rows comes from."""


class Precision(Enum):
    """Digits that sums over the rows are taken with."""

    DOUBLE = "float64"
    SINGLE = "float32"
    """Within an error budget, but not to the last digits; where the executor can."""


@dataclass(frozen=True)
class Look:
    """What one pass over the rows leaves behind.

    Attributes
    ----------
    summary
        What the globals need of it.
    warm
        Local factors, where the next pass starts from them.
    by_batch
        Sums of each batch of rows as its last pass left them, where these are kept apart.
    """

    summary: Summary
    warm: Warm
    by_batch: SumsByBatch | None = None


class _Found:
    """Results of pure functions, each computed once."""

    def __init__(self) -> None:
        self.scratch = Workspace()
        self.fixed: WeakKeyDictionary[RowModel, Sums] = WeakKeyDictionary()
        self.bounds: dict[tuple[tuple[ChainFactor, ...], int, int], list[tuple[int, int]]] = {}


@dataclass(frozen=True, eq=False)
class RowMap:
    """A row model over the rows of a source.

    Block boundaries follow from the number of features alone, so sums have the same bits with any executor.

    Attributes
    ----------
    model
        What is asked of a block of rows.
    source
        Where blocks come from.
    executor
        Where they are mapped.
    precision
        Digits of the sums.
    n_batches
        Batches of rows whose sums are kept apart, at the most; 0 keeps none apart.
    keeps
        Whether a look leaves local factors for the next one, where the row model keeps them.
    looks_again
        Whether natural parameters, and sums of given local factors, are asked for so often that features are kept for
        them as they are for looks.
    """

    model: RowModel
    source: RowSource
    executor: Executor
    precision: Precision = Precision.DOUBLE
    n_batches: int = 0
    keeps: bool = True
    looks_again: bool = False
    _found: _Found = field(default_factory=_Found, repr=False)

    def at(self, model: RowModel) -> RowMap:
        """Return the map of another row model over the same rows; this one if it is its own."""
        return self if model is self.model else replace(self, model=model)

    def in_double(self) -> RowMap:
        """Return the same map with sums in float64."""
        return replace(self, precision=Precision.DOUBLE)

    @property
    def is_single(self) -> bool:
        """Whether sums are taken in float32."""
        return self.precision is Precision.SINGLE

    @property
    def n_batches_made(self) -> int:
        """Batches whose sums are kept apart: no more than there are rows, or whole sequences."""
        return min(self.n_batches, len(self.chunks))

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        return self.source.total_weight

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks over which local factors are inferred."""
        fewest = max(1, self.n_batches)
        if not self.model.chains:
            return chunks_of(self.model, self.source, fewest, self.executor.block_rows(self.model))
        return chunked(self._sequences(fewest), fewest)

    def chunks_of(self, batch: int) -> list[Chunk]:
        """Return the chunks of a batch: they are from all over the rows."""
        chunks = self.chunks
        return chunks[batch :: min(self.n_batches, len(chunks))]

    def infer(
        self, coefficients: Coefficients, chunks: Sequence[Chunk], warm: Warm = COLD
    ) -> tuple[Sums, Warm]:
        """Return the sums over chunks with the local factors at their optimum, and these where they are kept.

        Parameters
        ----------
        coefficients
            What the rows need of the globals.
        warm
            Local factors to start from, by chunk. Of chunks that are not looked at they come back as they are.
        """
        work = InferBlocks(
            self.model,
            coefficients,
            self._found.scratch,
            exact=self.precision is not Precision.SINGLE,
            keeps=self.keeps,
        )
        before = [warm.get(chunk.number) for chunk in chunks] if warm else [None] * len(chunks)
        sums, after = self.executor.sum(work, self.source, chunks, before)
        if self.model.keeps_locals and self.keeps:
            warm = {**warm, **dict(zip((c.number for c in chunks), after, strict=True))}
        return sums, warm

    def look(
        self,
        coefficients: Coefficients,
        warm: Warm = COLD,
        by_batch: SumsByBatch | None = None,
        batch: int | None = None,
    ) -> Look:
        """Return what a pass over all rows leaves, or at one batch of them beside the sums of the others.

        Parameters
        ----------
        coefficients
            What the rows need of the globals.
        warm
            Local factors to start from.
        by_batch, batch
            The sums of each batch, and the only one whose local factors are brought to their optimum: the others stay
            as their last pass left them.
        """
        model, fixed = self.model, self.fixed
        if not model.factors:
            return Look(self._of_fixed, warm)
        chunks = self.chunks
        n_batches = min(self.n_batches, len(chunks))
        if not n_batches:
            sums, warm = self.infer(coefficients, chunks, warm)
            return Look(model.summary(sums, fixed, coefficients), warm)
        renewed: Sequence[int] = range(n_batches)
        if by_batch is not None and batch is not None:
            renewed = (batch,)
        else:
            by_batch = SumsByBatch.of(n_batches)
        for number in renewed:
            sums, warm = self.infer(coefficients, chunks[number::n_batches], warm)
            by_batch = by_batch.replaced(number, model.with_entropies(sums, coefficients))
        return Look(model.summary(by_batch.total, fixed, coefficients), warm, by_batch)

    def summary(self, coefficients: Coefficients) -> Summary:
        """Return what the globals need of one pass over all rows."""
        return self.look(coefficients).summary

    @cached_property
    def fixed(self) -> Sums:
        """The sums that no local factor enters."""
        found = self._found.fixed.get(self.model)
        if found is None:
            found = self._found.fixed[self.model] = self._sum_fixed()
        return found

    def _sum_fixed(self) -> Sums:
        if not self.model.static_terms:
            return Sums.zero()
        source, n_rows = self.source, self.source.n_rows
        is_block = n_rows <= self.model.block_rows
        if n_rows > 0 and (is_block or self.total_weight == n_rows):
            weights = source.weights(0, min(n_rows, self.model.block_rows))
            # whole numbers have the same sum in any order
            if weights is None or (is_block and (weights == np.floor(weights)).all()):
                counted = self.model.static_of(n_rows if weights is None else weights.sum())
                if counted is not None:
                    return counted
        chunks = self._chunks_at_once
        work = SumStatic(self.model, self._found.scratch)
        return self.executor.sum(work, self.source, chunks, [None] * len(chunks))[0]

    @cached_property
    def _of_fixed(self) -> Summary:
        """What the globals need of rows without local factors: no coefficient enters it."""
        return self.model.summary(Sums.zero(), self.fixed, Coefficients({}, {}))

    def blocks(self, most_rows: int) -> list[tuple[int, int]]:
        """Return where blocks of no more rows start and stop; with a chain they are whole sequences, however long."""
        if not self.model.chains:
            return blocks_of(self.model, self.source, most_rows, self.executor.block_rows(self.model))
        return self._sequences(-(-self.source.n_rows // most_rows))

    def _sequences(self, fewest: int) -> list[tuple[int, int]]:
        """Return where blocks of whole sequences start and stop: where these begin is read once."""
        made_for, known = (self.model.chains, self.model.block_rows, fewest), self._found.bounds
        if made_for not in known:
            known[made_for] = sequence_bounds(self.model, self.source, fewest)
        return known[made_for]

    @property
    def _chunks_at_once(self) -> list[Chunk]:
        """The chunks of a sum that keeps nothing: blocks are those of this process."""
        return self.chunks if self.model.chains else chunks_of(self.model, self.source)

    def summarize_share(self, coefficients: Coefficients, chunks: Sequence[Chunk]) -> Summary:
        """Return the sums over some chunks as if all rows were like theirs, in float64 and from a cold start.

        Some of their rows must have a weight above zero.
        """
        scale, nothing = self.total_weight / self.weight(chunks), [None] * len(chunks)
        work = InferBlocks(self.model, coefficients, self._found.scratch, keeps=False)
        sums, _ = self.executor.sum(work, self.source, chunks, nothing)
        whole = self.model.with_entropies(sums, coefficients).scaled(scale)
        static = Sums.zero()
        if self.model.static_terms:
            # of the same rows: beside those of all rows, a sum of squares would be less than what it consists of
            own = SumStatic(self.model, self._found.scratch)
            static = self.executor.sum(own, self.source, chunks, nothing)[0].scaled(scale)
        return self.model.summary(whole, static, coefficients)

    def weight(self, chunks: Sequence[Chunk]) -> float:
        """Return the weight of the rows of some chunks."""
        total = 0.0
        for start, stop in (bounds for chunk in chunks for bounds in chunk.bounds):
            weights = self.source.weights(start, stop)
            total += float(stop - start if weights is None else weights.sum())
        return total

    @property
    def weights(self) -> Array:
        """The weights of the rows that looks are at, (N,): those of weight zero are left out."""
        found = []
        for start, stop in (bounds for chunk in self.chunks for bounds in chunk.bounds):
            own = self.source.weights(start, stop)
            found.append(np.ones(stop - start) if own is None else own[own != 0])
        return np.concatenate(found) if found else np.zeros(0)

    def share(self, n_rows: int) -> RowMap:
        """Return the map over a sample of the rows, with the total weight of all.

        They are read once and summed in this process. If they are all rows of a small table in this process, results
        that this map has already computed are used again.
        """
        bounds = self.blocks(max(1, min(n_rows // _PLACES, self.source.n_rows)))
        wanted = min(len(bounds), max(1, round(n_rows * len(bounds) / max(self.source.n_rows, 1))))
        host, is_here = self.executor.host, self.source.rows_together == 1
        if wanted == len(bounds) and is_here and self.executor is host and not self.is_single:
            return replace(self, n_batches=0)
        chosen = [bounds[i] for i in np.linspace(0, len(bounds) - 1, wanted).round().astype(int)]
        return RowMap(self.model, rows_from(self.source, chosen), host)

    def paths(
        self, coefficients: Coefficients, means: Mapping[ChainFactor, Mapping[str, Array]]
    ) -> dict[ChainFactor, Any]:
        """Return the distribution of each chain's states over all rows of the source, as (E, N) arrays.

        States after the last observation of their sequence are forecast.

        Parameters
        ----------
        means
            Chain -> expectations of its slots, used for forecasts.
        """
        state = self._settled_sequences(coefficients) if self.model.keeps_locals else {}
        found: dict[ChainFactor, Any] = {}
        for chain, own in means.items():
            # what chooses the steps ahead of another chain is forecast before it
            found[chain] = self._path(chain, coefficients, state, own, self._beside(state, found))
            if self.model.keeps_locals:
                state[chain.key] = chain.expected_of_path(found[chain])
        return found

    def _beside(self, state: LocalState, paths: Mapping[ChainFactor, Any]) -> Beside:
        """Return the hidden values of the rows, as far as they are known."""
        factors = [own for own in self.model.factors if own.key in state]
        keys = [(own, key) for own in factors for key in own.rows]
        means = {key.variable: own.view(state[own.key], key) for own, key in keys if key.statistic == "x"}
        names = {chain: chain.variables[0].name for chain in paths}
        return Beside(
            means,
            {names[chain]: path for chain, path in paths.items()},
            {names[chain]: chain.moves(path) for chain, path in paths.items()},
        )

    def _settled_sequences(self, coefficients: Coefficients) -> LocalState:
        """Return the statistics of local factors that depend on each other in all rows, (E, N) each."""
        state: LocalState = {}
        for start, stop in self._sequences(1):
            rows = rows_at(self.source, (start, stop), every=True)
            block = SequencesAtWork(self.model, rows, coefficients, self._found.scratch)
            block.settle()
            for key, values in block.state.items():
                whole = state.setdefault(key, np.empty((len(values), self.source.n_rows)))
                whole[:, rows.where] = values
        return state

    def _path(
        self,
        chain: ChainFactor,
        coefficients: Coefficients,
        state: LocalState,
        means: Mapping[str, Array],
        beside: Beside,
    ) -> Any:
        natural = np.empty((chain.n_rows, self.source.n_rows))
        steps, counted = chain.no_steps(self.source.n_rows), np.empty(self.source.n_rows, dtype=bool)

        def block(rows: Rows) -> None:
            steps.put(rows.where, chain.steps(rows.columns, rows.n_rows))
            seen = chain.seen(rows.columns)
            counted[rows.where] = True if seen is None else seen
            if rows.weights is not None:
                counted[rows.where] &= rows.weights > 0
            for _, own in tiles_of(self.model, rows):
                given = {key: values[:, own.where] for key, values in state.items()}
                work = BlockWork(own, coefficients, self._found.scratch, given)
                natural[:, own.where] = self.model.apart.of[chain.key].natural(work)

        for _ in self._map_here(block):
            pass
        if counted.all():
            return chain.path(Said(natural, steps, coefficients.parts))
        path = chain.path(Said(natural[:, counted], steps.at(counted), coefficients.parts))
        return chain.continued(path, Ahead(natural, counted, steps, means, beside))

    def natural_parameters(
        self, coefficients: Coefficients, given: LocalState | None = None
    ) -> Iterator[LocalState]:
        """Yield the natural parameters of every local factor, block by block.

        Parameters
        ----------
        coefficients
            What the rows need of the globals.
        given
            Statistics (E, N) of the factors that are left out.
        """
        whole = given or {}

        def block(rows: Rows) -> LocalState:
            own = {key: values[:, rows.where].copy() for key, values in whole.items()}
            return self.natural_of(rows, coefficients, own)

        yield from self._map_here(block)

    def by_block(self, coefficients: Coefficients) -> Iterator[tuple[Rows, LocalState]]:
        """Yield each block of rows with the natural parameters of all its local factors, computed in this process."""

        def block(rows: Rows) -> tuple[Rows, LocalState]:
            return rows, self.natural_of(rows, coefficients)

        yield from self._map_here(block)

    def natural_of(
        self, rows: Rows, coefficients: Coefficients, given: LocalState | None = None
    ) -> LocalState:
        """Return the natural parameters of every local factor for some rows, except those that are given."""
        return self.model.infer(BlockWork(rows, coefficients, self._found.scratch, given))

    def sum_given(self, give: Callable[[Rows], LocalState], coefficients: Coefficients) -> Summary:
        """Return the sums over the rows for given local statistics.

        Parameters
        ----------
        give
            Returns the expected statistics of every local factor for some rows, (E, B) each, to be overwritten.

        Notes
        -----
        Of a chain the successive states count as independent; in a sample that is not in order none are successive, and
        their sums are zero.
        """
        model = self.model
        in_order = not isinstance(self.source, Sample) or self.source.is_in_order

        def block(rows: Rows) -> Sums:
            state = give(rows)
            if model.chains and in_order:
                return given_sequences(model, rows, state, coefficients, self._found.scratch)
            return model.sums_of(BlockWork(rows, coefficients, self._found.scratch, state))

        sums = self._sum_here(block)
        for chain in () if in_order else model.chains:
            sums.parts.update(chain.sums_of_none())
        return model.summary(sums, self.fixed, coefficients)

    def _sum_here(self, function: Callable[[Rows], Sums]) -> Sums:
        """Return the sum of a function of the blocks, computed in this process."""
        chunks = self._chunks_at_once

        def chunk(number: int) -> Sums:
            total = Sums.zero()
            for bounds in chunks[number].bounds:
                rows = (
                    kept_rows(self.model, self.source, bounds, self._found.scratch)
                    if self.looks_again
                    else rows_at(self.source, bounds)
                )
                if rows.n_rows:
                    total.add(function(rows))
            return total

        # without a data plate there are no rows
        return pairwise_sum(self.executor.map(chunk, len(chunks))) if chunks else Sums.zero()

    def _map_here(self, function: Callable[[Rows], T]) -> Iterator[T]:
        """Yield a function of blocks of rows by themselves, every row in them, computed in this process."""
        bounds = blocks_of(self.model, self.source)

        def block(number: int) -> T:
            own = bounds[number]
            if self.looks_again:
                rows = kept_rows(self.model, self.source, own, self._found.scratch)
                if rows.n_rows == own[1] - own[0]:
                    return function(rows)
            return function(rows_at(self.source, own, every=True))

        yield from self.executor.map(block, len(bounds))
