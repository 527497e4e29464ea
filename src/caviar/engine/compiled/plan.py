"""Plans: compiled terms without values, from which those of other data and other constants follow by array calls.

Fits of many small tables are fits of one structure. What the compiler makes of it depends on the shapes of the data and
on which of them are missing; all values enter as the constants of contractions and as reference points.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._typing import Array
from ...language import Constant, Node, Operand, Variable
from ...numerics.records import replaced
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from ..binding.known_statistics import Beside, known_statistic
from ..design.contraction import Contraction, Formula
from ..design.features import Feature, Source
from ..local.local_factor import LocalFactor
from .sums_over_rows import source_of
from .terms import Compiled, GlobalTerm

MOST_PLANS = 16
"""Plans of one structure that are kept."""


class KnownOperand(NamedTuple):
    """A known statistic without rows.

    Attributes
    ----------
    owner, operand
        The variable in whose terms it is, and the operand.
    of_value
        Returns it, of the value of a constant; None of others.
    is_moved
        Whether the value is measured from the reference point of the owner.
    beside
        How both lie along the plates of the two, where these differ; None where they are the same.
    """

    owner: Variable
    operand: Operand
    of_value: Callable[[Any], Array] | None
    is_moved: bool
    beside: Beside | None = None

    @classmethod
    def of(cls, owner: Variable, operand: Operand, coordinates: Coordinates) -> KnownOperand:
        """Return an operand of the owner's terms."""
        slot, node, name = operand.slot, operand.node, operand.statistic
        if slot is None or not isinstance(node, Constant):
            return cls(owner, operand, None, False)
        moved = coordinates.of_known(owner, slot) if slot.role.moves else None
        of_value = slot.role.statistics.get(name) or slot.role.zeros[name]
        if moved is None:
            return cls(owner, operand, of_value, False)
        plates, of_point = operand.axes[: len(node.plates)], moved[1]
        return cls(
            owner, operand, of_value, True, None if plates == of_point else Beside.of(plates, of_point)
        )

    def value(self, bound: BoundModel, coordinates: Coordinates) -> Array:
        """Return it in a binding."""
        if self.of_value is None:
            return known_statistic(bound, coordinates, self.owner, self.operand)[0]
        value: Any = bound.evidence[self.operand.node].values
        reference = coordinates.of(self.owner) if self.is_moved else None
        if reference is not None:
            value = value - reference if self.beside is None else self.beside.difference(value, reference)
        return self.of_value(value)


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


@dataclass(frozen=True, eq=False)
class Plan:
    """Compiled terms without values.

    Attributes
    ----------
    known
        The known statistics.
    terms, zero_terms
        The terms of :class:`~caviar.engine.compiled.terms.Compiled`.
    rows
        The side of the rows, whose sources have no reference points.
    sources
        Known array along the data plate -> variable in whose terms it is first, and the operand.
    layouts
        What follows from the terms for the update of a global variable.
    facts
        Other results that do not depend on the values.
    """

    known: tuple[KnownOperand, ...]
    terms: tuple[TermPlan, ...]
    zero_terms: tuple[TermPlan, ...]
    rows: Compiled
    sources: Mapping[Node, tuple[Variable, Operand]]
    layouts: dict[Variable, Any] = field(default_factory=dict)
    facts: dict[Hashable, Any] = field(default_factory=dict)

    def filled(self, bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> Compiled:
        """Return the compiled model with the values of a binding."""
        value_at = [own.value(bound, coordinates) for own in self.known].__getitem__
        sources = {
            node: self.rows.sources[node].measured_from(coordinates.of(node))
            if isinstance(node, Variable) and self.rows.sources[node].is_alone
            else source_of(bound, coordinates, *own)
            for node, own in self.sources.items()
        }
        rows = _with_sources(self.rows, sources, factors)
        terms, zeros = [
            tuple(
                [
                    GlobalTerm(
                        own.owner,
                        Contraction.of(own.formula, own.formula.folded(tuple(map(value_at, own.constants)))),
                    )
                    if own.whole is None
                    else own.whole
                    for own in several
                ]
            )
            for several in (self.terms, self.zero_terms)
        ]
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
    if bound.joined or coordinates.centres or coordinates.designs or not bound.has_plan:
        return None
    if [group for group in coordinates.groups if group.location is not None]:
        return None
    if [own for own in factors if own.certain]:
        return None
    return (
        bound.kinds,
        tuple([(group.variables, group.axes) for group in coordinates.groups]),
        tuple([(type(own), own.variables, own.labelled, tuple(own.axes.items())) for own in factors]),
        tuple(zeros),
    )


def plan_of(
    compiled: Compiled,
    known: Sequence[tuple[Variable, Operand]],
    uses: Sequence[Sequence[int]],
    sources: Mapping[Node, tuple[Variable, Operand]],
    coordinates: Coordinates,
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
    coordinates
        What they are measured from.
    """
    every = [
        TermPlan(term.owner, term.contraction.formula, tuple(own), None if own else term)
        for term, own in zip((*compiled.terms, *compiled.zero_terms), uses, strict=True)
    ]
    n_terms = len(compiled.terms)
    bare = {node: own.without_reference for node, own in compiled.sources.items()}
    bare_rows = replaced(compiled, terms=(), zero_terms=(), layouts={}, facts={})
    rows = _with_sources(bare_rows, bare, list(compiled.tables))
    operands = tuple([KnownOperand.of(*own, coordinates) for own in known])
    return Plan(
        operands, tuple(every[:n_terms]), tuple(every[n_terms:]), rows, dict(sources), compiled.layouts
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

    # what their features are measured from is a matter of the tables
    parts = rows.parts
    if by_key:
        of_factors = {key: part for key, part in parts.items() if part.factor is not None}
        parts = {
            **parts,
            **{key: replaced(part, factor=factor(part.factor)) for key, part in of_factors.items()},
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
        users={(factor(old), key): owners for (old, key), owners in rows.users.items()}
        if by_key
        else rows.users,
    )
