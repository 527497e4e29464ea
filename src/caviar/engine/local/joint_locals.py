"""Which hidden variables of a row share a factor: labels that meet in terms, and what they gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..._errors import ModelError
from ...language import Label, MultivariateNormal, Normal, Term, Variable
from ...lazy.rows import in_memory
from ..binding.bound_model import BoundModel

_FEW = 64
"""Combinations of labels up to which labels that meet in a term share a factor unless the user says otherwise."""

_OF_A_TABLE = 1_024
"""The same of labels that choose from one table, or for each other: the table has as many entries."""

_MOST = 4_096
"""Combinations of labels that a factor may have at the most: of that many a block of rows has its probabilities."""


@dataclass(frozen=True)
class Group:
    """Hidden variables of a row that share a factor.

    Attributes
    ----------
    labels
        Categoricals, with one label for each row.
    others
        The variables that they gate.
    sets
        Sets of these labels that meet in terms.
    """

    labels: tuple[Variable, ...]
    others: tuple[Variable, ...] = ()
    sets: tuple[frozenset[Variable], ...] = ()

    @property
    def members(self) -> tuple[Variable, ...]:
        """All of them, labels first."""
        return (*self.labels, *self.others)

    @property
    def n_chains(self) -> int:
        """Number of chains among the labels."""
        return sum(bool(label.summed) for label in self.labels)

    @property
    def size(self) -> int:
        """Number of combinations of the labels."""
        return int(np.prod([float(label.dimension or 1) for label in self.labels]))


def groups_of(
    latent: Sequence[Variable],
    terms: Sequence[Term],
    bound: BoundModel,
    joint: Sequence[Sequence[str]] | None,
) -> list[Group]:
    """Return the groups of hidden variables of a row that share a factor.

    Parameters
    ----------
    latent
        The hidden variables of the rows.
    joint
        Names of variables to join, a group each; None joins labels that meet, while their combinations are few, and
        what they gate.

    Raises
    ------
    ModelError
        If variables that are to be joined cannot be.
    """
    met = _Meetings(latent, terms, bound)
    found = _by_default(met) if joint is None else [_wanted(met, names) for names in joint]
    return [replace(own, sets=met.sets(own.labels)) for own in found if len(own.members) > 1]


class _Meetings:
    """Which hidden variables of the rows meet in terms."""

    def __init__(self, latent: Sequence[Variable], terms: Sequence[Term], bound: BoundModel) -> None:
        self.latent = tuple(latent)
        self.bound = bound
        inside = [frozenset(op.node for op in term.operands if op.node in latent) for term in terms]
        self.inside: list[frozenset[Variable]] = list(dict.fromkeys(inside))  # type: ignore[arg-type]
        self.of: dict[Variable, set[Variable]] = {
            own: {other for several in self.inside if own in several for other in several} - {own}
            for own in latent
        }

    @property
    def labels(self) -> list[Variable]:
        """The Categoricals that have one label for each row, chains of labels first."""
        found = [
            own
            for own in self.latent
            if isinstance(own, Label) and own.plates == (self.bound.data_plate,) and not own.by_step
        ]
        return sorted(found, key=lambda own: not own.summed)

    def sets(self, labels: Iterable[Variable]) -> tuple[frozenset[Variable], ...]:
        """Return the sets of some labels that terms have, of two labels or more."""
        own = frozenset(labels)
        found = dict.fromkeys(own & several for several in self.inside)
        return tuple(several for several in found if 1 < len(several) < len(own))

    def have_table(self, labels: Sequence[Variable]) -> bool:
        """Whether all of some labels choose from one table, or all but one for that one."""
        return any(
            set(labels) <= {node, *(own.by for own in slot.gates)}
            for node in self.bound.nodes
            if isinstance(node, Variable)
            for slot in node.slots.values()
        )

    def are_seen_alike(self, one: Variable, other: Variable) -> bool:
        """Whether two variables have observations below them in the same rows."""
        first, second = (self.bound.of(own).active for own in (one, other))
        if first is None or second is None:
            return first is second
        return first.shape == second.shape and np.array_equal(in_memory(first), in_memory(second))

    def gated_by(self, labels: Sequence[Variable], taken: Iterable[Variable] = ()) -> tuple[Variable, ...]:
        """Return the variables that labels can be joined with; none where some of these depend on each other."""
        others = [
            own
            for own in self.latent
            if own not in taken
            and self.of[own] & set(labels)
            and not isinstance(own, Label)
            and not own.summed
        ]
        independent = all(not (self.of[own] & set(others)) for own in others)
        return tuple(others) if independent else ()


def _by_default(met: _Meetings) -> list[Group]:
    groups = [Group((label,)) for label in met.labels]
    for one, other in combinations(met.labels, 2):
        if other not in met.of[one] or not met.are_seen_alike(one, other):
            continue
        first, second = (next(own for own in groups if label in own.labels) for label in (one, other))
        both = Group(tuple(own for own in met.labels if own in (*first.labels, *second.labels)))
        most = _OF_A_TABLE if met.have_table(both.labels) else _FEW
        if first is second or both.size > most or both.n_chains > 1:
            continue
        groups = [both if own is first else own for own in groups if own is not second]
    found: list[Group] = []
    for own in groups:
        taken = [variable for group in found for variable in group.others]
        # what is hidden beside a chain has a forecast by itself, unless a label of the row gates it
        gates = [label for label in own.labels if not label.summed]
        found.append(replace(own, others=met.gated_by(gates, taken)))
    return found


def _wanted(met: _Meetings, names: Sequence[str]) -> Group:
    members = [own for own in met.latent if own.name in names]
    labels = tuple(own for own in met.labels if own in members)
    others = tuple(own for own in members if own not in labels)
    if not labels or not set(others) <= set(met.gated_by(labels)):
        raise ModelError(
            f"factors={tuple(names)!r} cannot be one factor: a joint local factor is one of Categoricals with a label "
            f"for each row, and of variables that they gate and that are independent given these labels; "
            f"{_instead(met, sorted(members, key=lambda own: list(names).index(own.name)))}"
        )
    found = Group(labels, others)
    if found.n_chains > 1:
        raise ModelError(
            f"factors={tuple(names)!r} names two chains; each chain is a factor of its own, so name one at the most"
        )
    if found.size > _MOST:
        sizes = " x ".join(str(label.dimension) for label in labels)
        raise ModelError(
            f"factors={tuple(names)!r} would have {sizes} combinations of labels for each row, more than {_MOST:,}; "
            f"join fewer of them"
        )
    return found


def _instead(met: _Meetings, members: Sequence[Variable]) -> str:
    """Return what else gives the same model a joint factor, or that there is none."""
    names = " and ".join(f"'{own.name}'" for own in members)
    plated = next((own for own in members if isinstance(own, Label) and own not in met.labels), None)
    if plated is not None and not plated.by_step:
        every = ", ".join(f"'{plate.name}'" for plate in plated.plates)
        return f"'{plated.name}' has several labels a row: state one plate of all pairs of {every}, a row for each"
    if len(members) > 1 and all(isinstance(own, Normal | MultivariateNormal) for own in members):
        return f"state {names} as one MultivariateNormal, whose entries dot(array, both) adds up"
    number = next((own for own in members if own.is_zero_or_one), None)
    if number is not None:
        return (
            f"'{number.name}' is a number: state a Categorical of two categories instead, which chooses what it "
            f"multiplies, Constant('parts', [0, w], plates=(Plate('there', 2), ...))[{number.name}]"
        )
    return "leave the others factors of their own"
