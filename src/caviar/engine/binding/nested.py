"""Nested plates: data whose rows belong to the repetitions of an outer plate, different numbers to each.

The rows of a nested plate are laid out one after another, with a label each that names the repetition it belongs to.
Counts of categories, as words in documents, become one row for each category that occurs, whose weight is its count:
equal tokens of one document have equal factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._errors import DataError, PlateError
from ..._typing import Array
from ...language import Categorical, Node, Plate, Variable
from ...language.nodes.node import membership

_SPARSEST = 1_000
"""Outer repetitions for each row within them from which on labels are taken for names and not for numbers."""


@dataclass(frozen=True)
class Flattened:
    """Data with nested plates laid out one after another.

    Attributes
    ----------
    data
        Name -> array, with the labels of the outer plates under the names of these.
    sizes
        Sizes of outer plates that the data tell.
    fewest
        Sizes that outer plates have if nothing else tells: the largest label and one.
    counts
        Weight of each row of a nested plate, or None.
    """

    data: Mapping[str, Any]
    sizes: Mapping[Plate, int] = field(default_factory=dict)
    fewest: Mapping[Plate, int] = field(default_factory=dict)
    counts: Array | None = None


def nested_plates(nodes: Sequence[Node]) -> list[Plate]:
    """Return the plates of a model that lie within another."""
    return list(dict.fromkeys(plate for node in nodes for plate in node.plates if plate.within is not None))


def outer_variables(nodes: Sequence[Node], variables: Iterable[Variable]) -> list[Variable]:
    """Return those variables that are repeated over a plate which another lies within: they belong to the data."""
    outer = [plate.within for plate in nested_plates(nodes)]
    return [variable for variable in variables if any(plate in outer for plate in variable.plates)]


def flattened(nodes: Sequence[Node], data: Mapping[str, Any]) -> Flattened:
    """Return the data with every nested plate laid out in rows.

    Raises
    ------
    DataError, PlateError
        If they are neither rows with labels, a sequence for each outer repetition, nor a sparse matrix of counts.
    """
    plates = nested_plates(nodes)
    if not plates or not isinstance(data, Mapping):
        return Flattened(data)
    if len(plates) > 1:
        names = ", ".join(f"'{plate.name}'" for plate in plates)
        raise PlateError(f"a model has one plate within another; this one has {names}")
    (plate,) = plates
    labels = membership(plate)
    along = {n.name: n for n in nodes if plate in n.plates and n is not labels and n.name in data}
    counted = [name for name in along if hasattr(data[name], "tocoo")]
    if labels.name in data:
        found = _with_labels(plate, along, data)
    elif counted:
        found = _from_counts(plate, along, data, counted[0])
    else:
        found = _from_sequences(plate, along, data)
    if any(node.name == labels.name for node in nodes):
        return found
    # nothing of the model asks which outer repetition each row belongs to
    return replace(found, data={name: own for name, own in found.data.items() if name != labels.name})


def _with_labels(plate: Plate, along: Mapping[str, Node], data: Mapping[str, Any]) -> Flattened:
    """Return rows that come with their labels; the outer plate has one more repetitions than the largest."""
    assert plate.within is not None
    outer = plate.within
    for name in along:
        if _is_ragged(data[name]):
            raise DataError(
                f"the data have '{outer.name}', the {outer.name} of each {plate.name}, so '{name}' must be one array "
                f"with a row for each {plate.name}; got {_kind(data[name])}"
            )
    labels = np.asarray(data[outer.name])
    if labels.dtype.kind not in "biuf" or labels.ndim != 1 or not labels.size:
        # refused where arrays are read
        return Flattened(data)
    largest = labels.max()
    if not np.isfinite(largest) or largest < 0:
        return Flattened(data)
    if outer.size is None and largest >= _SPARSEST * max(labels.size, _SPARSEST):
        raise DataError(
            f"the data of '{outer.name}' number the {outer.name}s from 0, and there are as many as the largest number "
            f"and one; got {largest:g} among {labels.size} {plate.name}s. Number them without gaps: "
            f"np.unique(..., return_inverse=True)[1]"
        )
    return Flattened(data, fewest={outer: int(largest) + 1})


def _from_counts(plate: Plate, along: Mapping[str, Node], data: Mapping[str, Any], name: str) -> Flattened:
    """Return a row for each category that occurs in each outer repetition, with its count as weight."""
    assert plate.within is not None
    variable, matrix = along[name], data[name]
    if not isinstance(variable, Categorical) or variable.plates != (plate,):
        kind = type(variable).__name__
        raise DataError(
            f"the data of '{name}', a {kind}, are a sparse {type(matrix).__name__}; counts of categories are the data "
            f"of a Categorical with plates={plate.name}. Pass a list with an array for each {plate.within.name}"
        )
    if len(along) > 1:
        other = next(n for n in along if n != name)
        raise DataError(
            f"the data of '{name}' are counts, which do not distinguish its {plate.name}s, but '{other}' has "
            f"a value for each {plate.name}; pass lists with an array for each {plate.within.name}"
        )
    if len(matrix.shape) == 1:
        # a row of a sparse array: one document
        matrix = matrix.reshape(1, -1)
    if len(matrix.shape) != 2 or matrix.shape[1] != variable.categories:
        raise PlateError(
            f"'{name}' has {variable.categories} categories, but its counts have shape {matrix.shape}: "
            f"{plate.within.name}s x categories"
        )
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"the counts of '{name}' must be real numbers; got a sparse matrix of {matrix.dtype}")
    # small integers and booleans would not hold the sums of entries of one place
    counts = matrix.astype(np.float64).tocsr()
    counts.sum_duplicates()
    values = counts.data
    if not np.isfinite(values).all() or (values < 0).any():
        wrong = values[~(np.isfinite(values) & (values >= 0))][0]
        raise DataError(f"the counts of '{name}' must be finite and not negative; got {wrong:g}")
    counts.eliminate_zeros()
    rows = counts.tocoo()
    flat = {**data, name: rows.col, plate.within.name: rows.row}
    return Flattened(flat, {plate.within: counts.shape[0]}, counts=np.asarray(rows.data, dtype=np.float64))


def _from_sequences(plate: Plate, along: Mapping[str, Node], data: Mapping[str, Any]) -> Flattened:
    """Return the rows of a sequence of arrays, one for each outer repetition, one after another."""
    assert plate.within is not None
    flat, lengths = dict(data), None
    for name, node in along.items():
        if not _is_ragged(data[name]):
            raise DataError(_no_sequences(plate, node, data[name]))
        try:
            parts = [np.asarray(part) for part in data[name]]
        except ValueError:
            raise DataError(_no_sequences(plate, node, data[name])) from None
        own = [len(part) if part.ndim else -1 for part in parts]
        if not own or -1 in own:
            raise DataError(_no_sequences(plate, node, data[name]))
        if lengths is not None and own != lengths:
            where = next((i for i, (a, b) in enumerate(zip(own, lengths, strict=False)) if a != b), len(own))
            raise PlateError(
                f"'{name}' and the data before it differ in their numbers of {plate.name}s, first in "
                f"{plate.within.name} {where}"
            )
        lengths = own
        filled = [part for part in parts if len(part)] or parts[:1]
        try:
            flat[name] = np.concatenate(filled)
        except ValueError:
            raise DataError(f"the arrays of '{name}' differ in their shapes beyond the first axis") from None
    if lengths is None:
        return Flattened(data)
    flat[plate.within.name] = np.repeat(np.arange(len(lengths)), lengths)
    return Flattened(flat, {plate.within: len(lengths)})


def _is_ragged(value: Any) -> bool:
    """Whether a value is a sequence of arrays, or a sparse matrix."""
    if hasattr(value, "tocoo"):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object
    if not isinstance(value, Sequence) or not value:
        return False
    try:
        return all(np.ndim(part) > 0 for part in value)
    except ValueError:
        # a part has rows of different lengths, which no array has
        return False


def _kind(value: Any) -> str:
    return f"a sparse {type(value).__name__}" if hasattr(value, "tocoo") else f"a {type(value).__name__}"


def _no_sequences(plate: Plate, node: Node, value: Any) -> str:
    assert plate.within is not None
    outer, counts = plate.within.name, ""
    if isinstance(node, Categorical):
        counts = f", or a sparse matrix of counts, {outer}s x categories"
    return (
        f"'{node.name}' has plate '{plate.name}' within '{outer}': its data are a list with an array for each {outer}"
        f"{counts}; or one array with a row for each {plate.name}, and '{outer}' with the {outer} of each; "
        f"got {_kind(value)}" + (f" of shape {np.shape(value)}" if isinstance(value, np.ndarray) else "")
    )
