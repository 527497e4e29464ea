"""Moves beyond the updates, of many groups at once: those of :mod:`..ascent.schedules.acceleration`, along an axis.

Each group has its own memory, in a row of every array; what one of them refuses no other one forgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.records import replaced
from ..ascent.schedules.moves.acceleration import GROWTH, LONGEST_PAUSE, MOST_PAIRS, NEAR

_MOST = 0.5
"""Share of the groups that make secant moves above which these are computed for all, which needs no copies."""


@dataclass(frozen=True)
class GroupedMemory:
    """What is remembered of the moves of G groups, which have P parameters each.

    Attributes
    ----------
    places
        Natural parameters and expected statistics where the last update began, (2, G, P).
    moves
        The change of both that the update made, (2, G, P).
    pairs
        Changes of the place, and of the update's move in both coordinates, latest last, (3, G, P) each.
    curvatures
        Of the objective along each pair, (G,) each; infinite where a pair is forgotten.
    relaxation, pause, next_pause
        As in :class:`Memory`, (G,).
    is_secant, has_moved
        Whether the last proposal was a secant move, and whether the last step went beyond the update, (G,).
    is_on
        Whether moves are made: a fit ends after a step without, (G,).
    is_known
        Whether there is a place before the present one, (G,).
    """

    places: Array
    moves: Array
    pairs: tuple[Array, ...]
    curvatures: tuple[Array, ...]
    relaxation: Array
    pause: AnyArray
    next_pause: AnyArray
    is_secant: AnyArray
    has_moved: AnyArray
    is_on: AnyArray
    is_known: AnyArray

    @classmethod
    def empty(cls, n_groups: int, n_parameters: int, *, is_on: bool) -> GroupedMemory:
        """Return the memory of groups that have not moved yet."""
        both, no = np.zeros((2, n_groups, n_parameters)), np.zeros(n_groups, dtype=bool)
        return cls(
            both,
            both,
            (),
            (),
            np.ones(n_groups),
            np.zeros(n_groups, dtype=np.intp),
            np.ones(n_groups, dtype=np.intp),
            no,
            no,
            np.full(n_groups, is_on),
            no,
        )

    def taken(self, groups: AnyArray) -> GroupedMemory:
        """Return the memory of some groups."""
        flags = {own.name: getattr(self, own.name)[groups] for own in fields(self)[4:]}
        return GroupedMemory(
            self.places[:, groups],
            self.moves[:, groups],
            tuple([pair[:, groups] for pair in self.pairs]),
            tuple([own[groups] for own in self.curvatures]),
            **flags,
        )

    @classmethod
    def joined(cls, memories: Sequence[GroupedMemory]) -> GroupedMemory:
        """Return the memory of the groups of several memories, one after another."""
        number = max([len(own.pairs) for own in memories])
        several = [own._with_pairs(number) for own in memories]
        flags = {
            own.name: np.concatenate([getattr(one, own.name) for one in several]) for own in fields(cls)[4:]
        }
        return cls(
            np.concatenate([own.places for own in several], axis=1),
            np.concatenate([own.moves for own in several], axis=1),
            tuple(
                [np.concatenate(pairs, axis=1) for pairs in zip(*[own.pairs for own in several], strict=True)]
            ),
            tuple([np.concatenate(own) for own in zip(*[own.curvatures for own in several], strict=True)]),
            **flags,
        )

    def _with_pairs(self, number: int) -> GroupedMemory:
        """Return the memory with so many pairs, of which the first are forgotten."""
        n_more, size = number - len(self.pairs), self.places.shape[1]
        none = np.zeros((3, *self.places.shape[1:])), np.full(size, np.inf)
        pairs, curvatures = (n_more * (own,) for own in none)
        return replaced(self, pairs=(*pairs, *self.pairs), curvatures=(*curvatures, *self.curvatures))

    def forgetting(self, groups: AnyArray) -> GroupedMemory:
        """Return the memory in which some groups, (G,), have not moved yet; they make moves from now on."""
        empty = GroupedMemory.empty(*self.places.shape[1:], is_on=True)
        chosen = {
            own.name: np.where(groups, getattr(empty, own.name), getattr(self, own.name))
            for own in fields(self)[4:]
        }
        return replaced(self, curvatures=_forgotten(self.curvatures, groups), **chosen)


def _forgotten(curvatures: tuple[Array, ...], groups: AnyArray) -> tuple[Array, ...]:
    return tuple([np.where(groups, np.inf, own) for own in curvatures])


def proposal(
    memory: GroupedMemory, place: Array, update: Array, change: Array
) -> tuple[GroupedMemory, Array, AnyArray]:
    """Return the memory with an update that was found, what to try in its place, (G, P), and in which groups, (G,).

    Parameters
    ----------
    place, update
        Natural parameters and expected statistics before and after the update, (2, G, P).
    change
        By how much the last step raised the objective of each group, in nats a row, (G,).
    """
    memory = _seen(memory, place, update - place)
    is_near = memory.is_on & (change < NEAR)
    has_pairs = np.logical_or.reduce([np.isfinite(own) for own in memory.curvatures])
    is_secant = is_near & has_pairs & (memory.pause == 0)
    waits = is_near & has_pairs & (memory.pause > 0)
    relaxed = memory.places[0] + memory.relaxation[:, None] * memory.moves[0]
    natural = np.where((is_near & ~is_secant)[:, None], relaxed, update[0])
    chosen = is_secant.nonzero()[0]
    if chosen.size > _MOST * len(is_secant):
        natural = np.where(is_secant[:, None], memory.places[0] + _secant(memory), natural)
    elif chosen.size:
        natural[chosen] = memory.places[0, chosen] + _secant(memory.taken(chosen))
    tried = is_secant | (is_near & (memory.relaxation != 1.0))
    return replaced(memory, is_secant=is_secant, pause=memory.pause - waits), natural, tried


def _seen(memory: GroupedMemory, place: Array, move: Array) -> GroupedMemory:
    pair = np.empty((3, *move.shape[1:]))
    np.subtract(place[0], memory.places[0], out=pair[0])
    np.subtract(move, memory.moves, out=pair[1:])
    curvature = -np.einsum("gp,gp->g", pair[0], pair[2])
    is_good = memory.is_known & memory.is_on & (curvature > 0)
    pair[:, ~is_good] = 0.0
    pairs = (*memory.pairs, pair)[-MOST_PAIRS:]
    curvatures = (*memory.curvatures, np.where(is_good, curvature, np.inf))[-MOST_PAIRS:]
    return replaced(
        memory, places=place, moves=move, pairs=pairs, curvatures=curvatures, is_known=memory.is_on
    )


def _secant(memory: GroupedMemory) -> Array:
    """Return the limited-memory BFGS step of each group, (G, P); see ``acceleration.secant_move``."""
    step, gradient = memory.moves.copy()
    shares, part = [], np.empty(step.shape)
    for pair, curvature in zip(memory.pairs[::-1], memory.curvatures[::-1], strict=True):
        share = (np.einsum("gp,gp->g", pair[0], gradient) / curvature)[:, None]
        gradient += np.multiply(share, pair[2], out=part)
        step += np.multiply(share, pair[1], out=part)
        shares.append(share)
    for pair, curvature, share in zip(memory.pairs, memory.curvatures, reversed(shares), strict=True):
        share += (np.einsum("gp,gp->g", pair[2], step) / curvature)[:, None]
        step += np.multiply(share, pair[0], out=part)
    return step


def gain_of_secant(memory: GroupedMemory, natural: Array) -> Array:
    """Return what secant moves to other natural parameters, (G, P), gain if the objective is quadratic, in nats, (G,).

    Half of the move times the gradient, which is how the update moves the expected statistics.
    """
    return 0.5 * np.einsum("gp,gp->g", natural - memory.places[0], memory.moves[1])


def judged(memory: GroupedMemory, tried: AnyArray, good: AnyArray) -> GroupedMemory:
    """Return the memory after proposals were tried, or the update was taken.

    Parameters
    ----------
    tried, good
        Which groups tried a move beyond the update, and of which it raised the objective by more, (G,).
    """
    bad, secant = tried & ~good, memory.is_secant
    lost = bad & secant
    grown = np.where((good & ~secant) | ~tried, GROWTH * memory.relaxation, memory.relaxation)
    next_pause = np.where(lost, np.minimum(2 * memory.next_pause, LONGEST_PAUSE), memory.next_pause)
    return replaced(
        memory,
        relaxation=np.where(bad & ~secant, 1.0, grown),
        pause=np.where(lost, memory.next_pause, memory.pause),
        next_pause=np.where(good & secant, 1, next_pause),
        curvatures=_forgotten(memory.curvatures, lost),
        has_moved=tried & good,
    )
