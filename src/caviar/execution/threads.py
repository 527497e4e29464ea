"""Blocks mapped over threads of this process, and summed in an order that the number of threads does not change."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from ..engine.local.statistics import Sums
from ..engine.rows.executor import Executor
from ..engine.rows.tasks import Chunk, RowSource, Work
from ..numerics.blas import limit_this_thread, one_blas_thread, see_to_one_thread
from ..numerics.sums.pairwise import pairwise_sum

T = TypeVar("T")


class Threads(Executor):
    """Process blocks of rows with threads.

    Parameters
    ----------
    n_threads
        Number of threads; by default one for each core that this process may use. The results are identical for any
        number.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads if n_threads is not None else usable_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._n_sessions = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy has threads of its own
        return type(self), (self.n_threads,)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the threads for a while, with one BLAS thread for each of them; they go with the last session."""
        with one_blas_thread():
            with self._lock:
                self._n_sessions += 1
            try:
                yield
            finally:
                with self._lock:
                    self._n_sessions -= 1
                    ended = None if self._n_sessions else self._pool
                    self._pool = self._pool if self._n_sessions else None
                if ended is not None:
                    ended.shutdown(cancel_futures=True)

    def map(self, function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
        """Yield ``function(0), function(1), ...`` in order; a few are computed ahead."""
        see_to_one_thread()
        if n_tasks == 1 or self.n_threads == 1:
            yield from map(function, range(n_tasks))
            return
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    self.n_threads, thread_name_prefix="caviar", initializer=limit_this_thread
                )
            pool = self._pool
        ahead: deque[Future[T]] = deque()
        for task in range(n_tasks):
            ahead.append(pool.submit(function, task))
            if len(ahead) > 2 * self.n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def sum(
        self,
        work: Work,
        source: RowSource,
        chunks: Sequence[Chunk],
        carried: Sequence[Any],
    ) -> tuple[Sums, list[Any]]:
        """Return the sum of ``work(source, chunk, carried)[0]`` over chunks, and what each call carries over.

        The sum runs along a balanced tree, for any number of threads. A single chunk is spread over
        them.
        """
        if len(chunks) == 1:
            see_to_one_thread()
            value, left = work.spread(self.map)(source, chunks[0], carried[0])
            return value, [left]
        after: list[Any] = [None] * len(chunks)

        def chunk(number: int) -> Sums:
            value, after[number] = work(source, chunks[number], carried[number])
            return value

        return pairwise_sum(self.map(chunk, len(chunks))), after


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
