"""Data with names meet a model: columns become arrays, and labels that are texts become positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from .._errors import DataError, PlateError
from .._typing import Array
from ..data.columns.labels import TextLabels, sequences_of_texts, stated_order, text_labels, whole_texts
from ..data.columns.lost_digits import refuse_lost_digits
from ..data.frames import (
    Frame,
    frame_of,
    how_other,
    in_order_of,
    index_of,
    of_other_rows,
    without_absent,
)
from ..language import Constant, Data, Node, Variable
from .axes import ModelAxes, NamedAxis, in_words, listed
from .names import Names
from .order import refuse_texts_without_order

_TABLE = "the table"
"""What a table that holds all data is called."""


class Placed(dict[str, Any]):
    """Data whose columns and labels are in the order of names already.

    Attributes
    ----------
    names
        Those of the places, for a fit to these data; a posterior has its own.
    """

    def __init__(self, values: Mapping[str, Any], names: Names | None = None) -> None:
        super().__init__(values)
        self.names = Names() if names is None else names


@dataclass(frozen=True, eq=False)
class NamedData:
    """Data as arrays, and the names that they came with.

    Attributes
    ----------
    values
        Name of a node -> numbers, in the order of ``names``; data that are not a mapping are unchanged.
    names
        Of the places along the axes of the model, with those that were known before.
    index
        Index of the rows, from pandas; None if the data have none.
    indices
        Name of the table, or of each pandas object of a mapping -> its index.
    is_read
        Whether the library had read the data before, and told what there is to tell of them.
    """

    values: Any
    names: Names = field(default_factory=Names)
    index: Any = None
    indices: Mapping[str, Any] = field(default_factory=dict)
    is_read: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """Name of each plate whose repetitions have names -> their number."""
        return {axis.name: len(own) for axis, own in self.names.along.items() if axis.kind == "plate"}

    def refuse_other_rows(self, name: str, values: Any) -> None:
        """Refuse numbers of the rows, as their weights, whose index is another one than that of the data.

        Raises
        ------
        DataError
            If it is: the numbers would be taken for those of other rows.
        """
        own = index_of(values)
        for what, index in self.indices.items() if own is not None else ():
            wrong = how_other(own, index, are_same_rows=what == _TABLE)
            if wrong is not None:
                raise DataError(of_other_rows(name, what, wrong))


def meet(axes: ModelAxes, leaves: Sequence[Variable], data: Any, known: Names | None = None) -> NamedData:
    """Return data as arrays by the names of a model's nodes, and all names that are known then.

    Parameters
    ----------
    axes
        Of the model.
    leaves
        Its observed variables.
    data
        A table, whose columns are found by name, or a mapping from names to arrays, columns and tables.
    known
        Names of an earlier fit, which decide the order; None if there is no earlier fit.

    Raises
    ------
    DataError, PlateError, ModelError
        If a column or a name is missing, unknown or not unique; the message says which, and names similar ones.
    """
    if isinstance(data, Placed):
        return NamedData(data, known or data.names, is_read=True)
    if type(data) is dict and known is None and not axes.declared and _are_numbers(data):
        # arrays of numbers bring no names, and none are stated
        for name, own in data.items():
            if (own.dtype.kind in "iu" or own.dtype.itemsize > 8) and name not in axes.labels:
                refuse_lost_digits(own, f"'{name}'")
        return NamedData(Placed(data), Names({}, {}))
    frame = None if isinstance(data, Mapping) else frame_of(data)
    if frame is not None:
        own = index_of(data)
        indices = {} if own is None else {_TABLE: own}
        return _with_columns(axes, _from_frame(axes, leaves, frame, known), known, indices)
    if not isinstance(data, Mapping):
        return NamedData(data, known or Names())
    found = ((f"'{name}'", index_of(value)) for name, value in data.items())
    return _with_columns(axes, dict(data), known, {name: own for name, own in found if own is not None})


def _are_numbers(data: Mapping[str, Any]) -> bool:
    """Whether the data are plain arrays of numbers."""
    return all(type(own) is np.ndarray and own.dtype.kind in "biuf" for own in data.values())


def by_names(axes: ModelAxes, names: Names, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of variables by name, pandas objects with the names of their plate in the order of these.

    Raises
    ------
    DataError
        If an index has a name twice.
    """
    return {**values, **_aligned(axes, values, names.along, {})}


