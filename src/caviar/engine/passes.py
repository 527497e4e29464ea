"""Passes: the plan's map over blocks of rows and its sum, on whatever executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from .._typing import AnyArray, Array
from .locals import LocalFactor
from .plan import Plan
from .scratch import Scratch
from .sums import Coefficients, LocalState, Rows, Summary, Sums

__all__ = ["Executor", "Passes", "RowSource"]

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
        self._state: list[LocalState] | None = None
        self._static: tuple[Plan, Sums] | None = None

    def _bounds(self, plan: Plan, source: RowSource) -> list[tuple[int, int]]:
        size, total = plan.rows.block_rows, source.n_rows
        return [(start, min(start + size, total)) for start in range(0, total, size)]

    def _sum(self, function: Callable[[int], Sums], n_blocks: int) -> Sums:
        """Return the sum of a function of the blocks: in order within a chunk, along a tree over chunks."""
        length = -(-n_blocks // _MOST_CHUNKS)

        def chunk(number: int) -> Sums:
            total = Sums.zero()
            for block in range(number * length, min((number + 1) * length, n_blocks)):
                total.add(function(block))
            return total

        return self.executor.sum(self.executor.map(chunk, -(-n_blocks // length)))

    def summarize(self, plan: Plan, coefficients: Coefficients) -> Summary:
        """Return the sums over all rows with the local factors at their optimum for these coefficients."""
        static = self._static_sums(plan)
        if not plan.factors:
            return plan.rows.summary(Sums.zero(), static, coefficients)
        bounds = self._bounds(plan, self.source)
        before = self._state if self._state is not None else [{}] * len(bounds)
        after: list[LocalState] = [{}] * len(bounds)

        def block(number: int) -> Sums:
            rows = _rows(self.source, bounds[number])
            sums, after[number] = plan.rows.summarize(
                rows, coefficients, before[number], self._scratch, static=False
            )
            return sums

        sums = self._sum(block, len(bounds))
        if plan.rows.keeps_locals:
            self._state = after
        return plan.rows.summary(sums, static, coefficients)

    def _static_sums(self, plan: Plan) -> Sums:
        """Return the sums that no factor enters; they are made once for a plan."""
        if self._static is not None and self._static[0] is plan:
            return self._static[1]
        sums = Sums.zero()
        if None in plan.compiled.tables or any(term.is_static for term in plan.compiled.local_terms):
            bounds = self._bounds(plan, self.source)

            def block(number: int) -> Sums:
                return plan.rows.summarize(
                    _rows(self.source, bounds[number]), _NOTHING, None, self._scratch, static=True
                )[0]

            sums = self._sum(block, len(bounds))
        self._static = (plan, sums)
        return sums

    def forget(self) -> None:
        """Forget the local factors of the last pass."""
        self._state = None

    def natural_parameters(
        self, plan: Plan, source: RowSource, coefficients: Coefficients
    ) -> Iterator[dict[LocalFactor, Array]]:
        """Yield the natural parameters of every local factor, block by block."""
        bounds = self._bounds(plan, source)

        def block(number: int) -> dict[LocalFactor, Array]:
            return plan.rows.infer(_rows(source, bounds[number]), coefficients, self._scratch)

        yield from self.executor.map(block, len(bounds))

    def sum_given(
        self, plan: Plan, source: RowSource, expected: LocalState, coefficients: Coefficients
    ) -> Summary:
        """Return the sums over the rows of a source for given local statistics, (E, N) each."""
        bounds = self._bounds(plan, source)

        def static_block(number: int) -> Sums:
            rows = _rows(source, bounds[number])
            return plan.rows.summarize(rows, coefficients, None, self._scratch, static=True)[0]

        def block(number: int) -> Sums:
            rows = _rows(source, bounds[number])
            state = {factor: values[:, slice(*bounds[number])].copy() for factor, values in expected.items()}
            return plan.rows.sums_of(rows, state, self._scratch)

        sums, static = self._sum(block, len(bounds)), self._sum(static_block, len(bounds))
        return plan.rows.summary(sums, static, coefficients)


def _rows(source: RowSource, bounds: tuple[int, int]) -> Rows:
    return Rows(source.read(*bounds), source.weights(*bounds), bounds[1] - bounds[0])


_NOTHING = Coefficients({}, {})
