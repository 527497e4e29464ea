"""The basis of a start: what its candidates are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Variable
from ..draws import drawn
from ..passes import Passes
from ..plan import Plan
from ..sample import Sample
from ..sums import LocalState
from .differences import differs
from .gates import Gate
from .points import Cloud, clouds_of, is_added, leaves_below, weights_of

__all__ = ["Basis", "Guess"]

Guess: TypeAlias = Mapping[Variable, AnyArray]
"""Labels of some gates, whole numbers: of the rows of the sample first where they are local."""


@dataclass(frozen=True, eq=False)
class Basis:
    """What the candidates of a start are made from.

    Attributes
    ----------
    plan
        The model with its data.
    gates
        Its latent labels.
    sample
        Rows in the place of all.
    passes
        Passes over the sample.
    q
        Globals at their priors; of those that multiply each other, at draws.
    rng
        Where random numbers come from.
    """

    plan: Plan
    gates: tuple[Gate, ...]
    sample: Sample
    passes: Passes
    q: Mapping[Variable, Any]
    rng: np.random.Generator

    @cached_property
    def _clouds(self) -> dict[Gate, list[Cloud]]:
        return {gate: clouds_of(self.plan, self.sample, gate) for gate in self.gates}

    def clouds(self, gate: Gate) -> list[Cloud]:
        """Return the points of a gate that may be clustered."""
        return self._clouds[gate]

    def weights(self, gate: Gate) -> Array:
        """Return the weight of each repetition of a gate."""
        return weights_of(self.plan, self.sample, gate)

    @cached_property
    def _differing(self) -> frozenset[Gate]:
        return frozenset(gate for gate in self.gates if differs(self.plan, gate))

    def differs(self, gate: Gate) -> bool:
        """Whether the categories of a gate, or what they choose, differ in anything that is known."""
        return gate in self._differing

    @property
    def has_states(self) -> bool:
        """Whether the labels of the rows are the states of a chain."""
        return self.plan.chain is not None and any(gate.factor is self.plan.chain for gate in self.gates)

    @cached_property
    def shared(self) -> frozenset[Gate]:
        """The gates that choose for the same values as another gate does."""
        leaves = {gate: set(leaves_below(self.plan.binding, gate.variable)) for gate in self.gates}
        return frozenset(
            gate
            for gate in self.gates
            if any(leaves[gate] & own for other, own in leaves.items() if other is not gate)
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether each gate chooses by itself among components that are alike, as in an ordinary mixture."""
        return bool(self.gates) and all(
            gate.factor is not None
            and gate not in self.shared
            and not self.differs(gate)
            and len(self.clouds(gate)) == 1
            and not is_added(self.plan.binding, gate.variable)
            for gate in self.gates
        )

    @cached_property
    def draws(self) -> LocalState:
        """Local factors at random: of those that are guessed nothing about."""
        return drawn(self.plan, self.q, self.sample, self.passes, self.rng)
