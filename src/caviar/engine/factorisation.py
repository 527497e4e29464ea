"""The factorisation of the local variables: which of them share one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from .._errors import ModelError, ParameterError
from ..language import Axis, Label, LinearGaussianChain, MarkovChain, Term, Variable
from .binding.bound_model import BoundModel
from .binding.missing.values import is_above, refuse_unseen
from .compiled.stated_priors import certain_priors
from .local.categorical import CategoricalFactor
from .local.chains.chain import ChainFactor, check_chains
from .local.chains.chain_mixture import chain_of_states
from .local.chains.changing_states import ChangingStatesFactor
from .local.chains.changing_steps import ChangingStepsFactor
from .local.chains.linear_gaussian_chain import LinearGaussianChainFactor
from .local.chains.switched_chain import SwitchedChainFactor
from .local.family import FamilyFactor
from .local.gated import SwitchedFactor
from .local.joint_locals import groups_of
from .local.known_in_part import KnownInPartFactor
from .local.label_frequencies import FrequenciesFactor, frequencies_of, refuse_joining
from .local.local_factor import LocalFactor
from .local.missing_vector import VectorFactor

APART = "apart"
"""The argument that gives each global a separate factor, instead of groups of variables."""


def local_factors(
    bound: BoundModel, terms: Sequence[Term], joint: Sequence[Sequence[str]] | None
) -> list[LocalFactor]:
    """Return the local factors: one a variable, but a Categorical shares one with the local variables it gates.

    Parameters
    ----------
    joint
        Names of variables to join, a group each; None joins wherever that is tractable.
    """
    check_chains(bound)
    data_axis = Axis(bound.data_plate) if bound.data_plate is not None else None
    latent = list(bound.latent_locals())
    alone = [leaf for leaf in bound.gathered("entries") if not _has_local(leaf, terms, latent)]
    if data_axis is None or not (latent or alone):
        return []
    factors: list[LocalFactor] = []
    taken: set[Variable] = set()
    for frequencies in frequencies_of(bound) if len(latent) > 1 else ():
        factors.append(FrequenciesFactor(frequencies, bound, data_axis))
        taken |= {*factors[-1].variables}
    # a value that is known in some rows is not found with the labels of these
    others = [
        variable for variable in latent if isinstance(variable, Label) or bound.of(variable).in_part is None
    ]
    if len(others) < len(latent):
        _refuse_known(joint, set(latent).difference(others))
    if factors:
        refuse_joining(joint, factors)
        others = [variable for variable in others if variable not in taken]
    # one variable shares its factor with none
    for group in groups_of(others, terms, bound, joint) if len(others) > 1 or joint else ():
        certain = {
            v: prior[None] for v, prior in certain_priors(group.others, data_axis, bound.values_of).items()
        }
        evidence = [bound.of(variable) for variable in group.members]
        members = group.labels, group.others, evidence, data_axis
        if group.labels[0].summed:
            factors.append(SwitchedChainFactor(*members, bound, certain, group.sets))
        else:
            factors.append(SwitchedFactor(*members, bound.size, certain, group.sets))
        taken |= {*group.members}
    factors += [_alone(bound, variable, data_axis) for variable in latent if variable not in taken]
    for factor in factors:
        _check_seen(bound, factor)
    if len(factors) == 1 and not alone:
        return factors
    order = {variable: i for i, variable in enumerate(latent)}
    chains = [factor.variables[0] for factor in factors if isinstance(factor, ChainFactor)]

    def place(factor: LocalFactor) -> tuple[bool, int]:
        follows = any(v in chains or is_above(c, v) for v in factor.variables for c in chains)
        return follows, -max(order[v] for v in factor.variables)

    # parents before children: a local variable meets its message from above first; and what no chain is above, which
    # tells a chain what its rows say, before the chains
    ordered = _parents_first(sorted(factors, key=place))
    return [*ordered, *(VectorFactor(leaf, bound.of(leaf), bound.size) for leaf in alone)]


def _parents_first(factors: Sequence[LocalFactor]) -> list[LocalFactor]:
    """Return factors in this order, except that none comes before one with a variable above its own."""
    rest, found = list(factors), []
    while rest:
        free = (
            own
            for own in rest
            if not any(
                is_above(v, w)
                for other in rest
                if other is not own
                for v in other.variables
                for w in own.variables
            )
        )
        found.append(next(free, rest[0]))
        rest.remove(found[-1])
    return found


def apart(
    joint: Any, bound: BoundModel, point: Set[Variable]
) -> tuple[Sequence[Sequence[str]] | None, list[tuple[Variable, ...]]]:
    """Return the groups of local variables that a user named (None if there are none), and the groups of globals.

    Raises
    ------
    ParameterError
        If it is not a list of groups of names.
    ModelError
        If a group has variables of both kinds, or a name is not that of a hidden variable, or is that of a point mass.
    """
    if joint is None or (isinstance(joint, str) and joint == APART):
        return None, []
    if not _is_groups(joint):
        raise ParameterError(
            f"factors must be a list of groups of names, as [('z', 't')], or {APART!r}; got {joint!r}"
        )
    known = {variable.name: variable for variable in bound.latent_globals()}
    of_globals = [names for names in joint if any(name in known for name in names)]
    of_rows = [names for names in joint if names not in of_globals]
    _check_groups(of_rows, list(bound.latent_locals()), bound)
    _check_globals(of_globals, known, point)
    groups = [tuple(known[name] for name in names) for names in of_globals]
    return of_rows if of_rows or not groups else None, groups


def _check_globals(
    groups: Sequence[Sequence[str]], known: Mapping[str, Variable], point: Set[Variable]
) -> None:
    """Refuse invalid groups of globals.

    Raises
    ------
    ModelError
        If a group is invalid; the message says why.
    """
    names = [name for group in groups for name in group]
    for group in groups:
        strange = next((name for name in group if name not in known), None)
        if strange is not None:
            raise ModelError(
                f"factors= couples {tuple(group)!r}, but the model has no hidden variable '{strange}' that all rows "
                f"share; those are {', '.join(known)}. List only these, or only hidden variables of the rows"
            )
        if len(set(group)) < 2:
            raise ModelError(
                f"factors= couples {tuple(group)!r}; a factor is shared by two variables or more"
            )
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"factors= names '{name}' more than once; a variable has one factor")
        if known[name] in point:
            raise ModelError(
                f"factors= names '{name}', which is a point mass; leave it out of one of factors= and point="
            )


def _has_local(leaf: Variable, terms: Sequence[Term], latent: Sequence[Variable]) -> bool:
    """Whether the density of a leaf has a hidden variable of the row."""
    return any(operand.node in latent for term in terms if term.owner is leaf for operand in term.operands)


def _check_groups(joint: Any, latent: Sequence[Variable], bound: BoundModel) -> None:
    """Refuse names that are not those of local variables.

    Raises
    ------
    ModelError
        If a name is that of no local variable. Where none is latent, one with data may be named: there is nothing to
        join, and the fit that these data are evaluated with may have joined it.
    """
    local = latent or [variable for variable in bound.observed if bound.is_local(variable)]
    names = {variable.name for variable in local}
    for name in (name for group in joint for name in group if name not in names):
        known = ", ".join(variable.name for variable in latent)
        those = f"those are {known}" if known else "this model has none"
        raise ModelError(f"factors= names '{name}', which is not a local variable; {those}")


def _is_groups(joint: Any) -> bool:
    """Whether something is a list of groups of names."""
    return _is_list(joint) and all(
        _is_list(names) and all(isinstance(n, str) for n in names) for names in joint
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | Set) and not isinstance(value, str | bytes)


def _alone(bound: BoundModel, variable: Variable, data_axis: Axis) -> LocalFactor:
    evidence, size = bound.of(variable), bound.size
    if isinstance(variable, MarkovChain) and variable.by_step:
        return ChangingStatesFactor(variable, evidence, data_axis, bound)
    if isinstance(variable, MarkovChain):
        return chain_of_states(variable, evidence, data_axis, bound)
    if isinstance(variable, LinearGaussianChain):
        kind = ChangingStepsFactor if variable.by_step else LinearGaussianChainFactor
        return kind(variable, evidence, data_axis, bound)
    if isinstance(variable, Label):
        return CategoricalFactor(variable, evidence, data_axis, size)
    if evidence.in_part is not None:
        return KnownInPartFactor(variable, evidence, data_axis, size)
    return FamilyFactor(
        variable, evidence, data_axis, size, certain_priors([variable], data_axis, bound.values_of)
    )


def _refuse_known(joint: Sequence[Sequence[str]] | None, known: Set[Variable]) -> None:
    """Refuse to join variables that are known in some rows.

    Raises
    ------
    ModelError
        If one of them is to share a factor.
    """
    for variable in known:
        if any(variable.name in names for names in joint or ()):
            raise ModelError(
                f"factors= joins '{variable.name}', which the data have in some rows; leave it out of factors="
            )


def _check_seen(bound: BoundModel, factor: LocalFactor) -> None:
    """Refuse variables without an observation below them that cannot be left out: with the factor, all at once.

    Raises
    ------
    DataError
        If only some variables of the factor are without one.
    """
    own = {variable: bound.of(variable).active for variable in factor.variables}
    active = {variable: counted for variable, counted in own.items() if counted is not None}
    if not active or factor.counts_apart:
        return
    unseen, first = next(iter(active.items()))
    alike = active.keys() == own.keys() and all(
        np.array_equal(counted, first) and first.ndim == 1 for counted in list(active.values())[1:]
    )
    if not alike:
        assert bound.data_plate is not None
        refuse_unseen(unseen, first, bound.observed, bound.data_plate)
