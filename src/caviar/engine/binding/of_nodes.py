"""What binding asks of the nodes of a statement alone: found once for all data that they meet."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...language import Constant, Data, Node, Plate, Variable
from ...numerics.cached import cached_property
from .nested import nested_plates
from .values import value_ranks


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
    def has_choices(self) -> bool:
        """Whether known labels choose from a plate."""
        return any(slot.choices for own in self.variables for slot in own.slots.values())

    @cached_property
    def choosers(self) -> frozenset[Variable]:
        """Categoricals that choose among parents."""
        return frozenset([by for own in self.variables for by in own.indices])

    @cached_property
    def has_chains(self) -> bool:
        """Whether some variable sums more over its rows than its statistics."""
        return any(own.summed for own in self.variables)
