"""The memory of a search: moves that failed are not tried again while their components stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..._typing import Array
from ...engine.ascent.schedules.moves.swaps import Mixture
from .proposals import Proposal, cuts_of

_SAME = 0.01
"""Share of its rows by which a component may have changed and still be the same."""
_ALIKE = 0.05
"""The same for what a cut gains that is only proposed, or a move among its neighbours, which changes by about this
share."""


@dataclass(frozen=True)
class _Component:
    """Rows of a component, (N,), and what they weigh."""

    mass: float
    rows: Array


@dataclass
class Memory:
    """Moves that were proposed, and moves that were refused, by the responsibilities of their components.

    Attributes
    ----------
    weights
        Weight of each row, shape (N,).
    """

    weights: Array
    _proposed: dict[str, list[tuple[list[_Component], Proposal | None]]] = field(default_factory=dict)
    _refused: list[tuple[str, list[_Component], float | None]] = field(default_factory=list)

    def proposal_of(
        self, kind: str, group: tuple[int, ...], responsibilities: Array, same: float = _SAME
    ) -> tuple[bool, Proposal | None]:
        """Return whether a move of this kind of components like these was proposed before; and the proposal."""
        now = self._components(group, responsibilities)
        for known, proposal in self._proposed.get(kind, ()):
            if self._are_same(known, now, same):
                return True, proposal
        return False, None

    def keep(
        self,
        kind: str,
        made: Sequence[tuple[tuple[int, ...], Proposal | None]],
        responsibilities: Array,
    ) -> None:
        """Keep these proposals, each with its components, and forget those of this kind before."""
        self._proposed[kind] = [
            (self._components(group, responsibilities), proposal) for group, proposal in made
        ]

    def cuts(
        self, mixture: Mixture, effort: tuple[int, int], responsibilities: Array, some: Sequence[int]
    ) -> list[Proposal]:
        """Return the best cut of some components, the best first; of one that did not change, the one made before.

        Those before stay in mind, twice as many as there are components.
        """
        kind, every = f"cut {effort}", dict[int, Proposal | None]()
        size = responsibilities.shape[1]
        for k in some:
            is_known, proposal = self.proposal_of(kind, (k,), responsibilities, _ALIKE)
            if is_known:
                every[k] = None if proposal is None else replace(proposal, components=(k,))
        changed = [k for k in some if k not in every]
        made = {own.components[0]: own for own in cuts_of(mixture, effort, changed)}
        fresh = [(self._components((k,), responsibilities), made.get(k)) for k in changed]
        self._proposed[kind] = [*self._proposed.get(kind, []), *fresh][-2 * size :]
        found = [own for own in (*every.values(), *made.values()) if own is not None]
        return sorted(found, key=lambda proposal: -proposal.gain)

    def refuse(self, proposal: Proposal, responsibilities: Array, gain: float | None = None) -> None:
        """Keep in mind that a move was refused, and what it gained among its neighbours if it was only tried there."""
        components = self._components(proposal.components, responsibilities)
        self._refused.append((proposal.name, components, gain))

    def was_refused(self, proposal: Proposal, responsibilities: Array) -> bool:
        """Return whether the same move of the same components was refused, whatever their numbers were then."""
        return any(True for _ in self._refusals(proposal, responsibilities, _SAME))

    def fresh(self, proposals: Iterable[Proposal], responsibilities: Array) -> list[Proposal]:
        """Return the moves that were not refused."""
        return [own for own in proposals if not self.was_refused(own, responsibilities)]

    def gain_among_neighbours(self, proposal: Proposal, responsibilities: Array) -> float | None:
        """Return what a move that was refused gained among its neighbours, as long as its components are alike."""
        every = self._refusals(proposal, responsibilities, _ALIKE)
        return next((gain for gain in every if gain is not None), None)

    def _refusals(self, proposal: Proposal, responsibilities: Array, same: float) -> Iterator[float | None]:
        components = self._components(proposal.components, responsibilities)
        for name, known, gain in self._refused:
            if name == proposal.name and self._are_same(known, components, same):
                yield gain

    def _components(self, group: tuple[int, ...], responsibilities: Array) -> list[_Component]:
        return [self._component(responsibilities[:, k]) for k in group]

    def _are_same(self, known: list[_Component], now: list[_Component], same: float) -> bool:
        return all(any(self._is_same(one, other, same) for other in known) for one in now)

    def _is_same(self, before: _Component, now: _Component, same: float) -> bool:
        most = same * now.mass
        # the difference of the masses is the least that their rows can differ by, and settles most cases
        return abs(before.mass - now.mass) <= most and bool(
            self.weights @ np.abs(before.rows - now.rows) <= most
        )

    def _component(self, column: Array) -> _Component:
        return _Component(float(self.weights @ column), np.ascontiguousarray(column))
