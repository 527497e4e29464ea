"""A bound model: the nodes of a statement with the data that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from ..._typing import AnyArray, Array
from ...families import ExponentialFamily
from ...families.shared.coupled_belief import CoupledBelief
from ...language import Axis, Data, Label, Link, Node, Plate, Variable
from ...lazy.rows import LazyRows
from ...numerics.cached import cached_property
from .evidence import NOTHING, OF_VALUES, Evidence, Latent

T = TypeVar("T")

_MOST_KINDS = 16
"""Kinds of data of one structure for which facts are kept."""


@dataclass(frozen=True, eq=False)
class JoinedLabels:
    """Which combination of several known labels each row has.

    Attributes
    ----------
    node
        In the place of the labels, one that chooses from the combinations.
    combinations
        The plate of the combinations.
    labels
        Label -> its value in each combination, (C,).
    positions
        Of each row, the combination that it has, (N,).
    """

    node: Data
    combinations: Plate
    labels: Mapping[Node, AnyArray]
    positions: Any


@dataclass(frozen=True, eq=False)
class Sizes:
    """The sizes of axes; it holds no data.

    Attributes
    ----------
    plates
        Size of each plate.
    """

    plates: Mapping[Plate, int]

    def __call__(self, axis: Axis) -> int:
        """Return the size of an axis."""
        if isinstance(axis.of, Plate):
            return self.plates[axis.of]
        size = axis.of.letter_sizes.get(axis.letter, axis.of.dimension)
        assert size is not None
        return size

    def without(self, plate: Plate | None) -> Sizes:
        """Return these sizes without that of a plate."""
        return Sizes({own: size for own, size in self.plates.items() if own is not plate})


@dataclass(frozen=True)
class BoundModel:
    """A model's nodes with the data that belong to them.

    Attributes
    ----------
    nodes
        Every node, a variable before its parents.
    sizes
        Size of each plate.
    data_plate
        The plate that runs over rows of data, or None.
    evidence
        What is known of each node. What there is for each row is an array, or rows that are read in blocks.
    row_weights
        Weight of each row, or None; zero where nothing was observed, except in steps of a chain that lead to an
        observation.
    joined
        Known labels that meet in a term -> which combination of them each row has.
    floors
        Smallest variances that precisions may express, of those that have one.
    facts
        What was found before of the same nodes, by the kinds of their data.
    """

    nodes: tuple[Node, ...]
    sizes: Mapping[Plate, int]
    data_plate: Plate | None
    evidence: Mapping[Node, Evidence]
    row_weights: Array | None = None
    joined: Mapping[frozenset[Node], JoinedLabels] = field(default_factory=dict)
    floors: Mapping[Variable, Array] = field(default_factory=dict)
    facts: dict[Hashable, dict[Hashable, Any]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def latent(self) -> tuple[Variable, ...]:
        """The hidden variables."""
        return self.fact("hidden", self._hidden)

    def _hidden(self) -> tuple[Variable, ...]:
        every = self.evidence
        return tuple(
            [n for n in self.nodes if isinstance(n, Variable) and every.get(n, NOTHING).values is None]
        )

    @cached_property
    def kinds(self) -> Hashable:
        """What is the same of two bindings of the same nodes that differ in values and the number of rows alone."""
        sizes = frozenset([own for own in self.sizes.items() if own[0] is not self.data_plate])
        kinds: list[Hashable] = []
        for node in self.nodes:
            own = self.evidence.get(node, NOTHING)
            values = own.values
            if values is None:
                kinds.append(
                    (own.clamped is None, own.in_part is None, own.active is None, own.prior is None)
                )
            elif type(values) is np.ndarray and not node.plates:
                kinds.append((values.shape, None, own.observed is None, own.entries is None))
            else:
                kinds.append(self._kind(node, own))
        return self.data_plate, tuple(kinds), sizes, self.row_weights is None, tuple(self.joined)

    def _kind(self, node: Node, own: Evidence) -> Hashable:
        """Return the kind of known values along some plates."""
        values: Any = own.values
        shape = values.shape
        if self.data_plate in node.plates:
            place = node.plates.index(self.data_plate)
            shape = (*shape[:place], *shape[place + 1 :])
        is_array = type(values) is np.ndarray
        kind = None if is_array else (isinstance(values, LazyRows), issparse(values))
        return shape, kind, own.observed is None, own.entries is None

    @property
    def has_plan(self) -> bool:
        """Whether what is compiled depends on values as values of constants alone."""
        for own in self.evidence.values():
            if own.values is None:
                if own.prior is not None or own.active is not None:
                    return False
            elif type(own.values) is not np.ndarray and isinstance(own.values, LazyRows):
                return False
        return True

    def fact(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return what follows from the nodes, the shapes of their data and which are known, without any values.

        It is found once for all bindings of a structure. It must hold nothing but nodes and what these consist of.

        Parameters
        ----------
        key
            What is asked.
        find
            Returns it.
        """
        facts = self._facts
        if key not in facts:
            facts[key] = find()
        return facts[key]

    @cached_property
    def _facts(self) -> dict[Hashable, Any]:
        found = self.facts.get(self.kinds)
        if found is None:
            if len(self.facts) >= _MOST_KINDS:
                self.facts.clear()
            found = self.facts[self.kinds] = {}
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what can be found again."""
        return {**{name: vars(self)[name] for name in self.__dataclass_fields__}, "facts": {}}

    def of(self, node: Any) -> Evidence:
        """Return what is known of a node; nothing of one that belongs to another model."""
        return self.evidence.get(node, NOTHING)

    def is_known(self, node: Any) -> bool:
        """Whether a node has values: an observed variable, a known array or a constant."""
        return self.of(node).values is not None

    def values_of(self, node: Any) -> AnyArray:
        """Return the values of a known node."""
        values = self.of(node).values
        assert values is not None, node
        return values

    def gathered(self, name: str) -> Mapping[Any, Any]:
        """Return an attribute of the evidence, by node, for the nodes of which it is not None."""
        kept = self._gathered
        if name not in kept:
            every = self._known if name in OF_VALUES else self._told
            kept[name] = {node: own for node, each in every if (own := getattr(each, name)) is not None}
        return kept[name]

    @cached_property
    def _known(self) -> list[tuple[Node, Evidence]]:
        """The nodes with values."""
        return [item for item in self.evidence.items() if item[1].values is not None]

    @cached_property
    def _told(self) -> list[tuple[Node, Evidence]]:
        """The hidden variables of which something is known."""
        return [item for item in self.evidence.items() if item[1].values is None and item[1] is not NOTHING]

    @cached_property
    def _gathered(self) -> dict[str, dict[Any, Any]]:
        return {}

    def columns(self) -> list[tuple[Node, str, Any]]:
        """Return what there is for each row: node, kind of column, and the array over the plates of the node."""
        along = [(node, own) for node, own in self.evidence.items() if self.data_plate in node.plates]
        found = [(node, *column) for node, own in along for column in own.columns().items()]
        joined = [own for own in self.joined.values() if self.data_plate in own.node.plates]
        return found + [(own.node, "value", own.positions) for own in joined]

    @property
    def known_values(self) -> dict[Node, AnyArray]:
        """Values of all known nodes."""
        return dict(self.gathered("values"))

    def with_active(self, active: Mapping[Variable, AnyArray]) -> BoundModel:
        """Return this model with these hidden repetitions that count, and all of every other variable."""
        return self._with_latent(lambda variable, own: replace(own, active=active.get(variable)))

    def with_priors(self, priors: Mapping[Variable, ExponentialFamily | CoupledBelief]) -> BoundModel:
        """Return this model with factors of an earlier fit in the place of the priors of these variables only."""
        return self._with_latent(lambda variable, own: replace(own, prior=priors.get(variable)))

    def _with_latent(self, change: Callable[[Any, Latent], Latent]) -> BoundModel:
        evidence = {
            node: change(node, own) if isinstance(own, Latent) else own for node, own in self.evidence.items()
        }
        return replace(self, evidence=evidence)

    @cached_property
    def size(self) -> Sizes:
        """Where the sizes of axes come from."""
        return Sizes(self.sizes)

    def is_flat(self, variable: Variable) -> bool:
        """Whether a variable has a flat prior: stated so, and nothing known from an earlier fit."""
        return variable.is_flat and self.of(variable).prior is None

    def is_local(self, node: Node) -> bool:
        """Whether the node is repeated over the data plate."""
        return self.data_plate in node.plates

    @cached_property
    def _latent_apart(self) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        apart: tuple[list[Variable], list[Variable]] = [], []
        for variable in self.latent:
            apart[not self.is_local(variable)].append(variable)
        return tuple(apart[0]), tuple(apart[1])

    def latent_locals(self) -> tuple[Variable, ...]:
        """Return the hidden variables of the rows."""
        return self._latent_apart[0]

    def latent_globals(self) -> tuple[Variable, ...]:
        """Return the hidden variables that all rows share."""
        return self._latent_apart[1]

    @property
    def n_rows(self) -> int:
        """Rows of the data plate; 1 for a model without one."""
        return 1 if self.data_plate is None else self.sizes[self.data_plate]

    @property
    def numbers_in_part(self) -> list[Variable]:
        """The variables of the rows that are known in some rows, without labels."""
        return [variable for variable in self.gathered("in_part") if not isinstance(variable, Label)]

    @property
    def bytes_a_row(self) -> float:
        """Bytes that a row of the data takes on average, in double precision; of sparse rows, what is not zero."""
        numbers = sum(
            value.size for node, value in self.known_values.items() if self.data_plate in node.plates
        )
        return 8.0 * numbers / max(self.n_rows, 1)

    @property
    def has_links(self) -> bool:
        """Whether some observed variable has a link."""
        arguments = (own.stated.values() for own in self.observed)
        return any(isinstance(argument, Link) for each in arguments for argument in each)

    @cached_property
    def observed(self) -> list[Variable]:
        """The variables with data."""
        every = self.evidence
        return [n for n in self.nodes if isinstance(n, Variable) and every.get(n, NOTHING).values is not None]
