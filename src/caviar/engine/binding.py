"""Binding: a statement meets its data. Sizes are settled, values checked, and the data plate chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._errors import DataError, PlateError
from .._typing import AnyArray, Array
from ..families import ExponentialFamily
from ..language import Axis, Constant, Data, Indexed, Node, Plate, Variable
from ..language.roles import PRECISION, PRECISION_MATRIX, labels_of
from ..lazy.block_map import any_of, map_blocks
from ..lazy.rows import Computed, LazyRows, in_memory
from .descendants import seen_globals
from .gaps import Gaps, gaps_of, observed_entries, with_column_means
from .known_repetitions import KnownRepetitions, as_pair, is_joint, repetitions_of
from .lazy_values import LazyValues, lazy_values, lazy_weights, rows_first
from .missing import (
    as_unmasked,
    at_column_means,
    filled,
    observed_rows,
    of_blocks,
    partial_labels,
    seen_latents,
)
from .ragged import Flattened, flattened, nested_plates
from .sparse import check_along_rows, sparse_counts, takes_sparse
from .steps import counted_steps, refuse_weights, rows_that_count

__all__ = ["Binding", "as_values", "as_weights", "bind", "check_known_slots", "check_support"]

_CHECK_ROWS = 8_192
_LARGEST_WEIGHT = 1e150
"""Weight whose square is still a number."""

_SMALLEST_WEIGHT = 1e-290
"""Largest weight below which a quotient by the total weight may overflow."""


@dataclass(frozen=True)
class Binding:
    """A model's nodes with the data that belong to them.

    Attributes
    ----------
    nodes
        Every node, a variable before its parents.
    sizes
        Size of each plate.
    data_plate
        The plate that runs over rows of data, or None.
    values
        Values of the observed variables and of the other known nodes, as they came; axes are plates, then event.
        Like what else is there for each row, an array, or rows that are read in blocks.
    row_weights
        Weight of each row, or None; zero where nothing was observed, except in steps of a chain that lead to an
        observation.
    masks
        Of observed variables with missing entries, which were observed: shape (plates...).
    labels
        Of latent Categoricals of the rows that are known in part, the labels, -1 where unknown: shape (plates...).
    known
        Of global variables that are known in part, the repetitions that are.
    seen
        Of latents that must count only where something below them was observed, where: shape (plates...). Of those of
        the rows, and of global ones.
    gaps
        Of observed vectors that are missing in part, which entries were observed.
    beliefs
        Of global variables, factors of an earlier fit that stand in the place of their priors.
    """

    nodes: tuple[Node, ...]
    sizes: Mapping[Plate, int]
    data_plate: Plate | None
    values: Mapping[Node, AnyArray]
    row_weights: Array | None = None
    masks: Mapping[Node, AnyArray] = field(default_factory=dict)
    labels: Mapping[Node, AnyArray] = field(default_factory=dict)
    seen: Mapping[Variable, AnyArray] = field(default_factory=dict)
    gaps: Mapping[Variable, Gaps] = field(default_factory=dict)
    known: Mapping[Variable, KnownRepetitions] = field(default_factory=dict)
    beliefs: Mapping[Variable, ExponentialFamily] = field(default_factory=dict)
    latent: tuple[Variable, ...] = field(init=False)

    def __post_init__(self) -> None:
        latent = tuple(n for n in self.nodes if isinstance(n, Variable) and n not in self.values)
        object.__setattr__(self, "latent", latent)

    def size(self, axis: Axis) -> int:
        """Return the size of an axis."""
        if isinstance(axis.of, Plate):
            return self.sizes[axis.of]
        size = axis.of.letter_sizes.get(axis.letter, axis.of.dimension)
        assert size is not None
        return size

    def is_flat(self, variable: Variable) -> bool:
        """Whether a variable has a flat prior: stated so, and nothing known from an earlier fit."""
        return variable.is_flat and variable not in self.beliefs

    def is_local(self, node: Node) -> bool:
        """Whether the node is repeated over the data plate."""
        return self.data_plate in node.plates

    @property
    def n_rows(self) -> int:
        """Rows of the data plate; 1 for a model without one."""
        return 1 if self.data_plate is None else self.sizes[self.data_plate]

    @property
    def bytes_a_row(self) -> float:
        """Bytes that a row of the data takes on average, in double precision; of sparse rows, what is not zero."""
        numbers = sum(value.size for node, value in self.values.items() if self.data_plate in node.plates)
        return 8.0 * numbers / max(self.n_rows, 1)

    @property
    def observed(self) -> list[Variable]:
        """The variables with data."""
        return [node for node in self.nodes if isinstance(node, Variable) and node in self.values]


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


def as_values(node: Node, value: Any, event_rank: int) -> AnyArray:
    """Return data of a node as a numeric array without infinities, its type kept; masked entries are NaN.

    Raises
    ------
    DataError
        If it is not that.
    """
    array = _as_numbers(node, value)
    _check_axes(node, array, event_rank)
    _check_finite(node.name, array)
    return array


def _check_axes(node: Node, array: Any, event_rank: int) -> None:
    rank = len(node.plates) + event_rank
    if array.ndim != rank:
        expected = ", ".join([*(plate.name for plate in node.plates), *(["D"] * event_rank)])
        hint = ""
        if array.ndim > rank and not node.plates:
            hint = (
                f". If it is repeated, give it a plate: plates=cv.Plate('obs') where '{node.name}' is stated"
            )
        raise PlateError(
            f"'{node.name}' must have {rank} axes ({expected}); its data have shape {array.shape}{hint}"
        )
    # outer repetitions may all be empty
    if array.size == 0 and not any(plate.within for plate in node.plates):
        raise DataError(f"the data of '{node.name}' are empty: shape {array.shape}")


def _as_numbers(node: Node, value: Any) -> AnyArray:
    """Return a numeric array of at most double precision."""
    value = as_unmasked(value)
    if hasattr(value, "toarray"):
        raise DataError(
            f"the data of '{node.name}' are a sparse {type(value).__name__}, which only counts of a Multinomial with "
            f"one plate may be, shape (rows, categories); pass its .toarray()"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        raise DataError(
            f"the data of '{node.name}' must be one array; got rows of different lengths, or nothing that has a shape"
        ) from None
    try:
        if array.dtype == object:
            array = array.astype(np.float64)
    except OverflowError:
        raise DataError(f"'{node.name}' has a number beyond the range of float64; rescale the data") from None
    except (TypeError, ValueError):
        raise DataError(_not_numeric(node, array)) from None
    if array.dtype.kind not in "biuf":
        raise DataError(_not_numeric(node, array))
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return array


def _value_ranks(variables: Sequence[Variable], arrays: Sequence[Data]) -> dict[Node, int]:
    """Return the number of event axes of each node's values; for Data, that of the slots it stands in."""
    ranks: dict[Node, int] = {node: node.value_rank for node in variables}
    for node in variables if arrays else ():
        for slot in node.slots.values():
            if isinstance(slot.node, Data) and ranks.setdefault(slot.node, slot.role.rank) != slot.role.rank:
                raise PlateError(
                    f"'{slot.node.name}' stands for values of different rank; declare a Data for each"
                )
            if isinstance(slot.index, Data):
                ranks.setdefault(slot.index, 0)
    return ranks


