r"""Saddle points: whether a fit that has settled ended at one, and where the objective rises from there.

Coordinate ascent ends where no update moves a factor. That is a maximum, or a saddle point, as where all components of
a mixture are equal: there no component has a reason to become another. Let v be a small change of the natural
parameters of all globals, V the variances of their sufficient statistics, and B v the change of all their updates that
follows, with the local factors at their optimum. The second derivative of the objective along v is

.. math:: v^\top V B v - v^\top V v, \qquad \text{and } B \text{ is symmetric in } \langle u, v \rangle = u^\top V v.

So the end is a maximum where all eigenvalues of B lie below 1, and a saddle point where one lies above. The eigenvalues
that a Krylov space shows (Lanczos) approach the largest one from below, so one above 1 is proof, and the direction that
belongs to it is where the objective rises. Each step costs a pass over the rows, or over some of them: B needs no more
digits than that, for whether the objective rises is asked of all rows.

Sources: Giordano, Broderick and Jordan, "Covariances, robustness, and variational Bayes" (2018), for the second
derivative; Parlett, *The Symmetric Eigenvalue Problem* (1998), chapter 13.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ....._errors import ImproperError
from ....._typing import Array, Statistics
from .....language import Label, LinearGaussianChain, Variable
from .....language.products_of_unknowns import multiplied_together
from .....numerics.records import replaced
from ....design.keys import StatisticKey
from ....rows.row_map import COLD, RowMap, Warm
from ...degeneracy import has_collapsed
from ...problem import Problem, statistics_of
from ...state import (
    AscentState,
    Naturals,
    advance,
    apart,
    at_natural,
    begin,
    expected_of,
    joined,
    with_optimal_locals,
)
from .acceleration import Move

log = logging.getLogger("caviar")

_MOST_STEPS = 16
_FEWEST_STEPS, _ENOUGH_STEPS = 3, 8
_NO_GAIN = 1e-3
"""Of an eigenvalue from step to step, after enough of them."""

_MOST_NUMBERS = 2e7
"""Of the directions that are held at a time: fewer steps where there are very many parameters."""

_EPSILON = 1e-4
"""Step of the differences, in standard deviations of the factors."""

_NOTHING = 1e-2
"""Share of the length of a direction that counts as none of it."""

_SURELY = 5e-3
"""By how much an eigenvalue lies above 1 that is not an error of a difference, nor that of a flat direction."""

_NEARLY = 0.02
"""By how much it may lie below 1 for the direction to be tried by a long step, and sweeps from there.

