"""Random starts: those after the first, which may end at other optima.

The first start is the winner of a race between good guesses. It would win it again and again, so the others are fewer
guesses of the same kinds from other seeds: small clusters merged, k-means, regressions, blocks, labels of columns. With
every other restart a guess of chance runs beside: random labels, seeds, fewer clusters than components, neighbours in
time. Guesses of chance alone end far below where components are many, and guesses from clusters alone end alike where
these are plain. Of ordinary mixtures with points in the place of all globals there are more: a likelihood has so many
local optima that k-means of as many restarts ends higher than one guess each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Variable
from ..ascent.problem import Problem
from ..ascent.schedules.truncated import Looks
from ..binding.nested import outer_variables
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from ..topics.kind_of_rows import kind_of
from .candidates import basis_of, start_from, with_indicators, with_rates
from .clustering.kmeans import kmeans
from .clustering.partitions import in_original_units, may_merge, merged, partition
from .components.gates import Gate
from .factors.prior import prior_point
from .guesses.basis import Basis, Guess, Several
from .guesses.clusterwise import by_regression
from .guesses.in_cells import in_columns
from .guesses.of_groups import in_blocks
from .guesses.of_states import neighbouring
from .guesses.points import Cloud
from .race import Begun, best_of
from .trials import has_very_many, start_of_very_many
from .warm_up import settled, with_wide_effects

_MERGED = 2
"""Guesses by clustering of a restart where a likelihood is climbed, in each kind of units."""

_STRAYS = 0.2
"""Share of the members of clusters that get random labels in every fourth restart: easy clusters are all the same."""


_DRAWS_OF_RATES = 2
"""From which rates of low rank are guessed: those of a first start would be the same again and again."""

_SPREAD = 1.0
"""Standard deviation of the logarithms by which precisions of effects and of noise differ from restart to restart."""


@np.errstate(all="ignore")
def chance_start(
    problem: Problem,
    sample: Sample,
    row_map: RowMap,
    rng: np.random.Generator,
    most: int,
    looks: Callable[[Problem], Looks | None],
    several: Several,
    number: int,
) -> Begun:
    """Return global factors from labels that chance has a part in, of rows of a subsample and of everything else.

    Parameters
    ----------
    most
        Passes over the rows that the fit makes at most.
    several
        What lets starts run side by side.
    number
        Of the restart, from 1: ways to guess take turns.
    """
    own = kind_of(problem).own_start(problem, sample, row_map, rng, most)
    if own is not None:
        return Begun(own)
    basis = basis_of(problem, sample, row_map, rng, several)
    if not (problem.factors or basis.gates):
        starts = list(with_wide_effects(basis, _SPREAD))
        return Begun(starts[0]() if starts else (problem, dict(basis.q)))
    if sample.is_part and has_very_many(basis):
        return start_of_very_many(basis, looks)
    guesses = _guesses(basis, number)
    if outer_variables(problem.bound.nodes, problem.order):
        return Begun(settled(*start_from(basis, guesses[-1]), row_map))
    rates = list(with_rates(basis, n_draws=_DRAWS_OF_RATES))
    are_drawn = not any(own.replaces_draw for own in rates)
    starts = [partial(start_from, basis, guess) for guess in guesses] if are_drawn else []
    # hidden numbers 0 or 1 are guessed anew: what is drawn for them differs from restart to restart
    others = (*rates, *with_indicators(basis))
    starts += [partial(start_from, other, dict(guesses[0])) for other in others]
    begun = best_of(starts, basis)
    return replace(begun, rows_raced=basis.rows_passed)


@np.errstate(all="ignore")
def drawn_start(problem: Problem, rng: np.random.Generator) -> dict[Variable, Any]:
    """Return every global factor at a draw from its prior; one about 0, as broad as the data, where that is flat."""
    places = {node: place for place, node in enumerate(problem.bound.nodes)}
    q: dict[Variable, Any] = {}
    arrays: dict[Hashable, Array] = {}
    # parents come after their children in the order of the nodes
    for variable in sorted(problem.order, key=places.__getitem__, reverse=True):
        q[variable] = prior_point(problem, variable, arrays, rng)
        arrays.update(problem.statistics(variable, q[variable]))
    return {variable: q[variable] for variable in problem.order}


def _guesses(basis: Basis, number: int) -> list[Guess]:
    """Return the guesses of a restart, of which a race keeps the best."""
    if basis.is_plain and basis.problem.point.issuperset(basis.problem.order):
        ways: list[_Way] = [*[_merged, _in_original_units, _in_units] * _MERGED, _by_chance]
    else:
        clouds = [(gate, cloud) for gate in basis.gates for cloud in basis.clouds(gate)[:1]]
        may = any(may_merge(cloud.points, gate.size) for gate, cloud in clouds)
        ways = [_merged] if number % 2 and may else [_merged, _by_chance]
        if any(gate.factor is None for gate in basis.gates):
            # of the few labels of columns, or of groups, a race would find those of the first start again
            ways = [_merged if number % 2 else _at_random]
        if basis.is_of_answers:
            ways = [_at_random, _at_random if number % 2 else _merged]
    found: list[Guess] = [
        {gate.variable: _labels(basis, gate, way, number + place) for gate in basis.gates}
        for place, way in enumerate(ways)
    ]
    # what is drawn for them differs from restart to restart
    several = (list(guessed(basis)) for guessed in (by_regression, in_blocks, in_columns))
    return [*found, *(own[(number - 1) % len(own)] for own in several if own)]


def _labels(basis: Basis, gate: Gate, way: _Way, turn: int) -> AnyArray:
    """Return labels of a gate by one way; random ones where it has no points."""
    shape, clouds = gate.shape(basis.problem, basis.sample.n_rows), basis.clouds(gate)
    if not clouds or gate.size == 1:
        return basis.rng.integers(0, gate.size, shape)
    return way(basis, gate, clouds[0], turn).reshape(shape)


_Way: TypeAlias = Callable[[Basis, Gate, Cloud, int], AnyArray]
"""Labels of the points of a gate, given which turn it is."""


def _merged(basis: Basis, gate: Gate, cloud: Cloud, turn: int) -> AnyArray:
    """Return small clusters merged, in one of two units, some of their members elsewhere; k-means of too few points."""
    labels = merged(cloud.points, cloud.weights, gate.size, basis.rng, is_white=turn % 4 < 2)
    if labels is None:
        labels = partition(cloud.points, cloud.weights, gate.size, basis.rng)
    if turn % 4 != 3:
        return labels
    strays = basis.rng.random(len(labels)) < _STRAYS
    return np.where(strays, basis.rng.integers(0, gate.size, len(labels)), labels)


def _in_units(basis: Basis, gate: Gate, cloud: Cloud, turn: int) -> AnyArray:
    return partition(cloud.points, cloud.weights, gate.size, basis.rng)


def _in_original_units(basis: Basis, gate: Gate, cloud: Cloud, turn: int) -> AnyArray:
    """Return k-means labels of the points in their original units, where they have some."""
    assert gate.factor is not None
    points = in_original_units(basis.problem, gate.factor, basis.sample, cloud.points)
    return partition(cloud.points if points is None else points, cloud.weights, gate.size, basis.rng)


def _at_random(basis: Basis, gate: Gate, cloud: Cloud, turn: int) -> AnyArray:
    return basis.rng.integers(0, gate.size, len(cloud.points))


def _by_chance(basis: Basis, gate: Gate, cloud: Cloud, turn: int) -> AnyArray:
    """Return labels that are random, or those of the nearest of some points, of fewer clusters, or along time."""
    rng = basis.rng
    if turn % 4 > 1:
        return _at_random(basis, gate, cloud, turn)
    if gate.chain is not None:
        several = list(neighbouring(basis, gate, cloud))
        return several[rng.integers(len(several))]
    if basis.differs(gate):
        return partition(cloud.points, cloud.weights, int(rng.integers(1, gate.size)), rng)
    return kmeans(cloud.points, cloud.weights, gate.size, rng, max_iter=0)
