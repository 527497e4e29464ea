"""The start from the data: guesses of several kinds, assigned to components, of which a race keeps the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from ...language import StickBreaking
from ...numerics.records import replaced
from ..ascent.problem import Problem
from ..ascent.schedules.truncated import Looks
from ..ascent.state import begin
from ..binding.nested import outer_variables
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from ..topics.kind_of_rows import kind_of
from .candidates import (
    basis_of,
    by_products,
    multiplied_in,
    start_from,
    with_followers,
    with_indicators,
    with_rates,
    with_scores,
)
from .cells import with_cells_moved
from .components.differences import differs_in_components, differs_in_weights
from .components.gates import Gate, gates_of
from .exchange import exchanged
from .factors.pooling import is_pooled
from .factors.prior import Start, prior_start
from .guesses.basis import Basis, Guess, Several, by_themselves
from .guesses.by_chance import alike, at_random, without_labels
from .guesses.clusterwise import by_regression
from .guesses.in_cells import in_cells, in_columns
from .guesses.of_groups import in_blocks, in_groups
from .guesses.of_states import by_neighbours, in_time
from .guesses.partitioned import are_clear, in_clusters, in_fewer_clusters
from .products.effects import learnt_precisions
from .race import Begun, best_of
from .regroup import regrouping_of
from .trials import has_very_many, start_of_very_many, tried, unless_lower, unless_silent
from .warm_up import settled, with_absent, with_late_effects, with_wide_effects, with_wide_steps

_BEHIND = 0.25
"""Nats a value behind the best before the first iteration beyond which a start of an ordinary mixture is left out."""

_SCORED = 3
"""Guesses of labels beside which there are starts with more: hidden locations that are multiplied are guessed, too, or
what is drawn follows from the labels."""


PRIOR: Guess = MappingProxyType({})
"""In the place of a guess: the globals as their priors are."""

GUESSES: tuple[Callable[[Basis], Iterator[Guess]], ...] = (
    in_clusters,
    in_columns,
    in_blocks,
    by_regression,
    by_products,
    in_cells,
    in_groups,
    in_time,
    by_neighbours,
    without_labels,
    in_fewer_clusters,
    alike,
    at_random,
)
"""What guesses the labels of a start."""


@np.errstate(all="ignore")
def data_start(
    problem: Problem,
    sample_of: Callable[[], Sample],
    row_map: RowMap,
    rng: np.random.Generator,
    most: int,
    looks: Callable[[Problem], Looks | None],
    several: Several = by_themselves,
) -> Begun:
    """Return the global factors from which the ELBO of a sample is highest after a few sweeps.

    Parameters
    ----------
    sample_of
        Returns the sample, for which all rows are read.
    most
        Passes over the rows that the fit makes at most.
    looks
        What returns passes with few responsibilities, or None where a problem has none.
    several
        What lets starts run side by side.
    """
    # without global factors all starts are the same
    if not problem.order or (not problem.factors and has_nothing_to_guess(problem)):
        return Begun((problem, prior_start(problem)))
    sample = sample_of()
    own = kind_of(problem).own_start(problem, sample, row_map, rng, most)
    if own is not None:
        return Begun(own)
    basis = basis_of(problem, sample, row_map, rng, several)
    if sample.is_part and has_very_many(basis):
        return start_of_very_many(basis, looks)
    guesses = _candidates(basis)
    if problem.chains and not basis.has_states:
        # states that are vectors have nothing to be clustered by
        return _counted(basis, Begun(_start_of_vectors(basis, next(guesses), row_map)))
    if problem.fact("outer variables", lambda: outer_variables(problem.bound.nodes, problem.order)):
        # labels that follow from a word alone keep it to one topic, from which proportions cannot bring it back
        nested = [settled(*_start(basis, guess), row_map) for guess in (next(guesses), {})]
        return Begun(max(nested, key=lambda start: begin(*start, row_map).elbo))
    first = next(guesses)
    if are_clear(basis, first):
        begun = best_of([partial(_start, basis, first)], basis)
        return replaced(begun, rows_raced=basis.rows_passed, is_from_clusters=True)
    raced = [first, *guesses]
    regrouping = regrouping_of(basis)
    if regrouping is not None:
        raced = regrouping.shortlist(raced)
    # vectors missing in part are as all rows in a start, and that costs starts with narrow clusters most
    behind = _BEHIND if basis.is_plain and not problem.bound.gathered("entries") else np.inf
    starts = tried(basis, list(_starts(basis, raced)))
    begun = exchanged(basis, best_of(starts, basis, behind))
    begun = with_cells_moved(basis, begun)
    return _counted(basis, begun if regrouping is None else regrouping.regrouped(begun))


def has_nothing_to_guess(problem: Problem) -> bool:
    """Whether all globals begin at their priors: none is chosen, multiplied or pooled, and no width is learnt.

    Nothing is hidden in the rows.
    """
    if problem.chains or kind_of(problem).has_own_start:
        return False
    return problem.fact("nothing to guess", lambda: _are_at_priors(problem))


def follows_from_labels(problem: Problem) -> bool:
    """Whether a start is no more than labels of the rows: globals follow from these, or from their priors.

    Globals that multiply each other, or labels beyond the rows that choose some, would stay where they are alike.
    Categories whose priors differ are not in the order of any clusters; those of sticks are in all.
    """
    if not problem.factors:
        return has_nothing_to_guess(problem)
    gates = gates_of(problem)
    if multiplied_in(problem) or any(gate.variable in problem.order and gate.chosen for gate in gates):
        return False
    return not any(
        differs_in_components(problem, gate) or _differs_in_known_weights(problem, gate) for gate in gates
    )


def _differs_in_known_weights(problem: Problem, gate: Gate) -> bool:
    """Whether the categories of a gate differ in the prior of their probabilities, and these are no sticks."""
    slot = gate.variable.slots.get("probabilities")
    is_of_sticks = slot is not None and isinstance(slot.node, StickBreaking)
    return not is_of_sticks and differs_in_weights(problem, gate)


def _are_at_priors(problem: Problem) -> bool:
    if gates_of(problem) or multiplied_in(problem) or outer_variables(problem.bound.nodes, problem.order):
        return False
    return not any(
        own.is_zero_or_one or is_pooled(problem, own) or learnt_precisions(problem, own)
        for own in problem.order
    )


def _start_of_vectors(basis: Basis, guess: Guess, row_map: RowMap) -> Start:
    """Return a start of chains of vectors: drawn, or at scores, or wide at first, where others end lower."""
    drawn = _start(basis, guess)
    at_scores = [partial(start_from, own, dict(guess)) for own in with_scores(basis, guess)]
    start = unless_silent(basis, drawn, at_scores)
    basis, wide = with_wide_steps(basis, row_map)
    return unless_lower(basis, start, wide)


def _counted(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, with what the race before it went through."""
    return replace(begun, rows_raced=basis.rows_passed)