def _not_numeric(node: Node, array: AnyArray) -> str:
    example = next(
        (v for v in array.flat if not isinstance(v, (int, float))), array.flat[0] if array.size else None
    )
    return f"the data of '{node.name}' must be numbers; got {example!r} ({type(example).__name__})"


def _check_finite(name: str, array: AnyArray) -> None:
    if array.dtype.kind != "f":
        return
    for start in range(0, len(array) if array.ndim else 1, _CHECK_ROWS):
        block = array[start : start + _CHECK_ROWS] if array.ndim else array
        infinite = np.isinf(block)
        if infinite.any():
            where = tuple(np.argwhere(infinite)[0])
            row = start + int(where[0]) if where else 0
            raise DataError(f"'{name}' has an infinity in row {row}; drop or impute such rows before the fit")


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


def check_support(node: Variable, value: AnyArray) -> None:
    """Refuse data off the support of their variable."""
    if not node.takes_data:
        raise DataError(
            f"'{node.name}' is a hidden variable: it is inferred, and takes no data; leave it out"
        )
    problem = _problem_with(value, node.problem_with)
    if problem:
        raise DataError(f"'{node.name}', a {type(node).__name__}, {problem}")


def _problem_with(value: Any, of: Callable[[AnyArray], str]) -> str:
    """Return what is wrong with values, block by block if they are read so; then with the rows of the block."""
    if not isinstance(value, LazyRows):
        # of no values none is wrong
        return of(value) if value.size else ""
    if getattr(of, "__func__", None) is Variable.problem_with:
        return ""
    for start, problem in map_blocks(of, value):
        if problem:
            return problem if start == 0 else f"{problem}, counted from row {start}"
    return ""


