"""Known labels that meet in a term, and are compiled as one label: the combinations of them that occur.

What a term with two labels of a row, as the ``a[i] b[j]`` in the square of ``a[i] + b[j]``, needs of the rows is a sum
for each pair (i, j) that occurs: as many as there are rows at the most, where a table of all pairs has I J entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Categorical, Data, Label, Node, Operand, Plate, Term
from ...lazy.block_map import map_blocks
from ..binding.bound_model import BoundModel, JoinedLabels
from ..binding.missing.values import of_blocks

_MOST_CODES = 2**62
_READ_ROWS = 1 << 20


def is_label_of_rows(operand: Operand, bound: BoundModel) -> bool:
    """Whether an operand is the one-hot of labels, one known for each row."""
    node = operand.node
    is_label = operand.statistic == "one_hot" or (isinstance(node, Categorical) and operand.statistic == "x")
    return (
        is_label
        and bound.is_known(node)
        and bound.of(node).observed is None
        and node.plates == (bound.data_plate,)
    )


def with_joined_labels(bound: BoundModel, terms: Iterable[Term]) -> BoundModel:
    """Return a binding with the combinations that occur of known labels that meet in some term."""
    found: dict[frozenset[Node], JoinedLabels] = {}
    plate = bound.data_plate
    if not bound.fact("several labels", lambda: _has_several(bound)):
        return bound
    assert plate is not None
    for term in terms:
        labels = [operand for operand in term.operands if is_label_of_rows(operand, bound)]
        sizes = {operand.node: bound.size(operand.axes[-1]) for operand in labels}
        if len(sizes) > 1 and frozenset(sizes) not in found and math.prod(sizes.values()) <= _MOST_CODES:
            found[frozenset(sizes)] = _joined_labels(sizes, bound.known_values, plate)
    sizes = {own.combinations: own.combinations.size or 0 for own in found.values()}
    return replace(bound, joined=found, sizes={**bound.sizes, **sizes}) if found else bound


def _has_several(bound: BoundModel) -> bool:
    """Whether two or more labels are known for each row."""
    rows = [node for node in bound.nodes if node.plates == (bound.data_plate,) and bound.is_known(node)]
    return sum(isinstance(node, Data | Label) for node in rows) > 1


def _joined_labels(sizes: Mapping[Node, int], values: Mapping[Node, Any], plate: Plate) -> JoinedLabels:
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
