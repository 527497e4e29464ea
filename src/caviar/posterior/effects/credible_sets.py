"""Credible sets: the fewest candidates that hold an effect with a given probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array

_MOST = 100
"""Columns of a set between which correlations are found; of more, as many drawn evenly."""


@dataclass(frozen=True)
class CredibleSet:
    """The fewest entries that contain an effect with a given probability; see :meth:`Posterior.credible_sets`.

    Attributes
    ----------
    effect
        Name of the single effect.
    entries
        Positions of the entries, from 0, the most probable first.
    coverage
        Probability that the effect is one of them.
    purity
        Smallest absolute correlation between two of their columns; None if the columns were not given.
    """

    effect: str
    entries: tuple[int, ...]
    coverage: float
    purity: float | None = None

    def __len__(self) -> int:
        return len(self.entries)


def credible_set(name: str, inclusion: Array, coverage: float, columns: AnyArray | None) -> CredibleSet:
    """Return the credible set of an effect with these probabilities of its entries, (D,).

    Parameters
    ----------
    columns
        Known rows that the effect multiplies, (N, D), or None.
    """
    order = np.argsort(-inclusion, kind="stable")
    total = np.cumsum(inclusion[order])
    size = min(int(np.searchsorted(total, coverage)) + 1, len(order))
    entries = order[:size]
    purity = None if columns is None else _purity(columns, entries)
    return CredibleSet(name, tuple(entries.tolist()), float(total[size - 1]), purity)


def distinct(found: Sequence[CredibleSet]) -> list[CredibleSet]:
    """Return sets with those left out that have the entries of an earlier one."""
    known: dict[frozenset[int], CredibleSet] = {}
    for own in found:
        known.setdefault(frozenset(own.entries), own)
    return list(known.values())


def _purity(columns: AnyArray, entries: AnyArray) -> float:
    """Return the smallest size of a correlation between columns; those that are constant have none."""
    if len(entries) == 1:
        return 1.0
    if len(entries) > _MOST:
        entries = entries[np.linspace(0, len(entries) - 1, _MOST).astype(np.intp)]
    own = np.asarray(columns[:, np.sort(entries)], dtype=np.float64)
    own = own - own.mean(axis=0)
    sizes = np.sqrt(np.square(own).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.abs(own.T @ own / sizes[:, None] / sizes)
    return float(np.nan_to_num(correlations).min())
