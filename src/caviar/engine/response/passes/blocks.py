r"""Directional passes over chunks of rows, wherever these are: sums with an axis of the changes before all others.

Changes of the sums over a block of whole sequences with the coefficients.

The change of a chain follows from recursions along its sequences, and the change of other hidden values from their
covariance. If these depend on each other, their changes are found by sweeps, like the factors: the change of each is
its covariance times the changes of the coefficients and of the others,

.. math:: \delta u_j = V_j \Big(\delta W_j\, T + \sum_{i \neq j} H_{ji}\, \delta u_i\Big).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...._errors import ImproperError
from ...._typing import AnyArray, Array
from ....numerics.extrapolated import Extrapolation
from ...design.backend import Workspace
from ...design.keys import FactorKey
from ...local.chains.chain import ChainFactor, Said
from ...local.statistics import Arrays, Coefficients, LocalState, Rows, Sums
from ...rows.row_map import COLD, Look, RowMap
from ...rows.row_model import RowModel
from ...rows.sequences import Over, SequencesAtWork, known_of_block, one_by_one, steps_of_block
from ...rows.tasks import SumBlocks, Work
from ...rows.terms.block_response import BlockResponse
from ...rows.terms.row_term import BlockWork

_MOST_PAIRS = 4e6
"""Numbers of the changes of all sums with all entries of the matrices that are formed in one pass."""


@dataclass(frozen=True)
class RespondBlocks(SumBlocks):
    """How sums over blocks of rows change with the coefficients, the local factors at their optimum."""

    rows: RowModel
    coefficients: Coefficients
    changes: tuple[Coefficients, ...]
    scratch: Workspace = field(default_factory=Workspace)
    over: Over = one_by_one

    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        if not self.rows.chains:
            return (
                self.rows.respond(BlockWork(rows, self.coefficients, self.scratch, before), self.changes),
            )
        found = respond_sequences(
            self.rows, rows, self.coefficients, self.changes, before, self.scratch, self.over
        )
        return (found,)

    def spread(self, over: Over) -> RespondBlocks:
        """Return the same work, the tiles of a long sequence done with the help of others."""
        return replace(self, over=over)

    def task(self) -> Callable[..., Work]:
        wanted = self.rows.parts_of_messages
        changes = tuple(change.of_parts(wanted) for change in self.changes)
        return partial(RespondBlocks, coefficients=self.coefficients.of_parts(wanted), changes=changes)


@dataclass(frozen=True)
class CurveBlocks(SumBlocks):
    """The sums of a pass, and how those of dense products change with every entry of their matrices, all at once."""

    rows: RowModel
    coefficients: Coefficients
    scratch: Workspace = field(default_factory=Workspace)

    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        return (self.rows.curvature(BlockWork(rows, self.coefficients, self.scratch)),)

    def task(self) -> Callable[..., Work]:
        return partial(CurveBlocks, coefficients=self.coefficients.of_parts(self.rows.parts_of_messages))


def is_worth_curving(model: RowModel, n_changes: int) -> bool:
    """Return whether one pass that forms the changes of all sums costs less than passes along the directions."""
    if not model.is_dense or not model.n_curved < _MOST_PAIRS:
        return False
    tables = model.tables
    return model.n_curved < sum(2.0 * n_changes * own.n_rows * tables[own].n_rows for own in model.factors)


def look_with_curvature(rows: RowMap, coefficients: Coefficients) -> tuple[Look, dict[FactorKey, Array]]:
    """Return a pass over all rows, and the change of the sums of each local factor with its matrix, (E F, E F)."""
    work, chunks = CurveBlocks(rows.model, coefficients), rows.chunks
    total, _ = rows.executor.sum(work, rows.source, chunks, [None] * len(chunks))
    curvature = rows.model.whole_curvature(total)
    return Look(rows.model.summary(total, rows.fixed, coefficients), COLD), curvature


_MOST_SWEEPS = 2_000

_PLAIN, _MOST_EXTRAPOLATED = 3, 300
"""Sweeps that begin alone, and from which on they end alone."""

_SETTLED = 1e-12
"""Relative change of the responses from one sweep to the next at which sweeps end."""


def respond_sequences(
    model: RowModel,
    rows: Rows,
    coefficients: Coefficients,
    changes: Sequence[Coefficients],
    before: LocalState,
    scratch: Workspace,
    over: Over,
) -> Sums:
    """Return the changes of the sums over a block of whole sequences; the first axis runs over the changes.

    Parameters
    ----------
    model
        Model of the rows of a tile of the block.
    rows, coefficients
        The block, and the coefficients from the globals.
    changes
        Of the coefficients.
    before
        Local factors from the last pass, if they depend on each other.
    scratch, over
        As of :class:`~caviar.engine.rows.sequences.SequencesAtWork`.

    Raises
    ------
    ImproperError
        If local factors that depend on each other are not at a maximum of the objective.
    """
    block = SequencesAtWork(model, rows, coefficients, scratch, over, before)
    block.settle()
    responses = _Responses(block, changes, scratch, over)
    responses.settle()

    def tile(number: int) -> Sums:
        places, own = block.tiles[number]
        given = responses.at(places, [chain.key for chain in model.chains])
        state = {key: values.copy() for key, values in block.state_at(places).items()}
        return model.respond(BlockWork(own, coefficients, scratch, state), changes, given)

    total = Sums.zero()
    for own in over(tile, len(block.tiles)):
        total.add(own)
    total.parts.update(responses.sums)
    return total


class _Responses:
    """Changes of the statistics of the chains of a block, and of the factors that depend on them.

    Attributes
    ----------
    moved
        Local factor -> changes of its statistics, (D, E, B).
    sums
        Changes of the sums of the chains over their steps, by key.
    """

    def __init__(
        self, block: SequencesAtWork, changes: Sequence[Coefficients], scratch: Workspace, over: Over
    ) -> None:
        self.moved: dict[FactorKey, Array] = {}
        self.sums: Arrays = {}
        self._block, self._changes, self._scratch, self._over = block, changes, scratch, over
        self._said: dict[FactorKey, Array] = {}

    def settle(self) -> None:
        """Find the changes: at once, or by sweeps if factors depend on each other."""
        model = self._block.model
        extrapolation = Extrapolation()
        for sweep in range(_MOST_SWEEPS):
            before = dict(self.moved)
            for stage in model.apart.stages:
                if isinstance(stage, ChainFactor):
                    self._move_chain(stage)
            if not model.keeps_locals:
                return
            self._move_rows()
            if all(_is_settled(before.get(key), own) for key, own in self.moved.items()):
                return
            if _PLAIN <= sweep < _MOST_EXTRAPOLATED:
                # changes are linear in the last ones, and those along each direction are alone
                self.moved = extrapolation.next_of_parts(before, self.moved)
        raise ImproperError(
            "chains and the variables that depend on them do not settle: "
            "their factors are not at a maximum of the objective"
        )

    def at(self, places: slice | AnyArray, keys: Sequence[FactorKey]) -> dict[FactorKey, Sequence[Array]]:
        """Return the changes of some factors in some rows, a copy for each of the changes."""
        return {key: [own[:, places].copy() for own in self.moved[key]] for key in keys}

    def _move_chain(self, chain: ChainFactor) -> None:
        block, parts = self._block, self._block.coefficients.parts
        counted, steps = steps_of_block(chain, block.rows), known_of_block(chain, block.rows)
        natural, said = block.natural_of(chain).copy(), self._said_to(chain)
        of_block = Said(natural[:, counted], steps.at(counted), parts)
        of_sums = [change.parts for change in self._changes]
        found = chain.response_of_sequences(of_block, said[:, :, counted], of_sums)
        moved = np.zeros(said.shape)
        moved[:, :, counted] = found.changes
        self.moved[chain.key] = moved
        self.sums |= found.sums

    def _said_to(self, chain: ChainFactor) -> Array:
        """Return the changes of the messages from the rows to the states of a chain, (D, E, B)."""
        block, model = self._block, self._block.model
        if chain.key not in self._said:
            own = np.empty((len(self._changes), chain.n_rows, block.rows.n_rows))

            def read(number: int) -> None:
                places, rows = block.tiles[number]
                state = block.state_at(places)
                for said, change in zip(own, self._changes, strict=True):
                    work = BlockWork(rows, block.coefficients, self._scratch, state)
                    said[:, places] = model.apart.of[chain.key].change(work, change)

            self._each(read)
            self._said[chain.key] = own
        others = [key for key in self.moved if key != chain.key]
        if not (model.keeps_locals and others):
            return self._said[chain.key]
        total = self._said[chain.key].copy()
        response = BlockResponse((), model.apart.products, model.apart.contracted)

        def add(number: int) -> None:
            places, rows = block.tiles[number]
            state = block.state_at(places)
            for direction, said in enumerate(total):
                moved = {key: self.moved[key][direction][:, places] for key in others}
                work = BlockWork(rows, block.coefficients, self._scratch, state)
                said[:, places] += response.said_by_others(work, chain.key, moved)

        self._each(add)
        return total

    def _move_rows(self) -> None:
        block, model = self._block, self._block.model
        apart, chains = model.apart, [chain.key for chain in model.chains]
        inferences = [apart.of[key] for key in (*chains, *(own.key for own in apart.coupled))]
        response = BlockResponse(inferences, apart.products, apart.contracted)

        def tile(number: int) -> tuple[slice | AnyArray, list[LocalState]]:
            places, rows = block.tiles[number]
            work = BlockWork(rows, block.coefficients, self._scratch, block.state_at(places))
            return places, response.moved(work, self._changes, self.at(places, chains))

        renewed: dict[FactorKey, Array] = {}
        for places, found in self._over(tile, len(block.tiles)):
            for direction, own in enumerate(found):
                for key, values in own.items():
                    shape = (len(found), len(values), block.rows.n_rows)
                    renewed.setdefault(key, np.empty(shape))[direction][:, places] = values
        self.moved |= renewed

    def _each(self, task: Callable[[int], None]) -> None:
        for _ in self._over(task, len(self._block.tiles)):
            pass


def _is_settled(before: Array | None, after: Array) -> bool:
    """Whether a sweep left the changes as they were."""
    if before is None:
        return False
    return bool(np.abs(after - before).max(initial=0.0) <= _SETTLED * np.abs(after).max(initial=0.0))
