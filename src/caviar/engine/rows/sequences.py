"""Whole sequences: blocks of rows that a chain runs through, and what is done with each of them.

A block is a run of whole sequences, so the factor of a chain is inferred inside it: natural parameters of its
rows, messages forward and backward over its sequences, and sums given the marginals. What meets the data is done tile
by tile, in as many rows as matrix products are fastest with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array
from ...families.chains.markov_chain import ImpossiblePathError
from ...numerics.extrapolated import Extrapolation
from ...numerics.sums.pairwise import pairwise_sum
from ..binding.missing.entries import order_of_patterns
from ..design.backend import Workspace
from ..design.keys import FactorKey
from ..local.chains.chain import ChainFactor, Said, begins_of
from ..local.chains.steps import Steps
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Sums
from .apart import MOST_COMBINATIONS, best_labels, integrated
from .row_model import RowModel
from .terms.row_term import BlockWork

T = TypeVar("T")

_BLOCK_NUMBERS = 1 << 19
"""Statistics of the states of a block at the most: what memory a block takes."""

_STEP_NUMBERS = 1 << 9
"""Statistics of one step of all sequences of a block at the fewest, so that a step is worth its calls."""

_FEWEST_BLOCKS = 4
"""Blocks that rows are cut into, as far as each keeps the rows of a tile: for threads, and for batches."""

_READ_ROWS = 65_536

_SETTLED = 1e-12
"""Relative change of the statistics of local factors from one sweep to the next at which sweeps end."""

_NEAR, _LONGEST = 1e-2, 0.1
"""Relative change from which on the next sweep begins where the last ones lead to, and the farthest that this may be: a
sweep is then about linear, and no expectation leaves its domain."""


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


def sequence_bounds(rows: RowModel, source: _Source, fewest: int = 1) -> list[tuple[int, int]]:
    """Return where blocks of whole sequences start and stop; a sequence longer than a block is a block alone.

    They depend on the model, the number of rows and the starts of the sequences only, and on how many blocks there are
    to be at the ``fewest``, as far as there are as many sequences. Of several chains all begin where a block starts.
    """
    begins, n_statistics = _begins(rows.chains, source), sum(chain.n_rows for chain in rows.chains)
    steps = source.n_rows * _STEP_NUMBERS // ((len(begins) - 1) * n_statistics)
    size = min(_BLOCK_NUMBERS // n_statistics, max(steps, -(-source.n_rows // _FEWEST_BLOCKS)))
    size = min(max(rows.block_rows, size), -(-source.n_rows // fewest))
    edges = [0]
    while edges[-1] < source.n_rows:
        last = int(begins[np.searchsorted(begins, edges[-1] + size, side="right") - 1])
        if last <= edges[-1]:
            last = int(begins[np.searchsorted(begins, edges[-1], side="right")])
        edges.append(last)
    return list(pairwise(edges))


def _begins(chains: Sequence[ChainFactor], source: _Source) -> AnyArray:
    """Return the first row of each sequence, and after them the number of rows."""
    found = [np.zeros(1, dtype=np.intp)]
    if any(chain.starts.column is not None for chain in chains):
        for start in range(0, source.n_rows, _READ_ROWS):
            stop = min(start + _READ_ROWS, source.n_rows)
            own = begins_of(chains, source.read(start, stop), stop - start)
            found.append(start + np.flatnonzero(own))
    elif all(chain.starts.everywhere for chain in chains):
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


class SequencesAtWork:
    """A block of whole sequences during a pass: its tiles, and the hidden values of its rows.

    Parameters
    ----------
    model
        Model of the rows of a tile.
    rows
        The block.
    coefficients
        Coefficients of the rows, from the globals.
    scratch
        Buffers of this thread.
    over
        How the work on each tile is computed.
    before
        Expected statistics (E, B) of local factors from the last pass, if these depend on each other.

    Attributes
    ----------
    tiles
        Places in the block, and rows of each part of it.
    state
        Expected statistics (E, B) of the chains, zero at steps that do not count, and of the factors of rows that
        depend on others.
    sums
        Of the chains, over their steps.
    entropies
        Of the chains.
    """

    def __init__(
        self,
        model: RowModel,
        rows: Rows,
        coefficients: Coefficients,
        scratch: Workspace,
        over: Over = one_by_one,
        before: LocalState | None = None,
    ) -> None:
        self.model, self.rows, self.coefficients = model, rows, coefficients
        self.tiles = tiles_of(model, rows)
        self.state: LocalState = {} if before is None else dict(before)
        self.sums: Arrays = {}
        self.entropies: dict[FactorKey, float] = {}
        self._scratch, self._over = scratch, over

    def settle(self) -> None:
        """Bring the hidden values to their optimum by sweeps over the factors that depend on each other."""
        stages = self.model.apart.stages
        if not self.model.keeps_locals:
            self._infer(stages)
            return
        if not self.state:
            self._begin()
        extrapolation = Extrapolation()
        swept: LocalState | None = None
        for left in reversed(range(self.model.most_sweeps)):
            before = dict(self.state)
            try:
                with np.errstate(invalid=None if swept is None else "raise"):
                    self._infer(stages)
            except (ImproperError, FloatingPointError):
                if swept is None:
                    raise
                # what sweeps lead to need not be the expectations of anything
                self.state, extrapolation, swept = swept, Extrapolation(), None
                continue
            if self._differs_by_at_most(_SETTLED, before):
                return
            swept = None
            if left and self._differs_by_at_most(_NEAR, before):
                swept = dict(self.state)
                self._extrapolate(extrapolation, before)

    def infer_chains(self) -> None:
        """Bring each chain to its optimum in turn, given the other factors."""
        self._infer(self.model.chains)

    def _differs_by_at_most(self, share: float, before: LocalState) -> bool:
        """Whether a sweep changed all statistics by no more, relative to the largest of their factor."""
        return all(_is_near(before.get(key), own, share) for key, own in self.state.items())

    def _extrapolate(self, extrapolation: Extrapolation, before: LocalState) -> None:
        """Go on from where the last sweeps lead to, if that is not far."""
        # what is updated first does not depend on where it was
        first = self.model.apart.stages[0]
        leading = first if isinstance(first, ChainFactor) else first[0]
        keys = [key for key in self.state if key != leading.key]
        found = extrapolation.next_of_parts(
            *({key: own[key][None] for key in keys} for own in (before, self.state))
        )
        if all(_is_near(self.state[key], own[0], _LONGEST) for key, own in found.items()):
            self.state |= {key: own[0] for key, own in found.items()}

    def summarized(self) -> Sums:
        """Return the sums over the block: the factors of rows at their optimum given the chains."""
        model, chains = self.model, self.model.chains
        kept = model.apart.kept if model.keeps_locals else []

        def tile(number: int) -> Sums:
            places, own = self.tiles[number]
            given: LocalState = {chain.key: self.state[chain.key][:, places].copy() for chain in chains}
            before = self.state_at(places) if model.keeps_locals else {}
            sums, after = model.summarize(self._work(own, before), given)
            for factor in kept:
                after_all[factor.key][:, places] = after[factor.key]
            return sums.plus(Sums.zero())

        after_all = {factor.key: np.zeros((factor.n_rows, self.rows.n_rows)) for factor in kept}
        total = pairwise_sum(self._over(tile, len(self.tiles)))
        self.state |= after_all
        total.parts.update(self.sums)
        for key, entropy in self.entropies.items():
            total.entropy[key] = entropy + total.entropy.get(key, 0.0)
        return total

    def _work(self, own: Rows, state: LocalState | None = None) -> BlockWork:
        return BlockWork(own, self.coefficients, self._scratch, state)

    def state_at(self, places: slice | AnyArray) -> LocalState:
        """Return the statistics of the hidden values in some rows of the block."""
        return {key: values[:, places] for key, values in self.state.items()}

    def natural_of(self, chain: ChainFactor) -> Array:
        """Return the messages from the rows to the states of a chain, given the other factors, (E, B), in scratch."""
        inference = self.model.apart.of[chain.key]

        def said(places: slice | AnyArray, own: Rows) -> Array:
            return inference.natural(self._work(own, self.state_at(places)))

        return self._natural(chain, said)

    def _natural(self, chain: ChainFactor, said: Callable[[slice | AnyArray, Rows], Array]) -> Array:
        """Return what each tile says of the states of a chain, (E, B), in scratch."""
        natural = self._scratch.array((chain, "sequences"), (chain.n_rows, self.rows.n_rows))

        def tile(number: int) -> None:
            places, own = self.tiles[number]
            natural[:, places] = said(places, own)

        self._each(tile)
        return natural

    def _begin(self) -> None:
        """Begin at the best labels of each row alone, if rows have several; else at the states, if they can."""

        def tile(number: int) -> tuple[slice | AnyArray, LocalState]:
            places, own = self.tiles[number]
            return places, best_labels([*self.model.apart.of.values()], self._work(own))

        for places, labels in self._over(tile, len(self.tiles)):
            self._write(places, labels)
        if not self.state and self._begins_with_states:
            self._begin_with_states()

    @property
    def _begins_with_states(self) -> bool:
        """Whether the states of the only chain can begin before what depends on them."""
        chains, coupled = self.model.chains, self.model.apart.coupled
        if len(chains) != 1 or chains[0].values is None or len(chains[0].values) > MOST_COMBINATIONS:
            return False
        return bool(coupled) and not any(own.couples for own in coupled)

    def _begin_with_states(self) -> None:
        """Begin at the states of the only chain, as if what depends on them were integrated out; the others follow.

        Without the state that it depends on, a hidden value of a row would be told half of what the row has, and
        explain it alone: the states could tell nothing any more.
        """
        apart, (chain,) = self.model.apart, self.model.chains

        def said(places: slice | AnyArray, own: Rows) -> Array:
            work = self._work(own)
            natural = apart.of[chain.key].natural(work).copy()
            assert chain.values is not None
            for state, value in enumerate(chain.values.T):
                for inference in (apart.of[factor.key] for factor in apart.coupled):
                    work.state = {chain.key: np.repeat(value[:, None], own.n_rows, axis=1)}
                    natural[state] += integrated(inference, work)[0]
            return natural

        self._infer_chain(chain, self._natural(chain, said))
        self._infer([stage for stage in apart.stages if not isinstance(stage, ChainFactor)])

    def _infer(self, stages: Sequence[ChainFactor | Sequence[LocalFactor]]) -> None:
        """Bring the factors of each stage to their optimum, given all others."""
        for stage in stages:
            if isinstance(stage, ChainFactor):
                self._infer_chain(stage, self.natural_of(stage))
            else:
                self._infer_rows(stage)

    def _infer_rows(self, factors: Sequence[LocalFactor]) -> None:
        def tile(number: int) -> tuple[slice | AnyArray, LocalState]:
            places, own = self.tiles[number]
            work = self._work(own, self.state_at(places))
            for factor in factors:
                inference = self.model.apart.of[factor.key]
                work.state[factor.key] = inference.renewed(work, inference.natural(work).copy())
            return places, {factor.key: work.state[factor.key] for factor in factors}

        renewed = {factor.key: np.empty((factor.n_rows, self.rows.n_rows)) for factor in factors}
        for places, found in self._over(tile, len(self.tiles)):
            for key, values in found.items():
                renewed[key][:, places] = values
        self.state |= renewed

    def _write(self, places: slice | AnyArray, found: LocalState) -> None:
        for key, values in found.items():
            if key not in self.state:
                self.state[key] = np.zeros((len(values), self.rows.n_rows))
            self.state[key][:, places] = values

    def _infer_chain(self, chain: ChainFactor, natural: Array) -> None:
        rows, coefficients = self.rows, self.coefficients
        counted, steps = steps_of_block(chain, rows), known_of_block(chain, rows)
        shape = chain.n_rows, rows.n_rows
        if not isinstance(counted, slice) and not len(counted):
            self.sums |= chain.sums_of_none()
            self.state[chain.key], self.entropies[chain.key] = np.zeros(shape), 0.0
            return
        steps = steps.at(counted)
        try:
            said = Said(natural[:, counted], steps, coefficients.parts)
            smoothing = chain.smoothing(said, self._scratch)
        except ImpossiblePathError as error:
            raise ImpossibleSequenceError(_no_path(chain, rows, counted, error)) from error
        except ImproperError as error:
            if isinstance(rows.where, slice) and rows.where.start:
                raise ImproperError(f"of the rows from {rows.where.start} on: {error}") from error
            raise
        expected = np.empty(shape) if isinstance(counted, slice) else np.zeros(shape)
        expected[:, counted] = chain.expected(smoothing)
        self.state[chain.key] = expected
        self.sums |= chain.sums(smoothing, steps)
        self.entropies[chain.key] = smoothing.entropy

    def _each(self, task: Callable[[int], None]) -> None:
        for _ in self._over(task, len(self.tiles)):
            pass


def _is_near(before: Array | None, after: Array, share: float) -> bool:
    """Whether statistics differ by no more than a share of the largest of them."""
    if before is None or before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max(initial=0.0) <= share * np.abs(after).max(initial=0.0))


def summarize_sequences(
    row_pass: RowModel,
    rows: Rows,
    coefficients: Coefficients,
    scratch: Workspace,
    over: Over = one_by_one,
    before: LocalState | None = None,
) -> tuple[Sums, LocalState]:
    """Return the sums over a block of whole sequences with the local factors at their optimum, and these.

    The local factors are what the next pass starts from; there are none unless they depend on each other.
    """
    block = SequencesAtWork(row_pass, rows, coefficients, scratch, over, before)
    if row_pass.keeps_locals and not before:
        block.settle()
    block.infer_chains()
    return block.summarized(), block.state if row_pass.keeps_locals else {}


def _no_path(chain: ChainFactor, rows: Rows, steps: slice | AnyArray, error: ImpossiblePathError) -> str:
    where = rows.where if not isinstance(rows.where, slice) else np.arange(rows.where.start, rows.where.stop)
    places = where[steps]
    return (
        f"the sequence that begins at row {places[error.begin]} is impossible: by the known probabilities of zero, no "
        f"state of '{chain.name}' that row {places[error.row]} allows can be reached from the rows before it. Correct "
        f"the values, leave the sequence out, or give what may happen a probability above 0"
    )


def given_sequences(
    row_pass: RowModel, rows: Rows, state: LocalState, coefficients: Coefficients, scratch: Workspace
) -> Sums:
    """Return the sums over a block of whole sequences for given local statistics; see :meth:`IndependentRows.sums_of`.

    Successive states count as independent.
    """
    total = Sums.zero()
    known = {chain: known_of_block(chain, rows) for chain in row_pass.chains}
    state = {
        **state,
        **{chain.key: chain.beside_others(state[chain.key], own) for chain, own in known.items()},
    }
    for places, own in tiles_of(row_pass, rows):
        given = {key: values[:, places].copy() for key, values in state.items()}
        total.add(row_pass.sums_of(BlockWork(own, coefficients, scratch, given)))
    for chain in row_pass.chains:
        counted = steps_of_block(chain, rows)
        total.parts.update(chain.sums_given(state[chain.key][:, counted], known[chain].at(counted)))
    return total


def steps_of_block(chain: ChainFactor, rows: Rows) -> slice | AnyArray:
    """Return where in a block the steps that count are; of each sequence the first ones, or none."""
    counted = chain.seen(rows.columns)
    if rows.weights is not None and not rows.weights.all():
        counted = rows.weights > 0 if counted is None else counted & (rows.weights > 0)
    return slice(None) if counted is None or counted.all() else np.flatnonzero(counted)


def known_of_block(chain: ChainFactor, rows: Rows) -> Steps:
    """Return the facts about each row of a block of whole sequences as a step; a sequence begins at its first row."""
    steps = chain.steps(rows.columns, rows.n_rows)
    steps.starts[0] = True
    if rows.weights is None or np.all(rows.weights == 1.0):
        return steps
    return replace(steps, weights=rows.weights)
