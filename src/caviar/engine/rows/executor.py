"""Executors: where blocks of rows are mapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from ..local.statistics import Sums
from .row_model import RowModel
from .tasks import Chunk, RowSource, Work

T = TypeVar("T")


class Executor(ABC):
    """Where blocks are mapped: over threads of this process, over machines, or on a device.

    A subclass says how functions are mapped and work is summed; the rest has defaults, which are those of this process.
    """

    is_single: bool = False
    """Whether sums are taken in float32 until a pass has to be exact."""

    @property
    def host(self) -> Executor:
        """An executor of this process, for small samples."""
        return self

    def session(self) -> AbstractContextManager[None]:
        """Hold what is needed for many maps."""
        return nullcontext()

    def reach(self) -> None:
        """See that other machines, if there are any, can be reached, whether or not a fit is large enough for them.

        Raises
        ------
        ClusterError
            If they cannot.
        """
        return

    def check(self, model: RowModel) -> None:
        """Check that the executor can make the passes of a model.

        Raises
        ------
        ParameterError
            If not.
        """
        return

    def block_rows(self, model: RowModel) -> int:
        """Return the rows of a block; results in float64 are the same bits only where these are the model's own."""
        return model.block_rows

    @abstractmethod
    def map(self, function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
        """Yield the function of 0, 1, ..., in order, computed in this process."""

    @abstractmethod
    def sum(
        self, work: Work, source: RowSource, chunks: Sequence[Chunk], carried: Sequence[Any]
    ) -> tuple[Sums, list[Any]]:
        """Return the sum of the work over chunks of rows, and what it carries over to the next one, a chunk each.

        The order of the additions depends on the number of chunks only. What is carried stays where the rows are: it is
        opaque to the caller, None before the first time.
        """
