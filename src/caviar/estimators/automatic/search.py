"""The search: sweeps of splits, merges and deletions, each kept only where the ELBO of all rows rises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..._typing import Array
from ...engine.ascent.status import Status
from ...posterior.posterior import Posterior
from .memory import Memory
from .move import Groups, Move
from .pace import Pace, When
from .problem import Problem, Starts, factors_of
from .proposals import (
    QUICK,
    THOROUGH,
    Proposal,
    applied,
    cuts_of,
    deletions,
    deletions_of,
    disjoint,
    merge_of,
    merges_of,
    overlapping,
    split_of,
)
from .restricted import Neighbourhoods, Settled, apart

_SAMPLE_ROWS = 20_000
"""Rows that proposals are made from."""
_FIRST = 10
"""Iterations of the best mixture on a sample, with which those of candidates are compared."""
_MOST = 60
"""Iterations of a candidate; the best of all goes on to convergence."""
_SEARCHING = 40
"""Iterations of a candidate on a sample."""
_HOPELESS = 1e-3
"""Loss on the sample, in nats per row, at which a move is not tried on all rows."""
_MANY, _LARGE = 12, 200_000
"""Components, and responsibilities of the sample, from which on moves are settled among neighbours first."""
_CLOSE_COSTS = 0.15
"""Loss among its neighbours up to which a move is made again, as a multiple of what a component costs."""
_BY_THEMSELVES = 4
"""Moves, of those that were settled among neighbours, that are tried on all rows one by one."""
_ADAPTS = 24.0
"""Loss among neighbours, in nats, up to which they are: on all rows what components share adapts, and a little more is
gained."""
_BRIEF, _CLOSE = 10, 5.0
"""Iterations that show what a move in time gains, and the loss after these up to which it is tried, in nats."""
_NEAR, _NEAR_COSTS = 12.0, 0.6
"""Loss by itself up to which a move is tried, in nats, and as a multiple of what a component costs: that it gains with
the others is likely enough."""


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Attributes
    ----------
    posterior
        Of the best mixture.
    n_components
        How many it has.
    moves
        Those that were tried on all rows, in their order.
    is_interrupted
        Whether the search was interrupted; the posterior is then the best so far.
    """

    posterior: Posterior
    n_components: int
    moves: tuple[Move, ...]
    is_interrupted: bool = False