def _with_columns(
    axes: ModelAxes, data: dict[str, Any], known: Names | None, indices: Mapping[str, Any]
) -> NamedData:
    """Return data with columns in the order of names, and with labels as positions."""
    index = _common_index(axes, indices)
    columns: dict[str, tuple[str, ...]] = {} if known is None else dict(known.columns)
    along: dict[NamedAxis, tuple[str, ...]] = {**axes.declared} if known is None else {**known.along}
    for name, value in data.items():
        if known is None and name not in axes.labels:
            refuse_lost_digits(value, f"'{name}'")
        node = axes.by_name.get(name)
        own = None if node is None or isinstance(value, np.ndarray) else frame_of(value)
        axis = None if node is None or own is None else axes.columns_axis(node)
        if own is None or axis is None:
            continue
        wanted = columns.get(name)
        if wanted is None or known is None:
            wanted = _columns_for(name, own, along.get(axis))
            columns[name] = wanted
        else:
            _require(wanted, own, f"'{name}'")
        data[name] = own.block(wanted)
        for other in () if axis in along else axes.group(axis):
            along[other] = wanted
    labels = dict(_labels(axes, data, along, known))
    refuse_texts_without_order(axes, labels, along)
    learnt = _learnt(axes, labels)
    along |= {axis: names for axis, names in learnt.names.items() if axis not in along}
    _check_sizes(axes, along, labels)
    aligned = _aligned(axes, data, along, labels)
    of_texts = {axis: by for axis, by in learnt.of_texts.items() if axis not in axes.declared}
    _refuse_positions(axes, {*data} - {*aligned}, of_texts)
    data |= aligned
    for name, own in labels.items():
        data[name] = _places(name, own, along[NamedAxis("entry", name)], axes, is_new=known is not None)
    placed = Placed({name: without_absent(value) for name, value in data.items()})
    return NamedData(placed, Names(along, columns), index, indices)


def _from_frame(
    axes: ModelAxes, leaves: Sequence[Variable], frame: Frame, known: Names | None
) -> dict[str, Any]:
    """Return the columns of a table that a model needs, by the names of its nodes; other columns are left."""
    found: dict[str, Any] = {}
    known_arrays = [node for node in axes.nodes if isinstance(node, Data)]
    outer = [node for name, node in axes.by_name.items() if node not in axes.nodes and name in frame.columns]
    _refuse_hidden(axes, leaves, frame)
    for node in (*leaves, *known_arrays, *outer):
        axis = axes.columns_axis(node)
        if axis is None:
            if len(node.plates) != 1 or axes.ranks.get(node, 0):
                raise DataError(
                    f"'{node.name}' has {_kind_of(axes, node)}, which cannot be one column of a table: pass a "
                    f"mapping, {{'{node.name}': array, ...}}, with frame['name'] for the columns"
                )
            if node.name in frame.columns:
                found[node.name] = frame.column(node.name)
            elif known is None or isinstance(node, Data):
                what = (
                    f"Data('{node.name}')"
                    if isinstance(node, Data)
                    else f"the observed variable '{node.name}'"
                )
                _require([node.name], frame, what)
            continue
        wanted = None if known is None else known.columns.get(node.name)
        wanted = wanted or (axes.declared if known is None else known.along).get(axis)
        if wanted is None:
            raise DataError(
                f"'{node.name}' is a vector of several columns, and the model does not name them: write "
                f"names=['a', 'b'], where {in_words(axis)} {'is' if axis.kind == 'plate' else 'are'} stated, or pass "
                f"a mapping, {{'{node.name}': frame[['a', 'b']], ...}}"
            )
        if known is not None and isinstance(node, Variable) and not set(wanted) & set(frame.columns):
            continue
        _require(wanted, frame, f"'{node.name}'")
        found[node.name] = frame.block(wanted)
    return found


def _kind_of(axes: ModelAxes, node: Node) -> str:
    rank = axes.ranks.get(node, 0)
    if not node.plates:
        return "no plates"
    return "a matrix for each row" if rank == 2 else f"{len(node.plates)} plates"


def _refuse_hidden(axes: ModelAxes, leaves: Sequence[Variable], frame: Frame) -> None:
    """Refuse a column with the name of a hidden variable, because it is not clear whether the variable is known."""
    observed = {leaf.name for leaf in leaves}
    for node in axes.nodes:
        is_hidden = (
            isinstance(node, Variable) and node.name not in observed and not isinstance(node, Constant)
        )
        if is_hidden and node.name in frame.columns:
            raise DataError(
                f"the table has a column '{node.name}', and the model a hidden variable of that name. If its values "
                f"are known, state it in the model, Model(..., {node.name}), or pass a mapping, "
                f"{{..., '{node.name}': frame['{node.name}']}}; if not, drop or rename it"
            )


