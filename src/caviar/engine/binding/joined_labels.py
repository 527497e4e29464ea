"""Known labels that meet in a term, as one label: the combinations of them that occur.

What a term with two labels of a row, as the ``a[i] b[j]`` in the square of ``a[i] + b[j]``, needs of the rows is a sum
for each pair (i, j) that occurs: as many as there are rows at the most, where a table of all pairs has I J entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Data, Node, Plate
from ...lazy.block_map import map_blocks
from .missing.values import of_blocks

__all__ = ["JoinedLabels", "joined_labels"]


_READ_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class JoinedLabels:
    """Which combination of several known labels each row has.

    Attributes
    ----------
    node
        In the place of the labels, one that chooses from the combinations.
    combinations
        The plate of the combinations.
    labels
        Label -> its value in each combination, (C,).
    positions
        Of each row, the combination that it has, (N,).
    """

    node: Data
    combinations: Plate
    labels: Mapping[Node, AnyArray]
    positions: Any


def joined_labels(sizes: Mapping[Node, int], values: Mapping[Node, Any], plate: Plate) -> JoinedLabels:
    """Return which combination of several labels each row has.

    Parameters
    ----------
    sizes
        Labels -> how many values each has.
    values
        Labels of the rows, (N,) each, in memory or read in blocks.
    plate
        The plate of the rows.
    """
    given, shape = [values[node] for node in sizes], tuple(sizes.values())
    codes = of_blocks(_Codes(shape), given, (), np.int64)
    occur = np.unique(np.concatenate([own for _, own in map_blocks(np.unique, codes, size=_READ_ROWS)]))
    positions = of_blocks(_Positions(occur), [codes], (), np.intp)
    name = " and ".join(node.name for node in sizes)
    labels = dict(zip(sizes, np.unravel_index(occur, shape), strict=True))
    return JoinedLabels(Data(name, plates=plate), Plate(name, len(occur)), labels, positions)


@dataclass(frozen=True)
class _Codes:
    """One number for each combination of labels: their place in the table of all combinations."""

    shape: tuple[int, ...]

    def __call__(self, *labels: AnyArray) -> AnyArray:
        return np.ravel_multi_index([np.asarray(own).astype(np.intp) for own in labels], self.shape)


@dataclass(frozen=True, eq=False)
class _Positions:
    """The places of codes among those that occur, which are sorted."""

    occur: AnyArray

    def __call__(self, codes: AnyArray) -> AnyArray:
        return np.searchsorted(self.occur, codes)
