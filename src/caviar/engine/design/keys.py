"""Keys of columns, statistics, features and sums over rows.

They are values, equal in every process, so that what is found by them can be sent and saved as it is. A local factor is
found by the name of its first variable, for no variable has two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

FactorKey: TypeAlias = str
"""What a local factor is found by; empty for what no local variable enters."""


@dataclass(frozen=True, order=True)
class ColumnKey:
    """What a column of rows is found by.

    It is no tuple, for a cluster may give plain tuples in the place of named ones that are keys of what it is sent.

    Attributes
    ----------
    name
        Of the node whose values they are.
    kind
        ``"value"`` of the values themselves (of a hidden Categorical, of the labels that are known), ``"observed"`` of
        what tells which values were observed, and ``"entries"`` of what tells which entries of vectors were.
    """

    name: str
    kind: str = "value"

    @property
    def is_mark(self) -> bool:
        """Whether the column says what was observed of another column."""
        return self.kind != "value"

    @property
    def observed(self) -> ColumnKey:
        """Key of the column that says which of these values were observed."""
        return ColumnKey(self.name, "observed")

    @property
    def entries(self) -> ColumnKey:
        """Key of the column that says which entries of these vectors were observed."""
        return ColumnKey(self.name, "entries")


class StatisticKey(NamedTuple):
    """What the expected statistic of a variable is found by: the names of both.

    Of a variable in a joint local factor it is that statistic times the one-hot of the Categorical.
    """

    variable: str
    statistic: str


def together(names: Iterable[str]) -> StatisticKey:
    """Return the key of the one-hot of several labels of a row together; for one label, the key of its own one-hot."""
    return StatisticKey("\0".join(names), "x")


class FeatureKey(NamedTuple):
    """Key of a statistic of known values.

    Attributes
    ----------
    column
        Name of the column of the values; empty for the number 1.
    statistic
        Its name.
    role
        Name of the role of the slot that the values are in; empty if they are a variable's own.
    summed
        Axes of the statistic that are summed over.
    """

    column: str
    statistic: str = "x"
    role: str = ""
    summed: tuple[int, ...] = ()


class SumKey(NamedTuple):
    """What a sum over rows is found by, and its coefficient.

    Attributes
    ----------
    local
        The statistics of local variables that are multiplied in it.
    feature
        The feature that they are multiplied with in a matrix product; None for a sum that is contracted on its own.
    number
        Tells the sums that are contracted on their own apart; 0 of others.
    """

    local: tuple[StatisticKey, ...]
    feature: FeatureKey | None
    number: int = 0


class KeptKey(NamedTuple):
    """What else is kept of a local factor of a block of rows, beside its expected statistics.

    Attributes
    ----------
    factor
        The local factor.
    kind
        ``"natural"`` of its natural parameters, ``"natural before"`` and ``"expected before"`` of what the last pass
        started from.
    """

    factor: FactorKey
    kind: str
