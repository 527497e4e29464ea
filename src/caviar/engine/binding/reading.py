"""Reading the data of each node: values are checked one by one, before the rows of data are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..._errors import DataError, PlateError
from ..._typing import AnyArray
from ...language import Constant, Data, Multinomial, Node, Plate, Variable
from ...lazy.rows import LazyRows, in_memory
from ...lazy.sparse_rows import SparseRows
from ...numerics.cached import cached_property
from .clamped.repetitions import as_pair, is_joint
from .evidence import Observed
from .missing.entries import gaps_of, observed_entries, with_column_means
from .missing.lazy_values import LazyValues, lazy_values, rows_first
from .missing.values import at_column_means, filled
from .nested import nested_plates
from .values import as_values, check_axes, value_ranks


class OfNodes:
    """Facts of the nodes of a statement.

    Parameters
    ----------
    nodes, leaves
        Every node, a variable before its parents, and the observed variables.
    """

    def __init__(self, nodes: Sequence[Node], leaves: Sequence[Variable]) -> None:
        self.nodes, self.leaves = tuple(nodes), tuple(leaves)
        self.data_plates: dict[str | None, Plate | None] = {}
        """The plate of the rows, by the name of the one that a user wants."""

    @classmethod
    def among(cls, facts: dict[Hashable, dict], nodes: Sequence[Node], leaves: Sequence[Variable]) -> OfNodes:
        """Return those that were found before, or new ones that are kept there."""
        kept = facts.setdefault(None, {})
        if "nodes" not in kept:
            kept["nodes"] = cls(nodes, leaves)
        return kept["nodes"]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables."""
        return tuple([node for node in self.nodes if isinstance(node, Variable)])

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The constants."""
        return tuple([node for node in self.nodes if isinstance(node, Constant)])

    @cached_property
    def floored(self) -> tuple[Variable, ...]:
        """Variables with smallest variances."""
        return tuple([own for own in self.variables if own.floor is not None])

    @cached_property
    def meeting_data(self) -> frozenset[Variable]:
        """Variables with a slot whose known values come with the data, or have a length that it has to have."""
        return frozenset(
            [
                own
                for own in self.variables
                for slot in own.slots.values()
                if slot.choices or slot.dimension or isinstance(slot.node, Data)
            ]
        )

    @cached_property
    def with_sizes(self) -> tuple[Node, ...]:
        """The nodes with plates, or with values of several numbers."""
        return tuple(
            [own for own in self.nodes if own.plates or (isinstance(own, Variable) and own.value_rank)]
        )

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def may_be_given(self) -> tuple[str, ...]:
        """Names of what data may have."""
        return tuple([node.name for node in self.nodes if not isinstance(node, Constant)])

    @cached_property
    def needed(self) -> tuple[Node, ...]:
        """What data must have."""
        return (*self.leaves, *(node for node in self.nodes if isinstance(node, Data)))

    @cached_property
    def ranks(self) -> Mapping[Node, int]:
        """Event axes of the values of each node."""
        return value_ranks(self.nodes)

    @cached_property
    def nested(self) -> Sequence[Plate]:
        """Plates that lie within another."""
        return nested_plates(self.nodes)

    @cached_property
    def ends(self) -> frozenset[Node]:
        """Leaves that nothing depends on: what is missing of others must be inferred, stated as observed or not."""
        return frozenset([leaf for leaf in self.leaves if leaf not in self.parents])

    @cached_property
    def parents(self) -> frozenset[Node]:
        """What some variable depends on."""
        return frozenset([parent for own in self.variables for parent in own.parents])

    @cached_property
    def tied(self) -> Mapping[Plate, Variable]:
        """Plates along which the repetitions of a variable share some statistics."""
        return {own.tied: own for own in reversed(self.variables) if own.tied is not None}

    @cached_property
    def choosers(self) -> frozenset[Variable]:
        """Categoricals that choose among parents."""
        return frozenset([by for own in self.variables for by in own.indices])

    @cached_property
    def has_chains(self) -> bool:
        """Whether some variable sums more over its rows than its statistics."""
        return any(own.summed for own in self.variables)


@dataclass(frozen=True, eq=False)
class Given:
    """What the data have for a node.

    Attributes
    ----------
    values
        An array, rows that are read in blocks, a sparse matrix, or a pair (mean, precision).
    mask
        Where it was observed, shape (plates...); None if everywhere.
    entries
        Of vectors that are missing in part, which entries were observed, shape (N, D).
    lazy
        Of rows that are read in blocks, how they came.
    is_in_part
        Whether the node is latent where the values are NaN.
    """

    values: Any
    mask: Any = None
    entries: Any = None
    lazy: LazyValues | None = None
    is_in_part: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values; of a pair, that of the mean."""
        return (self.values[0] if isinstance(self.values, tuple) else self.values).shape


