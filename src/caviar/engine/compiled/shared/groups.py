"""Which globals share a factor, of what kind it is, and the terms with its statistics."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from ....language import Variable
from ...binding.bound_model import BoundModel
from ..terms import Compiled, GlobalTerm
from .coupled_normals import coupled_by_default, coupled_variable
from .gated_globals import gated_by_default, gated_variable, is_label
from .variable import SharedVariable


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
