"""Documents bound to their words: tokens with labels become a row of counts for each document.

The pattern: proportions on an outer plate, topics of the tokens within it, and words drawn from these topics.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..._errors import DataError
from ..._typing import AnyArray, Array
from ...language import Categorical, Constant, Dirichlet, Indexed, Node, Plate, Slot, Variable, nodes_above
from ...language.nodes.node import membership
from ...lazy.block_map import any_of
from ...lazy.sparse_rows import SparseRows
from ..binding.bind import bind
from ..binding.bound_model import BoundModel
from ..binding.evidence import Observed
from ..binding.missing.values import of_blocks
from ..binding.values import as_weights


@dataclass(frozen=True, kw_only=True)
class BoundDocuments(BoundModel):
    """A model of documents with its data, a row of counts for each document.

    Attributes
    ----------
    pattern
        Which variable is which.
    tokens
        The same model and data with a row for each token, or for each word of a document with its count. Where counts
        are read in blocks, of the first document alone.
    given_weights
        Weights of the documents as they were given, also of those without words, which count nothing in a fit.
    """

    pattern: Pattern
    tokens: BoundModel
    given_weights: Any = None

    def is_local(self, node: Node) -> bool:
        """Whether the node is repeated over documents, or within them."""
        return any(plate is self.data_plate or plate.within is self.data_plate for plate in node.plates)

    @property
    def counts(self) -> Any:
        """Counts of words, documents x words: a sparse array by rows, without zeros and duplicates, or in blocks."""
        return self.values_of(self.pattern.word)

    @property
    def counts_at_once(self) -> Any:
        """The counts, where these are in memory.

        Raises
        ------
        DataError
            If they are read in blocks.
        """
        if isinstance(self.counts, SparseRows):
            raise DataError(
                f"what is asked for has a number for each word of each document, and these are read in blocks: pass "
                f"some documents, documents[start:stop], or all in memory, documents.to_numpy() "
                f"({len(self.counts):,} documents of {self.counts.label})"
            )
        return self.counts

    @property
    def prior(self) -> Array:
        """Concentration of the proportions' prior, shape (K,)."""
        pattern = self.pattern
        value = np.asarray(self.values_of(pattern.proportions.slots["concentration"].node), dtype=np.float64)
        return np.ascontiguousarray(np.broadcast_to(value, (pattern.proportions.dimension or 1,)))

    def entries(self) -> AnyArray:
        """Return the place of each token among the entries of the counts, shape (tokens,)."""
        counts, n_words = self.counts_at_once, self.counts.shape[1]
        documents, words = _places(self.tokens, self.pattern)
        owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        return np.searchsorted(owners * n_words + counts.indices, documents * n_words + words)


def bind_rows(
    nodes: Sequence[Node],
    leaves: Sequence[Variable],
    data: Mapping[str, Any],
    *,
    values: Mapping[str, AnyArray] | None = None,
    data_plate: Plate | str | None = None,
    sample_weight: Any = None,
    factors: Any = None,
    named: Collection[str] = (),
    sizes: Mapping[str, int] | None = None,
    facts: dict[Hashable, dict[Hashable, Any]] | None = None,
) -> BoundModel:
    """Return the binding of a model's nodes to data: of documents where the model is one of these.

    Parameters
    ----------
    values
        Of the constants, by name; by default those that the nodes have.
    data_plate
        The plate of rows that a user wants; that of the tokens leaves every token a row.
    factors, named
        Groups of local factors, and names of globals, that a user asked for: where the proportions are among these,
        every token is a row too, and the proportions of all documents together are global.
    sizes
        Name of a plate -> its size, where names of its repetitions tell it.
    facts
        What was found of the same nodes before; what is found now is added.
    """
    facts = {} if facts is None else facts
    kept = facts.setdefault(None, {})
    if "pattern" not in kept:
        kept["pattern"] = pattern_of(nodes, leaves)
    pattern: Pattern | None = kept["pattern"]
    bound = partial(bind, nodes, leaves, data, values=values, sizes=sizes, facts=facts)
    if pattern is None:
        return _with_rows(bound(data_plate=data_plate, sample_weight=sample_weight))
    in_blocks = _in_blocks(data)
    if in_blocks:
        # what does not depend on the documents is known from the first of them
        few = {**data, **{name: value[:1] for name, value in in_blocks.items()}}
        bound = partial(bind, nodes, leaves, few, values=values, sizes=sizes, facts=facts)
    if factors is not None or pattern.proportions.name in named:
        _refuse_blocks(in_blocks)
        return _with_rows(bound(data_plate=data_plate, sample_weight=sample_weight))
    wanted = data_plate.name if isinstance(data_plate, Plate) else data_plate
    if wanted not in (None, pattern.document.name):
        _refuse_blocks(in_blocks)
        return _with_rows(bound(data_plate=data_plate, sample_weight=sample_weight))
    tokens = bound()
    if _fits(tokens, pattern):
        return _documents(tokens, pattern, sample_weight, in_blocks.get(pattern.word.name))
    _refuse_blocks(in_blocks)
    if sample_weight is not None:
        tokens = bound(sample_weight=sample_weight)
    return _with_rows(tokens)