Where equal components share a width that is learnt, the eigenvalue is 1: as they part and the width shrinks at once,
the objective rises with the fourth power of the step.
"""

_STEEP = 0.1
"""By how much it lies above where its direction is good enough."""

_STILL_TO_COME = 8.0
"""How many times the last gain an eigenvalue is expected to gain yet."""

_ROWS = 16_384
"""Rows that the directions are found with."""

_ROUNDS = 3
"""Sweeps over local factors that depend on each other, for each difference."""

_SIZES = (1.0, 1 / 4, 1 / 16, 1 / 64)
"""Of the first step away from a saddle point, in standard deviations of the factors."""

_FALL, _FALL_PER_ROW = 1.0, 0.01
"""Nats by which a long step may lower the objective, whichever is more: then rows have changed their minds."""

_SWEEPS = 10
"""From the end of a long step."""

_LEAST_OF_LONG = 1e-2
"""Nats by which these must raise the objective in all: less may be the rest of the way to the same maximum."""

_LONGEST = 4_096.0


def may_have_saddles(problem: Problem) -> bool:
    """Return whether a model has what a saddle point is made of: labels to be found, or locations that are multiplied.

    Missing entries of vectors are multiplied by an unknown precision. Elsewhere nothing can change places, nor sign.
    """
    hidden = set(problem.bound.latent)
    if not problem.order or problem.rows.begins_anew:
        # documents are brought near their optimum only, which leaves no digits for differences
        return False
    if any(isinstance(variable, Label) and (variable.categories or 1) > 1 for variable in hidden):
        return True
    if any(isinstance(variable, LinearGaussianChain) for variable in hidden):
        return True
    if problem.bound.gathered("entries"):
        return True
    return any(True for _ in multiplied_together(problem.bound.nodes, hidden))


def beyond_saddle(state: AscentState, least: float, number: int = 0) -> AscentState | None:
    """Return a state with a higher objective, away from the saddle point that a fit has settled at; None at a maximum.

    Parameters
    ----------
    state
        Where no update moves a factor any more.
    least
        By how much the objective must rise, in nats, for the fit to continue.
    number
        Of the saddle point among those of this fit, so that each is looked at from another direction.
    """
    if not may_have_saddles(state.problem):
        return None
    if state.problem.factors and not state.rows.total_weight > 0:
        return None
    try:
        if not state.natural:
            state = _updated(state)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # what is not a number is not a direction
            largest, way = _steepest(state, np.random.default_rng(number))
        if largest <= 1 - _NEARLY:
            return None
        state = with_optimal_locals(state)
        found = _risen(state, way, least) if largest > 1 + _SURELY else None
        return found or _swept(state, way, max(least, _LEAST_OF_LONG))
    except (ImproperError, np.linalg.LinAlgError) as error:
        log.info("not tried for a saddle point: %s", error)
        return None


def _updated(state: AscentState) -> AscentState:
    """Return a state whose factors are their updates, from known natural parameters."""
    problem, arrays = state.problem, dict(state.arrays)
    natural = _updates_at(problem, arrays)
    q = {variable: problem.factor(variable, own) for variable, own in natural.items()}
    arrays.update(statistics_of(problem, q))
    return with_optimal_locals(replaced(state, q={**state.q, **q}, arrays=arrays, natural=natural))


class _Response:
    """How the updates of all globals at once respond to changes of their expected statistics.

    Parameters
    ----------
    state
        A state at which all changes are small, with factors made of natural parameters; part of the rows is enough.
    """

    def __init__(self, state: AscentState) -> None:
        self._problem, self._arrays, self._natural = state.problem, dict(state.arrays), state.natural
        self._q = state.q
        self._rows, self._warm, self._rounds = _looked_at(state)
        self._place = joined(self._problem, self._natural)
        self._expected = self._expected_of(self._arrays)
        if self._rounds > 1:
            # all differences are of looks that begin alike: what these lack of the optimum is not a part of any
            self._warm = self._summed(self._expected)[1]
        if self._has_sums_of(state.rows):
            self._updates = joined(self._problem, _updates_at(self._problem, self._arrays))
        else:
            self._updates = self._updates_at(self._expected)

    def _has_sums_of(self, rows: RowMap) -> bool:
        """Return whether the sums of the state are already those of a pass at its factors over the rows used here."""
        if self._problem.rows.keeps_locals or rows.n_batches_made:
            return False
        return self._rows is None or self._rows.source.n_rows == rows.source.n_rows

    @property
    def size(self) -> int:
        """Number of natural parameters, P."""
        return len(self._place)

    def of_updates(self, expected: Array) -> Array:
        """Return by how much the updates change with the expected statistics, (P,) both."""
        return (self._updates_at(self._expected + _EPSILON * expected) - self._updates) / _EPSILON

    def of_factors(self, natural: Array, length: float = 1.0) -> Array:
        """Return by how much expected statistics change with natural parameters of about a length, (P,) both."""
        step = _EPSILON / length
        return (self._expected_at(self._place + step * natural) - self._expected) / step

    def drawn(self, rng: np.random.Generator) -> Array:
        """Return a change of the expected statistics by about a standard deviation: to those of a draw, (P,)."""
        moved = []
        for variable in self._problem.order:
            own, known = self._natural[variable], self._problem.bound.of(variable).clamped
            if known is not None and known.are_all:
                moved += [np.zeros(eta.size) for eta in own]
                continue
            factor: Any = self._q[variable]
            if factor.learnt is not factor:
                factor = variable.family.from_natural(own if known is None else known.filled(own))
            draw = variable.statistics_of(factor.sample(seed=rng))
            triples = zip(draw, factor.expected_statistics, own, strict=True)
            moved += [np.broadcast_to(new - old, eta.shape).ravel() for new, old, eta in triples]
        return np.concatenate(moved)

    def _expected_at(self, natural: Array) -> Array:
        problem = self._problem
        arrays, kinds = dict[Hashable, Array](), problem.kinds
        for variable, own in apart(problem, self._natural, natural).items():
            problem.tell(arrays, variable, kinds[variable].factor(own))
        return self._expected_of(arrays)

    def _expected_of(self, arrays: Mapping[Hashable, Array]) -> Array:
        return expected_of(self._problem, self._natural, arrays, len(self._place))

    def _updates_at(self, expected: Array) -> Array:
        return joined(self._problem, _updates_at(self._problem, self._summed(expected)[0]))

    def _summed(self, expected: Array) -> tuple[Mapping[Hashable, Array], Warm]:
        """Return the arrays that updates follow from at these expected statistics (P,), and the local factors."""
        arrays, start = dict(self._arrays), 0
        for variable in self._problem.order:
            for name, eta in zip(variable.family.statistics, self._natural[variable], strict=True):
                arrays[StatisticKey(variable.name, name)] = expected[start : start + eta.size].reshape(
                    eta.shape
                )
                start += eta.size
        warm: Warm = self._warm
        if self._rows is not None:
            coefficients = self._problem.rows.coefficients(arrays)
            for _ in range(self._rounds):
                look = self._rows.look(coefficients, warm)
                arrays.update(look.summary.parts)
                warm = look.warm
        return arrays, warm


def _looked_at(state: AscentState) -> tuple[RowMap | None, Warm, int]:
    """Return the rows that differences are taken over, what looks at them begin with, and how many make one.

    Rows with sets of components keep these: what is left out of a set has next to no responsibility, to which
    derivatives are in proportion. All rows are looked at: few responsibilities of each take no longer than all of some.
    """
    model = state.problem.rows
    if not state.problem.factors:
        # sums without local factors never change
        return None, COLD, 1
    if (within := model.within_sets) is not None:
        return state.rows.at(within), state.warm, 1
    return state.rows.share(_ROWS), COLD, _ROUNDS if model.keeps_locals else 1


def _updates_at(problem: Problem, arrays: Mapping[Hashable, Array]) -> Naturals:
    """Return the natural parameters of the update of each global, the others as they are."""
    return {variable: problem.updates[variable].natural(arrays) for variable in problem.order}


def _steepest(state: AscentState, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the largest eigenvalue that some steps show, and the change of natural parameters (P,) it is of."""
    response = _Response(state)
    most = int(max(_FEWEST_STEPS, min(_MOST_STEPS, response.size, _MOST_NUMBERS / response.size)))
    basis: list[Move] = []
    images: list[Array] = []
    largest, weights = -np.inf, np.zeros(0)
    natural = response.of_updates(response.drawn(rng))
    expected = response.of_factors(natural, np.sqrt(response.size))
    while len(basis) < most:
        whole = float(natural @ expected)
        for own in (*basis, *basis):
            # twice, so that rounding leaves nothing of the others
            share = float(own.expected @ natural)
            natural, expected = natural - share * own.natural, expected - share * own.expected
        squared = float(natural @ expected)
        if not _NOTHING**2 * whole < squared < np.inf:
            # what is left of a direction that the others span is the error of differences
            break
        length = np.sqrt(squared)
        basis.append(Move(natural / length, expected / length))
        images.append(response.of_updates(basis[-1].expected))
        table = np.array([[own.expected @ image for image in images] for own in basis])
        values, vectors = np.linalg.eigh(0.5 * (table + table.T))
        gain, largest, weights = values[-1] - largest, values[-1], vectors[:, -1]
        hopeless = len(basis) >= _FEWEST_STEPS and largest + _STILL_TO_COME * gain < 1
        if largest > 1 + _STEEP or hopeless or (len(basis) >= _ENOUGH_STEPS and gain < _NO_GAIN):
            break
        natural, expected = images[-1], response.of_factors(images[-1])
    shares = (weight * own.natural for weight, own in zip(weights, basis, strict=True))
    return float(largest), sum(shares, np.zeros(response.size))


