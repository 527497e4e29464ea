r"""Expanded: another schedule that rotates hidden vectors to the optimum of their priors after each step.

Rotations of vectors that occur only in dot products with each other, as turns of a state.

Priors of vectors with zeros: the precision of their slabs and the probability that an entry is not zero.

An entry has, of messages h and s from the data,

.. math:: \mathrm{logit}\, \gamma = \psi + \tfrac12 E[\log\alpha] - \tfrac12 \log(\alpha + s)
          + \frac{h^2}{2(\alpha + s)}, \qquad \psi = E[\mathrm{logit}\, \pi].

Where a coordinate falls silent, updates raise :math:`\alpha` by about s a turn, and move :math:`\psi` by one over the
number of entries: hundreds of turns until both are where they lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.special import digamma, expit

from ....._errors import ImproperError
from ....._typing import Array, Statistics
from .....language import Beta, Gamma, SparseVector, Variable
from .....numerics.records import replaced
from ...problem import Problem
from ...schedule import Ascent, AscentAround
from ...state import AscentState, at_natural, joined
from .groups import Group, Shrunk, groups_of, is_free, known_parameters, own_prior, shrunk_of
from .relevance import bracketed
from .rotation import BRIEF, EXACT, Side, best_rotation, best_scales, foreseen
from .scalings import scalings_of
from .sides import sides_of
from .turn import Turn, Turned

A = TypeVar("A", bound=AscentState)

_SHARE = 0.05
"""Of what the last step gained, that a turn must promise to be worth a pass over the rows."""

_NEAR = 0.3
"""Nats a row of a step below which precisions are settled: far from an optimum that may lead to another, lower one."""

_STILL = 0.01
"""Change of the logarithm of a precision in a step below which it stays where it is."""


def expanded(problem: Problem, schedule: Ascent[A]) -> Ascent[A]:
    """Return a schedule with turns after its steps, if some vectors of the problem can be turned."""
    turns: list[Turn] = [*rotations_of(problem), *scalings_of(problem)]
    shrunk: list[Shrunk | SparsePriors] = [*shrunk_of(problem)]
    for variable in problem.order:
        own = sparse_priors_of(problem, variable) if variable.has_zeros else None
        if own is not None:
            shrunk.append(own)
    return Expanded(schedule, tuple(turns), tuple(shrunk)) if turns or shrunk else schedule


@dataclass(frozen=True)
class Expanded(AscentAround[A]):
    """Another schedule, with a turn of hidden vectors after each step that it promises to gain something by.

    The turned factors are a state like any other: it is taken only where its objective is higher.

    Attributes
    ----------
    own
        The other schedule.
    turns
        Factors that move together.
    shrunk
        Numbers, and vectors with zeros, whose priors are learnt.
    """

    turns: tuple[Turn, ...]
    shrunk: tuple[Shrunk | SparsePriors, ...]

    def step(self, state: A) -> A:
        """Return the state after a step of the other schedule, turned if that is better."""
        after = self.own.step(state)
        if after.status is not None or not after.natural or after.rows.is_single:
            return after
        found = _higher(after, self._turned(after, after.elbo - state.elbo))
        found = _higher(found, _with_settled(state, found, self.shrunk))
        if found is after:
            return after
        change = (found.elbo - state.trace[-1]) / found.per_row
        return replaced(found, trace=(*after.trace[:-1], found.elbo), change=change)

    def _turned(self, state: A, gained: float) -> A | None:
        """Return a state after all turns; None where that promises too little."""
        place, promised = Turned.of(state), 0.0
        try:
            for turn in self.turns:
                promised += turn.made(state, gained, place)
        except (ImproperError, np.linalg.LinAlgError):
            return None
        if not promised > _SHARE * max(gained, 0.0):
            return None
        return at_natural(replaced(state, warm=place.warm), joined(state.problem, place.naturals))


def _higher(state: A, other: A | None) -> A:
    """Return another state if there is one that is higher, else the state."""
    return state if other is None or not other.elbo > state.elbo else other


def _with_settled(before: A, state: A, shrunk: Sequence[Shrunk | SparsePriors]) -> A | None:
    """Return a state with priors where turns of updates lead; None where none of them is far from there.

    Only those are looked at whose precisions the last step has moved.
    """
    shrunk = [own for own in shrunk if _has_moved(before, state, own.relevance)]
    if not state.change < _NEAR or not shrunk:
        return None
    problem, naturals, arrays = state.problem, dict(state.natural), dict(state.arrays)
    moved = False
    for own in shrunk:
        naturals[own.variable], _ = problem.update_with_natural(own.variable, arrays)
        found = own.settled(problem, naturals)
        if found is None:
            continue
        moved = True
        for prior, natural in found.items():
            arrays.update(problem.statistics(prior, problem.factor(prior, natural)))
        for variable in (own.variable, *own.priors):
            naturals[variable], factor = problem.update_with_natural(variable, arrays)
            arrays.update(problem.statistics(variable, factor))
    return at_natural(state, joined(problem, naturals)) if moved else None


def _has_moved(before: AscentState, after: AscentState, relevance: Variable) -> bool:
    """Whether some precision has changed in a step."""
    if not before.natural or before.problem is not after.problem:
        return False
    (shape, rate), (shape_after, rate_after) = before.natural[relevance], after.natural[relevance]
    return bool(np.abs(np.log(shape_after / rate_after * rate / shape)).max() > _STILL)


_NEAR_OF_CHAINS = 0.03
"""Nats a row of a step below which chains turn: turned earlier, states fall silent that the data would need yet."""

_SHARE_OF_CHAINS = 0.3
"""Of what the last step gained, that is foreseen of a turn of a chain before it is searched for.

