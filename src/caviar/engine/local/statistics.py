"""What goes into a pass over the rows and what comes out: coefficients and blocks in, sums out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MutableMapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from ..._typing import AnyArray, Array
from ..design.keys import ColumnKey, FactorKey

T = TypeVar("T", bound=Hashable)


Arrays: TypeAlias = dict[Hashable, Array]
"""Arrays by key: of a statistic, a feature or a sum over rows."""

LocalState: TypeAlias = dict[Any, Array]
"""Key of a local factor -> expected statistics of the rows of one block; ``KeptKey`` -> what else is kept of it."""


@dataclass(frozen=True)
class Rows:
    """A block of rows: key -> array with the rows first, and their weights."""

    columns: Mapping[ColumnKey, AnyArray]
    weights: Array | None
    n_rows: int
    where: slice | AnyArray
    """Their places in the source."""
    tables: MutableMapping[Any, Array] | None = None
    """Features of the data that were made of them, by table; where the same block comes again in each pass."""


@dataclass(frozen=True)
class Coefficients:
    """What a pass over the rows needs of the globals; made once a pass.

    Attributes
    ----------
    matrices
        Local factor -> W, shape (E, F): natural parameters are W @ T.
    parts
        Key of a sum -> what multiplies it; key of a statistic summed over the rows -> its natural parameter.
    zeros
        The same of what counts known probabilities of zero, without chains; None where there are none.
    """

    matrices: dict[FactorKey, Array]
    parts: Arrays
    zeros: Coefficients | None = None

    def of_parts(self, wanted: Set[Hashable]) -> Coefficients:
        """Return the matrices, and of the other coefficients those that are wanted."""
        parts = {key: value for key, value in self.parts.items() if key in wanted}
        return Coefficients(self.matrices, parts, None if self.zeros is None else self.zeros.of_parts(wanted))


@dataclass(frozen=True)
class Sums:
    """Sums over rows: additive, of fixed size, all that a pass leaves behind.

    Attributes
    ----------
    fused
        Local factor -> U @ T', shape (E, F).
    parts
        Key -> sum, for those that no matrix product yields.
    log_partition
        Local factor -> sum of log-partitions, for factors whose entropy follows from these, W and ``fused``.
    entropy
        Local factor -> sum of entropies, for the others.
    """

    fused: dict[FactorKey, Array]
    parts: Arrays
    log_partition: dict[FactorKey, float]
    entropy: dict[FactorKey, float]

    @classmethod
    def zero(cls) -> Sums:
        """Return the sums over no rows."""
        return cls({}, {}, {}, {})

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place; arrays that are not here yet are copied."""
        _add_arrays(self.fused, other.fused)
        _add_arrays(self.parts, other.parts)
        _add_numbers(self.log_partition, other.log_partition)
        _add_numbers(self.entropy, other.entropy)

    def copied(self) -> Sums:
        """Return a copy of these sums, each in the order that it has in memory."""
        fused = {key: value.copy(order="K") for key, value in self.fused.items()}
        parts = {key: value.copy() for key, value in self.parts.items()} if self.parts else {}
        return Sums(fused, parts, self.log_partition, self.entropy)

    def scaled(self, factor: float) -> Sums:
        """Return these sums times a number."""
        return Sums(
            {key: factor * value for key, value in self.fused.items()},
            {key: factor * value for key, value in self.parts.items()},
            {key: factor * value for key, value in self.log_partition.items()},
            {key: factor * value for key, value in self.entropy.items()},
        )

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both; neither is changed."""
        total = Sums.zero()
        total.add(self)
        total.add(other)
        return total


@dataclass(frozen=True)
class Summary:
    """What a pass gives the globals.

    Attributes
    ----------
    parts
        Sums by key, in full shape.
    entropies
        Of each local factor.
    log_partition
        Of local factors whose row terms and entropy, with the coefficients of the pass, make up their log-partition:
        that. Empty where they do not, or not of all of them.
    """

    parts: Arrays
    entropies: dict[FactorKey, float]
    log_partition: Mapping[FactorKey, float] = field(default_factory=dict)


def _add_arrays(mine: dict[T, Array], theirs: Mapping[T, Array]) -> None:
    for key, value in theirs.items():
        if key in mine:
            mine[key] += value
        else:
            # in another order the next sum would be added column by column
            mine[key] = value.copy(order="K")


def _add_numbers(mine: dict[T, float], theirs: Mapping[T, float]) -> None:
    for key, value in theirs.items():
        mine[key] = mine.get(key, 0.0) + value
