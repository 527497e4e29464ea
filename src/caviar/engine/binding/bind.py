"""Binding: a statement meets its data. Sizes are settled, values checked, and the data plate chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._errors import DataError, PlateError
from ..._typing import AnyArray
from ...language import Constant, Data, Node, Plate, Variable
from ...lazy.block_map import any_of
from ...lazy.rows import LazyRows, in_memory
from .bound_model import Binding
from .clamped.repetitions import KnownRepetitions, as_pair, is_joint, repetitions_of
from .lazy_values import LazyValues, lazy_values, rows_first
from .missing.entries import gaps_of, observed_entries, with_column_means
from .missing.steps import counted_steps, refuse_weights, rows_that_count
from .missing.values import at_column_means, filled, observed_rows, of_blocks, partial_labels, seen_latents
from .nested import Flattened, flattened, nested_plates
from .observed_below import seen_globals
from .sparse_counts import check_along_rows, sparse_counts, takes_sparse
from .values import (
    _check_axes,
    _refuse_flat,
    _value_ranks,
    as_values,
    as_weights,
    check_known_slots,
    check_support,
)

__all__ = ["bind"]


def bind(
    nodes: Sequence[Node],
    leaves: Sequence[Variable],
    data: Mapping[str, Any],
    *,
    data_plate: Plate | str | None = None,
    sample_weight: Any = None,
) -> Binding:
    """Return the binding of a model's nodes to data.

    Raises
    ------
    DataError
        If a name is missing or unknown, or a value is not numeric, not finite or off the variable's support.
    PlateError
        If the sizes of plates disagree: the message names the plate and both arrays.
    """
    variables = [node for node in nodes if isinstance(node, Variable)]
    arrays = [node for node in nodes if isinstance(node, Data)]
    known: dict[str, Node] = {node.name: node for node in nodes if not isinstance(node, Constant)}
    flat = flattened(nodes, data)
    _check_names(known, nodes, leaves, flat.data)
    ranks = _value_ranks(variables, arrays)
    values: dict[Node, Any] = {}
    masks: dict[Node, Any] = {}
    partial: dict[Variable, AnyArray] = {}
    in_part: dict[Variable, Any] = {}
    lazy: dict[Node, LazyValues] = {}
    for name, value in flat.data.items():
        node = known[name]
        if takes_sparse(node, value):
            values[node] = sparse_counts(node, value)
            continue
        if isinstance(node, Variable) and is_joint(node):
            in_part[node] = as_pair(node, value, as_values)
            continue
        if isinstance(value, LazyRows):
            found = _lazy_values(node, value, ranks[node])
            if found is not None and (found.mask is None or node in leaves):
                lazy[node], values[node] = found, found.values
                if found.mask is not None:
                    masks[node] = found.mask
                continue
            value = value.to_numpy()
        array = as_values(node, value, ranks[node])
        if isinstance(node, Variable) and node not in leaves and (node.is_flat or _has_missing(array)):
            in_part[node] = array
            continue
        entries = observed_entries(node, array)
        if entries is not None and isinstance(node, Variable):
            values[node], partial[node] = array, entries
            any_seen = np.asarray(entries.any(axis=1))
            mask = None if any_seen.all() else any_seen
        else:
            values[node], mask = filled(node, array, ranks[node])
        if mask is not None:
            masks[node] = mask
    given = dict(values)
    values |= {node: node.value for node in nodes if isinstance(node, Constant)}
    first = {node: value[0] if isinstance(value, tuple) else value for node, value in in_part.items()}
    sizes = _settle_sizes(nodes, {**values, **first}, flat)
    plate = _choose_data_plate(nodes, leaves, data_plate)
    _settle_lazy(nodes, lazy, plate, values, masks)
    _refuse_tied_rows(nodes, plate)
    labels, repetitions = _known_in_part(in_part, plate)
    check_along_rows(given, plate)
    for node in variables:
        if node in values:
            check_support(node, values[node])
        check_known_slots(node, values, sizes)
    n_rows = sizes[plate] if plate is not None else 1
    weights = flat.counts
    if sample_weight is not None:
        _refuse_nested_weights(nodes)
        weights = as_weights(sample_weight, n_rows)
    for node in partial:
        values[node] = in_memory(values[node])
    gaps = {node: gaps_of(values[node], entries, weights) for node, entries in partial.items()}
    values |= {node: with_column_means(values[node], own) for node, own in gaps.items()}
    for node in masks:
        if node not in gaps and plate is not None and plate in node.plates:
            axis = node.plates.index(plate)
            if node in lazy:
                values[node] = lazy[node].at_column_means(node, weights)
                continue
            values[node] = at_column_means(node, values[node], masks[node], axis, weights)
    # a row with a missing entry has a local factor, whose label may be known
    labels |= {
        gate: in_memory(values.pop(gate)).astype(np.intp) for gate in _known_gates(gaps, values, plate)
    }
    observed = [variable for variable in variables if variable in values]
    latent = [variable for variable in variables if variable not in values]
    rows = observed_rows(observed, masks, labels, plate, n_rows)
    chains = [variable for variable in latent if variable.summed and plate in variable.plates]
    refuse_weights(chains, weights)
    steps = _steps_of(chains, observed, masks, labels, values, plate)
    # a step that was not observed still lies between its neighbours
    rows = rows_that_count(rows, chains, steps)
    seen = seen_latents(latent, observed, masks, labels, plate, rows)
    seen |= {chain: own for chain, own in steps.items() if rows is None or np.any(rows > own)}
    if rows is not None:
        weights = rows if weights is None else of_blocks(np.multiply, (rows, weights), (), np.float64)
        if not any_of(weights):
            raise DataError("all values are missing (NaN) in the rows whose weight is not zero")
    bound = Binding(
        tuple(nodes), sizes, plate, values, weights, masks, labels, seen, gaps=gaps, known=repetitions
    )
    of_globals = seen_globals(bound)
    return replace(bound, seen={**seen, **of_globals}) if of_globals else bound


def _steps_of(
    chains: Iterable[Variable],
    observed: Sequence[Variable],
    masks: Mapping[Node, AnyArray],
    labels: Mapping[Node, AnyArray],
    values: Mapping[Node, AnyArray],
    plate: Plate | None,
) -> dict[Variable, AnyArray]:
    """Return which steps count of each chain that has some that do not."""
    found = {}
    for chain in chains:
        assert plate is not None
        counted = counted_steps(chain, observed, masks, labels, values, plate)
        if counted is not None:
            found[chain] = counted
    return found


def _lazy_values(node: Node, rows: LazyRows, event_rank: int) -> LazyValues | None:
    """Return values that are read in blocks, checked as :func:`as_values` checks arrays, but for their support.

    None for rows in memory that must be looked at as an array.
    """
    _check_axes(node, rows, event_rank)
    return lazy_values(node, rows, event_rank)


def _settle_lazy(
    nodes: Sequence[Node],
    lazy: dict[Node, LazyValues],
    plate: Plate | None,
    values: dict[Node, Any],
    masks: dict[Node, Any],
) -> None:
    """Keep lazy what runs along the rows of data; hold in memory what does not, and what a chain needs whole."""
    whole = {
        slot.node
        for node in nodes
        if isinstance(node, Variable) and node.summed
        for slot in node.slots.values()
    }
    for node in list(lazy):
        if plate in node.plates and node not in whole:
            rows_first(node, plate)
            continue
        values[node] = in_memory(values[node])
        if node in masks:
            masks[node] = in_memory(masks[node])
        del lazy[node]


def _refuse_tied_rows(nodes: Sequence[Node], plate: Plate | None) -> None:
    """Refuse locations of the rows whose precision is one for all rows: they are neither local nor global."""
    for node in nodes:
        if isinstance(node, Variable) and plate is not None and node.tied is plate:
            raise PlateError(
                f"'{node.name}' has a location for each row of data and one precision for all of them (tied=); state "
                f"a Normal over plate '{plate.name}' with the precision as a variable of its own"
            )


def _known_gates(
    partial: Iterable[Variable], values: Mapping[Node, AnyArray], plate: Plate | None
) -> list[Variable]:
    """Return the observed Categoricals of the rows that choose the parents of vectors missing in part."""
    gates = dict.fromkeys(gate for leaf in partial for gate in leaf.indices)
    return [gate for gate in gates if gate in values and gate.plates == (plate,)]


def _has_missing(array: AnyArray) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _known_in_part(
    given: Mapping[Variable, Any], plate: Plate | None
) -> tuple[dict[Node, AnyArray], dict[Variable, KnownRepetitions]]:
    """Return the labels of Categoricals of the rows, and the repetitions of globals, that are known."""
    labels: dict[Node, AnyArray] = {}
    repetitions: dict[Variable, KnownRepetitions] = {}
    for node, value in given.items():
        if plate in node.plates:
            _refuse_flat(node)
            if is_joint(node):
                raise DataError(
                    f"'{node.name}', a {type(node).__name__}, has a value for each row of data, and takes no data: of "
                    f"the latent variables of rows only a Categorical may be known. Leave '{node.name}' out"
                )
            labels[node] = partial_labels(node, value)
            continue
        known = repetitions_of(node, value)
        if known is not None:
            if not is_joint(node):
                check_support(node, known.value)
            repetitions[node] = known
    return labels, repetitions


def _check_names(
    known: Mapping[str, Node], nodes: Sequence[Node], leaves: Sequence[Variable], data: Any
) -> None:
    if not isinstance(data, Mapping):
        names = ", ".join(f"'{leaf.name}': ..." for leaf in leaves)
        raise DataError(f"data is a mapping from names to arrays, as {{{names}}}; got {type(data).__name__}")
    for name in data:
        if name not in known:
            could = ", ".join(f"'{n}'" for n in known)
            raise DataError(
                f"the data have '{name}', but the model has no variable of that name; it has {could}. "
                f"Leave '{name}' out, or use the name of the statement"
            )
    needed = [*leaves, *(node for node in nodes if isinstance(node, Data))]
    for node in needed:
        if node.name not in data:
            kind = "an observed variable" if isinstance(node, Variable) else "a known array"
            raise DataError(
                f"the data lack '{node.name}', {kind} of the model; pass {{'{node.name}': array, ...}}"
            )


def _settle_sizes(
    nodes: Sequence[Node], values: Mapping[Node, AnyArray], flat: Flattened
) -> dict[Plate, int]:
    sizes: dict[Plate, int] = {}
    told_by: dict[Plate, str] = {}
    for node in nodes:
        for plate in node.plates:
            if plate.size is not None:
                sizes[plate], told_by[plate] = plate.size, "its declaration"
    for plate, size in flat.sizes.items():
        if sizes.setdefault(plate, size) != size:
            raise PlateError(
                f"plate '{plate.name}' has size {sizes[plate]} in its declaration, but the data have {size}"
            )
        told_by.setdefault(plate, "the data within it")
    for node in nodes:
        if node not in values:
            continue
        for plate, size in zip(node.plates, values[node].shape, strict=False):
            if sizes.setdefault(plate, size) != size:
                raise PlateError(
                    f"plate '{plate.name}' has {size} rows in '{node.name}' but {sizes[plate]} in {told_by[plate]}; "
                    f"give each the same number"
                )
            told_by.setdefault(plate, f"'{node.name}'")
        if isinstance(node, Variable) and node.value_rank:
            _check_event(node, values[node])
    sizes = {**flat.fewest, **sizes}
    for node in nodes:
        for plate in node.plates:
            if plate not in sizes:
                raise PlateError(
                    f"the size of plate '{plate.name}' of '{node.name}' is unknown: no data have it; "
                    f"write Plate('{plate.name}', size)"
                )
    return sizes


def _check_event(node: Variable, value: AnyArray) -> None:
    if node.dimension is None:
        return
    event = value.shape[len(node.plates) :]
    if any(size != node.dimension for size in event):
        raise PlateError(
            f"'{node.name}' has dimension {node.dimension}, but its data have event shape {event}; state it with the "
            f"dimension of the data, or give data of that dimension"
        )


def _choose_data_plate(
    nodes: Sequence[Node], leaves: Sequence[Variable], wanted: Plate | str | None
) -> Plate | None:
    plates = {plate.name: plate for node in nodes for plate in node.plates}
    nested = nested_plates(nodes)
    if wanted is not None:
        plate = plates.get(wanted.name if isinstance(wanted, Plate) else str(wanted))
        if plate is None:
            raise PlateError(
                f"data_plate={wanted!r} is no plate of the model; it has {', '.join(plates) or 'none'}"
            )
        if nested and plate is not nested[0]:
            raise PlateError(
                f"data_plate='{plate.name}', but plate '{nested[0].name}' lies within another: its repetitions are the "
                f"rows of data; leave data_plate= out"
            )
        return plate
    if nested:
        return nested[0]
    candidates = [plate for leaf in leaves for plate in leaf.plates]
    unsized = [plate for plate in candidates if plate.size is None]
    return unsized[0] if unsized else max(candidates, key=lambda plate: plate.size or 0, default=None)


def _refuse_nested_weights(nodes: Sequence[Node]) -> None:
    """Refuse weights of rows that lie within another plate: a weight of 2 would not be the outer repetition twice."""
    for plate in nested_plates(nodes):
        assert plate.within is not None
        raise DataError(
            f"sample_weight has no meaning for '{plate.name}', which lies within '{plate.within.name}'; counts of "
            f"categories are passed as a sparse matrix instead of weights"
        )
