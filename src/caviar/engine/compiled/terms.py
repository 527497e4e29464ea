"""Terms as they are compiled: contractions of global statistics and sums over rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..._typing import Array, Statistics
from ...language import Node, Variable
from ..design.contraction import Contraction, Derivative, Evaluation
from ..design.features import FeatureTable, Source
from ..design.keys import FeatureKey, StatisticKey
from ..local.local_factor import LocalFactor, LocalTerm, Part


class GlobalTerm(NamedTuple):
    """A term as a contraction of global statistics, constants and at most one part.

    Attributes
    ----------
    owner
        The variable whose density it is in.
    contraction
        What it counts.
    whole
        The same with the repetitions of the owner that count nothing, where there are such: what it says of the owner.
    """

    owner: Variable
    contraction: Contraction
    whole: Contraction | None = None

    def message(self, position: int) -> Evaluation:
        """Return the function that returns the message to an operand."""
        own = self.said_to(position)
        return own.formula.derivative(position, None)(own.constant)

    def derivative(self, position: int) -> Derivative:
        """Return the message to an operand."""
        return self.said_to(position).derivative(position)

    def said_to(self, position: int) -> Contraction:
        """Return what the message to an operand is of: to the owner also where it counts nothing, for its factor."""
        if self.whole is not None and is_of(self.contraction.keys[position], self.owner):
            return self.whole
        return self.contraction


class Update(Protocol):
    """The update of one global factor."""

    def natural(self, arrays: Mapping[Hashable, Array]) -> Statistics:
        """Return the natural parameters of the optimal factor, from expected statistics and sums over the rows."""
        ...


@dataclass(frozen=True, eq=False)
class Compiled:
    """A model bound to data, compiled.

    Attributes
    ----------
    terms
        All terms, global side.
    parts
        Sums over rows that the terms use, by key.
    local_terms
        Local sides that are not fused.
    tables
        Local factor -> features of its matrix product; None -> features of the parts without local variables.
    sources
        The known arrays along the data plate.
    users
        (local factor or None, key of a feature) -> the variables whose terms use the feature there.
    zero_terms
        Terms that count the known probabilities of zero that a state of everything latent meets, global side.
    layouts
        Variable -> what follows from the terms for its update, whatever their constants are; see
        :class:`~caviar.engine.compiled.global_update.GlobalUpdate`.
    facts
        What else was found of the statement, the shapes and what is known, whatever the values are.
    """

    terms: tuple[GlobalTerm, ...]
    parts: Mapping[Hashable, Part]
    local_terms: tuple[LocalTerm, ...]
    tables: dict[LocalFactor | None, FeatureTable]
    sources: dict[Node, Source]
    users: dict[tuple[LocalFactor | None, FeatureKey], set[Variable]]
    zero_terms: tuple[GlobalTerm, ...] = ()
    layouts: dict[Variable, Any] = field(default_factory=dict)
    facts: dict[Hashable, Any] = field(default_factory=dict)


def is_of(key: Hashable, variable: Variable) -> bool:
    """Whether a key is that of a statistic of a variable."""
    return isinstance(key, StatisticKey) and key.variable == variable.name
