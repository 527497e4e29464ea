"""A bound statement repeated over a plate of groups: what is known of one group is known of each.

The repetition is bound without its rows being looked at again. So nothing that lies along the rows can refuse it, such
as a stated number of them, trials, or weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isclose
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Axis, Constant, Plate, Variable
from ...language.replication import replicated
from ...lazy.rows import LazyRows
from ..ascent.problem import Problem
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates, Group, coordinates_of
from ..binding.evidence import Evidence, Latent, Observed
from ..compiled.terms import GlobalTerm
from ..design.contraction import Contraction
from ..design.keys import SumKey

Assemble = Callable[..., Problem]
"""Returns the problem of a bound model, given its reference points, the order of its globals, and its points."""


def repeated(
    one: Problem,
    assemble: Assemble,
    plate: Plate,
    constants: Mapping[str, AnyArray],
    floors: Mapping[str, AnyArray],
    rows: Mapping[str, AnyArray],
    is_there: AnyArray | None,
) -> Problem:
    """Return the problem of a statement repeated over a plate, outside all others.

    Parameters
    ----------
    one
        The problem of the statement.
    assemble
        Returns the problem of what is bound.
    constants, floors
        As of :func:`~caviar.language.replication.replicated`.
    rows
        Name of an observed variable -> some rows of each group, (G, N, ...), that tell where it is measured from;
        empty where that is the same in all groups.
    is_there
        Which of these rows there are, (G, N); None if all.
    """
    bound, n_groups = one.bound, int(plate.size or 0)
    nodes, _ = replicated(bound.nodes, (), plate, constants, floors, bound.values_of)
    copies: dict[Any, Any] = dict(zip(bound.nodes, nodes, strict=True))
    evidence = {new: _evidence(bound, old, new, n_groups, rows, is_there) for old, new in copies.items()}
    names = {own.name: size for own, size in bound.sizes.items()}
    if rows and bound.data_plate is not None:
        names[bound.data_plate.name] = next(iter(rows.values())).shape[1]
    sizes = {own: names.get(own.name, n_groups) for node in nodes for own in node.plates}
    plates = {own.name: own for own in sizes}
    row = None if bound.data_plate is None else plates[bound.data_plate.name]
    own_floors: dict[Variable, Any] = {copies[node]: copies[node].floor for node in bound.floors}
    again = BoundModel(nodes, sizes, row, evidence, None if rows else bound.row_weights, floors=own_floors)
    if rows:
        points = coordinates_of(again)
    else:
        groups = [_group(own, copies, plates, plate) for own in one.coordinates.groups]
        points = Coordinates(again, tuple(groups), {})
    return assemble(
        again, [copies[own] for own in one.order], frozenset(copies[own] for own in one.point), points
    )


def _evidence(
    bound: BoundModel,
    old: Any,
    new: Any,
    size: int,
    rows: Mapping[str, AnyArray],
    is_there: AnyArray | None,
) -> Evidence:
    """Return what is known of a repeated node."""
    own = bound.of(old)
    if own.values is None:
        return Latent(active=_in_front(own.active, size))
    if isinstance(new, Constant):
        return Observed(new.value)
    if old.name not in rows:
        return Observed(_in_front(own.values, size), _in_front(own.observed, size))
    values, seen = rows[old.name], None
    if is_there is not None:
        shape = values.shape[: len(new.plates)]
        seen = np.broadcast_to(is_there.reshape(*is_there.shape, *(1,) * (len(shape) - 2)), shape)
    return Observed(values, seen)


def _in_front(array: Any, size: int) -> Any:
    """Repeat an array for each group, (G, ...). Of rows that are read in blocks the first one is read and repeated."""
    if array is None:
        return None
    return np.broadcast_to(array[:1] if isinstance(array, LazyRows) else array, (size, *array.shape))


def _group(own: Group, copies: Mapping[Any, Any], plates: Mapping[str, Plate], plate: Plate) -> Group:
    """Return the point of some variables, in each group."""
    size = plate.size or 0
    axes = [Axis(plates[axis.of.name], axis.letter) for axis in own.axes]
    variables = tuple([copies[variable] for variable in own.variables])
    return Group(variables, _in_front(own.point, size), (Axis(plate), *axes), _in_front(own.spread, size))


def is_repeated(one: GlobalTerm, every: GlobalTerm, axis: Axis) -> bool:
    """Whether a term is that of one group with the axis of the groups before all others.

    What is unknown has that axis; a sum over the rows and what is known lack it where they are the same in all groups.
    """
    own, others = one.contraction, every.contraction
    if type(own) is not Contraction or type(others) is not Contraction or own.gather or others.gather:
        return False
    operands = own.factors, others.factors
    if one.owner.name != every.owner.name or len(operands[0]) != len(operands[1]):
        return False
    for pair in zip(*operands, strict=True):
        keys = [each.key.local if isinstance(each.key, SumKey) else each.key for each in pair]
        # a sum that no local variable enters may be the same in all groups
        if keys[0] != keys[1] or not _is_behind(axis, *[each.axes for each in pair], is_free=keys[0] == ()):
            return False
    of_known = {place for axes in others.formula.known_axes for place in axes}
    of_operands = {place for operand in operands[1] for place in operand.axes}
    if axis in of_known and operands[1] and axis not in of_operands:
        # what is known of each group meets sums that are one for all
        return False
    # what lies along no axis is counted in front; the groups are, or within a sum, where nothing tells them apart
    times = (1,) if axis in of_known | of_operands else (1, others.size(axis))
    coefficients = own.formula.coefficient, others.formula.coefficient
    if not any(isclose(coefficients[0] * number, coefficients[1], rel_tol=1e-9) for number in times):
        return False
    # a number of one group may be an array of all
    known = own.formula.known_axes, [axes for axes in others.formula.known_axes if axes != (axis,)]
    return len(known[0]) == len(known[1]) and all(
        _is_behind(axis, *pair, is_free=True) for pair in zip(*known, strict=True)
    )


def _is_behind(
    axis: Axis, alone: tuple[Axis, ...], repeated_ones: tuple[Axis, ...], *, is_free: bool
) -> bool:
    """Whether axes are others behind that of the groups, or the same without it where that may be."""
    has_axis = repeated_ones[:1] == (axis,)
    left = repeated_ones[1:] if has_axis else repeated_ones
    names = [[(own.of.name, own.letter) for own in axes] for axes in (alone, left)]
    return (has_axis or is_free) and names[0] == names[1]
