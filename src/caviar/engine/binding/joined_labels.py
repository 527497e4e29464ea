"""Known labels that meet in a term, as one label: the combinations of them that occur.

What a term with two labels of a row, as the ``a[i] b[j]`` in the square of ``a[i] + b[j]``, needs of the rows is a sum
for each pair (i, j) that occurs: as many as there are rows at the most, where a table of all pairs has I J entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Data, Node, Plate
from ...lazy.block_map import map_blocks
from .missing.values import of_blocks

__all__ = ["JoinedLabels", "joined_labels"]


_READ_ROWS = 1 << 20


class JoinedLabels(Data):
    """Which combination of several known labels each row has.

    Parameters
    ----------
    nodes
        The labels.
    plate
        The plate of the rows.
    labels
        Of each combination, the labels, in the order of the nodes: (C,) each.
    positions
        Of each row, the combination that it has, (N,).

    Attributes
    ----------
    combinations
        The plate of the combinations.
    """

    def __init__(
        self, nodes: Sequence[Node], plate: Plate, labels: Sequence[AnyArray], positions: Any
    ) -> None:
        super().__init__(" and ".join(node.name for node in nodes), plates=plate)
        self.labels = dict(zip(nodes, labels, strict=True))
        self.positions = positions
        self.combinations = Plate(self.name, len(labels[0]))


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
    return JoinedLabels(list(sizes), plate, np.unravel_index(occur, shape), positions)


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
