"""Blocks mapped on an accelerator, as torch or CuPy arrays: the same engine, the same numbers.

Blocks on a device: moved there once and kept while they fit, else moved again in each pass, beside the work.
"""

from __future__ import annotations

import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from .._errors import ParameterError, PrecisionWarning
from ..engine.local.statistics import Rows, Sums
from ..engine.rows.device.device_pass import DevicePass, refuse_what_no_device_takes
from ..engine.rows.device.layout import layout_of
from ..engine.rows.executor import Executor
from ..engine.rows.row_model import RowModel
from ..engine.rows.tasks import Chunk, InferBlocks, RowSource, Work, rows_at
from ..numerics.sums.pairwise import pairwise_sum
from .array_libraries import ArrayLibrary, library_of
from .threads import Threads

T = TypeVar("T")

log = logging.getLogger("caviar")

_BUDGET = 1e-4
"""Error of a responsibility that rounding to float32 may make."""

_CHECKED_EVERY = 16
"""Passes in float32 of which the first has every row computed in float64 too, to compare."""

_ROWS = 1 << 17
_STRIP = 4096
_BUFFERS = 0.15
"""Share of the free memory that the buffers of one block may take."""

_SAMPLE = 4096
"""Rows by which blocks in float32 are whitened."""

_RUNS = 64
"""Runs of rows that these are."""


