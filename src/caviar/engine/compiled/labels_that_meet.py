"""Known labels that meet in a term, and are compiled as one label: the combinations of them that occur."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ...language import Categorical, Node, Operand, Term
from ..binding.bound_model import BoundModel
from ..binding.joined_labels import JoinedLabels, joined_labels

__all__ = ["is_label_of_rows", "with_joined_labels"]


_MOST_CODES = 2**62


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
    if plate is None:
        return bound
    for term in terms:
        labels = [operand for operand in term.operands if is_label_of_rows(operand, bound)]
        sizes = {operand.node: bound.size(operand.axes[-1]) for operand in labels}
        if len(sizes) > 1 and frozenset(sizes) not in found and math.prod(sizes.values()) <= _MOST_CODES:
            found[frozenset(sizes)] = joined_labels(sizes, bound.known_values, plate)
    sizes = {own.combinations: own.combinations.size or 0 for own in found.values()}
    return replace(bound, joined=found, sizes={**bound.sizes, **sizes}) if found else bound
