"""Fingerprints: a few characters that distinguish models, data sets and starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._errors import ParameterError
from ...families import ExponentialFamily
from ...families.shared.coupled_belief import CoupledBelief
from ...language import Axis, Constant, Node, Operand, Slot, Variable, terms_of
from ..ascent.problem import Problem
from ..binding.clamped.factor import Clamped, ClampedFactor, PointMass
from ..design.keys import ColumnKey
from ..rows.tasks import RowSource

_BLOCKS = 8
_ROWS = 1024
"""Rows are looked at in so many blocks of so many rows; fewer rows altogether are looked at one and all.

The blocks are few because a table on disk may be read by much larger pieces.
"""


def fingerprint(value: Any) -> str:
    """Return 32 hexadecimal digits that follow from a value: numbers, texts, arrays, factors, and what holds them.

    Raises
    ------
    ParameterError
        If it is something else, which has no lasting value.

    Examples
    --------
    >>> fingerprint([1.0, "a"]) == fingerprint([1.0, "a"]), fingerprint([1.0, "a"]) == fingerprint([1.0, "b"])
    (True, False)
    """
    known = blake2b(digest_size=16)
    for piece in _pieces(value):
        known.update(len(piece).to_bytes(8, "little"))
        known.update(piece)
    return known.hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
    """Yield the bytes of a value; what encloses others says how many they are."""
    if value is None or isinstance(value, bool | int | float | str):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for key, item in value.items():
            yield str(key).encode()
            yield from _pieces(item)
    elif isinstance(value, list | tuple):
        yield f"sequence of {len(value)}".encode()
        for item in value:
            yield from _pieces(item)
    elif isinstance(value, ExponentialFamily):
        yield from _pieces((type(value).__name__, value._parameters()))
    elif isinstance(value, CoupledBelief):
        yield from _pieces((value.name, value.joint.as_plain()))
    elif isinstance(value, PointMass):
        yield from _pieces((value.family.__name__, value.value, value.n_categories))
    elif isinstance(value, ClampedFactor):
        yield from _pieces((value.unknown, value.known, value.is_known))
    elif isinstance(value, Clamped):
        yield from _pieces((value.is_known, value.value))
    elif issparse(value):
        rows = value.tocsr()
        yield from _pieces((rows.shape, rows.data, rows.indices, rows.indptr))
    else:
        yield from _pieces_of_array(np.asarray(value))


def _pieces_of_array(array: Any) -> Iterable[bytes]:
    if array.dtype.kind in "OSU":
        yield from _pieces(array.tolist())
    elif array.dtype.kind in "biufc":
        yield f"{array.dtype.str} {array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    else:
        raise ParameterError(
            f"checkpoint= needs arguments that are numbers, texts, arrays or distributions; got one of type "
            f"{array.dtype}"
        )


def fingerprint_of_model(nodes: Iterable[Node]) -> str:
    """Return the fingerprint of a statement: its nodes, and every term of its log joint density."""
    return fingerprint([_stated(node) for node in nodes])


def _stated(node: Node) -> list[Any]:
    own: list[Any] = [
        type(node).__name__,
        node.name,
        [[plate.name, plate.size] for plate in node.plates],
    ]
    if isinstance(node, Constant):
        return [*own, node.value]
    if not isinstance(node, Variable):
        return own
    tied = None if node.tied is None else node.tied.name
    terms = [
        # of what is summed over, the order is that of a set
        [term.coefficient, [_operand(o) for o in term.operands], sorted(_axes(term.axes))]
        for term in terms_of(node)
    ]
    return [*own, node.dimension, node.floor, tied, terms]


def _operand(operand: Operand) -> list[Any]:
    slot = operand.slot
    place = (
        None
        if slot is None
        else [slot.name, *(None if own is None else own.name for own in _chosen_by(slot))]
    )
    return [operand.node.name, operand.statistic, _axes(operand.axes), place]


def _chosen_by(slot: Slot) -> list[Node | None]:
    """Return what chooses in a slot: its index, what says of which group each record is, and further Categoricals."""
    first: list[Node | None] = [slot.index] if slot.through is None else [slot.index, slot.through.by]
    further = [own for own in slot.gates if own.by is not slot.index]
    return [*first, *(node for own in further for node in own.choosers)]


def _axes(axes: Iterable[Axis]) -> list[str]:
    return [f"{axis.of.name}\0{axis.letter}" for axis in axes]


def fingerprint_of_data(problem: Problem, source: RowSource) -> str:
    """Return the fingerprint of the data that a problem is bound to.

    It follows from sizes, types, what is known of the globals, the total weight, the moments of what is measured as a
    location, and from 8,192 rows in evenly spread blocks (all, if there are no more): a change in few of many rows may
    remain unseen.
    """
    bound = problem.bound
    sizes = {plate.name: size for plate, size in bound.sizes.items() if plate.size is None}
    beside = {
        node.name: value
        for node, value in bound.known_values.items()
        if not bound.is_local(node) and not isinstance(node, Constant)
    }
    known = {variable.name: own for variable, own in bound.gathered("clamped").items()}
    moments = [[group.point, group.spread, group.by_label] for group in problem.coordinates.groups]
    blocks = [[_columns(source.read(*bounds)), source.weights(*bounds)] for bounds in _spread(source.n_rows)]
    return fingerprint([sizes, beside, known, moments, source.total_weight, blocks])


def _columns(rows: Mapping[ColumnKey, Any]) -> list[Any]:
    """Return the columns of rows with their names and kinds, in the order of these."""
    return [[key.name, key.kind, rows[key]] for key in sorted(rows)]


def _spread(n_rows: int) -> list[tuple[int, int]]:
    """Return where blocks start and stop that are spread evenly over the rows."""
    if n_rows <= _BLOCKS * _ROWS:
        return [(0, n_rows)] if n_rows else []
    starts = np.linspace(0, n_rows - _ROWS, _BLOCKS).astype(int)
    return [(int(start), int(start) + _ROWS) for start in starts]
