"""The basis of a start: what its candidates are made from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Bernoulli, Categorical, Variable
from ....numerics.cached import cached_property
from ...ascent.problem import Factors, Problem
from ...local.statistics import LocalState
from ...rows.row_map import RowMap
from ...rows.subsample import Sample
from ..components.differences import differs_in_components, differs_in_weights
from ..components.gates import Gate
from ..factors.draws import drawn
from .hidden import hidden_points
from .points import Cloud, clouds_of, is_added, leaves_below, weights_of

Guess: TypeAlias = Mapping[Variable, AnyArray]
"""Labels of some gates, whole numbers: of the rows of the sample first where they are local."""


class Climb(Protocol):
    """Starts that ascend side by side, known by their places."""

    def run(self, places: Collection[int], n_iter: int, tol: float) -> None:
        """Let the starts at these places ascend, for so many iterations or until they settle; the others are left."""
        ...

    def n_iter(self, place: int) -> int:
        """Return the iterations that a start has made."""
        ...

    def has_settled(self, place: int) -> bool:
        """Whether a start has come to rest."""
        ...

    def has_left(self, place: int) -> bool:
        """Whether a start has left the batch without an end: it has to be made by itself."""
        ...

    def lately(self, place: int, most: int) -> tuple[float, ...]:
        """Return the objective of a start after its last iterations, so many at the most."""
        ...

    def reached(self, place: int, rows: RowMap) -> Any:
        """Return the state of batch ascent where a start has come to; None if a fit by itself has to make it."""
        ...


Several: TypeAlias = Callable[[Problem, Sequence[Factors], RowMap], Climb | None]
"""Returns starts of a problem, given by their global factors, side by side; None where each runs by itself."""


def by_themselves(problem: Problem, starts: Sequence[Factors], rows: RowMap) -> None:
    """Let each start run by itself."""


@dataclass
class Passes:
    """Passes over rows that were made."""

    number: int = 0


@dataclass(frozen=True, eq=False)
class Basis:
    """What the candidates of a start are made from.

    Attributes
    ----------
    problem
        The model with its data.
    gates
        Its latent labels.
    sample
        Rows in the place of all.
    row_map
        Passes over the sample.
    q
        Globals at their priors; of those that multiply each other, at draws, unless priors tell their axes.
    rng
        Where random numbers come from.
    several
        What lets starts run side by side.
    points
        Values of hidden locations of the rows that are guessed, rows first; the others are drawn.
    held
        Globals that are guessed, and held while the others are updated first.
    follows
        Whether what is drawn beside guessed labels follows from them, before they are let go.
    replaces_draw
        Whether a start from it takes the place of one in which the same is drawn, which ends lower.
    has_told_axes
        Whether priors tell the axes of a product of globals.
    passes
        Passes over the sample that were made so far, by all starts together.
    """

    problem: Problem
    gates: tuple[Gate, ...]
    sample: Sample
    row_map: RowMap
    q: Mapping[Variable, Any]
    rng: np.random.Generator
    several: Several
    points: Mapping[Variable, Array] = field(default_factory=dict)
    held: Mapping[Variable, Any] = field(default_factory=dict)
    follows: bool = False
    replaces_draw: bool = False
    has_told_axes: bool = False
    passes: Passes = field(default_factory=Passes)

    @cached_property
    def _clouds(self) -> dict[Gate, list[Cloud]]:
        return {gate: clouds_of(self.problem, self.sample, gate) or self._hidden(gate) for gate in self.gates}

    def _hidden(self, gate: Gate) -> list[Cloud]:
        draws = self.draws if self.problem.factors else {}
        points = hidden_points(self.problem, gate, self.q, draws, self.sample, self.row_map)
        return [] if points is None else [Cloud(points, self.weights(gate))]

    def clouds(self, gate: Gate) -> list[Cloud]:
        """Return the points of a gate that may be clustered."""
        return self._clouds[gate]

    def weights(self, gate: Gate) -> Array:
        """Return the weight of each repetition of a gate."""
        return weights_of(self.problem, self.sample, gate)

    @cached_property
    def _differing(self) -> frozenset[Gate]:
        by_weights = {gate for gate in self.gates if differs_in_weights(self.problem, gate)}
        return self._of_unlike_components | by_weights

    @cached_property
    def _of_unlike_components(self) -> frozenset[Gate]:
        return frozenset([gate for gate in self.gates if differs_in_components(self.problem, gate)])

    def differs(self, gate: Gate) -> bool:
        """Whether the categories of a gate, or what they choose, differ in anything that is known."""
        return gate in self._differing

    @property
    def rows_passed(self) -> int:
        """Rows that the passes so far have gone through together."""
        return self.passes.number * self.sample.n_rows

    @property
    def has_states(self) -> bool:
        """Whether the labels of the rows are the states of a chain."""
        return any(gate.chain is not None for gate in self.gates)

    @cached_property
    def shared(self) -> frozenset[Gate]:
        """The gates that choose for the same values as another gate does."""
        if len(self.gates) < 2:
            return frozenset()
        leaves = {gate: set(leaves_below(self.problem, gate.variable)) for gate in self.gates}
        return frozenset(
            gate
            for gate in self.gates
            if any(leaves[gate] & own for other, own in leaves.items() if other is not gate)
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether each gate chooses independently among components that are alike, as in an ordinary mixture."""
        return self.has_components_alike and not any(self.differs(gate) for gate in self.gates)

    @cached_property
    def has_components_alike(self) -> bool:
        """Whether each gate chooses independently among components that differ at most in their weights."""
        return bool(self.gates) and all(
            gate.factor is not None
            and gate not in self.shared
            and gate not in self._of_unlike_components
            and len(self.clouds(gate)) == 1
            and not is_added(self.problem, gate.variable)
            for gate in self.gates
        )

    @cached_property
    def is_of_answers(self) -> bool:
        """Whether an ordinary mixture has only categories, whose clusters inform less than those of numbers."""
        return self.is_plain and all(
            isinstance(leaf, Bernoulli | Categorical)
            for gate in self.gates
            for leaf in leaves_below(self.problem, gate.variable)
        )

    @cached_property
    def present(self) -> tuple[Variable, ...]:
        """Global numbers 0 or 1 that multiply something; they begin at 1, to let the data inform their operand."""
        return tuple(
            variable
            for variable in self.problem.order
            if variable.is_zero_or_one
            and self.problem.bound.of(variable).clamped is None
            and any(
                slot.node is variable and slot.role.adds_up
                for node in self.problem.bound.nodes
                if isinstance(node, Variable)
                for slot in node.slots.values()
            )
        )

    @cached_property
    def draws(self) -> LocalState:
        """Local factors at random: of those that are guessed nothing about."""
        return drawn(self.problem, self.q, self.sample, self.row_map, self.rng)
