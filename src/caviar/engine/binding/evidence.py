"""Evidence: what is known of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from ..._typing import AnyArray
from ...families import ExponentialFamily
from ...families.shared.coupled_belief import CoupledBelief
from .clamped.factor import Clamped
from .missing.entries import Gaps


@dataclass(frozen=True, eq=False)
class Observed:
    """The values of a node: data, or a constant.

    Attributes
    ----------
    values
        As they came; axes are plates, then event. An array, or rows that are read in blocks.
    observed
        Of a variable with missing values, which were observed: shape (plates...).
    entries
        Of vectors that are missing in part, which entries were observed.
    """

    values: Any
    observed: AnyArray | None = None
    entries: Gaps | None = None

    # what only hidden variables have
    clamped: ClassVar[None] = None
    in_part: ClassVar[None] = None
    active: ClassVar[None] = None
    prior: ClassVar[None] = None

    def columns(self) -> dict[str, Any]:
        """Return the arrays over the plates by their kind, as keys of columns have it."""
        entries = None if self.entries is None else self.entries.seen
        return _those_there(value=self.values, observed=self.observed, entries=entries)


@dataclass(frozen=True, eq=False)
class Latent:
    """What is known of a hidden variable.

    Attributes
    ----------
    clamped
        Of a global, the repetitions whose values are known.
    in_part
        Of a variable of the rows that is known in part, its values: shape (plates..., event...). Labels are -1 where
        they are unknown, numbers NaN.
    active
        Of a variable of which some repetitions have no observation below them and count nothing, which count: shape
        (plates...).
    prior
        Of a global, a factor of an earlier fit that is used in the place of its prior.
    """

    clamped: Clamped | None = None
    in_part: AnyArray | None = None
    active: AnyArray | None = None
    prior: ExponentialFamily | CoupledBelief | None = None

    # what only known nodes have
    values: ClassVar[None] = None
    observed: ClassVar[None] = None
    entries: ClassVar[None] = None

    def columns(self) -> dict[str, Any]:
        """Return the arrays over the plates by their kind, as keys of columns have it."""
        return _those_there(value=self.in_part, observed=self.active)


OF_VALUES = frozenset({"values", "observed", "entries"})
"""Attributes that only known nodes have."""

NOTHING = Latent()
"""Of a hidden variable of which nothing is known."""


def _those_there(**columns: Any) -> dict[str, Any]:
    return {kind: column for kind, column in columns.items() if column is not None}


Evidence: TypeAlias = Observed | Latent
"""Each kind answers None to what only the other has."""
