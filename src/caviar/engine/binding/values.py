"""Values of nodes as they came: numeric arrays, checked for axes, finite numbers and the support of their variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import DataError, PlateError
from ..._typing import AnyArray
from ...language import Data, Node, Plate, Variable
from ...language.nodes.roles import PRECISION, PRECISION_MATRIX, labels_of
from ...lazy.block_map import any_of, map_blocks
from ...lazy.rows import Computed, LazyRows
from .missing.lazy_values import lazy_weights
from .missing.values import as_unmasked, refuse_infinite

_CHECK_ROWS = 8_192
_LARGEST_WEIGHT = 1e150
"""Weight whose square is still a number."""

_SMALLEST_WEIGHT = 1e-290
"""Largest weight below which a quotient by the total weight may overflow."""


def as_values(node: Node, value: Any, event_rank: int) -> AnyArray:
    """Return data of a node as a numeric array without infinities, its type kept; masked entries are NaN.

    Raises
    ------
    DataError
        If it is not that.
    """
    array = _as_numbers(node, value)
    check_axes(node, array, event_rank)
    _check_finite(node, array)
    return array


def check_axes(node: Node, array: Any, event_rank: int) -> None:
    """Check that values have an axis for each plate of their node, and for each event axis."""
    rank = len(node.plates) + event_rank
    if array.ndim != rank:
        expected = ", ".join([*(plate.name for plate in node.plates), *(["D"] * event_rank)])
        axes = f"{rank} {'axis' if rank == 1 else 'axes'} ({expected})" if rank else "a single value"
        hint = ""
        if array.ndim > rank and not node.plates:
            hint = (
                f". If it is repeated, give it a plate: plates=cv.Plate('obs') where '{node.name}' is stated"
            )
        raise PlateError(f"'{node.name}' must have {axes}; its data have shape {array.shape}{hint}")
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


def value_ranks(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return the number of event axes of each node's values; for Data, that of the slots it fills."""
    variables = [node for node in nodes if isinstance(node, Variable)]
    ranks: dict[Node, int] = {node: node.value_rank for node in variables}
    if not any(isinstance(node, Data) for node in nodes):
        return ranks
    for node in variables:
        for slot in node.slots.values():
            if isinstance(slot.node, Data) and ranks.setdefault(slot.node, slot.role.rank) != slot.role.rank:
                raise PlateError(
                    f"'{slot.node.name}' is used for values of different rank; declare a Data for each"
                )
            for chosen in slot.choices:
                ranks.setdefault(chosen.by, 0)
    return ranks


def _not_numeric(node: Node, array: AnyArray) -> str:
    example = next(
        (v for v in array.flat if not isinstance(v, (int, float))), array.flat[0] if array.size else None
    )
    # NumPy shows a text of its own type as a call
    example = str(example) if isinstance(example, str) else example
    told = f"the data of '{node.name}' must be numbers; got {example!r} ({type(example).__name__})"
    if isinstance(example, str):
        return (
            f"{told}. Only labels of a Categorical, and Data that choose from a plate, may be texts; code "
            f"a binary outcome as 0 or 1, as in values == {example!r}"
        )
    return told


def _check_finite(node: Node, array: AnyArray) -> None:
    if array.dtype.kind != "f":
        return
    for start in range(0, len(array) if array.ndim else 1, _CHECK_ROWS):
        block = array[start : start + _CHECK_ROWS] if array.ndim else array
        infinite = np.isinf(block)
        if np.count_nonzero(infinite):
            where = tuple(np.argwhere(infinite)[0])
            row = start + int(where[0]) if where else 0
            refuse_infinite(node, row)


def check_support(node: Variable, value: AnyArray) -> None:
    """Refuse data off the support of their variable."""
    if not node.takes_data:
        raise DataError(f"'{node.name}' is a hidden variable: it is inferred and takes no data; leave it out")
    problem = _problem_with(value, node.problem_with)
    if problem:
        raise DataError(f"{node.in_words}, {problem}")


