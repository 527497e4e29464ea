"""Whole sequences: blocks of rows that a chain runs through, and what is done with each of them.

A block is a run of whole sequences, so that the factor of a chain is inferred inside it: natural parameters of its
rows, messages forward and backward over its sequences, and sums given the marginals. What meets the data is done tile
by tile, in as many rows as matrix products are fastest with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array
from ...families.markov_chain import ImpossiblePathError
from ...numerics.pairwise import pairwise_sum
from ..binding.missing.entries import order_of_patterns
from ..design.backend import Workspace
from ..local.chain import ChainFactor, Starts
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Sums
from .row_model import RowModel

T = TypeVar("T")

_BLOCK_NUMBERS = 1 << 19
"""Statistics of the states of a block at the most: what memory a block takes."""

_STEP_NUMBERS = 1 << 9
"""Statistics of one step of all sequences of a block at the fewest, so that a step is worth its calls."""

_FEWEST_BLOCKS = 4
"""Blocks that rows are cut into, as far as each keeps the rows of a tile: for threads, and for batches."""

_READ_ROWS = 65_536


class ImpossibleSequenceError(ImproperError):
    """Known probabilities of zero leave a sequence no path of states; in a sample, it may be no whole sequence."""


class Over(Protocol):
    """How a function of 0, 1, ... is computed: one after another, or on several threads; results come in order."""

    def __call__(self, function: Callable[[int], T], n_tasks: int, /) -> Iterator[T]:
        """Yield the function of 0, 1, ..."""
        ...


def one_by_one(function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
    """Yield the function of 0, 1, ..., in this thread."""
    return map(function, range(n_tasks))


class _Source(Protocol):
    @property
    def n_rows(self) -> int: ...

    def read(self, start: int, stop: int) -> Any: ...


def sequence_bounds(
    rows: RowModel, chain: ChainFactor, source: _Source, fewest: int = 1
) -> list[tuple[int, int]]:
    """Return where blocks of whole sequences start and stop; a sequence longer than a block is one by itself.

    They depend on the model, the number of rows and the starts of the sequences only, and on how many blocks there are
    to be at the ``fewest``, as far as there are as many sequences.
    """
    begins = _begins(chain.starts, source)
    steps = source.n_rows * _STEP_NUMBERS // ((len(begins) - 1) * chain.n_rows)
    size = min(_BLOCK_NUMBERS // chain.n_rows, max(steps, -(-source.n_rows // _FEWEST_BLOCKS)))
    size = min(max(rows.block_rows, size), -(-source.n_rows // fewest))
    edges = [0]
    while edges[-1] < source.n_rows:
        last = int(begins[np.searchsorted(begins, edges[-1] + size, side="right") - 1])
        if last <= edges[-1]:
            last = int(begins[np.searchsorted(begins, edges[-1], side="right")])
        edges.append(last)
    return list(pairwise(edges))


def _begins(starts: Starts, source: _Source) -> AnyArray:
    """Return the first row of each sequence, and after them the number of rows."""
    found = [np.zeros(1, dtype=np.intp)]
    if starts.column is not None:
        for start in range(0, source.n_rows, _READ_ROWS):
            stop = min(start + _READ_ROWS, source.n_rows)
            found.append(start + np.flatnonzero(source.read(start, stop)[starts.column]))
    elif starts.everywhere:
        found.append(np.arange(1, source.n_rows))
    begins = np.concatenate([*found, [source.n_rows]])
    return begins[1:] if len(begins) > 2 and begins[1] == 0 else begins


def tiles_of(row_pass: RowModel, rows: Rows) -> list[tuple[slice | AnyArray, Rows]]:
    """Return a block in parts of the rows that matrix products are fastest with, and their places in the block.

    Rows of a part that lack the same entries of a vector are together.
    """
    tiles = []
    for start in range(0, rows.n_rows, row_pass.block_rows):
        stop = min(start + row_pass.block_rows, rows.n_rows)
        places: slice | AnyArray = slice(start, stop)
        if row_pass.entries:
            places = start + order_of_patterns([rows.columns[key][start:stop] for key in row_pass.entries])
        if isinstance(rows.where, slice):
            where = slice(rows.where.start + start, rows.where.start + stop)
            where = where if isinstance(places, slice) else rows.where.start + places
        else:
            where = rows.where[places]
        columns = {name: values[places] for name, values in rows.columns.items()}
        weights = None if rows.weights is None else rows.weights[places]
        tiles.append((places, Rows(columns, weights, stop - start, where)))
    return tiles


def summarize_sequences(
    row_pass: RowModel,
    chain: ChainFactor,
    rows: Rows,
    coefficients: Coefficients,
    scratch: Workspace,
    over: Over = one_by_one,
) -> Sums:
    """Return the sums over a block of whole sequences with the local factors at their optimum."""
    tiles = tiles_of(row_pass, rows)
    expected, of_chain, entropy = _inferred(row_pass, chain, rows, tiles, coefficients, scratch, over)

    def tile(number: int) -> Sums:
        places, own = tiles[number]
        given: LocalState = {chain.key: expected[:, places].copy()}
        return row_pass.summarize(own, coefficients, {}, scratch, given)[0].plus(Sums.zero())

    total = pairwise_sum(over(tile, len(tiles)))
    total.parts.update(of_chain)
    total.entropy[chain.key] = entropy + total.entropy.get(chain.key, 0.0)
    return total


def _inferred(
    row_pass: RowModel,
    chain: ChainFactor,
    rows: Rows,
    tiles: list[tuple[slice | AnyArray, Rows]],
    coefficients: Coefficients,
    scratch: Workspace,
    over: Over,
) -> tuple[Array, Arrays, float]:
    """Return the expected statistics (E, B) of the states of a block, the sums over its steps, and their entropy.

    Statistics of steps that do not count are zero.
    """
    steps, starts = steps_of_block(chain, rows), starts_of_block(chain, rows)
    if not isinstance(steps, slice) and not len(steps):
        nothing = chain.sums_given(np.zeros((chain.n_rows, 0)), starts[steps])
        return np.zeros((chain.n_rows, rows.n_rows)), nothing, 0.0
    natural = scratch.array((chain, "sequences"), (chain.n_rows, rows.n_rows))

    def tile(number: int) -> None:
        places, own = tiles[number]
        natural[:, places] = row_pass.natural_of(chain, own, coefficients, scratch)

    for _ in over(tile, len(tiles)):
        pass
    try:
        smoothing = chain.smoothing(natural[:, steps], starts[steps], coefficients.parts, scratch)
    except ImpossiblePathError as error:
        raise ImpossibleSequenceError(_no_path(chain, rows, steps, error)) from error
    except ImproperError as error:
        if isinstance(rows.where, slice) and rows.where.start:
            raise ImproperError(f"of the rows from {rows.where.start} on: {error}") from error
        raise
    expected = chain.expected(smoothing)
    if not isinstance(steps, slice):
        counted, expected = expected, np.zeros((chain.n_rows, rows.n_rows))
        expected[:, steps] = counted
    return expected, chain.sums(smoothing), smoothing.entropy


def _no_path(chain: ChainFactor, rows: Rows, steps: slice | AnyArray, error: ImpossiblePathError) -> str:
    where = rows.where if not isinstance(rows.where, slice) else np.arange(rows.where.start, rows.where.stop)
    places = where[steps]
    return (
        f"the sequence that begins at row {places[error.begin]} is impossible: by the known probabilities of zero, no "
        f"state of '{chain.name}' that row {places[error.row]} allows can be reached from the rows before it. Correct "
        f"the values, leave the sequence out, or give what may happen a probability above 0"
    )


def given_sequences(
    row_pass: RowModel,
    chain: ChainFactor,
    rows: Rows,
    state: LocalState,
    coefficients: Coefficients,
    scratch: Workspace,
) -> Sums:
    """Return the sums over a block of whole sequences for given local statistics; see :meth:`IndependentRows.sums_of`.

    Successive states count as independent.
    """
    total = Sums.zero()
    for places, own in tiles_of(row_pass, rows):
        given = {key: values[:, places].copy() for key, values in state.items()}
        total.add(row_pass.sums_of(own, given, coefficients, scratch))
    steps = steps_of_block(chain, rows)
    total.parts.update(chain.sums_given(state[chain.key][:, steps], starts_of_block(chain, rows)[steps]))
    return total


def steps_of_block(chain: ChainFactor, rows: Rows) -> slice | AnyArray:
    """Return where in a block the steps that count are; of each sequence the first ones, or none."""
    seen = chain.seen(rows.columns)
    return slice(None) if seen is None or seen.all() else np.flatnonzero(seen)


def starts_of_block(chain: ChainFactor, rows: Rows) -> AnyArray:
    """Return whether a sequence begins at each row of a block of whole ones."""
    starts = chain.starts.among(rows.columns, rows.n_rows)
    starts[0] = True
    return starts
