"""Blocks mapped over threads of this process, and summed in an order that the number of threads does not change."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, Self, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["Threads", "pairwise_sum"]

T = TypeVar("T")


class Additive(Protocol):
    """Something that another of its kind can be added to, in place."""

    def add(self, other: Self) -> None:
        """Add ``other`` to this."""
        ...


A = TypeVar("A", bound=Additive)


def _added(total: A, other: A) -> A:
    total.add(other)
    return total


def pairwise_sum(values: Iterator[T], add: Callable[[T, T], T]) -> T:
    """Return the sum of a stream along a balanced tree, holding O(log n) partial sums.

    A binary counter: partial sums of equal size are added as soon as there are two of them. The order of
    additions depends on the number of values only.

    Examples
    --------
    >>> pairwise_sum(iter([1, 2, 3, 4, 5]), lambda a, b: a + b)
    15
    """
    partial: list[tuple[int, T]] = []
    for value in values:
        level = 0
        while partial and partial[-1][0] == level:
            value = add(partial.pop()[1], value)
            level += 1
        partial.append((level, value))
    total = partial.pop()[1]
    while partial:
        total = add(partial.pop()[1], total)
    return total


class Threads:
    """Map blocks over threads.

    Parameters
    ----------
    n_threads
        How many; by default one for each core that this process may use. The results are the same bits for any number.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads if n_threads is not None else _usable_cores()
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the threads for a while, with one BLAS thread for each of them."""
        with _controller().limit(limits=1):
            try:
                yield
            finally:
                if self._pool is not None:
                    self._pool.shutdown(cancel_futures=True)
                    self._pool = None

    def map(self, function: Callable[[int], T], n_blocks: int) -> Iterator[T]:
        """Yield ``function(0), function(1), ...`` in order; a few are computed ahead."""
        if n_blocks == 1 or self.n_threads == 1:
            yield from map(function, range(n_blocks))
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="caviar")
        ahead: deque[Future[T]] = deque()
        for block in range(n_blocks):
            ahead.append(self._pool.submit(function, block))
            if len(ahead) > 2 * self.n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def sum(self, values: Iterator[A]) -> A:
        """Return the sum of a stream along a balanced tree; its values are added to in place."""
        return pairwise_sum(values, _added)


_cached_controller: ThreadpoolController | None = None


def _controller() -> ThreadpoolController:
    """Return the controller of this process's BLAS libraries; finding them costs milliseconds, so it is done once."""
    global _cached_controller
    if _cached_controller is None:
        _cached_controller = ThreadpoolController()
    return _cached_controller


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
