"""Parts: what terms need of the rows, sums over the data plate."""

from __future__ import annotations

from dataclasses import dataclass

from ..._typing import AnyArray
from ..design.contraction import Contraction
from ..design.features import Feature
from ..design.keys import StatisticKey, SumKey
from .local_factor import LocalFactor

__all__ = ["LocalTerm", "Part"]


@dataclass(frozen=True, eq=False)
class Part:
    """What a term needs of the rows: a sum over the data plate.

    Attributes
    ----------
    key
        What the sum, and its coefficient, are found by.
    shape
        Of the sum.
    factor
        The local factor whose matrix product yields it; None for a part without local variables.
    stat
        The statistic of that factor, as its key.
    feature
        The feature that the statistic is multiplied with; None if the part is not fused.
    labels
        Where the feature says which combination of labels a row has: the label of each combination that it is summed
        by. Else None.
    """

    key: SumKey
    shape: tuple[int, ...]
    factor: LocalFactor | None
    stat: StatisticKey | None
    feature: Feature | None
    labels: AnyArray | None = None

    @property
    def rows(self) -> slice:
        """Rows of the factor's matrix product that yield it."""
        if self.factor is None or self.stat is None:
            return slice(0, 1)
        return self.factor.rows[self.stat]


@dataclass(frozen=True, eq=False)
class LocalTerm:
    """The local side of terms that are not fused: sums over rows and messages to local factors.

    Attributes
    ----------
    contraction
        Coefficient of the first part x local statistics x data, over all axes with the data plate.
    features
        The known values among its operands, as features.
    parts
        Its sum. Of terms that differ in what is looked up alone, as x a[i] + x b[j], the sum of each.
    look_ups
        For each part a wide feature that is left out of the contraction, which then has the rows in the place of the
        last axis of the part; none where the contraction is the whole.
    """

    contraction: Contraction
    features: tuple[Feature, ...]
    parts: tuple[Part, ...]
    look_ups: tuple[Feature, ...] = ()
