"""Passes: the plan's map over blocks of rows and its sum, on whatever executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import numpy as np

from .._typing import AnyArray, Array
from .chain import ChainFactor, Path
from .locals import LocalFactor
from .plan import Plan
from .scratch import Scratch
from .sums import Coefficients, LocalState, Rows, Summary, Sums

__all__ = ["Executor", "Passes", "RowSource", "rows_at"]

T = TypeVar("T")

_MOST_CHUNKS = 128
"""Units of work that are handed to an executor: runs of blocks, so that handing over costs little."""


class RowSource(Protocol):
    """Where blocks of rows come from."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        ...

    def read(self, start: int, stop: int) -> Mapping[str, AnyArray]:
        """Return the named columns from row ``start`` to ``stop``."""
        ...

    def weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of these rows, or None where every row counts once."""
        ...

    def places(self, start: int, stop: int) -> slice | AnyArray:
        """Return the places of these rows in what is given or found for each row."""
        ...


class Executor(Protocol):
    """Where blocks are mapped."""

    def session(self) -> AbstractContextManager[None]:
        """Hold what is needed for many maps."""
        ...

    def map(self, function: Callable[[int], T], n_blocks: int) -> Iterator[T]:
        """Yield the function of 0, 1, ..., in order."""
        ...

    def sum(self, values: Iterator[Sums]) -> Sums:
        """Return the sum of a stream, in an order that depends on its length only; values may be overwritten."""
        ...


class Passes:
    """Passes of a plan over the rows of a source.

    Block boundaries follow from the number of features alone, so that the sums are the same bits for any executor.
    """

    def __init__(self, source: RowSource, executor: Executor) -> None:
        self.source = source
        self.executor = executor
        self._scratch = Scratch()
        self.local_state: list[LocalState] | None = None
        """Local factors of the last pass, by block, where the next one starts from them; replaced, never changed."""
        self._static: tuple[Plan, Sums] | None = None
        self._unchanging: tuple[Plan, Summary] | None = None

    def _bounds(self, plan: Plan, source: RowSource) -> list[tuple[int, int]]:
        size, total = plan.rows.block_rows, source.n_rows
        return [(start, min(start + size, total)) for start in range(0, total, size)]

    def _sum(self, plan: Plan, source: RowSource, function: Callable[[int, Rows], Sums]) -> Sums:
        """Return the sum of a function of the blocks: in order within a chunk, along a tree over chunks."""
        bounds = self._bounds(plan, source)
        length = -(-len(bounds) // _MOST_CHUNKS)

        def chunk(number: int) -> Sums:
            total = Sums.zero()
            for block in range(number * length, min((number + 1) * length, len(bounds))):
                rows = rows_at(source, bounds[block])
                if rows.n_rows:
                    total.add(function(block, rows))
            return total

        return self.executor.sum(self.executor.map(chunk, -(-len(bounds) // length)))

    def summarize(self, plan: Plan, coefficients: Coefficients) -> Summary:
        """Return the sums over all rows with the local factors at their optimum for these coefficients."""
        static = self._static_sums(plan)
        if not plan.factors:
            if self._unchanging is None or self._unchanging[0] is not plan:
                self._unchanging = (plan, plan.rows.summary(Sums.zero(), static, coefficients))
            return self._unchanging[1]
        if plan.chain is not None:
            return self._summarize_chain(plan, plan.chain, coefficients, static)
        n_blocks = len(self._bounds(plan, self.source))
        before = self.local_state if self.local_state is not None else [{}] * n_blocks
        after: list[LocalState] = [{}] * n_blocks

        def block(number: int, rows: Rows) -> Sums:
            sums, after[number] = plan.rows.summarize(rows, coefficients, before[number], self._scratch)
            return sums

        sums = self._sum(plan, self.source, block)
        if plan.rows.keeps_locals:
            self.local_state = after
        return plan.rows.summary(sums, static, coefficients)

    def _summarize_chain(
        self, plan: Plan, chain: ChainFactor, coefficients: Coefficients, static: Sums
    ) -> Summary:
        """Return the sums of two passes: what each row says of its state, then sums given their marginals."""
        smoothing = self.path(plan, chain, coefficients).smoothing
        expected = chain.expected(smoothing)

        def block(_: int, rows: Rows) -> Sums:
            given: LocalState = {chain: expected[:, rows.where].copy()}
            return plan.rows.summarize(rows, coefficients, {}, self._scratch, given)[0]

        summary = plan.rows.summary(self._sum(plan, self.source, block), static, coefficients)
        parts = {**summary.parts, **chain.sums(smoothing)}
        entropy = smoothing.entropy + summary.entropies.get(chain, 0.0)
        return Summary(parts, {**summary.entropies, chain: entropy})

    def path(self, plan: Plan, chain: ChainFactor, coefficients: Coefficients) -> Path:
        """Return the distribution of a chain's states over all rows of the source: an (N, E) array is made."""
        natural = np.empty((self.source.n_rows, chain.n_rows))
        bounds = self._bounds(plan, self.source)

        def block(number: int) -> None:
            rows = rows_at(self.source, bounds[number], every=True)
            natural[rows.where] = plan.rows.natural_of(chain, rows, coefficients, self._scratch).T

        for _ in self.executor.map(block, len(bounds)):
            pass
        return chain.path(natural, coefficients.parts)

    def _static_sums(self, plan: Plan) -> Sums:
        """Return the sums that no factor enters; they are made once for a plan."""
        if self._static is None or self._static[0] is not plan:
            self._static = (plan, self._sum_static(plan, self.source))
        return self._static[1]

    def _sum_static(self, plan: Plan, source: RowSource) -> Sums:
        if not plan.rows.has_static:
            return Sums.zero()
        return self._sum(plan, source, lambda _, rows: plan.rows.sum_static(rows, self._scratch))

    def forget(self) -> None:
        """Forget the local factors of the last pass."""
        self.local_state = None

    def natural_parameters(
        self, plan: Plan, source: RowSource, coefficients: Coefficients
    ) -> Iterator[dict[LocalFactor, Array]]:
        """Yield the natural parameters of every local factor, block by block."""
        bounds = self._bounds(plan, source)

        def block(number: int) -> dict[LocalFactor, Array]:
            rows = rows_at(source, bounds[number], every=True)
            return plan.rows.infer(rows, coefficients, self._scratch)

        yield from self.executor.map(block, len(bounds))

    def infer(self, plan: Plan, rows: Rows, coefficients: Coefficients) -> dict[LocalFactor, Array]:
        """Return the natural parameters of every local factor for some rows."""
        return plan.rows.infer(rows, coefficients, self._scratch)

    def sum_given(
        self, plan: Plan, source: RowSource, give: Callable[[Rows], LocalState], coefficients: Coefficients
    ) -> Summary:
        """Return the sums over the rows of a source for given local statistics.

        Parameters
        ----------
        give
            Returns the expected statistics of every local factor for some rows, (E, B) each, to be overwritten.

        Notes
        -----
        Of a chain the successive states count as independent; in a sample of the rows none are successive, and their
        sums are zero.
        """
        chain, in_order = plan.chain, source is self.source
        marginals = None if chain is None or not in_order else np.empty((source.n_rows, chain.n_rows))

        def block(_: int, rows: Rows) -> Sums:
            state = give(rows)
            if chain is not None and marginals is not None:
                marginals[rows.where] = state[chain].T
            return plan.rows.sums_of(rows, state, coefficients, self._scratch)

        sums = self._sum(plan, source, block)
        summary = plan.rows.summary(sums, self._sum_static(plan, source), coefficients)
        if chain is not None:
            summary.parts.update(chain.sums_given(marginals))
        return summary


def rows_at(source: RowSource, bounds: tuple[int, int], *, every: bool = False) -> Rows:
    """Return a block of rows, without those of weight zero unless ``every`` row is wanted."""
    columns, weights, where = source.read(*bounds), source.weights(*bounds), source.places(*bounds)
    if every or weights is None or weights.all():
        return Rows(columns, weights, bounds[1] - bounds[0], where)
    kept = np.flatnonzero(weights)
    columns = {name: rows[kept] for name, rows in columns.items()}
    places = bounds[0] + kept if isinstance(where, slice) else where[kept]
    return Rows(columns, weights[kept], len(kept), places)