def check_known_slots(node: Variable, values: Mapping[Node, AnyArray], sizes: Mapping[Plate, int]) -> None:
    """Check the known values that came with the data; a flat prior can be stated, but is no distribution of data."""
    if node in values:
        _refuse_flat(node)
    for slot in node.slots.values():
        if slot.index is not None and isinstance(slot.index, Data) and isinstance(slot.expression, Indexed):
            problem = _problem_with(
                as_plain(values[slot.index]), labels_of(sizes[slot.expression.plate]).problem
            )
            if problem:
                raise DataError(
                    f"the data of '{slot.index.name}', which choose from plate '{slot.expression.plate.name}' of "
                    f"'{slot.node.name}', {problem}"
                )
        if slot.dimension and slot.node.is_known and slot.dimension != values[slot.node].shape[-1]:
            raise PlateError(
                f"'{slot.node.name}' has rows of length {values[slot.node].shape[-1]}; in '{slot.name}' of "
                f"'{node.name}' it meets vectors of length {slot.dimension}"
            )
        if isinstance(slot.node, Data):
            problem = _problem_with(as_plain(values[slot.node], np.float64), slot.role.problem)
            if not problem and slot.role in (PRECISION, PRECISION_MATRIX) and not _any(values[slot.node]):
                problem = "must not be zero"
            if problem:
                raise DataError(
                    f"the data of '{slot.node.name}', '{slot.name}' of {type(node).__name__} '{node.name}', {problem}"
                )


def as_plain(value: Any, dtype: Any = None) -> Any:
    """Return values as an array, of a type if one is given; those that are read in blocks as such."""
    if not isinstance(value, LazyRows):
        return np.asarray(value, dtype=dtype)
    if dtype is None or value.dtype == dtype:
        return value
    return Computed(_InType(dtype), (value,), value.shape[1:], dtype)


@dataclass(frozen=True, eq=False)
class _InType:
    """A block in another type."""

    dtype: Any

    def __call__(self, block: AnyArray) -> AnyArray:
        return block.astype(self.dtype)


def _any(value: Any) -> bool:
    if isinstance(value, LazyRows):
        return any_of(value)
    return bool(np.any(value))


def _refuse_flat(node: Variable) -> None:
    if node.is_flat:
        raise DataError(
            f"'{node.name}' has data, but its statement is the flat, improper prior (precision or rate 0), which is no "
            f"distribution of data; give its {type(node).__name__} a positive one"
        )


def _refuse_nested_weights(nodes: Sequence[Node]) -> None:
    """Refuse weights of rows that lie within another plate: a weight of 2 would not be the outer repetition twice."""
    for plate in nested_plates(nodes):
        assert plate.within is not None
        raise DataError(
            f"sample_weight has no meaning for '{plate.name}', which lies within '{plate.within.name}'; counts of "
            f"categories are passed as a sparse matrix instead of weights"
        )


def as_weights(sample_weight: Any, n_rows: int) -> Any:
    """Return weights of rows, shape (N,), as an array or as rows that are read in blocks.

    Raises
    ------
    DataError
        If they are no weights.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, LazyRows):
        return lazy_weights(sample_weight, n_rows, (_SMALLEST_WEIGHT, _LARGEST_WEIGHT))
    try:
        weights = np.asarray(sample_weight)
        # a complex number would lose its imaginary part with no more than a warning
        weights = weights.astype(np.float64, casting="same_kind" if weights.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"sample_weight must be real numbers, one a row; got {sample_weight!r}") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one weight a row; got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise DataError("sample_weight must be finite and not negative")
    if not np.any(weights):
        raise DataError("every sample_weight is zero; nothing is left to fit")
    if np.max(weights) > _LARGEST_WEIGHT:
        raise DataError(f"sample_weight is as large as {np.max(weights):g}; divide all weights by a number")
    if np.max(weights) < _SMALLEST_WEIGHT:
        raise DataError(
            f"the largest sample_weight is {np.max(weights):g}, of which sums have no digits; multiply all weights "
            f"by a number"
        )
    return np.ascontiguousarray(weights)
