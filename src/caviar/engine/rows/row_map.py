"""Passes: a map over blocks of rows and one sum, on whatever executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..._typing import Array
from ...numerics.pairwise import pairwise_sum
from ..design.backend import Workspace
from ..local.chain import ChainFactor
from ..local.statistics import Coefficients, LocalState, Rows, Summary, Sums
from .executor import Executor
from .memoized import Memoized
from .row_model import RowModel
from .sequences import given_sequences, sequence_bounds, tiles_of
from .subsample import Sample, rows_from
from .tasks import Chunk, InferBlocks, RowSource, SumStatic, blocks_of, chunked, chunks_of, rows_at

__all__ = ["Kept", "Passes"]


T = TypeVar("T")

_PLACES = 32
"""Places of the source that a share of its rows comes from."""


@dataclass(frozen=True)
class Kept:
    """What passes keep for the next one; it never changes.

    Attributes
    ----------
    carried
        Local factors of the last pass by chunk, where the next one starts from them.
    batches
        Sums of each batch of rows as its last pass left them, where these are kept apart.
    anew
        Whether passes whose local factors begin anew have raised the objective so far.
    """

    carried: Mapping[int, Any] = field(default_factory=dict)
    batches: tuple[Sums, ...] = ()
    anew: bool = True


@dataclass(frozen=True)
class Held:
    """What is kept of a batch of rows between two passes over it."""

    memoized: Memoized | None
    batch: int | None
    sums: Sums | None
    carried: dict[int, Any]


class Passes:
    """Passes of a row model over the rows of a source.

    Block boundaries follow from the number of features alone, so that the sums are the same bits for any executor.
    """

    def __init__(self, source: RowSource, executor: Executor) -> None:
        self.source = source
        self.executor = executor
        self._scratch = Workspace()
        self.is_rough: bool = executor.is_single
        """Whether sums are taken in float32: within an error budget, but not to the last digits."""
        self.carried: dict[int, Any] = {}
        """Local factors of the last pass, by chunk, where the next one starts from them; replaced, never changed."""
        self._anew = True
        self._static: tuple[RowModel, Sums] | None = None
        self._unchanging: tuple[RowModel, Summary] | None = None
        self._n_batches = 0
        self._memoized: Memoized | None = None
        self._bounds: dict[tuple[ChainFactor, int, int], list[tuple[int, int]]] = {}

    def memoize(self, n_batches: int) -> None:
        """From now on keep the sums of each of so many batches of rows apart; 0 keeps none."""
        self._n_batches, self._memoized = n_batches, None

    def n_batches(self, model: RowModel) -> int:
        """Return the number of batches whose sums are kept apart: no more than there are rows, or whole sequences."""
        return min(self._n_batches, len(self._chunks(model)))

    def check(self, model: RowModel) -> None:
        """Check that the executor can make the passes of a problem.

        Raises
        ------
        ParameterError
            If not.
        """
        self.executor.check(model)

    def reach(self) -> None:
        """See that the executor's machines, if it has others than this one, can be reached.

        Raises
        ------
        ClusterError
            If not.
        """
        self.executor.reach()

    def refine(self) -> bool:
        """From now on take sums in float64; return whether that changes anything."""
        was_rough, self.is_rough = self.is_rough, False
        return was_rough

    def summarize(
        self, model: RowModel, coefficients: Coefficients, batch: int | None = None, *, anew: bool = False
    ) -> Summary:
        """Return the sums over all rows with the local factors at their optimum for these coefficients.

        Parameters
        ----------
        batch
            The only batch whose local factors are brought to their optimum, where sums are kept by batch: the others
            stay as their last pass left them.
        anew
            Whether local factors do not start from those of the last pass.
        """
        static = self._static_sums(model)
        if not model.factors:
            if self._unchanging is None or self._unchanging[0] is not model:
                self._unchanging = (model, model.summary(Sums.zero(), static, coefficients))
            return self._unchanging[1]
        chunks = self._chunks(model)
        n_batches = self.n_batches(model)
        if not n_batches:
            sums = self._infer_and_sum(model, coefficients, chunks, anew)
            return model.summary(sums, static, coefficients)
        renewed = range(n_batches) if batch is None else (batch,)
        if batch is None or self._memoized is None or self._memoized.model is not model:
            self._memoized, renewed = Memoized(model, n_batches), range(n_batches)
        memoized = self._memoized
        for number in renewed:
            sums = self._infer_and_sum(model, coefficients, chunks[number::n_batches], anew)
            memoized.replace(number, model.with_entropies(sums, coefficients))
        return model.summary(memoized.total, static, coefficients)

    def begins_anew(self, model: RowModel) -> bool:
        """Return whether the local factors of the next pass had better not start from those of the last one."""
        return self._anew and model.begins_anew and bool(self.carried)

    def go_on_from(self, held: Held) -> None:
        """Have the sums and local factors of a batch as they were, and all passes from now on start from such."""
        self.put_back(held)
        self._anew = False

    def settle(self, model: RowModel) -> bool:
        """Have passes from now on start from the local factors of the last; return whether that changes anything."""
        changes = self.begins_anew(model)
        self._anew = False
        return changes

    def held(self, batch: int | None) -> Held:
        """Return the sums that are kept of a batch, None for no batch, and the local factors of all."""
        sums = None if self._memoized is None or batch is None else self._memoized.of(batch)
        return Held(self._memoized, batch, sums, self.carried)

    def put_back(self, held: Held) -> None:
        """Have the sums and local factors of a batch as they were."""
        self._memoized, self.carried = held.memoized, held.carried
        if held.memoized is not None and held.batch is not None and held.sums is not None:
            held.memoized.replace(held.batch, held.sums)

    def blocks(self, model: RowModel, most_rows: int) -> list[tuple[int, int]]:
        """Return where blocks of no more rows start and stop; with a chain they are whole sequences, however long."""
        if model.chain is None:
            return blocks_of(model, self.source, most_rows, self.executor.block_rows(model))
        return self._sequences(model, model.chain, -(-self.source.n_rows // most_rows))

    def _sequences(self, model: RowModel, chain: ChainFactor, fewest: int) -> list[tuple[int, int]]:
        """Return where blocks of whole sequences start and stop: where these begin is read once."""
        made_for = (chain, model.block_rows, fewest)
        if made_for not in self._bounds:
            self._bounds[made_for] = sequence_bounds(model, chain, self.source, fewest)
        return self._bounds[made_for]

    def _chunks(self, model: RowModel) -> list[Chunk]:
        """Return the chunks over which local factors are inferred."""
        fewest = max(1, self._n_batches)
        if model.chain is None:
            return chunks_of(model, self.source, fewest, self.executor.block_rows(model))
        return chunked(self._sequences(model, model.chain, fewest), fewest)

    def _chunks_at_once(self, model: RowModel, source: RowSource) -> list[Chunk]:
        """Return the rows of a source in chunks of which none is kept; in a sample no rows are successive."""
        if model.chain is not None and source is self.source:
            return self._chunks(model)
        return chunks_of(model, source)

    def summarize_share(
        self, model: RowModel, coefficients: Coefficients, chunks: Sequence[Chunk]
    ) -> Summary:
        """Return the sums over some chunks as if all rows were like theirs; nothing is carried over to another pass.

        Some of their rows must have a weight above zero.
        """
        scale, nothing = self.source.total_weight / self.weight(chunks), [None] * len(chunks)
        work = InferBlocks(model, coefficients, self._scratch)
        sums, _ = self.executor.sum(work, self.source, chunks, nothing)
        whole = model.with_entropies(sums, coefficients).scaled(scale)
        static = Sums.zero()
        if model.has_static:
            # of the same rows: beside those of all rows, a sum of squares would be less than what it consists of
            own = SumStatic(model, self._scratch)
            static = self.executor.sum(own, self.source, chunks, nothing)[0].scaled(scale)
        return model.summary(whole, static, coefficients)

    def weight(self, chunks: Sequence[Chunk]) -> float:
        """Return the weight of the rows of some chunks."""
        total = 0.0
        for start, stop in (bounds for chunk in chunks for bounds in chunk.bounds):
            weights = self.source.weights(start, stop)
            total += float(stop - start if weights is None else weights.sum())
        return total

    def share(self, model: RowModel, n_rows: int) -> Passes:
        """Return passes over about so many rows from all over the source, which weigh as much as all do.

        They are read once and summed in this process, and begin without local factors of an earlier pass.
        """
        bounds = self.blocks(model, max(1, min(n_rows // _PLACES, self.source.n_rows)))
        wanted = min(len(bounds), max(1, round(n_rows * len(bounds) / max(self.source.n_rows, 1))))
        chosen = [bounds[i] for i in np.linspace(0, len(bounds) - 1, wanted).round().astype(int)]
        return Passes(rows_from(self.source, chosen), self.executor.host)

    def _infer_and_sum(
        self, model: RowModel, coefficients: Coefficients, chunks: Sequence[Chunk], anew: bool
    ) -> Sums:
        work = InferBlocks(model, coefficients, self._scratch, exact=not self.is_rough)
        carried = [None if anew else self.carried.get(chunk.number) for chunk in chunks]
        sums, after = self.executor.sum(work, self.source, chunks, carried)
        if model.keeps_locals:
            self.carried = {**self.carried, **dict(zip((c.number for c in chunks), after, strict=True))}
        return sums

    def path(
        self, model: RowModel, chain: ChainFactor, coefficients: Coefficients, means: Mapping[str, Array]
    ) -> Any:
        """Return the distribution of a chain's states over all rows of the source: an (E, N) array is made.

        States after the last observation of their sequence are forecast, from the expectations of the slots of
        the chain.
        """
        natural = np.empty((chain.n_rows, self.source.n_rows))
        starts, counted = np.empty((2, self.source.n_rows), dtype=bool)

        def block(rows: Rows) -> None:
            starts[rows.where] = chain.starts.among(rows.columns, rows.n_rows)
            seen = chain.seen(rows.columns)
            counted[rows.where] = True if seen is None else seen
            if rows.weights is not None:
                counted[rows.where] &= rows.weights > 0
            for _, own in tiles_of(model, rows):
                natural[:, own.where] = model.natural_of(chain, own, coefficients, self._scratch)

        for _ in self._map_here(model, self.source, block):
            pass
        if counted.all():
            return chain.path(natural, starts, coefficients.parts)
        path = chain.path(natural[:, counted], starts[counted], coefficients.parts)
        return chain.continued(path, counted, starts, means)

    def _static_sums(self, model: RowModel) -> Sums:
        """Return the sums that no factor enters; they are made once for a problem."""
        if self._static is None or self._static[0] is not model:
            self._static = (model, self._sum_static(model, self.source))
        return self._static[1]

    def _sum_static(self, model: RowModel, source: RowSource) -> Sums:
        if not model.has_static:
            return Sums.zero()
        chunks = self._chunks_at_once(model, source)
        return self.executor.sum(SumStatic(model, self._scratch), source, chunks, [None] * len(chunks))[0]

    def forget(self) -> None:
        """Forget the local factors of the last pass; the next one is in float32 again where the executor is."""
        self.carried, self._anew = {}, True
        self.is_rough = self.executor.is_single

    def kept(self) -> Kept:
        """Return what the next pass needs of those before."""
        return Kept(self.carried, () if self._memoized is None else self._memoized.batches, self._anew)

    def go_on(self, model: RowModel, kept: Kept) -> None:
        """Continue from what passes of a problem have kept."""
        self.carried, self._anew = dict(kept.carried), kept.anew
        self._memoized = Memoized(model, len(kept.batches)) if kept.batches else None
        for number, sums in enumerate(kept.batches):
            assert self._memoized is not None
            self._memoized.replace(number, sums)

    def natural_parameters(
        self, model: RowModel, source: RowSource, coefficients: Coefficients
    ) -> Iterator[LocalState]:
        """Yield the natural parameters of every local factor, block by block."""
        yield from self._map_here(model, source, lambda rows: self.infer(model, rows, coefficients))

    def infer(
        self, model: RowModel, rows: Rows, coefficients: Coefficients, given: LocalState | None = None
    ) -> LocalState:
        """Return the natural parameters of every local factor for some rows, but of those that are given."""
        return model.infer(rows, coefficients, self._scratch, given)

    def sum_given(
        self,
        model: RowModel,
        source: RowSource,
        give: Callable[[Rows], LocalState],
        coefficients: Coefficients,
    ) -> Summary:
        """Return the sums over the rows of a source for given local statistics.

        Parameters
        ----------
        give
            Returns the expected statistics of every local factor for some rows, (E, B) each, to be overwritten.

        Notes
        -----
        Of a chain the successive states count as independent; in a sample that is not in order none are successive, and
        their sums are zero.
        """
        chain, in_order = model.chain, not isinstance(source, Sample) or source.is_in_order

        def block(rows: Rows) -> Sums:
            state = give(rows)
            if chain is not None and in_order:
                return given_sequences(model, chain, rows, state, coefficients, self._scratch)
            return model.sums_of(rows, state, coefficients, self._scratch)

        sums = self._sum_here(model, source, block)
        if chain is not None and not in_order:
            none = np.zeros((chain.n_rows, 0)), np.zeros(0, dtype=bool)
            sums.parts.update(chain.sums_given(*none))
        return model.summary(sums, self._sum_static(model, source), coefficients)

    def _sum_here(self, model: RowModel, source: RowSource, function: Callable[[Rows], Sums]) -> Sums:
        """Return the sum of a function of the blocks, computed in this process."""
        chunks = self._chunks_at_once(model, source)

        def chunk(number: int) -> Sums:
            total = Sums.zero()
            for bounds in chunks[number].bounds:
                rows = rows_at(source, bounds)
                if rows.n_rows:
                    total.add(function(rows))
            return total

        # without a data plate there are no rows
        return pairwise_sum(self.executor.map(chunk, len(chunks))) if chunks else Sums.zero()

    def _map_here(self, model: RowModel, source: RowSource, function: Callable[[Rows], T]) -> Iterator[T]:
        """Yield a function of blocks of rows by themselves, every row in them, computed in this process."""
        bounds = blocks_of(model, source)
        yield from self.executor.map(
            lambda number: function(rows_at(source, bounds[number], every=True)), len(bounds)
        )
