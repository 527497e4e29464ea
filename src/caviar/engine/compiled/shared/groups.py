"""Which globals share a factor, of what kind it is, and the terms with its statistics.

Global labels that share a factor with the global variables that they gate.

A term with labels and one variable that they gate has their product as one operand: the statistic of the variable times
the one-hot of the labels. So it is linear in a statistic of one factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from ...._errors import ModelError
from ...._typing import Array
from ....families import Categorical
from ....families.shared.gated_globals import FAMILIES_OF_GATED, Gated, GatedLayout
from ....language import Axis, Variable
from ...binding.bound_model import BoundModel
from ...design.contraction import Contraction
from ...design.gather import Factor
from ...design.keys import StatisticKey
from ..terms import Compiled, GlobalTerm
from .coupled_normals import coupled_by_default, coupled_variable
from .variable import SharedVariable, said


def shared_variable(
    members: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> SharedVariable:
    """Return variables as one variable that has their joint factor: labels with what they gate, or a Gaussian.

    Raises
    ------
    ModelError
        If they cannot share a factor; the message says which of them, and why.
    """
    if any(map(is_label, members)):
        return gated_variable(members, terms, bound)
    return coupled_variable(members, terms, bound)


def groups_by_default(
    order: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel, point: Set[Variable]
) -> tuple[list[tuple[Variable, ...]], str]:
    """Return the groups of globals that share a factor by default, and which do not because they are too large."""
    able = [own for own in order if own not in point]
    groups, remark = coupled_by_default(able, terms, bound)
    taken = {own for members in groups for own in members}
    return [*groups, *gated_by_default(able, terms, bound, taken)], remark


def with_shared(compiled: Compiled, shared: Sequence[SharedVariable], bound: BoundModel) -> Compiled:
    """Return a compiled model whose terms use the statistics of the shared factors."""
    terms, zero_terms = compiled.terms, compiled.zero_terms
    for variable in shared:
        terms, zero_terms = (variable.rewritten(own, bound) for own in (terms, zero_terms))
    return replace(compiled, terms=terms, zero_terms=zero_terms, layouts={}, facts={}) if shared else compiled


_MOST_COMBINATIONS = 64
"""Combinations of labels that share a factor by default."""

_MOST_STATISTICS = 2_000
"""Statistics of such a factor."""


class GatedVariable(SharedVariable):
    """Labels and the variables that they gate, as one variable of the engine."""

    def is_matrix(self, statistic: str) -> bool:
        gated = self.members[len(self.family.labels) :]
        return any(
            statistic.endswith(f"{own.name}.{kind}") and own.is_matrix(kind)
            for own in gated
            for kind in own.family.statistics
        )

    def rewritten(self, terms: Sequence[GlobalTerm], bound: BoundModel) -> tuple[GlobalTerm, ...]:
        return tuple(self._rewritten(term) for term in terms)

    def _rewritten(self, term: GlobalTerm) -> GlobalTerm:
        names = set(self.family.names)
        if term.owner.name not in names and not names & set(_names(term.contraction)):
            return term
        owner = self if term.owner.name in names else term.owner
        whole = None if term.whole is None else self._with_products(term.whole)
        return GlobalTerm(owner, self._with_products(term.contraction), whole)

    def _with_products(self, contraction: Contraction) -> Contraction:
        """Return a contraction with the statistics of the joint factor."""
        labels = {own.name: own for own in self.members[: len(self.family.labels)]}
        names = set(self.family.names)
        mine = [factor for factor in contraction.factors if _name(factor.key) in names]
        kept = [factor for factor in contraction.factors if _name(factor.key) not in names]
        constants: list[tuple[Array, tuple[Axis, ...]]] = []
        if len(mine) == 1:
            key: Any = mine[0].key
            kept.append(Factor(self._key(f"{key.variable}.{key.statistic}"), mine[0].axes))
        elif mine:
            of_labels = {_name(factor.key): factor.axes for factor in mine if _name(factor.key) in labels}
            axes: tuple[Axis, ...] = ()
            for name, label in labels.items():
                own = of_labels.get(name, (Axis(label, "k"),))
                axes += own
                if name not in of_labels:
                    constants.append((np.ones(contraction.size(own[0])), own))
            gated = [factor for factor in mine if _name(factor.key) not in labels]
            statistic = self.family.of_labels
            for factor in gated:
                key = factor.key
                statistic, axes = f"{statistic}*{key.variable}.{key.statistic}", (*axes, *factor.axes)
            kept.append(Factor(self._key(statistic), axes))
        return contraction.with_factors(kept, constants, contraction.size, contraction.gather)

    def _key(self, statistic: str) -> StatisticKey:
        return StatisticKey(self.name, statistic)


def gated_variable(
    members: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> GatedVariable:
    """Return labels, and variables that they gate, as one variable that has their joint factor.

    Raises
    ------
    ModelError
        If they cannot share a factor; the message says which of them, and why.
    """
    labels = [own for own in members if is_label(own)]
    gated = [own for own in members if not is_label(own)]
    for variable in members:
        why = _why_no_label(variable, bound) if is_label(variable) else _why_not_gated(variable, bound)
        if why is not None:
            raise ModelError(f"factors= couples {said(members)}: '{variable.name}' {why}. Leave it out")
    for term in terms:
        names = [name for name in _names(term.contraction) if name is not None]
        own = [variable.name for variable in gated if variable.name in names]
        if sum(map(names.count, own)) > 1:
            raise ModelError(
                f"factors= couples {said(members)}, but {' and '.join(map(repr, own))} meet in the density of "
                f"'{term.owner.name}', so that they depend on each other whatever the labels are. Leave one out"
            )
    layout = _layout(labels, gated, bound)
    n_statistics = sum(map(math.prod, layout.shapes))
    if n_statistics > _MOST_STATISTICS:
        raise ModelError(
            f"factors= couples {said(members)}: their factor would have {n_statistics:,} statistics, more than "
            f"{_MOST_STATISTICS:,}; leave one of them out"
        )
    return GatedVariable([*labels, *gated], layout)


def gated_by_default(
    able: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel, left_out: Set[Variable]
) -> list[tuple[Variable, ...]]:
    """Return the groups of labels without plates, and of what they gate, that share a factor by default.

    Parameters
    ----------
    able
        Globals that are not points, in their order.
    left_out
        Those that share another factor.
    """
    labels = {own.name: own for own in able if is_label(own) and _why_no_label(own, bound) is None}
    if not labels:
        return []
    others = {
        own.name: own
        for own in able
        if own not in left_out and not is_label(own) and _why_not_gated(own, bound) is None
    }
    together = {name: {name} for name in labels}
    gated: dict[str, Variable] = {}
    met = [_names(term.contraction) for term in terms]
    for names in met:
        own = [name for name in names if name in labels]
        joined = set().union(*(together[name] for name in own)) if own else set()
        together |= dict.fromkeys(joined, joined)
    for name, variable in others.items():
        own = [names for names in met if name in names]
        is_alone = all(names.count(name) == 1 and not any(other in gated for other in names) for names in own)
        if is_alone and any(other in labels for names in own for other in names):
            gated[name] = variable
    return list(_groups(labels, gated, together, met, bound))


def _groups(
    labels: dict[str, Variable],
    gated: dict[str, Variable],
    together: dict[str, set[str]],
    met: Sequence[Sequence[Any]],
    bound: BoundModel,
) -> Iterator[tuple[Variable, ...]]:
    for several in {frozenset(own) for own in together.values()}:
        own = [label for name, label in labels.items() if name in several]
        if math.prod(label.dimension or 1 for label in own) > _MOST_COMBINATIONS:
            continue
        theirs = [
            variable
            for name, variable in gated.items()
            if all(several.issuperset(set(names) & set(labels)) for names in met if name in names)
            and any(several & set(names) for names in met if name in names)
        ]
        layout = _layout(own, theirs, bound)
        if len(own) + len(theirs) > 1 and sum(map(math.prod, layout.shapes)) <= _MOST_STATISTICS:
            yield (*own, *theirs)


def is_label(variable: Variable) -> bool:
    """Whether a variable is a Categorical."""
    return variable.family is Categorical


def _layout(labels: Sequence[Variable], gated: Sequence[Variable], bound: BoundModel) -> GatedLayout:
    return GatedLayout(
        tuple((label.name, label.dimension or 1) for label in labels),
        tuple(
            Gated(
                own.name,
                own.family,
                tuple(bound.sizes[plate] for plate in own.plates),
                (own.dimension,) if own.value_rank and own.dimension is not None else (),
            )
            for own in gated
        ),
    )


def _why_no_label(variable: Variable, bound: BoundModel) -> str | None:
    """Return why a label cannot share a factor with what it gates; None if it can."""
    if variable.plates:
        return "has plates; only a label without plates shares a factor with what it gates"
    if bound.of(variable).clamped is not None or bound.of(variable).active is not None:
        return "is known in part, or has no observation below it"
    return None


def _why_not_gated(variable: Variable, bound: BoundModel) -> str | None:
    """Return why a variable cannot be gated in a factor of labels; None if it can."""
    if variable.family not in FAMILIES_OF_GATED.values() or variable.tied is not None:
        return f"is a {type(variable).__name__}; labels share a factor with {', '.join(FAMILIES_OF_GATED)}"
    if variable.is_flat or bound.is_flat(variable):
        return "has a flat prior, which it keeps where the labels do not choose it"
    if bound.of(variable).clamped is not None:
        return "has values in the data; a variable that is partly known keeps its own factor"
    return None


def _name(key: Any) -> str | None:
    return key.variable if isinstance(key, StatisticKey) else None


def _names(contraction: Contraction) -> list[str | None]:
    return [_name(key) for key in contraction.keys]