def _candidates(basis: Basis) -> Iterator[Guess]:
    """Yield guesses, in which gates of one category have it; the prior where there is nothing to guess."""
    problem = basis.problem
    pooled = any(is_pooled(problem, variable) for variable in problem.order)
    if not (problem.factors or basis.gates or pooled):
        if basis.present:
            yield {}
        yield PRIOR
        return
    n_rows = basis.sample.n_rows
    certain = {
        gate.variable: np.zeros(gate.shape(problem, n_rows), dtype=np.int64)
        for gate in basis.gates
        if gate.size == 1
    }
    for guesses in GUESSES:
        for guess in guesses(basis):
            yield {**certain, **guess}
    # what is known of hidden numbers brings globals from their priors to where they are
    if _are_told_apart(basis) or basis.has_told_axes or basis.problem.bound.numbers_in_part:
        yield PRIOR


def _are_told_apart(basis: Basis) -> bool:
    """Whether priors tell the categories of a label apart, and more than labels is hidden in the rows.

    What is hidden beside guessed labels is drawn at first, and labels that follow from a bad draw may keep it bad.
    """
    problem = basis.problem
    has_more = any(not factor.labels for factor in problem.factors)
    return has_more and any(differs_in_components(problem, gate) for gate in basis.gates if gate.factor)


def _starts(basis: Basis, guesses: Sequence[Guess]) -> Iterator[Callable[[], Start]]:
    """Yield what returns a start, one for each guess.

    Beside the first guesses of labels there are starts in which hidden locations that are multiplied are guessed, too,
    and starts in which chains follow from these labels.
    """
    for number, guess in enumerate(guesses):
        rates = [] if number else list(with_rates(basis))
        if not any(own.replaces_draw for own in rates):
            yield partial(_start, basis, guess)
        others: tuple[Basis, ...] = ()
        if number < _SCORED:
            others = (*rates, *with_scores(basis, guess), *with_followers(basis, guess))
            yield from (partial(start_from, other, dict(guess)) for other in others)
        if not number:
            yield from (partial(start_from, other, dict(guess)) for other in with_indicators(basis))
            yield from with_wide_effects(basis)
            yield from with_late_effects(basis)
            for own in (basis, *others):
                yield from with_absent(own, guess)


def _start(basis: Basis, guess: Guess) -> Start:
    """Return the globals that follow from a guess."""
    return (basis.problem, dict(basis.q)) if guess is PRIOR else start_from(basis, guess)
