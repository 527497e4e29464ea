"""Guesses of labels by what records name on two sides, such as a sender and a receiver, or a person and a question.

If what is on each side has a label, the records of a pair hardly tell them one by one: averages over all questions may
be the same for all persons. The table of pairs tells both. Other labels are those of the records, with the
probabilities of a group: all records of a group have one label at first.

In a block model with mixed membership each record has a label of its sender and one of its receiver, drawn with the
probabilities of these members; in a grade of membership each answer has one, drawn with those of the person. A single
record hardly tells its labels, but the records of a group together do, by what else they name: the other member, or the
question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Data, Node, Variable
from ...design.keys import ColumnKey
from ..clustering.networks import points_in_network, points_of_sides
from ..clustering.partitions import partition
from ..components.gates import Gate
from ..products.columns import sampled_values
from .basis import Basis, Guess
from .points import leaves_below

_AT_RANDOM = (0.0, 0.3, 0.6)
"""Shares of the records with random labels instead, in a clustering each: where all records of a group have one label,
its probabilities let no other label in."""

_MOST_PAIRS = 4_000_000
"""Cells of the matrix of groups and what else the records name, beyond which nothing is guessed."""

_PARTITIONS = 3
"""Clusterings of either side."""


@dataclass(frozen=True, eq=False)
class _Side:
    """What the records name.

    Attributes
    ----------
    gate
        Their label, whose probabilities are those of the groups; None where the groups are only named.
    of
        What belongs to the groups.
    groups
        The group of each record of the sample.
    n_groups
        Number of groups.
    """

    gate: Gate | None
    of: Node
    groups: AnyArray
    n_groups: int


def in_blocks(basis: Basis) -> Iterator[Guess]:
    """Yield labels of what records name on either side, by clusters of the rows and columns of the table of pairs."""
    rows, weights = basis.sample.n_rows, basis.sample.row_weights
    for leaf in basis.problem.bound.observed:
        named = dict(_named(basis, leaf))
        found = sampled_values(basis.problem, basis.sample, leaf)
        if len(named) != 2 or found is None:
            continue
        one, other = named
        (n_one,), (n_other,) = one.shape(basis.problem, rows), other.shape(basis.problem, rows)
        columns = leaf.evened(found[0]).reshape(rows, -1).T
        if n_one * n_other * len(columns) > _MOST_PAIRS:
            continue
        # blocks have no higher rank
        size = min(one.size, other.size)
        pair = named[one], named[other]
        tables = [points_of_sides(own, weights, pair, (n_one, n_other), size) for own in columns]
        sides = [np.concatenate(points, axis=1) for points in zip(*tables, strict=True)]
        for _ in range(_PARTITIONS):
            yield {
                gate.variable: gate.known(basis.problem, _partitioned(basis, points, gate.size))
                for gate, points in zip(named, sides, strict=True)
            }


def _named(basis: Basis, leaf: Variable) -> Iterator[tuple[Gate, AnyArray]]:
    """Yield the labels of groups that choose for a value, and the group that each record names."""
    for gate in basis.gates:
        own = leaf.chosen_by.get(gate.variable)
        through = None if own is None or gate.factor is not None else own.through
        groups = None if through is None else basis.sample.columns.get(ColumnKey(through.by.name))
        if _is_of_records(groups, basis):
            yield gate, groups.astype(np.intp)


def in_groups(basis: Basis) -> Iterator[Guess]:
    """Yield labels of records by clusters of the groups to which the probabilities of the labels belong."""
    for leaf in basis.problem.bound.observed:
        sides = [
            side
            for gate in basis.gates
            if leaf in leaves_below(basis.problem, gate.variable)
            for side in _sides(basis, gate.variable, gate)
        ]
        if len(sides) == 1:
            sides += list(_sides(basis, leaf, None))[:1]
        if len(sides) != 2 or sides[0].n_groups * sides[1].n_groups > _MOST_PAIRS:
            continue
        found = sampled_values(basis.problem, basis.sample, leaf)
        if found is None or found[1] != (basis.problem.bound.data_plate,):
            continue
        for column in leaf.evened(found[0]).reshape(basis.sample.n_rows, -1).T:
            yield from _clustered(basis, column, sides[0], sides[1])


def _is_of_records(column: object, basis: Basis) -> TypeGuard[AnyArray]:
    return isinstance(column, np.ndarray) and column.shape == (basis.sample.n_rows,)


def _sides(basis: Basis, variable: Variable, gate: Gate | None) -> Iterator[_Side]:
    """Yield the groups whose probabilities a label of the records has, or that choose for a value by themselves."""
    plate = basis.problem.bound.data_plate
    if variable.plates != (plate,) or variable.summed or (gate is not None and gate.size < 2):
        return
    named = (
        (slot.node, own)
        for slot in variable.slots.values()
        for own in slot.chosen
        if isinstance(own.by, Data) and own.by.plates == (plate,)
    )
    for node, own in named:
        groups = basis.sample.columns.get(ColumnKey(own.by.name))
        if _is_of_records(groups, basis):
            yield _Side(gate, node, groups.astype(np.intp), basis.problem.bound.sizes[own.plate])
            return


def _clustered(basis: Basis, values: Array, one: _Side, other: _Side) -> Iterator[Guess]:
    """Yield labels from clusters of the groups; both labels of a record are alike if their probabilities are."""
    pair, weights = (one.groups, other.groups), basis.sample.row_weights
    sizes = [side.gate.size for side in (one, other) if side.gate is not None]
    are_members = one.of is other.of and other.gate is not None
    for share in _AT_RANDOM:
        if are_members:
            for points in points_in_network(values, weights, pair, one.n_groups, max(sizes)):
                labels = _partitioned(basis, points, max(sizes))
                yield {
                    side.gate.variable: _in_part(basis, labels[side.groups], max(sizes), share)
                    for side in (one, other)
                    if side.gate is not None
                }
        else:
            sides = points_of_sides(values, weights, pair, (one.n_groups, other.n_groups), max(sizes))
            yield {
                side.gate.variable: _in_part(basis, labels[side.groups], side.gate.size, share)
                for side, points in zip((one, other), sides, strict=True)
                if side.gate is not None
                for labels in [_partitioned(basis, points, side.gate.size)]
            }


def _partitioned(basis: Basis, points: Array, size: int) -> AnyArray:
    return partition(points, np.ones(len(points)), size, basis.rng)


def _in_part(basis: Basis, labels: AnyArray, size: int, share: float) -> AnyArray:
    """Return labels of which a share is random."""
    rng = basis.rng
    return np.where(rng.random(labels.shape) < share, rng.integers(0, size, labels.shape), labels)
