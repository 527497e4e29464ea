"""The local factors of a block of rows, one at a time given the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import AnyArray, Array
from ..design.backend import Workspace
from ..local.chains.chain import ChainFactor
from ..local.statistics import LocalState, Rows
from .terms.row_term import BlockWork, FactorOfRows

MOST_COMBINATIONS = 64
"""Largest number of combinations of labels of a row that are tried before local factors are updated one by one."""

_MOST_INTEGRATED = 16
"""The same where other local factors are integrated out for each."""

COLD_SWEEPS = 50
"""Sweeps over local factors that depend on each other, where no pass before has left them; they contract quickly."""

_SAME = 1e-10
"""Relative change of a statistic below which further sweeps leave it where it is: the ELBO has the square of it."""

_NEVER = 1e100
"""Cost in nats of a known probability of zero for a combination of labels."""


def settled(inferences: Sequence[FactorOfRows], work: BlockWork, keeps_locals: bool) -> LocalState:
    """Return the natural parameters of every local factor that is not known yet, and keep their statistics.

    Labels that have begun at their best come last of the first sweep. Rows that are settled stay as they are; once half
    of a block is, the sweeps go on with the others.

    Parameters
    ----------
    keeps_locals
        Whether local factors depend on each other, and are updated until they are settled.
    """
    unknown = [own for own in inferences if own.factor.key not in work.state]
    begun = best_labels(unknown, work)
    work.state.update(begun)
    if not keeps_locals:
        natural: LocalState = {}
        for inference in unknown:
            found = inference.natural(work).copy()
            expected = found.copy()
            inference.factor.infer(expected)
            natural[inference.factor.key], work.state[inference.factor.key] = found, expected
        return natural
    first = sorted(unknown, key=lambda own: (own.factor.key in begun, _place_in_first_sweep(own)))
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
    """Return labels of a row that depend on each other, or on other local factors, at their most probable combination.

    Updates of one factor at a time could not correct two labels that are wrong together, nor a label and a number that
    explain the same. A combination is scored by the natural parameters of each factor given those before it, and by the
    log-partitions of the other local factors, each given all labels and those before it. A number 0 or 1 of a row is a
    label too. None are returned where no labels do, or combinations are many.
    """
    dependent = [own for own in unknown if own.is_coupled]
    if len(dependent) < 2:
        return {}
    coupled = [(own, values) for own in dependent if (values := own.factor.values) is not None]
    n_combinations = np.prod([float(values.shape[1]) for _, values in coupled])
    others = sorted((own for own in dependent if own.factor.values is None), key=_place_in_first_sweep)
    if n_combinations > _MOST_INTEGRATED or any(
        own.factor.couples or isinstance(own.factor, ChainFactor) for own in others
    ):
        others = []
    if not coupled or len(coupled) + len(others) < 2 or n_combinations > MOST_COMBINATIONS:
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
        for label, value in enumerate(values.T) if others else ():
            work.state[own.factor.key] = np.repeat(value[:, None], n_rows, axis=1)
            for other in others:
                found, work.state[other.factor.key] = integrated(other, work)
                scores[label] += found
            for inferred in (own, *others):
                del work.state[inferred.factor.key]
        last = scores.argmax(axis=0)
        total = score + scores.max(axis=0)
        is_better = total > best
        labels[:, is_better] = np.vstack([*(np.full(len(last), c) for c in chosen), last])[:, is_better]
        best = np.where(is_better, total, best)

    visit([], np.zeros(n_rows))
    return {own.factor.key: values[:, chosen] for (own, values), chosen in zip(coupled, labels, strict=True)}


def integrated(own: FactorOfRows, work: BlockWork) -> tuple[Array, Array]:
    """Return the log-partition of a factor in each row, (B,), and its statistics (E, B), given those that are known."""
    expected = own.natural(work).copy()
    found, seen = own.factor.infer(expected).log_partition, own.factor.seen(work.rows.columns)
    counted = found if seen is None else np.where(seen, found, 0.0)
    return counted.reshape(-1, work.rows.n_rows).sum(axis=0), expected


def _scores(own: FactorOfRows, values: Array, work: BlockWork) -> Array:
    """Return the contribution of each value to the log density of each row, (V, B), given the other factors."""
    natural = own.natural(work).copy()
    if work.coefficients.zeros is not None:
        natural -= _NEVER * own.zeros(work, work.coefficients.zeros)
    return own.factor.scores(natural, values)
