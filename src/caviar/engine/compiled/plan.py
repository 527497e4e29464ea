"""Plans: compiled terms without values, from which those of other data and other constants follow by array calls.

Fits of many small tables are fits of one structure. What the compiler makes of it depends on the shapes of the data and
on which of them are missing; all values enter as the constants of contractions and as reference points.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.sparse import issparse

from ..._typing import Array
from ...language import Node, Operand, Variable
from ...lazy.rows import LazyRows
from ...numerics.records import replaced
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from ..binding.known_statistics import known_statistic
from ..design.contraction import Contraction, Formula
from ..design.features import Feature, Source
from ..local.local_factor import LocalFactor
from .sums_over_rows import source_of
from .terms import Compiled, GlobalTerm

MOST_PLANS = 16
"""Plans of one structure that are kept."""


@dataclass(frozen=True, eq=False)
class TermPlan:
    """A term without values.

    Attributes
    ----------
    owner
        The variable whose density it is in.
    formula
        Of its contraction.
    constants
        Places of its constants among the known statistics of the plan.
    whole
        The term itself, where it has no constants.
    """

    owner: Variable
    formula: Formula
    constants: tuple[int, ...]
    whole: GlobalTerm | None

    def filled(self, values: Sequence[Array]) -> GlobalTerm:
        """Return the term with these values of the known statistics."""
        if self.whole is not None:
            return self.whole
        own = [values[place] for place in self.constants]
        return GlobalTerm(self.owner, Contraction.of(self.formula, own))


@dataclass(frozen=True, eq=False)
class Plan:
    """Compiled terms without values.

    Attributes
    ----------
    known
        The known statistics: variable in whose terms each is, and the operand.
    terms, zero_terms
        The terms of :class:`~caviar.engine.compiled.terms.Compiled`.
    rows
        The side of the rows, whose sources have no reference points.
    sources
        Known array along the data plate -> variable in whose terms it is first, and the operand.
    layouts
        What follows from the terms for the update of a global variable.
    facts
        What else was found, whatever the values are.
    """

    known: tuple[tuple[Variable, Operand], ...]
    terms: tuple[TermPlan, ...]
    zero_terms: tuple[TermPlan, ...]
    rows: Compiled
    sources: Mapping[Node, tuple[Variable, Operand]]
    layouts: dict[Variable, Any] = field(default_factory=dict)
    facts: dict[Hashable, Any] = field(default_factory=dict)

    def filled(self, bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> Compiled:
        """Return the compiled model with the values of a binding."""
        values = [known_statistic(bound, coordinates, *operand)[0] for operand in self.known]
        sources = {node: source_of(bound, coordinates, *own) for node, own in self.sources.items()}
        rows = _with_sources(self.rows, sources, factors)
        terms, zeros = (
            tuple([term.filled(values) for term in terms]) for terms in (self.terms, self.zero_terms)
        )
        return replaced(rows, terms=terms, zero_terms=zeros, layouts=self.layouts, facts=self.facts)


def plan_key(
    bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor], zeros: Sequence[Any]
) -> Hashable | None:
    """Return all that compiled terms depend on besides the structure and values; None where values matter.

    They do where rows have points of their own, known labels are joined, a belief is in the place of a prior, or some
    repetitions count nothing.

    Parameters
    ----------
    zeros
        Variable and place of the terms that count known probabilities of zero: values tell whether there are any.
    """
    if bound.joined or coordinates.centres or coordinates.designs:
        return None
    if any(group.location is not None for group in coordinates.groups) or any(own.certain for own in factors):
        return None
    evidence = []
    for node in bound.nodes:
        own = bound.of(node)
        if own.prior is not None or own.active is not None or isinstance(own.values, LazyRows):
            return None
        shape = None if own.values is None else _shape_of_row(bound, node, own.values)
        flags = own.observed is None, own.entries is None, own.labels is None, own.clamped is None
        evidence.append((shape, issparse(own.values), flags))
    sizes = frozenset(own for own in bound.sizes.items() if own[0] is not bound.data_plate)
    return (
        bound.data_plate,
        tuple(evidence),
        sizes,
        tuple([(group.variables, group.axes) for group in coordinates.groups]),
        tuple([(type(own), own.variables, own.labelled, tuple(own.axes.items())) for own in factors]),
        tuple(zeros),
    )


def _shape_of_row(bound: BoundModel, node: Node, values: Any) -> tuple[int, ...]:
    if bound.data_plate not in node.plates:
        return values.shape
    place = node.plates.index(bound.data_plate)
    return (*values.shape[:place], *values.shape[place + 1 :])


def plan_of(
    compiled: Compiled,
    known: Sequence[tuple[Variable, Operand]],
    uses: Sequence[Sequence[int]],
    sources: Mapping[Node, tuple[Variable, Operand]],
) -> Plan:
    """Return the plan of compiled terms.

    Parameters
    ----------
    known
        The known statistics that they have.
    uses
        Of each term, and after these of those that count zeros, the places of its constants among these.
    sources
        Of each known array along the data plate, where it is first.
    """
    every = [
        TermPlan(term.owner, term.contraction.formula, tuple(own), None if own else term)
        for term, own in zip((*compiled.terms, *compiled.zero_terms), uses, strict=True)
    ]
    n_terms = len(compiled.terms)
    bare = {node: own.without_reference for node, own in compiled.sources.items()}
    bare_rows = replaced(compiled, terms=(), zero_terms=(), layouts={}, facts={})
    rows = _with_sources(bare_rows, bare, list(compiled.tables))
    return Plan(
        tuple(known), tuple(every[:n_terms]), tuple(every[n_terms:]), rows, dict(sources), compiled.layouts
    )


def _with_sources(
    rows: Compiled, sources: Mapping[Node, Source], factors: Sequence[LocalFactor | None]
) -> Compiled:
    """Return the side of the rows with other sources and local factors, which are found by their keys."""
    by_key = {own.key: own for own in factors if own is not None}
    made: dict[Feature, Feature] = {}

    def feature(old: Any) -> Any:
        if old is None or old.source is None:
            return old
        if old not in made:
            made[old] = old.of_source(sources[old.source.node])
        return made[old]

    def factor(old: Any) -> Any:
        return None if old is None else by_key[old.key]

    parts = {
        key: replaced(part, factor=factor(part.factor), feature=feature(part.feature))
        for key, part in rows.parts.items()
    }
    local_terms = tuple(
        [
            replaced(
                term,
                features=tuple(map(feature, term.features)),
                parts=tuple([parts[part.key] for part in term.parts]),
                look_ups=tuple(map(feature, term.look_ups)),
            )
            for term in rows.local_terms
        ]
    )
    return replaced(
        rows,
        parts=parts,
        local_terms=local_terms,
        tables={
            factor(old): table.with_features(list(map(feature, table.features)))
            for old, table in rows.tables.items()
        },
        sources={node: sources[node] for node in rows.sources},
        users={(factor(old), key): owners for (old, key), owners in rows.users.items()},
    )