def _risen(state: AscentState, way: Array, least: float) -> AscentState | None:
    """Return the highest state along a direction, either way, a first step and as many times it as raise the objective.

    None if no first step raises it by so much.
    """
    best, highest, step = None, state.elbo + least, 0.0
    for size in _SIZES:
        for signed in (size, -size):
            found = _at(state, signed * way)
            if found is not None and found.elbo > highest:
                best, highest, step = found, found.elbo, signed
        if best is not None:
            break
    while best is not None and abs(step) < _LONGEST:
        step *= 2
        found = _at(state, step * way)
        if found is None or found.elbo <= highest:
            break
        best, highest = found, found.elbo
    return best


def _swept(state: AscentState, way: Array, least: float) -> AscentState | None:
    """Return a higher state some sweeps from the end of a long step, either way; None if these lead no higher."""
    for signed in (way, -way):
        reached = _far(state, signed)
        for left in range(_SWEEPS, 0, -1):
            if reached.fell_at or has_collapsed(reached.problem, reached.q, reached.arrays):
                break
            if reached.elbo > state.elbo + least:
                return reached
            before = reached.elbo
            reached = advance(reached)
            if reached.elbo + 2 * left * (reached.elbo - before) < state.elbo + least:
                # it is on the way back, or nowhere
                break
    return None


