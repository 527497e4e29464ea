r"""Acceleration: moves of the global factors beyond their next update.

An update moves the natural parameters from :math:`\eta` to :math:`\eta + f`; the expected statistics move by h. In
conjugate models f is the natural gradient of the objective, and :math:`h \approx F f` its gradient, with F the Fisher
information of the factors. Two longer moves follow from that:

- a *relaxed* one, :math:`\eta + \beta f` with :math:`\beta > 1` that grows as long as the moves are good;
- a *secant* one, the limited-memory BFGS step whose first guess of the inverse curvature is :math:`F^{-1}`, so that
  without any memory it is the update itself.

Neither needs anything but the updates themselves and inner products of natural parameters with expected statistics,
which do not depend on how the data are measured. That a move raises the objective is for the loop to check.

Sources: Salakhutdinov and Roweis, "Adaptive overrelaxed bound optimization methods" (ICML 2003), section 3;
Nocedal and Wright, *Numerical Optimization* (2006), algorithm 7.4; Hensman, Rattray and Lawrence, "Fast variational
inference in the conjugate exponential family" (NeurIPS 2012), for f as the natural gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from ....._typing import Array
from .....numerics.records import replaced

GROWTH = 1.2
"""By how much a relaxation grows with each good move."""

MOST_PAIRS, _FEWEST_PAIRS = 10, 2
_PAIR_BYTES = 2**28
"""Memory that the pairs may take, if it is enough for the fewest."""
NEAR = 1e-2
"""Change of the objective per row below which moves beyond the updates are tried: it is then locally quadratic."""

LONGEST_PAUSE = 16

_SHARES = 0.1, 0.5
"""Of a secant move that goes too far: the least and the most that is tried instead."""


T = TypeVar("T", float, Array)


@dataclass(frozen=True)
class Place:
    """Where the global factors are: all natural parameters and all expected statistics, (P,) each."""

    natural: Array
    expected: Array


@dataclass(frozen=True)
class Move:
    """A move from one place to the next update: f and h of the module, (P,) each."""

    natural: Array
    expected: Array


@dataclass(frozen=True)
class Pair:
    """How the update's move changed where the place did, (P,) each."""

    place: Array
    natural: Array
    expected: Array

    @property
    def curvature(self) -> float:
        """Of the objective along the change of place; positive where it is concave."""
        return -float(self.place @ self.expected)


@dataclass(frozen=True)
class Memory:
    """What the loop remembers of its moves.

    Attributes
    ----------
    place, move
        The last place, and the move that the update made of it.
    pairs
        Latest last.
    relaxation
        Beta of the next relaxed move.
    pause
        Moves until a secant one is tried again.
    next_pause
        How many that will be after the next one that is refused.
    is_secant
        Whether the last proposal was a secant move.
    has_moved
        Whether the last step went beyond the update.
    """

    place: Place | None = None
    move: Move | None = None
    pairs: tuple[Pair, ...] = ()
    relaxation: float = 1.0
    pause: int = 0
    next_pause: int = 1
    is_secant: bool = False
    has_moved: bool = False


def seen(memory: Memory, place: Place, update: Place) -> Memory:
    """Return the memory with the update that was found at a place."""
    move = Move(update.natural - place.natural, update.expected - place.expected)
    pairs = memory.pairs
    if memory.place is not None and memory.move is not None:
        pair = Pair(
            place.natural - memory.place.natural,
            move.natural - memory.move.natural,
            move.expected - memory.move.expected,
        )
        pairs = (*pairs, pair)[-_most_pairs(pair) :] if pair.curvature > 0 else pairs
    return replaced(memory, place=place, move=move, pairs=pairs)


def most_of_a_sweep(gain: T, n_factors: int) -> T:
    r"""Return the most that a plain sweep gains near an optimum, in the place of a move that gained so much.

    The move gained at least what the updates of the m global factors do before the pass, g. Where the objective is
    quadratic with curvature A in these factors, the updates move them by d with
    :math:`g = \tfrac12 \sum_j d_j^\top A_{jj} d_j`, and local factors that are always at their optimum gain at most
    :math:`\tfrac12 d^\top A d \le m g` more.
    """
    return (1 + n_factors) * gain