class Device(Executor):
    """Process blocks of rows on a device such as a GPU; data are moved there once, and only sums are returned.

    An executor for ``Model.fit(executor=...)``. Rows, their features and local factors are arrays on the device;
    globals stay on the CPU in float64.

    Parameters
    ----------
    device
        Name of the device in the array library: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    library
        Array library: ``"torch"``, ``"cupy"``, or ``"array_api_strict"`` for tests.
    dtype
        ``"float64"`` gives the results of the CPU up to rounding. ``"float32"`` makes passes in float32 on whitened
        rows as long as no responsibility is off by more than 1e-4, and ends with passes in float64, so that posterior
        and ELBO have the accuracy of float64. The error is measured on every row, in one of every 16 passes and
        whenever reference points change.
    block_rows
        Number of rows of a block; by default 131,072 on an accelerator, or as many as fit in a seventh of its free
        memory.
    keep
        Share of the free memory of the device for rows that stay there between passes. Other rows are moved again in
        each pass, while the device computes. On a CPU all rows are kept.

    Raises
    ------
    ParameterError
        If the library is not installed or cannot use the device, or an argument is invalid; at the start of a fit, if
        the model is not supported on devices. The message says why, and what to do.

    Warns
    -----
    PrecisionWarning
        During a fit in float32, if a responsibility would be off by more than 1e-4. The fit then continues in float64.

    Notes
    -----
    Supported models have dense data, and independent hidden Categoricals as local variables: mixtures of all kinds.
    Results differ from those of :class:`~caviar.execution.threads.Threads` by rounding.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> x = np.concatenate([np.random.default_rng(0).normal(m, 1, (50, 2)) for m in (-4, 4)])
    >>> model = cv.models.gaussian_mixture(2, 2)
    >>> here = model.fit({"x": x}, seed=0)
    >>> there = model.fit({"x": x}, seed=0, executor=cv.Device("cpu", library="array_api_strict"))
    >>> abs(here.elbo - there.elbo) < 1e-9 * abs(here.elbo)
    True
    """

    def __init__(
        self,
        device: str = "cuda",
        *,
        library: str = "torch",
        dtype: str = "float64",
        block_rows: int | None = None,
        keep: float = 0.6,
    ) -> None:
        if dtype not in ("float32", "float64"):
            raise ParameterError(f"dtype is 'float64' or 'float32'; got {dtype!r}")
        if block_rows is not None and not (isinstance(block_rows, int) and block_rows >= 1):
            raise ParameterError(f"block_rows must be a whole number >= 1, or None; got {block_rows!r}")
        if not (isinstance(keep, (int, float)) and 0 <= keep <= 0.7):
            raise ParameterError(f"keep, a share of the device's memory, is between 0 and 0.7; got {keep!r}")
        self.device, self.library, self.dtype = str(device), library, dtype
        self.is_single = dtype == "float32"
        self._own_rows, self._keep = block_rows, keep
        self._arrays = library_of(library, self.device)
        self._host = Threads()
        self._forget()

    def __repr__(self) -> str:
        return f"Device({self.device!r}, library={self.library!r}, dtype={self.dtype!r})"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep rows on the device for a while."""
        with self._host.session(), self._arrays.session():
            try:
                yield
            finally:
                self._forget()

    @property
    def host(self) -> Threads:
        """The executor for work that no device takes."""
        return self._host

    def check(self, model: RowModel) -> None:
        """Check that a device can make the passes of a model."""
        refuse_what_no_device_takes(model)

    def _forget(self) -> None:
        """Forget what belongs to one session."""
        self._held: dict[bool, tuple[Any, HeldBlocks]] = {}
        self._rows: dict[int, int] = {}
        self._too_coarse = False
        self._single: tuple[Any, int] = (None, 0)

    def map(self, function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
        """Yield ``function(0), function(1), ...`` in order, computed by threads of this process."""
        return self._host.map(function, n_tasks)

    def block_rows(self, model: RowModel) -> int:
        """Return the rows of a block of a plan: as many as an accelerator wants, where there is memory for them."""
        if self._own_rows is not None:
            return self._own_rows
        # of each row the features, and three arrays of the statistics of each local factor
        width = sum([3 * own.n_rows + table.n_dense for own, table in model.tables.items()])
        if width not in self._rows:
            free = self._arrays.free_memory
            room = None if free is None else int(_BUFFERS * free) // (8 * width)
            # in a session boundaries stay, however the free memory changes
            self._rows[width] = (
                model.block_rows if room is None else min(_ROWS, max(_STRIP, 1 << room.bit_length() - 1))
            )
        return self._rows[width]

    def sum(
        self, work: Work, source: RowSource, chunks: Sequence[Chunk], carried: Sequence[Any]
    ) -> tuple[Sums, list[Any]]:
        """Return the sum of the work over chunks; work that no device takes is done by threads of this process."""
        if not isinstance(work, InferBlocks):
            return self._host.sum(work, source, chunks, carried)
        bounds = [own for chunk in chunks for own in chunk.bounds]
        total = None
        if self.is_single and not work.exact and not self._too_coarse:
            total = self._sum_single(work, source, bounds)
        if total is None:
            total = self._sum(work, source, bounds, single=False)[0]
        return total, [None] * len(chunks)

    def _sum_single(
        self, work: InferBlocks, source: RowSource, bounds: Sequence[tuple[int, int]]
    ) -> Sums | None:
        """Return the sum in float32 blocks; None where that is too coarse."""
        rows = work.rows
        if rows.has_centres:
            self._refuse_single("components so narrow that they are measured from their own means")
            return None
        n_before = self._single[1] if self._single[0] is rows else 0
        self._single = rows, n_before + 1
        total, error = self._sum(work, source, bounds, single=True, checked=n_before % _CHECKED_EVERY == 0)
        # a number that is not one fails the comparison
        if error <= _BUDGET:
            return total
        self._refuse_single(f"an error of {error:.1g}")
        return None

    def _refuse_single(self, reason: str) -> None:
        self._too_coarse = True
        self._held.clear()
        message = (
            f"float32 would cost more than {_BUDGET:g} in a responsibility ({reason}); passes are in float64"
        )
        log.info(message)
        warnings.warn(
            f"{message} instead, as slow and as exact as dtype='float64'", PrecisionWarning, stacklevel=2
        )

    def _sum(
        self,
        work: InferBlocks,
        source: RowSource,
        bounds: Sequence[tuple[int, int]],
        *,
        single: bool,
        checked: bool = False,
    ) -> tuple[Sums, float]:
        """Return the sum over blocks, and the largest error of a responsibility, zero where that is not ``checked``."""
        held = self._blocks(work, source, single=single)
        there = DevicePass(work.rows, work.coefficients, held.layout, self._arrays, held.scratch)
        held.scratch = there.scratch
        errors = []

        def sums() -> Iterator[Any]:
            for block in held(bounds):
                found = there.summarize(block)
                if checked:
                    errors.append(there.error(block))
                yield found

        parts = sums()
        first = next(parts, None)
        if first is None:
            return Sums.zero(), 0.0
        total = there.bring_back(pairwise_sum(chain([first], parts)))
        return total, float(np.max([self._arrays.numpy(error) for error in errors], initial=0.0))

    def _blocks(self, work: InferBlocks, source: RowSource, *, single: bool) -> HeldBlocks:
        """Return the blocks of a source on the device."""
        known = self._held.get(single)
        if known is not None and known[0] is source and known[1].layout.serves(work.rows):
            return known[1]
        # there is room for one kind of blocks only
        self._held.clear()
        layout = layout_of(work.rows, _spread_out(source, _SAMPLE) if single else None)
        free = self._arrays.free_memory
        limit = None if free is None else int(self._keep * free)
        held = HeldBlocks(layout, self._arrays, lambda bounds: rows_at(source, bounds), limit)
        self._held[single] = source, held
        return held


def _spread_out(source: RowSource, n_rows: int) -> Rows:
    """Return about a number of rows, in runs spread over a source."""
    if source.n_rows <= n_rows:
        return rows_at(source, (0, source.n_rows), every=True)
    run = n_rows // _RUNS
    starts = np.linspace(0, source.n_rows - run, _RUNS).astype(int).tolist()
    blocks = [source.read(start, start + run) for start in starts]
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return Rows(columns, None, run * _RUNS, slice(0, 0))


_AHEAD = 2
"""Blocks that are moved before the device is done with the one that it works on."""

Bounds = tuple[int, int]


class HeldBlocks:
    """The blocks of one source of rows, prepared in one way.

    Parameters
    ----------
    layout
        How blocks are prepared, and moved: ``layout.move(rows, library)``.
    library
        The arrays of the device.
    read
        Returns the rows between two bounds.
    limit
        Bytes of blocks that are kept; None for any number.
    """

    def __init__(
        self, layout: Any, library: ArrayLibrary, read: Callable[[Bounds], Any], limit: int | None
    ) -> None:
        self.layout = layout
        self.scratch: Any = None
        """Buffers of the passes over these blocks."""
        self._library = library
        self._read = read
        self._limit = limit
        self._kept: dict[Bounds, Any] = {}
        self.n_bytes = 0
        """Bytes that are kept."""

    def __call__(self, bounds: Sequence[Bounds]) -> Iterator[Any]:
        """Yield the blocks between these bounds that have rows, in order."""
        if all(own in self._kept for own in bounds):
            yield from filter(None, map(self._kept.__getitem__, bounds))
            return
        with ThreadPoolExecutor(1, thread_name_prefix="caviar-device") as mover:
            ahead: deque[tuple[Bounds, Future[Any] | None]] = deque()
            marks: deque[Any] = deque([None] * _AHEAD, maxlen=_AHEAD)
            for own in bounds:
                future = None if own in self._kept else mover.submit(self._move, own, marks[0])
                ahead.append((own, future))
                if len(ahead) == _AHEAD:
                    yield from self._next(ahead)
                    marks.append(self._library.mark())
            while ahead:
                yield from self._next(ahead)

    def _next(self, ahead: deque[tuple[Bounds, Future[Any] | None]]) -> Iterator[Any]:
        own, future = ahead.popleft()
        block = self._kept[own] if future is None else self._arrived(own, *future.result())
        if block is not None:
            yield block

    def _move(self, bounds: Bounds, mark: Any) -> tuple[Any, Any]:
        """Return a block on the device, None if it has no rows, and what tells that it is there.

        First the device must have reached a mark, so that no more blocks wait for it than a few.
        """
        rows = self._read(bounds)
        if not rows.n_rows:
            return None, None
        self._library.reach(mark)
        with self._library.copying():
            return self.layout.move(rows, self._library), self._library.copied()

    def _arrived(self, bounds: Bounds, block: Any, copied: Any) -> Any:
        """Return a block that was moved, ready for use; keep it if it fits."""
        size = 0 if block is None else block.n_bytes
        if block is not None:
            arrays = [*block.columns.values(), *([] if block.weights is None else [block.weights])]
            self._library.arrived(copied, arrays)
        if self._limit is None or self.n_bytes + size <= self._limit:
            self._kept[bounds] = block
            self.n_bytes += size
        return block
