"""A bound model: the nodes of a statement with the data that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._typing import AnyArray, Array
from ...families import ExponentialFamily
from ...language import Axis, Node, Plate, Variable
from .clamped.factor import Clamped
from .joined_labels import JoinedLabels
from .missing.entries import Gaps

__all__ = ["BoundModel"]


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
        Of global variables, factors of an earlier fit, used instead of their priors.
    joined
        Known labels that meet in a term -> which combination of them each row has.
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
    known: Mapping[Variable, Clamped] = field(default_factory=dict)
    beliefs: Mapping[Variable, ExponentialFamily] = field(default_factory=dict)
    joined: Mapping[frozenset[Node], JoinedLabels] = field(default_factory=dict)
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