def _in_blocks(data: Any) -> dict[str, SparseRows]:
    """Return the counts that are read in blocks."""
    if not isinstance(data, Mapping):
        return {}
    return {name: value for name, value in data.items() if isinstance(value, SparseRows)}


def _refuse_blocks(in_blocks: Mapping[str, SparseRows]) -> None:
    """Refuse counts that are read in blocks where each token is a row.

    Raises
    ------
    DataError
        If there are any.
    """
    for name, value in in_blocks.items():
        raise DataError(
            f"the counts of '{name}' are read in blocks of documents, and this model or fit has a row for each token: "
            f"pass them in memory, documents.to_numpy() ({len(value):,} documents)"
        )


def _with_rows(bound: BoundModel) -> BoundModel:
    """Return a binding whose rows may lie within an outer plate; documents without words are data, no rows are not.

    Raises
    ------
    DataError
        If there is no row.
    """
    plate = bound.data_plate
    if plate is not None and plate.within is not None and not bound.n_rows:
        leaf = next(node for node in bound.observed if plate in node.plates)
        raise DataError(f"the data of '{leaf.name}' are empty: no {plate.within.name} has any {plate.name}")
    return bound


def _fits(tokens: BoundModel, pattern: Pattern) -> bool:
    """Whether all words are known, and nothing else of documents is."""
    hidden = {pattern.proportions, pattern.assignment, pattern.topics}
    above = set() if pattern.is_plain else set(nodes_above([pattern.proportions])) & set(tokens.latent)
    if set(tokens.latent) != hidden | above:
        return False
    local = {pattern.proportions, pattern.assignment}
    if local & tokens.gathered("clamped").keys():
        return False
    # documents without words count for nothing above them, here too
    return all(
        own.observed is own.entries is own.in_part is None and (own.active is None or node in local)
        for node, own in tokens.evidence.items()
    )


def _places(tokens: BoundModel, pattern: Pattern) -> tuple[AnyArray, AnyArray]:
    """Return the document and the word of each token."""
    return (
        np.asarray(tokens.values_of(membership(pattern.token)), dtype=np.int64),
        np.asarray(tokens.values_of(pattern.word), dtype=np.int64),
    )


def _documents(
    tokens: BoundModel, pattern: Pattern, sample_weight: Any, in_blocks: SparseRows | None
) -> BoundDocuments:
    counts = _counts_of(tokens, pattern) if in_blocks is None else in_blocks
    n_docs = counts.shape[0]
    evidence = {node: own for node, own in tokens.evidence.items() if node is not membership(pattern.token)}
    weights = as_weights(sample_weight, n_docs)
    return BoundDocuments(
        tokens.nodes,
        {**tokens.sizes, pattern.document: n_docs},
        pattern.document,
        {**evidence, pattern.word: Observed(counts)},
        _counting(counts, weights),
        pattern=pattern,
        tokens=tokens,
        given_weights=weights,
    )


def _counting(counts: Any, weights: Any) -> Any:
    """Return the weights of documents: 0 without words, which count nothing, as rows without an observation do."""
    lengths = counts.n_counts_of_rows if isinstance(counts, SparseRows) else np.diff(counts.indptr)
    if lengths.all():
        return weights
    with_words = (lengths > 0).astype(np.float64)
    counting = (
        with_words if weights is None else of_blocks(np.multiply, (with_words, weights), (), np.float64)
    )
    return counting if any_of(counting) else weights


def _counts_of(tokens: BoundModel, pattern: Pattern) -> csr_array:
    """Return the counts of words, documents x words, of a row for each token."""
    weights = np.ones(tokens.n_rows) if tokens.row_weights is None else tokens.row_weights
    shape = (tokens.sizes[pattern.document], pattern.word.dimension or 1)
    counts = csr_array((weights, _places(tokens, pattern)), shape=shape)
    counts.sum_duplicates()
    return counts


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