def _most_pairs(pair: Pair) -> int:
    """Return how many pairs of this size are remembered."""
    return min(max(_PAIR_BYTES // (3 * pair.place.nbytes), _FEWEST_PAIRS), MOST_PAIRS)


def proposal(memory: Memory, change_per_row: float) -> tuple[Memory, Array | None]:
    """Return natural parameters to try instead of the last update, (P,), or None to keep the update.

    Parameters
    ----------
    change_per_row
        By how much the last step raised the objective, in nats a row.
    """
    place, move = memory.place, memory.move
    assert place is not None
    assert move is not None
    if change_per_row >= NEAR:
        # far from an optimum a long move may leave for another, lower one
        return replaced(memory, is_secant=False), None
    if memory.pairs:
        if not memory.pause:
            natural = place.natural + secant_move(move, memory.pairs)
            return replaced(memory, is_secant=True), natural
        memory = replaced(memory, pause=memory.pause - 1)
    memory = replaced(memory, is_secant=False)
    if memory.relaxation == 1.0:
        return memory, None
    return memory, place.natural + memory.relaxation * move.natural


def secant_move(move: Move, pairs: tuple[Pair, ...]) -> Array:
    """Return the step of limited-memory BFGS from the update's move, (P,): the two loops over the pairs.

    The gradient that the first loop takes down is kept in both coordinates, so its product with the
    inverse Fisher information is there without forming that.
    """
    gradient, step = move.expected, move.natural
    shares = []
    for pair in reversed(pairs):
        share = float(pair.place @ gradient) / pair.curvature
        gradient = gradient + share * pair.expected
        step = step + share * pair.natural
        shares.append(share)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        step = step + pair.place * (share + float(pair.expected @ step) / pair.curvature)
    return step


def share_of_secant(memory: Memory, natural: Array, gain: float) -> float:
    """Return the share of a secant move at which the objective is highest by its slope and its value at the end.

    Parameters
    ----------
    natural
        Where the whole move ends, (P,).
    gain
        By how much the objective is higher there than at the place of the move: too little.
    """
    place, move = memory.place, memory.move
    assert place is not None
    assert move is not None
    slope = float(move.expected @ (natural - place.natural))
    least, most = _SHARES
    curvature = 2.0 * (slope - gain)
    return min(max(slope / curvature, least), most) if curvature > 0 else least


def accepted(memory: Memory) -> Memory:
    """Return the memory after the proposal was good."""
    if memory.is_secant:
        return replaced(memory, next_pause=1, has_moved=True)
    return replaced(memory, relaxation=GROWTH * memory.relaxation, has_moved=True)


def refused(memory: Memory) -> Memory:
    """Return the memory after the proposal was bad."""
    if not memory.is_secant:
        return replaced(memory, relaxation=1.0, has_moved=False)
    return replaced(
        memory,
        pairs=(),
        pause=memory.next_pause,
        next_pause=min(2 * memory.next_pause, LONGEST_PAUSE),
        has_moved=False,
    )


def updated(memory: Memory) -> Memory:
    """Return the memory after the update itself was taken."""
    return replaced(memory, relaxation=GROWTH * memory.relaxation, has_moved=False)


def to_plain(memory: Memory) -> dict[str, Any]:
    """Return the memory as values that a checkpoint holds; each place, move and pair is a list of its arrays."""
    document = {own.name: getattr(memory, own.name) for own in fields(memory)}
    for name in ("place", "move"):
        document[name] = None if document[name] is None else _arrays_of(document[name])
    return {**document, "pairs": [_arrays_of(pair) for pair in memory.pairs]}


def from_plain(document: Mapping[str, Any]) -> Memory:
    """Return the memory that these plain values describe."""
    place, move = document["place"], document["move"]
    return Memory(
        **{
            **document,
            "place": None if place is None else Place(*place),
            "move": None if move is None else Move(*move),
            "pairs": tuple(Pair(*arrays) for arrays in document["pairs"]),
        }
    )


def _arrays_of(record: Place | Move | Pair) -> list[Array]:
    return [getattr(record, own.name) for own in fields(record)]
