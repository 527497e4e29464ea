"""The local factors of a block of rows, one at a time given the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._typing import AnyArray, Array
from ..design.backend import Workspace
from ..design.keys import FactorKey, KeptKey
from ..local.chains.chain import ChainFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import Coefficients, LocalState, Rows
from .inference import FactorOfRows
from .terms.block_response import BlockResponse
from .terms.contracted import ContractedTerm
from .terms.row_term import BlockWork, RowTerm

_MOST_COMBINATIONS = 64
"""Largest number of combinations of labels of a row that are tried before local factors are updated one by one."""

COLD_SWEEPS = 50
"""Sweeps over local factors that depend on each other, where no pass before has left them; they contract quickly."""

_SAME = 1e-10
"""Relative change of a statistic below which further sweeps leave it where it is: the ELBO has the square of it."""

_NEVER = 1e100
"""Cost in nats of a known probability of zero for a combination of labels."""


class DerivedApart:
    """Local factors one at a time, needed if some of them are chains, which see whole sequences.

    Parameters
    ----------
    inferences
        Local factors, in the order of their updates, and the row terms that each appears in.
    products
        Row terms that meet the data in the matrix products.
    contracted
        The others.

    Attributes
    ----------
    in_turn
        Local factors in the order of a pass that goes on from the last one.
    movable
        Those that may be moved between two passes.
    """

    def __init__(
        self,
        inferences: Sequence[FactorOfRows] = (),
        products: Sequence[RowTerm] = (),
        contracted: Sequence[ContractedTerm] = (),
    ) -> None:
        self._inferences = {own.factor.key: own for own in inferences}
        self._terms = tuple(products), tuple(contracted)
        self.in_turn, self.movable = _in_turn(inferences)

    def left_by(self, work: BlockWork, before: LocalState) -> LocalState:
        """Return what a pass leaves of a block for the next one: statistics, and of factors that may move more.

        Parameters
        ----------
        before
            What the pass has started from.
        """
        state = work.state
        for factor in self.movable:
            natural = KeptKey(factor.key, "natural")
            if natural in before:
                state[KeptKey(factor.key, "natural before")] = before[natural]
                state[KeptKey(factor.key, "expected before")] = before[factor.key]
            state[natural] = work.natural[factor.key]
        return state

    @property
    def stages(self) -> list[ChainFactor | list[LocalFactor]]:
        """The factors that depend on each other, in the order of a sweep: a chain, or factors of rows alone."""
        found: list[ChainFactor | list[LocalFactor]] = []
        for own in self._inferences.values():
            if isinstance(own.factor, ChainFactor):
                found.append(own.factor)
            elif own.is_coupled and found and isinstance(found[-1], list):
                found[-1].append(own.factor)
            elif own.is_coupled:
                found.append([own.factor])
        return found

    @property
    def coupled(self) -> list[LocalFactor]:
        """The factors of rows alone that depend on others."""
        return [own for stage in self.stages if not isinstance(stage, ChainFactor) for own in stage]

    @property
    def kept(self) -> list[LocalFactor]:
        """The factors of rows alone that the next pass starts from: also those whose own parts depend on each other."""
        others = [own for own in self._inferences.values() if own.factor.couples and not own.is_coupled]
        return [*self.coupled, *(own.factor for own in others)]

    def best_labels(self, rows: Rows, coefficients: Coefficients, scratch: Workspace) -> LocalState:
        """Return labels that depend on each other, at the most probable combination of each row alone."""
        return best_labels(list(self._inferences.values()), BlockWork(rows, coefficients, scratch))

    @property
    def begins_with_states(self) -> bool:
        """Whether the states of the only chain can begin before what depends on them: see :meth:`said_first`."""
        chains = [stage for stage in self.stages if isinstance(stage, ChainFactor)]
        if len(chains) != 1 or chains[0].values is None or len(chains[0].values) > _MOST_COMBINATIONS:
            return False
        return bool(self.coupled) and not any(own.couples for own in self.coupled)

    def said_first(
        self, chain: LocalFactor, rows: Rows, coefficients: Coefficients, scratch: Workspace
    ) -> Array:
        """Return what rows say of the states of a chain, (K, B), with what depends on these integrated out.

        Without the state that it depends on, a hidden value of a row would be told half of what the row has, and
        explain it alone: the states could tell nothing any more.
        """
        work = BlockWork(rows, coefficients, scratch)
        natural = self._inferences[chain.key].natural(work).copy()
        assert chain.values is not None
        for state, value in enumerate(chain.values.T):
            for own in (self._inferences[factor.key] for factor in self.coupled):
                work.state = {chain.key: np.repeat(value[:, None], rows.n_rows, axis=1)}
                found = own.factor.infer(own.natural(work).copy()).log_partition
                seen = own.factor.seen(rows.columns)
                counted = found if seen is None else np.where(seen, found, 0.0)
                natural[state] += counted.reshape(-1, rows.n_rows).sum(axis=0)
        return natural

    def natural_of(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        scratch: Workspace,
        state: LocalState | None = None,
    ) -> Array:
        """Return the natural parameters (E, B) of a factor, stored in the scratch.

        Parameters
        ----------
        state
            Statistics of the factors that it depends on.
        """
        return self._inferences[factor.key].natural(BlockWork(rows, coefficients, scratch, state))

    def updated(
        self,
        factors: Sequence[LocalFactor],
        rows: Rows,
        coefficients: Coefficients,
        scratch: Workspace,
        state: LocalState,
    ) -> LocalState:
        """Return the statistics of factors of rows alone, each at its optimum given the others."""
        work = BlockWork(rows, coefficients, scratch, state)
        for factor in factors:
            own = self._inferences[factor.key]
            work.state[factor.key] = own.renewed(work, own.natural(work).copy())
        return {factor.key: work.state[factor.key] for factor in factors}

    def change_of(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        change: Coefficients,
        scratch: Workspace,
        state: LocalState,
    ) -> Array:
        """Return the changes of the natural parameters (E, B) of a factor with the coefficients, in the scratch."""
        return self._inferences[factor.key].change(BlockWork(rows, coefficients, scratch, state), change)

    def said_by_others(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        moved: LocalState,
        scratch: Workspace,
    ) -> Array:
        """Return the changes of the natural parameters (E, B) of a factor with the statistics of the others."""
        work = BlockWork(rows, coefficients, scratch, state)
        return BlockResponse((), *self._terms).said_by_others(work, factor.key, moved)

    def moved(
        self,
        rows: Rows,
        coefficients: Coefficients,
        changes: Sequence[Coefficients],
        state: LocalState,
        scratch: Workspace,
        given: Mapping[FactorKey, Sequence[Array]],
    ) -> list[LocalState]:
        """Return the changes of the statistics of :attr:`coupled` factors with each of the changes.

        Parameters
        ----------
        given
            Changes of the chains, which are known.
        """
        inferences = [self._inferences[key] for key in (*given, *(own.key for own in self.coupled))]
        work = BlockWork(rows, coefficients, scratch, state)
        return BlockResponse(inferences, *self._terms).moved(work, changes, given)


def _in_turn(
    inferences: Sequence[FactorOfRows],
) -> tuple[Sequence[FactorOfRows], tuple[LocalFactor, ...]]:
    """Return local factors in the order of a pass that goes on from the last one, and those that may be moved.

    The largest one that depends on others is the first: its update forgets where it was, so it need not be moved with
    the others. None are moved beside chains, where some repetitions do not count, or where the update of a factor goes
    on from its own statistics.
    """
    coupled = [own for own in inferences if own.is_coupled]
    if not coupled or any(isinstance(own.factor, ChainFactor) or own.factor.couples for own in inferences):
        return inferences, ()
    first = list(inferences).index(max(coupled, key=lambda own: own.factor.n_rows))
    turned = [*inferences[first:], *inferences[:first]]
    others = tuple(own.factor for own in turned[1:] if own.is_coupled)
    return (inferences, ()) if any(own.has_unseen for own in others) else (turned, others)


def settled(inferences: Sequence[FactorOfRows], work: BlockWork, keeps_locals: bool) -> LocalState:
    """Return the natural parameters of every local factor that is not known yet, and keep their statistics.

    Rows that are settled stay as they are; once half of a block is, the sweeps go on with the others.

    Parameters
    ----------
    keeps_locals
        Whether local factors depend on each other, and are updated until they are settled.
    """
    unknown = [own for own in inferences if own.factor.key not in work.state]
    work.state.update(best_labels(unknown, work))
    if not keeps_locals:
        natural: LocalState = {}
        for inference in unknown:
            found = inference.natural(work).copy()
            expected = found.copy()
            inference.factor.infer(expected)
            natural[inference.factor.key], work.state[inference.factor.key] = found, expected
        return natural
    first = sorted(unknown, key=_place_in_first_sweep)
    natural, moves = _swept(first, work)
    part, own, where = work, natural, np.arange(work.rows.n_rows)
    for _ in range(COLD_SWEEPS - 1):
        if not moves.any():
            break
        if 2 * np.count_nonzero(moves) <= len(moves):
            _write(part, own, where, work, natural)
            part, where = _of_rows(part, moves), where[moves]
        own, moves = _swept(unknown, part)
    _write(part, own, where, work, natural)
    return natural


def _place_in_first_sweep(own: FactorOfRows) -> int:
    """Return 0 for labels alone, 1 for Polya-Gamma numbers, 2 for all else.

    Beside sizes at their prior and large globals labels would exclude what a row has, and then tell the sizes nothing.
    And where nothing says yet how much an answer tells of its predictor, an effect of the row would be what the
    answer pulls it to against the prior of the effect alone: a count under 1,000 trials by hundreds.
    """
    factor = own.factor
    if len(factor.labels) == len(factor.variables):
        return 0
    return 1 if all(variable.weighs_answer for variable in factor.variables) else 2


def _swept(unknown: Sequence[FactorOfRows], work: BlockWork) -> tuple[LocalState, AnyArray]:
    """Update local factors in turn; return their natural parameters, and which rows changed by more than rounding."""
    natural: LocalState = {}
    moves = np.zeros(work.rows.n_rows, dtype=bool)
    for inference in unknown:
        own = inference.natural(work).copy()
        factor, expected = inference.factor, own.copy()
        if factor.couples:
            inference.renewed(work, expected)
            own = factor.natural_at(own, expected)
        else:
            factor.infer(expected)
        before = work.state.get(factor.key)
        if before is None:
            moves[:] = True
        else:
            moves |= (np.abs(expected - before) > _SAME * np.abs(expected)).any(axis=0)
        natural[factor.key], work.state[factor.key] = own, expected
    return natural, moves


def _of_rows(work: BlockWork, chosen: AnyArray) -> BlockWork:
    """Return some rows of a block, with separate buffers."""
    rows, (where,) = work.rows, np.nonzero(chosen)
    places = np.arange(rows.where.start, rows.where.stop) if isinstance(rows.where, slice) else rows.where
    columns = {key: values[where] for key, values in rows.columns.items()}
    weights = None if rows.weights is None else rows.weights[where]
    state = {key: np.ascontiguousarray(values[:, where]) for key, values in work.state.items()}
    own = Rows(columns, weights, len(where), places[where], {})
    return BlockWork(own, work.coefficients, Workspace(), state)


def _write(part: BlockWork, own: LocalState, where: AnyArray, work: BlockWork, natural: LocalState) -> None:
    """Write natural parameters and statistics of some rows of a block to their places."""
    if part is work:
        natural.update(own)
        return
    for key, values in own.items():
        natural[key][:, where] = values
        work.state[key][:, where] = part.state[key]


def best_labels(unknown: Sequence[FactorOfRows], work: BlockWork) -> LocalState:
    """Return labels of a row that depend on each other, at their most probable combination; none where few do.

    Updates of one factor at a time could not correct two labels that are wrong together. A combination is scored by the
    natural parameters of each factor given those before it. A number 0 or 1 of a row is a label too.
    """
    coupled = [
        (own, values) for own in unknown if own.is_coupled and (values := own.factor.values) is not None
    ]
    sizes = [values.shape[1] for _, values in coupled]
    if len(coupled) < 2 or np.prod(np.array(sizes, dtype=float)) > _MOST_COMBINATIONS:
        return {}
    n_rows = work.rows.n_rows
    best = np.full(n_rows, -np.inf)
    labels = np.zeros((len(coupled), n_rows), dtype=np.intp)

    def visit(chosen: list[int], score: Array) -> None:
        nonlocal best
        own, values = coupled[len(chosen)]
        scores = _scores(own, values, work)
        if len(chosen) + 1 < len(coupled):
            for label, value in enumerate(values.T):
                work.state[own.factor.key] = np.repeat(value[:, None], n_rows, axis=1)
                visit([*chosen, label], score + scores[label])
            del work.state[own.factor.key]
            return
        last = scores.argmax(axis=0)
        total = score + scores.max(axis=0)
        is_better = total > best
        labels[:, is_better] = np.vstack([*(np.full(len(last), c) for c in chosen), last])[:, is_better]
        best = np.where(is_better, total, best)

    visit([], np.zeros(n_rows))
    return {own.factor.key: values[:, chosen] for (own, values), chosen in zip(coupled, labels, strict=True)}


def _scores(own: FactorOfRows, values: Array, work: BlockWork) -> Array:
    """Return the contribution of each value to the log density of each row, (V, B), given the other factors."""
    natural = own.natural(work).copy()
    if work.coefficients.zeros is not None:
        natural -= _NEVER * own.zeros(work, work.coefficients.zeros)
    # labels that are excluded have minus infinity, which counts in their own score only
    return np.stack([natural[value != 0].sum(axis=0) for value in values.T])
