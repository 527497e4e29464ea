"""Binding of a statement to its data: sizes are determined, values checked, and the data plate chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._errors import DataError, PlateError
from ..._typing import AnyArray
from ...language import Node, Plate, Variable
from ...lazy.block_map import any_of
from ...lazy.rows import in_memory
from .bound_model import BoundModel
from .clamped.repetitions import is_joint, repetitions_of
from .evidence import NOTHING, Latent, Observed
from .missing.labels_of_groups import with_seen_labels
from .missing.steps import counted_steps, refuse_weights, rows_that_count, seen_in_steps
from .missing.values import Observations, is_told, observed_rows, of_blocks, partial_values, seen_latents
from .nested import Flattened, flattened, nested_plates
from .observed_below import is_whole, seen_globals
from .reading import OfNodes, check_along_rows, completed, read, settled
from .values import as_weights, check_beside, check_known_slots, check_support, refuse_flat


def bind(
    nodes: Sequence[Node],
    leaves: Sequence[Variable],
    data: Mapping[str, Any],
    *,
    values: Mapping[str, AnyArray] | None = None,
    data_plate: Plate | str | None = None,
    sample_weight: Any = None,
    sizes: Mapping[str, int] | None = None,
    facts: dict[Hashable, dict[Hashable, Any]] | None = None,
) -> BoundModel:
    """Return the binding of a model's nodes to data.

    Parameters
    ----------
    values
        Of the constants, and smallest variances of precisions, by name; by default those that the nodes have.
    sizes
        Name of a plate -> its size, where names of its repetitions tell it.
    facts
        What was found of the same nodes before; what is found now is added.

    Raises
    ------
    DataError
        If a name is missing or unknown, or a value is not numeric, not finite or off the variable's support.
    PlateError
        If the sizes of plates disagree: the message names the plate and both arrays.
    """
    facts = {} if facts is None else facts
    own = OfNodes.among(facts, nodes, leaves)
    flat = flattened(nodes, data) if own.nested else Flattened(data)
    _check_names(own, flat.data)
    came = read(own, flat.data)
    constants: dict[Node, AnyArray] = {
        node: node.value if values is None else values[node.name] for node in own.constants
    }
    shapes = {node: given.shape for node, given in {**came, **constants}.items()}
    settled_sizes = _settle_sizes(own.with_sizes, shapes, flat, sizes or {})
    plate = _data_plate(own, data_plate)
    came = settled(came, nodes, plate)
    _refuse_tied_rows(own, plate)
    hidden = _known_in_part({node: each.values for node, each in came.items() if each.is_in_part}, plate)
    given = {node: each for node, each in came.items() if not each.is_in_part}
    _check_values(own, {node: each.values for node, each in given.items()}, constants, settled_sizes, plate)
    n_rows = settled_sizes[plate] if plate is not None else 1
    weights = _weights_of(nodes, flat, sample_weight, n_rows)
    observed = completed(given, plate, weights)
    # a row with a missing entry has a local factor, whose label may be known
    for gate in _known_gates(observed, plate):
        hidden[gate] = Latent(in_part=in_memory(observed.pop(gate).values).astype(np.intp))
    observed |= {node: Observed(value) for node, value in constants.items()}
    evidence = {**observed, **{node: hidden.get(node, NOTHING) for node in nodes if node not in observed}}
    floors: dict[Variable, Any] = {
        node: node.floor if values is None else values[node.name] for node in own.floored
    }
    bound = BoundModel(own.nodes, settled_sizes, plate, evidence, weights, floors=floors, facts=facts)
    if own.has_chains or any(each.observed is not None for each in observed.values()) or hidden:
        bound = _counting(bound)
    whole = bound.fact("is whole", lambda: is_whole(bound)) if n_rows else False
    of_globals = {} if whole else seen_globals(bound)
    if not of_globals:
        return bound
    return bound.with_active({**bound.gathered("active"), **of_globals})


def _check_values(
    own: OfNodes,
    given: Mapping[Node, AnyArray],
    constants: Mapping[Node, AnyArray],
    sizes: Mapping[Plate, int],
    plate: Plate | None,
) -> None:
    """Check that values lie along the rows where they must, and on the support of their variables and slots."""
    check_along_rows(given, plate)
    values = {**given, **constants}
    for node in own.variables:
        if node in given:
            check_support(node, given[node])
            check_known_slots(node, values, sizes)
            check_beside(node, values)
        elif node in own.meeting_data:
            check_known_slots(node, values, sizes)


def _weights_of(nodes: Sequence[Node], flat: Flattened, sample_weight: Any, n_rows: int) -> Any:
    """Return the weights of the rows: those that were passed, or of the cells of sparse counts their counts."""
    if sample_weight is None:
        return flat.counts
    _refuse_nested_weights(nodes)
    return as_weights(sample_weight, n_rows)


def _counting(bound: BoundModel) -> BoundModel:
    """Return a binding in which rows and repetitions without an observation count nothing.

    Raises
    ------
    DataError
        If nothing was observed in the rows with a weight.
    """
    plate, weights = bound.data_plate, bound.row_weights
    masks, values = bound.gathered("observed"), bound.known_values
    told = {node: is_told(node, own) for node, own in bound.gathered("in_part").items()}
    own = Observations(bound.latent, bound.observed, masks, told, values, plate, bound.n_rows)
    rows = observed_rows(own)
    chains = [variable for variable in own.latent if variable.summed and plate in variable.plates]
    refuse_weights(chains, weights, values)
    steps = {chain: counted for chain in chains if (counted := counted_steps(chain, own)) is not None}
    # a step that was not observed still lies between its neighbours
    rows = rows_that_count(rows, chains, steps)
    seen = seen_latents(own, rows)
    seen |= {chain: counted for chain, counted in steps.items() if rows is None or np.any(rows > counted)}
    seen = with_seen_labels(own, seen)
    if chains:
        seen |= seen_in_steps(own, steps)
    if rows is None and not seen:
        return bound
    if rows is not None:
        weights = rows if weights is None else of_blocks(np.multiply, (rows, weights), (), np.float64)
        if not any_of(weights):
            raise DataError("all values are missing (NaN) in the rows whose weight is not zero")
    return replace(bound.with_active(seen), row_weights=weights)


def _refuse_tied_rows(own: OfNodes, plate: Plate | None) -> None:
    """Refuse locations of the rows whose precision is one for all rows: they are neither local nor global."""
    if plate is not None and plate in own.tied:
        raise PlateError(
            f"'{own.tied[plate].name}' has a location for each row of data and one precision for all of them "
            f"(tied=); state a Normal over plate '{plate.name}' and the precision as a separate variable"
        )


def _known_gates(observed: Mapping[Node, Observed], plate: Plate | None) -> list[Variable]:
    """Return the observed Categoricals of the rows that choose the parents of vectors missing in part."""
    partial = (
        node for node, own in observed.items() if isinstance(node, Variable) and own.entries is not None
    )
    gates = dict.fromkeys(gate for leaf in partial for gate in leaf.indices)
    return [gate for gate in gates if gate in observed and gate.plates == (plate,)]


def _known_in_part(given: Mapping[Node, Any], plate: Plate | None) -> dict[Node, Latent]:
    """Return which values of hidden variables are known: those of the rows, and repetitions of globals."""
    found: dict[Node, Latent] = {}
    for node, value in given.items():
        assert isinstance(node, Variable)
        if plate in node.plates:
            refuse_flat(node)
            if is_joint(node):
                raise DataError(
                    f"{node.in_words}, is a pair of latent variables with a value for each row, and takes no data. "
                    f"Leave '{node.name}' out"
                )
            own = partial_values(node, value)
            if own is not None:
                found[node] = Latent(in_part=own)
            continue
        known = repetitions_of(node, value)
        if known is not None:
            if not is_joint(node):
                check_support(node, known.value)
            found[node] = Latent(known)
    return found


def _check_names(own: OfNodes, data: Any) -> None:
    if not isinstance(data, Mapping):
        names = ", ".join(f"'{leaf.name}': ..." for leaf in own.leaves)
        raise DataError(
            f"data must be a table, or a mapping from names to arrays such as {{{names}}}; got {type(data).__name__}"
        )
    for name in data:
        if name not in own.may_be_given:
            could = ", ".join(f"'{n}'" for n in own.may_be_given)
            raise DataError(
                f"the data have '{name}', but the model has no variable of that name; it has {could}. "
                f"Leave '{name}' out, or use the name in the model"
            )
    for node in own.needed:
        if node.name not in data:
            kind = "an observed variable" if isinstance(node, Variable) else "a known array"
            raise DataError(
                f"the data lack '{node.name}', {kind} of the model; pass {{'{node.name}': array, ...}}"
            )


def _settle_sizes(
    nodes: Sequence[Node],
    shapes: Mapping[Node, tuple[int, ...]],
    flat: Flattened,
    named: Mapping[str, int],
) -> dict[Plate, int]:
    sizes: dict[Plate, int] = {}
    told_by: dict[Plate, str] = {}
    for node in nodes:
        for plate in node.plates:
            if plate.size is not None:
                sizes[plate], told_by[plate] = plate.size, "its declaration"
            elif plate.name in named:
                sizes[plate], told_by[plate] = named[plate.name], "its names"
    for plate, size in flat.sizes.items():
        if sizes.setdefault(plate, size) != size:
            raise PlateError(
                f"plate '{plate.name}' has size {sizes[plate]} in its declaration, but the data have {size}"
            )
        told_by.setdefault(plate, "the data within it")
    for node in nodes:
        if node not in shapes:
            continue
        for plate, size in zip(node.plates, shapes[node], strict=False):
            if sizes.setdefault(plate, size) != size:
                raise PlateError(
                    f"plate '{plate.name}' has {size} rows in '{node.name}' but {sizes[plate]} in {told_by[plate]}; "
                    f"give each the same number"
                )
            told_by.setdefault(plate, f"'{node.name}'")
        if isinstance(node, Variable) and node.value_rank:
            _check_event(node, shapes[node])
    sizes = {**flat.fewest, **sizes}
    for node in nodes:
        for plate in node.plates:
            if plate not in sizes:
                raise PlateError(
                    f"the size of plate '{plate.name}' of '{node.name}' is unknown: no data have it; "
                    f"write Plate('{plate.name}', size)"
                )
    return sizes


def _check_event(node: Variable, shape: tuple[int, ...]) -> None:
    if node.dimension is None:
        return
    event = shape[len(node.plates) :]
    if any(size != node.dimension for size in event):
        raise PlateError(
            f"'{node.name}' has dimension {node.dimension}, but each value in its data has shape {event}; "
            "state it with the dimension of the data, or give data of that dimension"
        )


def _data_plate(own: OfNodes, wanted: Plate | str | None) -> Plate | None:
    """Return the plate of the rows: what a user wants, or by default."""
    name = None if wanted is None else wanted.name if isinstance(wanted, Plate) else str(wanted)
    if name not in own.data_plates:
        own.data_plates[name] = _choose_data_plate(own.nodes, own.leaves, wanted)
    return own.data_plates[name]


def _choose_data_plate(
    nodes: Sequence[Node], leaves: Sequence[Variable], wanted: Plate | str | None
) -> Plate | None:
    plates = {plate.name: plate for node in nodes for plate in node.plates}
    nested, chosen = nested_plates(nodes), _chosen_plates(nodes)
    if wanted is not None:
        plate = plates.get(wanted.name if isinstance(wanted, Plate) else str(wanted))
        if plate is None:
            raise PlateError(
                f"data_plate={wanted!r} is not a plate of the model; its plates are {', '.join(plates) or 'none'}"
            )
        if nested and plate is not nested[0]:
            raise PlateError(
                f"data_plate='{plate.name}', but plate '{nested[0].name}' lies within another: its repetitions "
                "are the rows of data; leave data_plate= out"
            )
        if plate in chosen:
            owner, index = chosen[plate]
            raise PlateError(
                f"data_plate='{plate.name}', but {index} of '{owner.name}' chooses from it: any row may use "
                f"any of its repetitions, so these are not rows of data; name the plate of '{leaves[0].name}', "
                "or leave data_plate= out"
            )
        return plate
    if nested:
        return nested[0]
    candidates = [plate for leaf in leaves for plate in leaf.plates if plate not in chosen]
    unsized = [plate for plate in candidates if plate.size is None]
    return unsized[0] if unsized else max(candidates, key=lambda plate: plate.size or 0, default=None)


def _chosen_plates(nodes: Sequence[Node]) -> dict[Plate, tuple[Variable, str]]:
    """Return the plates that something chooses from, each with a variable in which it does, and how that is stated."""
    found: dict[Plate, tuple[Variable, str]] = {}
    for variable in nodes:
        if not isinstance(variable, Variable):
            continue
        for slot in variable.slots.values():
            through = [own for each in slot.chosen for own in (each.through, *each.givens) if own is not None]
            for chosen in (*slot.chosen, *through):
                found.setdefault(chosen.plate, (variable, f"'{slot.expression!r}'"))
    return found


def _refuse_nested_weights(nodes: Sequence[Node]) -> None:
    """Refuse weights of rows that lie within another plate: a weight of 2 would not be the outer repetition twice."""
    for plate in nested_plates(nodes):
        assert plate.within is not None
        raise DataError(
            f"sample_weight cannot be given for '{plate.name}', which lies within '{plate.within.name}'; "
            f"pass counts of categories as a sparse matrix instead"
        )