def _columns_for(name: str, frame: Frame, stated: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the columns of a table that are the data of a node, in the order of the names that are stated."""
    if stated is None or set(stated).isdisjoint(frame.columns):
        twice = next((own for own in frame.columns if frame.columns.count(own) > 1), None)
        if twice is not None:
            frame.column(twice)
        if stated is not None and len(stated) != len(frame.columns):
            raise DataError(
                f"the table of '{name}' has the columns {listed(frame.columns)}, and its entries the names "
                f"{listed(stated)}: give a table with these columns"
            )
        return frame.columns
    _require(stated, frame, f"'{name}'")
    return stated


def _require(wanted: Sequence[str], frame: Frame, what: str) -> None:
    """Refuse a table without one of these columns."""
    for name in wanted:
        if name in frame.columns:
            continue
        near = get_close_matches(name, frame.columns, n=3, cutoff=0.6) or [
            own for own in frame.columns if own.casefold() == name.casefold()
        ]
        hint = f"did you mean {' or '.join(repr(own) for own in near)}? " if near else ""
        raise DataError(
            f"the table has no column '{name}', which {what} needs; {hint}its columns are {listed(frame.columns, 12)}"
        )


def _labels(
    axes: ModelAxes, data: Mapping[str, Any], along: Mapping[NamedAxis, tuple[str, ...]], known: Names | None
) -> Iterable[tuple[str, TextLabels]]:
    """Yield labels of the data that are texts, or whole numbers if the names are whole numbers."""
    for name in axes.labels:
        if name not in data:
            continue
        value = data[name]
        names = along.get(NamedAxis("entry", name))
        is_nested = any(plate.within is not None for plate in axes.by_name[name].plates)
        own = sequences_of_texts(value, name) if is_nested else None
        own = text_labels(value, name) if own is None else own
        if own is None and names is not None and all(map(_is_whole, names)):
            own = whole_texts(value)
        if own is not None:
            if names is None and known is not None:
                raise DataError(
                    f"the labels of '{name}' were numbers where the model was fitted, and are texts here, as "
                    f"{_first(own)!r}: give the same numbers"
                )
            yield name, own


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal()


def _first(labels: TextLabels) -> str | None:
    return next((text for text in labels.values.flat if text is not None), None)


@dataclass(frozen=True)
class _Learnt:
    """Names that labels give to the places of axes.

    Attributes
    ----------
    names
        Axis -> names: in the order of the categorical type of the labels, otherwise in that of the texts.
    of_texts
        Axes whose names have alphabetical order, because neither the model nor a type states one; each with one of its
        labels.
    """

    names: Mapping[NamedAxis, tuple[str, ...]]
    of_texts: Mapping[NamedAxis, str]


def _learnt(axes: ModelAxes, labels: Mapping[str, TextLabels]) -> _Learnt:
    """Return the names that labels give to the places of the axes that they choose from."""
    found: dict[NamedAxis, tuple[str, ...]] = {}
    of_texts: dict[NamedAxis, str] = {}
    for name in labels:
        group = axes.group(NamedAxis("entry", name))
        if group[0] in found:
            continue
        together = [labels[axis.name] for axis in group if axis.kind == "entry" and axis.name in labels]
        names = stated_order(together)
        if names is None:
            names = tuple(sorted(set().union(*(own.distinct() for own in together))))
            of_texts |= dict.fromkeys(group, name)
        if not names:
            raise DataError(f"the labels of '{name}' are all missing")
        found |= dict.fromkeys(group, names)
    return _Learnt(found, of_texts)


def _aligned(
    axes: ModelAxes,
    data: Mapping[str, Any],
    along: Mapping[NamedAxis, tuple[str, ...]],
    labels: Mapping[str, TextLabels],
) -> dict[str, Any]:
    """Return the pandas objects whose index has the names of their plate, reordered to match these names."""
    found = {}
    for name, value in data.items():
        node = axes.by_name.get(name)
        if node is None or not node.plates or name in labels or index_of(value) is None:
            continue
        names = along.get(NamedAxis("plate", node.plates[0].name))
        own = None if names is None else in_order_of(value, names)
        if own is not None:
            found[name] = own
    return found


def _refuse_positions(
    axes: ModelAxes, by_position: Collection[str], of_texts: Mapping[NamedAxis, str]
) -> None:
    """Refuse arrays along an axis whose names have no stated order: values could be given to the wrong names."""
    for node in axes.nodes if of_texts else ():
        for place, plate in enumerate(node.plates):
            if NamedAxis("plate", plate.name) not in of_texts:
                continue
            if node.name in by_position or (
                isinstance(node, Constant) and _varies(axes.values[node.name], place)
            ):
                raise DataError(
                    f"'{node.name}' has a value for each name of plate '{plate.name}', but the names are texts of the "
                    f"data, so their order is unknown: list the names in the order of the "
                    f"values, Plate('{plate.name}', names=[...])"
                    + (
                        ""
                        if isinstance(node, Constant)
                        else ", or give a pandas Series with the names as its index"
                    )
                )
    for variable in axes.nodes:
        by = of_texts.get(NamedAxis("entry", variable.name))
        if not isinstance(variable, Variable) or by is None:
            continue
        for slot in variable.slots.values():
            is_vector = isinstance(slot.node, Constant) and slot.node.event_rank
            if is_vector and _varies(axes.values[slot.node.name], -1):
                raise DataError(
                    f"'{slot.name}' has a number for each category of '{by}', but the categories are texts of the "
                    f"data, so their order is unknown: list the categories in the "
                    f"order of the numbers, names=[...]"
                )


def _varies(value: Array, axis: int) -> bool:
    """Whether the values of a constant differ along an axis."""
    return bool(np.any(value != np.take(value, [0], axis=axis)))


def _check_sizes(
    axes: ModelAxes, along: Mapping[NamedAxis, tuple[str, ...]], labels: Mapping[str, TextLabels]
) -> None:
    """Refuse names that differ in number from the places of their axis."""
    for axis, names in along.items():
        size = axes.sizes.get(axis)
        if size is None or size == len(names):
            continue
        by = next((other.name for other in axes.group(axis) if other.name in labels), None)
        has = "has" if axis.kind == "plate" else "have"
        if axis in axes.declared or by is None:
            raise PlateError(
                f"{in_words(axis)} {has} size {size}, but the names are {listed(names)} ({len(names)} in all); "
                f"give as many"
            )
        remedy = "state as many"
        if axis.kind == "plate":
            remedy = (
                f"leave its size out, or list all names, also of those without data: "
                f"Plate('{axis.name}', names=[...])"
            )
        elif len(names) < size:
            remedy = "list all categories, also those without data: names=[...] of the Dirichlet above it"
        raise PlateError(
            f"{in_words(axis)} {has} size {size}, but the labels of '{by}' are {listed(names)} ({len(names)} in all); "
            f"{remedy}"
        )


def _places(name: str, labels: TextLabels, names: tuple[str, ...], axes: ModelAxes, *, is_new: bool) -> Any:
    """Return labels as positions among names."""
    try:
        return labels.places(names)
    except LookupError as error:
        row, text = error.args
    near = get_close_matches(text, names, n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(repr(own) for own in near)}?" if near else ""
    plates = [axis for axis in axes.group(NamedAxis("entry", name)) if axis.kind == "plate"]
    where = in_words(plates[0]) if plates else f"the categories of '{name}'"
    remedy = ""
    if plates and plates[0] not in axes.declared:
        remedy = f" To include groups without rows, list all names: Plate('{plates[0].name}', names=[...])"
    fitted = " in the fit" if is_new else ""
    raise DataError(
        f"'{name}' has '{text}' in row {row}, which is not one of the names of {where}{fitted}: {listed(names)}."
        f"{hint}{remedy}"
    )


def _common_index(axes: ModelAxes, indices: Mapping[str, Any]) -> Any:
    """Return the index that all pandas objects of the data share; None if there is none, or if they differ.

    Raises
    ------
    DataError
        If two of the same plate have different indices, or any the same in another order: their rows do not belong
        together.
    """
    distinct: dict[str, Any] = {}
    for name, own in indices.items():
        for other_name, other in distinct.items():
            is_one_plate = _plate_of(axes, name) == _plate_of(axes, other_name)
            wrong = how_other(own, other, are_same_rows=is_one_plate)
            if wrong is not None:
                raise DataError(of_other_rows(name, other_name, wrong))
        if not any(own is other or own.equals(other) for other in distinct.values()):
            distinct[name] = own
    return next(iter(distinct.values())) if len(distinct) == 1 else None


def _plate_of(axes: ModelAxes, quoted: str) -> str | None:
    """Return the name of the plate of the rows of data, whose name is in quotation marks."""
    node = axes.by_name.get(quoted.strip("'"))
    return node.plates[0].name if node is not None and node.plates else None