Mostly a turn gains twice what it promises, for another pass.
"""


def rotations_of(problem: Problem) -> list[Rotation]:
    """Return the rotations of a problem; none where a predictor multiplies no two hidden vectors."""
    return [Rotation(own) for own in groups_of(problem)]


@dataclass(frozen=True, eq=False)
class Rotation:
    """The rotation of a group of vectors, and of what else follows from it.

    Attributes
    ----------
    group
        The vectors.
    """

    group: Group

    def made(self, state: AscentState, gained: float, place: Turned) -> float:
        """Write to ``place`` where the best rotation leads, and return by how much it raises the objective."""
        group = self.group
        if group.has_chain and not state.change < _NEAR_OF_CHAINS:
            return 0.0
        sides = sides_of(state, group)
        if sides is None or (group.has_chain and not foreseen(sides) > _SHARE_OF_CHAINS * gained):
            return 0.0
        turn, gain = _best(group, sides)
        _turn(state.problem, group, sides, turn, place)
        return gain


def _best(group: Group, sides: Sequence[Side]) -> tuple[Array, float]:
    """Return the best turn of a group, (K, K), and by how much the objective rises with it."""
    if group.is_scaled:
        turn = np.diag(best_scales(sides))
    else:
        turn = best_rotation(sides, BRIEF if group.has_chain else EXACT)
    gain = 0.0
    dual: Any = np.linalg.inv(turn).T
    for own in sides:
        matrix = dual if own.is_dual else turn
        if group.is_scaled:
            volume = float(np.sum(own.count * np.log(np.diagonal(matrix))))
        else:
            volume = float(np.mean(own.count) * np.linalg.slogdet(matrix)[1])
        gain += volume + own.value(matrix)[0] - own.value(np.eye(len(matrix)))[0]
    return turn, gain


def _turn(problem: Problem, group: Group, sides: Sequence[Side], turn: Array, place: Turned) -> None:
    """Turn the shared factors of a group in place, and update the precisions of their coordinates."""
    naturals, arrays = place.naturals, place.arrays
    inverse: Any = np.linalg.inv(turn)
    for own, side in zip(group.members, sides, strict=True):
        variable: Variable = own.variable if own.transition is None else own.transition
        if problem.bound.is_local(variable):
            # the factors of the rows follow from the others
            continue
        around, back = (inverse.T, turn.T) if own.is_dual else (turn, inverse)
        naturals[variable] = side.natural_after(around, back, naturals[variable])
        arrays.update(problem.statistics(variable, problem.factor(variable, naturals[variable])))
    for own in group.members:
        if own.relevance is None:
            continue
        naturals[own.relevance], factor = problem.update_with_natural(own.relevance, arrays)
        arrays.update(problem.statistics(own.relevance, factor))


_ROUNDS = 2
"""Of precisions and probabilities in turn."""

_FAR_PRECISION, _FAR_ODDS = 0.7, 0.3
"""Change of the logarithm of a precision, and of the log-odds, that is worth a pass over the rows."""


@dataclass(frozen=True, eq=False)
class SparsePriors:
    """The priors of a vector with zeros, that are learnt from it alone.

    Attributes
    ----------
    variable
        The vector.
    relevance
        Precisions of its slabs, one for each entry of the vector.
    share
        Probabilities that an entry is not zero; None where these are not learnt.
    """

    variable: SparseVector
    relevance: Gamma
    share: Beta | None

    @property
    def priors(self) -> tuple[Variable, ...]:
        """What is learnt."""
        return (self.relevance,) if self.share is None else (self.relevance, self.share)

    def settled(
        self, problem: Problem, naturals: dict[Variable, Statistics]
    ) -> dict[Variable, Statistics] | None:
        """Return natural parameters of the priors where turns of updates lead; None where they are near there."""
        included, linear, quadratic = (np.asarray(own) for own in naturals[self.variable])
        size = quadratic.shape[-1]
        shape, negative_rate = naturals[self.relevance]
        log_alpha = np.log(shape / -negative_rate)
        below = digamma(shape) - np.log(shape)
        slabs = _Slabs(
            odds=(included - 0.5 * (log_alpha + below)).reshape(-1, size),
            linear=np.broadcast_to(linear, quadratic.shape).reshape(-1, size),
            curvature=np.maximum(-2.0 * quadratic - np.exp(log_alpha), 0.0).reshape(-1, size),
            below=below,
            prior=known_parameters(problem, self.relevance, size),
            share=None if self.share is None else known_parameters(problem, self.share, size),
        )
        found, shift, count = slabs.settled(log_alpha)
        is_far = np.abs(found - log_alpha).max() > _FAR_PRECISION or np.abs(shift).max() > _FAR_ODDS
        if not is_far:
            return None
        own_shape = slabs.prior[0] + 0.5 * count
        new: dict[Variable, Statistics] = {self.relevance: (own_shape, -own_shape * np.exp(-found))}
        if self.share is not None and slabs.share is not None:
            new[self.share] = (slabs.share[0] + count, slabs.share[1] + len(slabs.odds) - count)
        return new


@dataclass(frozen=True, eq=False)
class _Slabs:
    """Entries, (D, K): log-odds before the slabs, messages; and of each coordinate E log precision below its log mean.

    ``prior`` has shape and rate of precisions, ``share`` the two numbers of probabilities, (K,) each.
    """

    odds: Array
    linear: Array
    curvature: Array
    below: Array
    prior: tuple[Array, ...]
    share: tuple[Array, ...] | None

    def settled(self, log_alpha: Array) -> tuple[Array, Array, Array]:
        """Return log precisions, shifts of the log-odds, and expected entries that are not zero, (K,) each."""
        shift = np.zeros_like(log_alpha)
        for _ in range(_ROUNDS):
            log_alpha = bracketed(log_alpha, lambda logs, at=shift: self._updated(logs, at) > logs)
            if self.share is None:
                break
            # with a learnt probability all entries of a coordinate have the same log-odds
            base = self.odds[0]
            odds = bracketed(
                base + shift,
                lambda odds, at=log_alpha, base=base: self._log_odds_of_share(at, odds - base) > odds,
            )
            shift = odds - base
        return log_alpha, shift, self._inclusion(log_alpha, shift)[0].sum(axis=0)

    def _inclusion(self, log_alpha: Array, shift: Array) -> tuple[Array, Array]:
        """Return probabilities that entries are not zero, and their expected squares then, (D, K) each."""
        width = 1.0 / (np.exp(log_alpha) + self.curvature)
        square = np.square(self.linear * width)
        gain = 0.5 * (log_alpha + self.below + np.log(width) + square / width)
        return expit(self.odds + shift + gain), width + square

    def _updated(self, log_alpha: Array, shift: Array) -> Array:
        inclusion, squares = self._inclusion(log_alpha, shift)
        shape, rate = self.prior
        total = (inclusion * squares).sum(axis=0)
        return np.log(shape + 0.5 * inclusion.sum(axis=0)) - np.log(rate + 0.5 * total)

    def _log_odds_of_share(self, log_alpha: Array, shift: Array) -> Array:
        """Return the expected log-odds after an update, (K,)."""
        assert self.share is not None
        count = self._inclusion(log_alpha, shift)[0].sum(axis=0)
        return digamma(self.share[0] + count) - digamma(self.share[1] + len(self.odds) - count)


def sparse_priors_of(problem: Problem, variable: Variable) -> SparsePriors | None:
    """Return the priors of a vector with zeros if they are learnt from it alone, with a precision for each entry."""
    if not isinstance(variable, SparseVector) or not variable.is_sequential or variable in problem.point:
        return None
    if not is_free(problem, variable):
        return None
    relevance = own_prior(problem, variable, "precision", Gamma)
    share = own_prior(problem, variable, "probability", Beta)
    if not isinstance(relevance, Gamma) or not relevance.plates:
        return None
    return SparsePriors(variable, relevance, share if isinstance(share, Beta) and share.plates else None)