def _far(state: AscentState, way: Array) -> AscentState:
    """Return the state after as long a step as leaves the objective near, the local factors at their optimum.

    Locations move, whatever becomes of their widths; of all others the natural parameters do, no more than half of the
    way to the edge of their domain.
    """
    fall, step = max(_FALL, _FALL_PER_ROW * state.rows.total_weight), 4.0
    moves, reached = _moves_of_locations(state, way), state
    directions = apart(state.problem, state.natural, way)
    most = {v: _most(state, v, directions[v]) for v in state.problem.order if v not in moves}
    while step < _LONGEST:
        q = dict(state.q)
        for variable in state.problem.order:
            if variable in moves:
                moved = state.q[variable].translate(step * moves[variable])
                q[variable] = state.problem.with_known(variable, moved)
            else:
                own = _further(state.natural[variable], directions[variable], min(step, most[variable]))
                q[variable] = state.problem.factor(variable, own)
        reached = begin(state.problem, q, state.rows, reached.warm)
        if not reached.elbo > state.elbo - fall:
            break
        step *= 8
    return reached


def _most(state: AscentState, variable: Variable, direction: Statistics) -> float:
    """Return a step to between a quarter and half of the way to the edge of a factor's domain."""
    step = 2 * _LONGEST
    while step > _EPSILON:
        try:
            state.problem.factor(variable, _further(state.natural[variable], direction, step))
        except ImproperError:
            step /= 2
        else:
            break
    return step / 2


def _further(natural: Statistics, direction: Statistics, step: float) -> Statistics:
    return tuple(eta + step * d for eta, d in zip(natural, direction, strict=True))


def _moves_of_locations(state: AscentState, way: Array) -> dict[Variable, Array]:
    """Return by how much the means of locations change with a change of all natural parameters."""
    near = apart(state.problem, state.natural, joined(state.problem, state.natural) + _EPSILON * way)
    found = {}
    for variable in state.problem.order:
        factor = state.q[variable]
        if any(slot.role.moves for slot in variable.slots.values()) and hasattr(factor, "translate"):
            ends = (own.mean for own in (state.problem.factor(variable, near[variable]), factor))
            new, old = (np.asarray(mean[0] if isinstance(mean, tuple) else mean) for mean in ends)
            found[variable] = (new - old) / _EPSILON
    return found


def _at(state: AscentState, move: Array) -> AscentState | None:
    """Return the state at other natural parameters, by so much; None if it is none, or has collapsed."""
    found = at_natural(state, joined(state.problem, state.natural) + move)
    return None if found is None or has_collapsed(found.problem, found.q, found.arrays) else found