@dataclass
class _Search:
    """The state of a search: what changes is the best mixture so far, and the report."""

    problem: Problem
    generator: np.random.Generator
    tell: Callable[[Move], object]
    posterior: Posterior
    n_components: int
    pace: Pace
    moves: list[Move] = field(default_factory=list)
    tried_anew: set[int] = field(default_factory=set)
    """Numbers of components to which no new starts with one more added anything."""

    def __post_init__(self) -> None:
        self.sample = self.problem.subsample(_SAMPLE_ROWS)
        self.memory = Memory(self.sample.weights)
        self._look()

    def _look(self) -> None:
        """Read the responsibilities of the best mixture on the sample, (n, K)."""
        self.responsibilities = np.asfortranarray(self.sample.responsibilities(self.posterior))
        self.sample_elbo: float | None = None
        self.cuts: dict[tuple[int, int], list[Proposal]] = {}
        self.merges: list[Proposal] | None = None
        self.mixture = self.sample.weighed(self.posterior, self.responsibilities)
        self.pace.best(self.n_components, self.posterior.elbo)

    def sweep(self) -> bool:
        """Try moves of each kind; return whether any was accepted."""
        self.pace.sweep()
        accepted = self.try_together_of(self.split_proposals(QUICK))
        while self.n_components > 1 and self.try_together_of(self.merge_proposals()):
            accepted = True
        if self._is_large:
            accepted = accepted or self.try_restricted() or self.settle_far()
            return accepted or self.try_restricted(self.fitted_splits())
        return (
            accepted
            or self.settle()
            or self.try_together_of(self.split_proposals(THOROUGH))
            or self.try_together_of(self.fitted_splits())
            or self.try_alone()
        )

    @property
    def _is_large(self) -> bool:
        """Whether fits of a few components to their rows cost much less than one of all to all rows."""
        n_rows, size = self.responsibilities.shape
        is_possible = self.problem.settles_near and self.mixture is not None
        return is_possible and size >= _MANY and n_rows * size >= _LARGE

    def try_restricted(self, splits: Sequence[Proposal] | None = None) -> bool:
        """Settle moves among their neighbours, and try those that rise on all rows; return whether any was accepted.

        Parameters
        ----------
        splits
            The moves; by default splits, merges and deletions from sums alone.
        """
        near = Neighbourhoods(self.sample, self.responsibilities, self.problem.shared(self.posterior))
        proposals = splits
        if proposals is None:
            own = (self.split_proposals(QUICK), self.merge_proposals(), self.deletion_proposals())
            proposals = [p for kind in own for i, p in enumerate(kind) if self._is_worth_a_fit(p, i)]
        proposals = self.memory.fresh(proposals, self.responsibilities)
        self.pace.phase("settle moves", len(proposals), When.NOTHING_ROSE)
        ends: list[Settled] = []
        loss = max(_NEAR, _CLOSE_COSTS * float(np.mean(getattr(self.mixture, "costs", 0.0))))
        for proposal in proposals:
            known = None if splits else self.memory.gain_among_neighbours(proposal, self.responsibilities)
            ends.append(
                near.settled(proposal, self._near) if known is None else near.expected(proposal, known)
            )
            self.pace.step()
        # what all components share may adapt to moves that lose a little by themselves
        found = [end for end in ends if end.gain > -self._near]
        for end in ends:
            if end.gain <= -loss and end.shares is not None:
                self.memory.refuse(end.proposal, self.responsibilities, end.gain)
        return self._try_settled(near, sorted(found, key=lambda end: -end.gain))

    def _try_settled(self, near: Neighbourhoods, found: Sequence[Settled]) -> bool:
        """Try moves that were settled together, and in halves until the ELBO rises, then the best by themselves.

        Those whose gain is known from before are settled again where they are tried.
        """
        together = self._all_settled(near, apart(found))
        while together:
            if self.try_from(near.with_moves(together), [end.proposal for end in together]):
                return True
            together = together[: len(together) // 2]
        alone = [end for end in found[1:_BY_THEMSELVES] if end.gain > -_ADAPTS]
        return any(
            self.try_from(near.with_moves([end]), [end.proposal]) for end in self._all_settled(near, alone)
        )

    def _all_settled(self, near: Neighbourhoods, ends: Sequence[Settled]) -> list[Settled]:
        return [near.settled(own.proposal, self._near) if own.shares is None else own for own in ends]

    @property
    def _near(self) -> float:
        """Loss of a move by itself up to which it may gain with the others, in nats."""
        assert self.mixture is not None
        return max(_NEAR, _NEAR_COSTS * float(self.mixture.costs.mean()))

    def try_alone(self) -> bool:
        """Try single moves from where the best mixture has settled; return whether any was accepted."""
        accepted = self.try_all(self.fitted_splits())
        while self.shrink():
            accepted = True
        if not accepted and self.problem.tries_anew and self.n_components not in self.tried_anew:
            accepted = self.try_anew()
        return accepted or self.try_in_time()

    def try_in_time(self) -> bool:
        """Try moves that the order of rows shows, those that rise together; return whether any was accepted.

        What they gain shows in a few iterations: nothing of rows by themselves would tell.
        """
        if self.mixture is None:
            return False
        moves = self.problem.moves_in_time(self.responsibilities, self.mixture.natural)
        proposals = [Proposal(kind, (k,), 0.0, share, seed) for kind, seed, k, share in moves]
        proposals = self.memory.fresh(proposals, self.responsibilities)
        self.pace.phase("propose in time", len(proposals), When.NOTHING_ROSE)
        close: list[Proposal] = []
        for proposal in proposals:
            start = self._start_from(applied([proposal], self.responsibilities, self.sample.weights))
            end = self.problem.fit(self.n_components + 1, start or {}, max_iter=_BRIEF)
            if end.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            own = replace(proposal, gain=end.elbo - self.posterior.elbo)
            if own.gain > -_CLOSE:
                close.append(own)
            else:
                self.memory.refuse(own, self.responsibilities)
            self.pace.step()
        close.sort(key=lambda own: -own.gain)
        rises = self.try_together_of(close)
        fresh = [] if rises else [p for p in close if not self.memory.was_refused(p, self.responsibilities)]
        return rises or any(self._tried([own]) for own in fresh)

    def shrink(self) -> bool:
        """Try merges and deletions; return whether any was accepted."""
        accepted = self.n_components > 1 and self.try_all(self.merge_proposals())
        # of two components a merge is all that a deletion could be
        if self.n_components > 2:
            accepted |= self.try_all(self.deletion_proposals())
        return accepted

    def try_anew(self) -> bool:
        """Fit one component more from new starts; keep it if its ELBO is higher."""
        self.pace.phase("anew", 1, When.NOTHING_ROSE)
        before = self.posterior.elbo
        self.tried_anew.add(self.n_components)
        after = self.problem.fit(self.n_components + 1, "auto", seed=self.generator)
        accepted = self._judged("anew", (), before, after, self.n_components + 1)
        if accepted:
            self.tried_anew.clear()
        return accepted

    def split_proposals(self, effort: tuple[int, int]) -> list[Proposal]:
        """Return a split of each component from sums alone, the best first.

        Where cuts are dear, none are made of components of which a split was refused: it would not be tried.
        """
        if self.mixture is None:
            return []
        if effort not in self.cuts:
            if self._is_large:
                self.cuts[effort] = self.memory.cuts(
                    self.mixture, effort, self.responsibilities, self._open_to_splits()
                )
            else:
                self.cuts[effort] = cuts_of(self.mixture, effort)
        return self.cuts[effort]

    def fitted_splits(self) -> list[Proposal]:
        """Return the best split of each component, the best first: from sums alone, or by fits to its rows.

        No fits are made for components of which a split was refused: another one of them would not be tried.
        """
        best: dict[tuple[int, ...], Proposal] = {}
        fits = self._proposed(
            "split",
            [(k,) for k in self._open_to_splits()],
            lambda k: split_of(k, self.responsibilities, self.sample, self.generator),
        )
        for proposal in (*fits, *self.split_proposals(THOROUGH)):
            known = best.get(proposal.components)
            if known is None or proposal.gain > known.gain:
                best[proposal.components] = proposal
        return sorted(best.values(), key=lambda proposal: -proposal.gain)

    def _open_to_splits(self) -> list[int]:
        """Return the components of which no split was refused."""
        every = [Proposal("split", (k,), 0.0) for k in range(self.n_components)]
        return [p.components[0] for p in self.memory.fresh(every, self.responsibilities)]

    def merge_proposals(self) -> list[Proposal]:
        """Return merges of the pairs that share rows most, the best first."""
        if self.mixture is not None:
            if self.merges is None:
                self.merges = merges_of(self.mixture)
            return self.merges
        return self._proposed(
            "merge",
            overlapping(self.responsibilities, self.sample, 3 * self.n_components),
            lambda k, other: merge_of(k, other, self.responsibilities, self.sample),
        )

    def deletion_proposals(self) -> list[Proposal]:
        """Return deletions, the best first."""
        if self.mixture is not None:
            return deletions_of(self.mixture)
        return deletions(self.responsibilities, self.sample.weights, self.problem.far_moves)

    def _proposed(
        self, kind: str, groups: Sequence[tuple[int, ...]], make: Callable[..., Proposal | None]
    ) -> list[Proposal]:
        """Return a proposal for each group, the best first; for components that did not change, the one made before."""
        made: list[tuple[tuple[int, ...], Proposal | None]] = []
        self.pace.phase(f"propose {kind}", len(groups), When.CHANGED)
        for group in groups:
            is_known, proposal = self.memory.proposal_of(kind, group, self.responsibilities)
            if not is_known:
                proposal = make(*group)
            made.append((group, None if proposal is None else replace(proposal, components=group)))
            self.pace.step()
        self.memory.keep(kind, made, self.responsibilities)
        return sorted((p for _, p in made if p is not None), key=lambda proposal: -proposal.gain)

    def try_together_of(self, proposals: Sequence[Proposal]) -> bool:
        """Try the promising proposals together, and in halves until the ELBO rises; return whether it has."""
        fresh = self.memory.fresh((p for p in proposals if p.gain >= 0), self.responsibilities)
        together = list(disjoint(fresh))
        if together:
            self.pace.phase(f"try {together[0].kind}s", len(together).bit_length())
        while together:
            if self._tried(together):
                return True
            together = together[: len(together) // 2]
        return False

    def try_all(self, proposals: Sequence[Proposal]) -> bool:
        """Try the promising proposals together, and in halves until the ELBO rises; else the best by themselves."""
        proposals = self.memory.fresh(proposals, self.responsibilities)
        promising = [p for p in proposals if p.gain >= 0]
        together = list(disjoint(promising))
        others = [p for p in proposals if p.gain < 0]
        singles = promising + [p for i, p in enumerate(others) if self._is_worth_a_fit(p, i)]
        if proposals:
            halvings = len(together).bit_length() - 1 if self.n_components > 1 and together else 0
            self.pace.phase(f"try {proposals[0].kind}", halvings + len(singles))
        while len(together) > 1 and self.n_components > 1:
            if self._tried(together):
                return True
            together = together[: len(together) // 2]
        return any(self._tried([p]) for p in singles)

    def _tried(self, proposals: Sequence[Proposal]) -> bool:
        """Try proposals together, as a step of the search; return whether they were accepted."""
        accepted = self.try_from(applied(proposals, self.responsibilities, self.sample.weights), proposals)
        self.pace.step()
        return accepted

    def _is_worth_a_fit(self, proposal: Proposal, rank: int) -> bool:
        """Return whether a move is tried though it loses by itself; splits always are, where fits are cheap."""
        if self.mixture is None:
            return rank < self.problem.far_moves or proposal.gain > -_NEAR
        return rank == 0 or proposal.gain > -self._near

    def try_from(self, start: Array, proposals: Sequence[Proposal]) -> bool:
        """Fit the mixture from responsibilities after moves to all rows; keep it if its ELBO is higher."""
        n_components = start.shape[1]
        before = self.posterior.elbo
        init = self._start_from(start)
        if init is None:
            if len(proposals) == 1:
                self.memory.refuse(proposals[0], self.responsibilities)
            return False
        after = self._fitted(n_components, init, before)
        groups = tuple(proposal.components for proposal in proposals)
        responsibilities = self.responsibilities
        accepted = self._judged(proposals[0].kind, groups, before, after, n_components)
        if not accepted and len(proposals) == 1:
            self.memory.refuse(proposals[0], responsibilities)
        return accepted

    def _judged(self, kind: str, groups: Groups, before: float, after: Posterior, n_components: int) -> bool:
        """Keep a fit after a move if the ELBO has risen; return whether it has."""
        accepted = bool(after.elbo - before > self.problem.slack(before))
        move = Move(kind, groups, before, after.elbo, n_components, accepted)
        self.moves.append(move)
        self.pace.moved()
        self.tell(move)
        if accepted:
            after._goes_on_from(self.posterior)
            self.posterior, self.n_components = after, n_components
            self._look()
        if after.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return accepted

    def _start_from(self, responsibilities: Array) -> Starts | None:
        """Return where a fit to all rows begins; None if the sample shows that it leads nowhere."""
        start = {**self.problem.shared(self.posterior), "z": responsibilities}
        if self.sample is self.problem:
            return start
        end = self.sample.fit(responsibilities.shape[1], start, max_iter=_SEARCHING)
        if self.sample_elbo is None:
            here = self.sample.fit(self.n_components, factors_of(self.posterior), max_iter=_FIRST)
            self.sample_elbo = here.elbo
        is_hopeless = end.elbo < self.sample_elbo - _HOPELESS * self.sample.total_weight
        return None if is_hopeless else factors_of(end)

    def _fitted(self, n_components: int, start: Starts, before: float) -> Posterior:
        """Return the state after some iterations: until the ELBO has risen, or it is clear that it will not."""
        until = self.problem.patience.until(
            before + self.problem.slack(before), before, self.problem.total_weight
        )
        return self.problem.fit(n_components, start, max_iter=_MOST, until=until)

    def settle(self) -> bool:
        """Go on to convergence with the best mixture; return whether its ELBO rose."""
        if self.posterior.status not in (Status.MAX_ITER, Status.STOPPED):
            return False
        earlier, before = self.posterior, self.posterior.elbo
        self.pace.phase("settle", 1, When.NOTHING_ROSE)
        self.posterior = self.problem.fit(self.n_components, factors_of(earlier))
        self.posterior._goes_on_from(earlier)
        self._look()
        if self.posterior.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self.posterior.elbo - before > self.problem.slack(before)

    def settle_far(self) -> bool:
        """Go on to convergence; return whether the ELBO rose by so much that moves refused before may do so, too."""
        before = self.posterior.elbo
        return self.settle() and self.posterior.elbo - before > _NEAR


def search(
    problem: Problem,
    start: Array | None,
    generator: np.random.Generator,
    tell: Callable[[Move], object] = lambda move: None,
    pace: Pace | None = None,
) -> Found:
    """Return the mixture that no move improves.

    Parameters
    ----------
    problem
        Rows and statement.
    start
        Responsibilities of all rows to begin with, shape (N, K); None for one component.
    generator
        Of the starts of splits; the same seed gives the same bits.
    tell
        Called with each move that was tried on all rows.
    pace
        Told of each step.

    Notes
    -----
    A move is judged by the ELBO of all rows, every constant included, which has to rise by more than what counts
    as settled (``tol`` a row). Each accepted move raises it and it is bounded, so the search ends.
    """
    n_components = 1 if start is None else start.shape[1]
    init: Starts = "auto" if start is None else {"z": start}
    first = problem.fit(n_components, init, seed=generator)
    if first.status is Status.INTERRUPTED:
        return Found(first, n_components, (), is_interrupted=True)
    state = _Search(problem, generator, tell, first, n_components, Pace() if pace is None else pace)
    interrupted = False
    try:
        while state.sweep():
            pass
        state.posterior = problem.in_order(state.posterior, state.n_components)
    except KeyboardInterrupt:
        interrupted = True
    return Found(state.posterior, state.n_components, tuple(state.moves), interrupted)
