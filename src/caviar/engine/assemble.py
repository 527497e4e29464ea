"""Assembling: the one place that knows every kind of model, and what its rows and local factors are.

What the compiler derives serves every statement. A pattern with rows of its own, as documents, is one more branch here;
a test holds each to the derived updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..language import Variable, terms_of
from .ascent.problem import CompiledRows, Problem
from .binding.bound_model import BoundModel
from .binding.coordinates import Coordinates, coordinates_of
from .compiled.compiler import Compiled, compile_terms
from .compiled.factorisation import local_factors
from .compiled.labels_that_meet import with_joined_labels
from .local.local_factor import LocalFactor
from .rows.e_step import IndependentRows
from .rows.missing_patterns_of import missing_patterns_of
from .rows.recentring import recentrings_of
from .topics.compile import compile_documents, document_factors
from .topics.e_step import TopicRows
from .topics.lowering import BoundDocuments

__all__ = ["assemble"]


def assemble(
    bound: BoundModel,
    order: Sequence[Variable],
    point: frozenset[Variable],
    joint: Sequence[Sequence[str]] | None = None,
) -> Problem:
    """Return the compiled problem of a model bound to data.

    Parameters
    ----------
    order
        Global variables in the order of their updates.
    point
        Those whose factors are point masses.
    joint
        Names of local variables to join, a group each; None joins wherever that is tractable.
    """
    coordinates = coordinates_of(bound)
    if isinstance(bound, BoundDocuments):
        return Problem(bound, coordinates, document_factors(bound), order, point, _documents)
    terms = [term for node in bound.nodes if isinstance(node, Variable) for term in terms_of(node)]
    bound = with_joined_labels(bound, terms)
    return Problem(bound, coordinates, local_factors(bound, terms, joint), order, point, _derived)


def _derived(bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> CompiledRows:
    compiled = compile_terms(bound, coordinates, factors)
    recentrings = recentrings_of(factors, bound, coordinates, compiled)
    centres = {factor: [own.centres for own in several] for factor, several in recentrings.items()}
    rows = IndependentRows(compiled, factors, centres, missing_patterns_of(compiled, bound, centres))
    return CompiledRows(compiled, rows, recentrings)


def _documents(bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> CompiledRows:
    assert isinstance(bound, BoundDocuments)
    compiled: Compiled
    compiled, part = compile_documents(bound, coordinates)
    return CompiledRows(compiled, TopicRows(bound, factors, part), {})