def check_beside(node: Variable, values: Mapping[Node, AnyArray]) -> None:
    """Refuse data off a support that depends on known values in slots of their variable."""
    if not node.beside:
        return
    known = {name: node.slots[name].node for name in node.beside}
    own = values[node]
    if isinstance(own, LazyRows):
        # what is read in blocks runs along the first plate, and so must what goes with it
        of_rows = {
            name: values[other] for name, other in known.items() if other.plates[:1] == node.plates[:1]
        }
        fixed = {name: other for name, other in known.items() if name not in of_rows}
        of = _ProblemBeside(node, tuple(of_rows), whole_beside(node, values.__getitem__, fixed))
        found = next((told for told in map_blocks(of, own, *of_rows.values()) if told[1]), (0, ""))
        problem = found[1] + (f", counted from row {found[0]}" if found[0] else "")
    else:
        problem = node.problem_beside(own, whole_beside(node, values.__getitem__, known)) if own.size else ""
    if problem:
        raise DataError(f"{node.in_words}, {problem}")


def whole_beside(
    variable: Variable, values_of: Callable[[Node], AnyArray], slots: Iterable[str] | None = None
) -> dict[str, AnyArray]:
    """Return what is known beside all values of a variable, with an axis for each of its plates.

    Of some slots only, if these are given.
    """
    found = {}
    for name in variable.beside if slots is None else slots:
        node = variable.slots[name].node
        own = np.asarray(values_of(node), dtype=np.float64)
        found[name] = along_plates(own, node.plates, variable.plates)
    return found


def along_plates(array: AnyArray, own: Sequence[Plate], plates: Sequence[Plate]) -> AnyArray:
    """Return an array over some plates with an axis for each of ``plates``, in their order."""
    order = [own.index(plate) for plate in plates if plate in own]
    return array.transpose(order)[tuple(slice(None) if plate in own else None for plate in plates)]


@dataclass(frozen=True, eq=False)
class _ProblemBeside:
    """What is wrong with a block of rows, given what is known beside them."""

    node: Variable
    of_rows: tuple[str, ...]
    fixed: Mapping[str, AnyArray]

    def __call__(self, block: AnyArray, *known: AnyArray) -> str:
        found = {
            name: along_plates(
                np.asarray(own, dtype=np.float64), self.node.slots[name].node.plates, self.node.plates
            )
            for name, own in zip(self.of_rows, known, strict=True)
        }
        return self.node.problem_beside(block, {**self.fixed, **found})


def _problem_with(value: Any, of: Callable[[AnyArray], str]) -> str:
    """Return what is wrong with values; if they are read in blocks, with the rows of the block."""
    if type(value) is np.ndarray or not isinstance(value, LazyRows):
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
        refuse_flat(node)
    for slot in node.slots.values():
        for chosen in slot.choices:
            problem = _problem_with(as_plain(values[chosen.by]), labels_of(sizes[chosen.plate]).problem)
            if problem:
                raise DataError(
                    f"the data of '{chosen.by.name}', which choose from plate '{chosen.plate.name}' of "
                    f"'{chosen.node.name}', {problem}"
                )
        if slot.dimension and slot.node.is_known and slot.dimension != values[slot.node].shape[-1]:
            raise PlateError(
                f"'{slot.node.name}' has rows of length {values[slot.node].shape[-1]}; in '{slot.name}' of "
                f"'{node.name}' it meets vectors of length {slot.dimension}"
            )
        if isinstance(slot.node, Data):
            value = values[slot.node]
            # a copy of a table of single precision in double would cost more than all checks
            in_type = None if value.dtype.kind == "f" else np.float64
            problem = _problem_with(as_plain(value, in_type), slot.role.problem)
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


def refuse_flat(node: Variable) -> None:
    """Refuse data of a variable whose prior is flat."""
    if node.is_flat:
        raise DataError(
            f"'{node.name}' has data, but its precision or rate is 0, a flat, improper density, which is "
            f"not a distribution of data; give its {type(node).__name__} a positive one"
        )


def as_weights(sample_weight: Any, n_rows: int) -> Any:
    """Return weights of rows, shape (N,), as an array or as rows that are read in blocks.

    Raises
    ------
    DataError
        If they are not weights.
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
        raise DataError(
            f"the largest sample_weight is {np.max(weights):g}, too large for sums in double "
            f"precision; divide all weights by a number"
        )
    if np.max(weights) < _SMALLEST_WEIGHT:
        raise DataError(
            f"the largest sample_weight is {np.max(weights):g}, too small for sums in double precision; "
            f"multiply all weights by a number"
        )
    return np.ascontiguousarray(weights)
