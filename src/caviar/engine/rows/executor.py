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
    """Where blocks of rows are processed: by threads of this process, on other machines, or on a device.

    A subclass defines how functions are mapped and work is summed; everything else has a default, that of this process.
    """

    is_single: bool = False
    """Whether sums are taken in float32 until a pass has to be exact."""

    @property
    def host(self) -> Executor:
        """An executor of this process, for small samples."""
        return self

    def session(self) -> AbstractContextManager[None]:
        """Context in which resources are kept for many maps."""
        return nullcontext()

    def reach(self) -> None:
        """Check that other machines, if any, can be reached, even if a fit is too small to use them.

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
        """Return the number of rows of a block. Results in float64 are identical only with the default of the model."""
        return model.block_rows

    @abstractmethod
    def map(self, function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
        """Yield the function of 0, 1, ..., in order, computed in this process."""

    @abstractmethod
    def sum(
        self, work: Work, source: RowSource, chunks: Sequence[Chunk], carried: Sequence[Any]
    ) -> tuple[Sums, list[Any]]:
        """Return the sum of the work over chunks of rows, and what each chunk carries over to the next pass.

        The order of the additions depends only on the number of chunks. Carried values stay where the rows are; they
        are opaque to the caller, and None before the first pass.
        """
