"""Moves settled among few components: those that a move takes and their neighbours, with the rows that these hold.

The rest of the mixture keeps what it has, and so does what all components share: a fit costs as much as the
neighbourhood is large. It is judged by the ELBO of the rows of the neighbourhood, by the share that it has in each,
against a fit of the neighbourhood as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._typing import Array
from ...engine.ascent.driver import Progress
from .problem import Problem
from .proposals import Proposal, applied

_NEIGHBOURS, _LEAST = 5, 2e-3
"""Neighbours of the components of a move at most, and the least share of the rows of these that one has in common."""
_SMALLEST_SHARE = 1e-3
"""Share of a row below which it counts as outside."""
_TOL = 1e-5
_PASSES = 20
"""Iterations of a fit of a neighbourhood."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Where a move has led among its neighbours.

    Attributes
    ----------
    proposal
        The move.
    components
        Those of the neighbourhood, before the move.
    gain
        By how much the ELBO of its rows rose.
    shares
        Responsibilities of the neighbourhood after the move, (N, K'); rows add up to what it had. None of a move that
        is only expected to lead there.
    """

    proposal: Proposal
    components: tuple[int, ...]
    gain: float
    shares: Array | None


@dataclass
class Neighbourhoods:
    """A mixture of rows, of which parts are fitted again.

    Attributes
    ----------
    rows
        The rows.
    responsibilities
        Of the mixture, (N, K).
    shared
        Factors of the globals that all components share, known here by their means: learnt from the neighbourhood
        alone they would fit it, and each component more would cost less than in the whole mixture.
    """

    rows: Problem
    responsibilities: Array
    shared: Mapping[str, Any]
    _before: dict[tuple[int, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        weighted = self.responsibilities * self.rows.weights[:, None]
        mass = np.maximum(weighted.sum(axis=0), np.finfo(float).tiny)
        self._common = weighted.T @ self.responsibilities / mass[:, None]

    def around(self, components: Sequence[int]) -> tuple[int, ...]:
        """Return components and their nearest neighbours, one at least, in order."""
        common = self._common[list(components)].max(axis=0)
        common[list(components)] = np.inf
        order = np.argsort(-common, kind="stable")[: len(components) + _NEIGHBOURS]
        near = [int(k) for rank, k in enumerate(order) if rank <= len(components) or common[k] > _LEAST]
        return tuple(sorted(near))

    def settled(self, proposal: Proposal, loss: float) -> Settled:
        """Return where a move leads among the neighbours of its components; it is given up if it loses more."""
        group = self.around(proposal.components)
        own = self.responsibilities[:, list(group)]
        share = own.sum(axis=1)
        inside = share > _SMALLEST_SHARE
        known = {name: factor.mean for name, factor in self.shared.items()}
        # ended here and not by the loop: where a move has led is compared, and need not be known to be no saddle point
        part = self.rows.part(share, _SMALLEST_SHARE, tol=0.0, known=known)
        own = own[inside] / share[inside, None]
        if group not in self._before:
            until = _over(-np.inf, part.total_weight)
            self._before[group] = part.fit(len(group), {"z": own}, max_iter=_PASSES, until=until).elbo
        before = self._before[group]
        cut = None if proposal.share is None else proposal.share[inside]
        moved = replace(proposal, components=tuple(group.index(k) for k in proposal.components), share=cut)
        start = applied([moved], own, part.weights)
        until = _over(before - loss, part.total_weight)
        after = part.fit(start.shape[1], {"z": start}, max_iter=_PASSES, until=until)
        own = part.responsibilities(after)
        # rows of which next to nothing is in the neighbourhood are divided as the others are in the mean
        shares = share[:, None] * (part.weights @ own / part.total_weight)
        shares[inside] = share[inside, None] * own
        return Settled(proposal, group, after.elbo - before, shares)

    def expected(self, proposal: Proposal, gain: float) -> Settled:
        """Return where a move leads whose gain is known from before."""
        return Settled(proposal, self.around(proposal.components), gain, None)

    def with_moves(self, moves: Iterable[Settled]) -> Array:
        """Return the responsibilities of all components after moves in different neighbourhoods, the heaviest first."""
        found = list(moves)
        gone = {k for move in found for k in move.components}
        kept = [k for k in range(self.responsibilities.shape[1]) if k not in gone]
        after = np.column_stack(
            [self.responsibilities[:, kept], *(own for move in found if (own := move.shares) is not None)]
        )
        after /= after.sum(axis=1, keepdims=True)
        return after[:, np.argsort(-(self.rows.weights @ after), kind="stable")]


def _over(aim: float, weight: float) -> Callable[[Progress], bool]:
    """Return what ends a fit that has settled, or that cannot exceed an objective at its present speed."""

    def until(event: Progress) -> bool:
        is_hopeless = event.iteration >= 4 and event.elbo + 20 * event.change_per_row * weight < aim
        return is_hopeless or abs(event.change_per_row) < _TOL

    return until


def apart(moves: Iterable[Settled]) -> list[Settled]:
    """Return moves in their order, without those whose neighbourhood meets that of one before."""
    taken: set[int] = set()
    found = []
    for move in moves:
        if taken.isdisjoint(move.components):
            taken.update(move.components)
            found.append(move)
    return found
