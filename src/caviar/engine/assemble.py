"""Assembling: the one place that knows every kind of model, and what its rows and local factors are.

What the compiler derives serves every statement. A pattern with rows of its own, as documents, is one more branch here;
a test holds each to the derived updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..language import Variable, terms_of
from .ascent.problem import Plan, RowsOfPlan
from .binding.bound_model import Binding
from .binding.coordinates import Frame, frame_of
from .compiled.compiler import Compiled, compile_terms
from .compiled.factorisation import local_factors
from .compiled.missing_patterns_of import partial_vectors_of
from .local.local_factor import LocalFactor
from .rows.e_step import RowPass
from .rows.recentring import recentrings_of
from .topics.compile import compile_documents, document_factors
from .topics.e_step import DocumentPass
from .topics.lowering import DocumentBinding

__all__ = ["assemble"]


def assemble(
    binding: Binding,
    order: Sequence[Variable],
    point: frozenset[Variable],
    joint: Sequence[Sequence[str]] | None = None,
) -> Plan:
    """Return the compiled plan of a model bound to data.

    Parameters
    ----------
    order
        Global variables in the order of their updates.
    point
        Those whose factors are point masses.
    joint
        Names of local variables to join, a group each; None joins wherever that is tractable.
    """
    frame = frame_of(binding)
    if isinstance(binding, DocumentBinding):
        return Plan(binding, frame, document_factors(binding), order, point, _documents)
    terms = [term for node in binding.nodes if isinstance(node, Variable) for term in terms_of(node)]
    return Plan(binding, frame, local_factors(binding, terms, joint), order, point, _derived)


def _derived(binding: Binding, frame: Frame, factors: Sequence[LocalFactor]) -> RowsOfPlan:
    compiled = compile_terms(binding, frame, factors)
    recentrings = recentrings_of(factors, binding, frame, compiled)
    centres = {factor: [own.centres for own in several] for factor, several in recentrings.items()}
    rows = RowPass(compiled, factors, centres, partial_vectors_of(compiled, binding))
    return RowsOfPlan(compiled, rows, recentrings)


def _documents(binding: Binding, frame: Frame, factors: Sequence[LocalFactor]) -> RowsOfPlan:
    assert isinstance(binding, DocumentBinding)
    compiled: Compiled
    compiled, part = compile_documents(binding, frame)
    return RowsOfPlan(compiled, DocumentPass(binding, factors, part), {})