def read(own: OfNodes, data: Mapping[str, Any]) -> dict[Node, Given]:
    """Return what the data have for each node that they name, in their order.

    Raises
    ------
    DataError
        If a value is not numeric or not finite, or missing where it must not be.
    PlateError
        If it has other axes than its node.
    """
    named = [(own.by_name[name], value) for name, value in data.items()]
    return {node: _read(node, value, own.ranks.get(node, 0), node in own.ends) for node, value in named}


def _read(node: Node, value: Any, rank: int, is_leaf: bool) -> Given:
    if isinstance(node, Multinomial) and issparse(value) and value.ndim == 2 and len(node.plates) == 1:
        return Given(_sparse_counts(node, value))
    if isinstance(node, Variable) and is_joint(node):
        return Given(as_pair(node, value, as_values), is_in_part=True)
    if type(value) is not np.ndarray and isinstance(value, LazyRows):
        if isinstance(value, SparseRows):
            raise DataError(
                f"the data of '{node.name}' are documents that are read in blocks, which are counts of words of a "
                f"model of topics; pass them in memory, documents.to_numpy()"
            )
        check_axes(node, value, rank)
        found = lazy_values(node, value, rank)
        if found is not None and (found.mask is None or is_leaf):
            return Given(found.values, found.mask, lazy=found)
        value = value.to_numpy()
    return _read_array(node, as_values(node, value, rank), rank, is_leaf)


def _read_array(node: Node, array: AnyArray, rank: int, is_leaf: bool) -> Given:
    if isinstance(node, Variable) and not is_leaf and (node.is_flat or _has_missing(array)):
        return Given(array, is_in_part=True)
    entries = observed_entries(node, array)
    if entries is not None and isinstance(node, Variable):
        any_seen = np.asarray(entries.any(axis=1))
        return Given(array, None if any_seen.all() else any_seen, entries)
    return Given(*filled(node, array, rank))


def _has_missing(array: AnyArray) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _sparse_counts(node: Node, value: Any) -> Any:
    """Return a sparse matrix (N, V) as rows in float64, with each non-zero entry once; the matrix is not changed.

    Raises
    ------
    DataError
        If it is empty, its entries are not finite numbers, or its indices are broken.
    """
    if value.dtype.kind not in "biuf":
        raise DataError(f"the data of '{node.name}' must be numbers; got a sparse {value.dtype.name} matrix")
    if 0 in value.shape:
        raise DataError(f"the data of '{node.name}' are empty: shape {value.shape}")
    try:
        with np.errstate(over="ignore"):
            # before duplicates are summed, which could be too much for a short type
            rows: Any = csr_array(value.astype(np.float64, copy=False))
        rows.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"the data of '{node.name}' are not a valid sparse matrix: {error}") from error
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    wrong = np.flatnonzero(~np.isfinite(rows.data))
    if len(wrong):
        row = np.searchsorted(rows.indptr, wrong[0], side="right") - 1
        raise DataError(
            f"'{node.name}' has {rows.data[wrong[0]]} in row {row}; sparse counts have no missing entries: drop such "
            f"rows before the fit"
        )
    return rows


def check_along_rows(values: Mapping[Node, AnyArray], plate: Plate | None) -> None:
    """Check that what is sparse are rows of data.

    Raises
    ------
    PlateError
        If not.
    """
    for node, value in values.items():
        if plate not in node.plates and issparse(value):
            own = node.plates[0].name
            raise PlateError(
                f"the data of '{node.name}' are sparse along plate '{own}', but the rows of data run along "
                f"'{plate.name if plate else ''}'; state data_plate='{own}', or pass its .toarray()"
            )


def settled(given: Mapping[Node, Given], nodes: Sequence[Node], plate: Plate | None) -> dict[Node, Given]:
    """Keep lazy what runs along the rows of data; hold in memory what does not, and what a chain needs whole."""
    whole = {
        slot.node
        for node in nodes
        if isinstance(node, Variable) and node.summed
        for slot in node.slots.values()
    }
    found = dict(given)
    for node, own in given.items():
        if own.lazy is None:
            continue
        if plate in node.plates and node not in whole:
            rows_first(node, plate)
            continue
        mask = None if own.mask is None else in_memory(own.mask)
        found[node] = replace(own, values=in_memory(own.values), mask=mask, lazy=None)
    return found


def completed(given: Mapping[Node, Given], plate: Plate | None, weights: Any) -> dict[Node, Observed]:
    """Return what was observed of each node, with missing values at the mean of their column."""
    return {node: _completed(node, own, plate, weights) for node, own in given.items()}


def _completed(node: Node, own: Given, plate: Plate | None, weights: Any) -> Observed:
    if own.entries is not None and isinstance(node, Variable):
        array = in_memory(own.values)
        gaps = gaps_of(array, own.entries, weights)
        return Observed(with_column_means(array, gaps), own.mask, gaps)
    if own.mask is None or plate is None or plate not in node.plates:
        return Observed(own.values, own.mask)
    if own.lazy is not None:
        return Observed(own.lazy.at_column_means(node, weights), own.mask)
    axis = node.plates.index(plate)
    return Observed(at_column_means(node, own.values, own.mask, axis, weights), own.mask)
