"""The pattern: proportions on an outer plate, topics of the tokens within it, and words drawn from these topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...language import Categorical, Constant, Dirichlet, Indexed, Node, Plate, Slot, Variable, nodes_above
from ...language.nodes import membership


@dataclass(frozen=True)
class Pattern:
    """The variables of latent Dirichlet allocation; their names do not matter.

    Attributes
    ----------
    proportions
        A Dirichlet for each repetition of the outer plate, its concentration the same for all: known, or with hidden
        parents.
    assignment
        A Categorical for each repetition of the plate within, with these proportions.
    word
        The observed Categorical whose probabilities the assignment chooses.
    topics
        The Dirichlet that it chooses from.
    """

    proportions: Dirichlet
    assignment: Categorical
    word: Categorical
    topics: Dirichlet

    @property
    def is_plain(self) -> bool:
        """Whether the concentration of the proportions is known."""
        return isinstance(self.proportions.slots.get("concentration"), Slot)

    @property
    def document(self) -> Plate:
        """The outer plate."""
        return self.proportions.plates[0]

    @property
    def token(self) -> Plate:
        """The plate within it."""
        return self.word.plates[0]


def pattern_of(nodes: Sequence[Node], leaves: Sequence[Variable]) -> Pattern | None:
    """Return the variables of the pattern if a model is one of documents, and nothing else; or None."""
    if len(leaves) != 1:
        return None
    (word,) = leaves
    if not isinstance(word, Categorical) or len(word.plates) != 1 or word.plates[0].within is None:
        return None
    (token,) = word.plates
    if "probabilities" not in word.slots:
        return None
    choice = word.slots["probabilities"]
    topics, assignment = choice.node, choice.index
    if not isinstance(topics, Dirichlet) or not isinstance(assignment, Categorical):
        return None
    if assignment.plates != (token,) or not _chooses_plate(choice, topics):
        return None
    if "probabilities" not in assignment.slots:
        # topics with predictors have the rows of any other model
        return None
    above = assignment.slots["probabilities"]
    proportions = above.node
    if not isinstance(proportions, Dirichlet) or proportions.plates != (token.within,):
        return None
    if above.index is not membership(token) or not _is_same_for_all(proportions) or proportions.is_flat:
        return None
    known = isinstance(proportions.slots.get("concentration"), Slot)
    own = {word, assignment, proportions, topics}
    others = [node for node in nodes if isinstance(node, Variable) and node not in own]
    if known and others:
        return None
    if any(node.plates and node not in own for node in others) or set(nodes_above([topics])) & set(others):
        return None
    return Pattern(proportions, assignment, word, topics)


def _chooses_plate(slot: Slot, topics: Dirichlet) -> bool:
    """Whether a slot indexes topics by the only plate that they have."""
    expression = slot.expression
    return isinstance(expression, Indexed) and topics.plates == (expression.plate,)


def _is_same_for_all(proportions: Dirichlet) -> bool:
    """Whether all that the concentration of proportions is made of is known or global, and not repeated."""
    return all(
        not slot.node.plates and slot.index is None and isinstance(slot.node, Constant | Variable)
        for slot in proportions.slots.values()
    )
