"""What the compiler leaves of a model of documents: the terms of the topics, and one that meets the counts of words."""

from __future__ import annotations

from collections.abc import Sequence

from ...language import Axis, Variable, nodes_above, terms_of
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from ..compiled.compiler import compile_terms
from ..compiled.terms import Compiled, GlobalTerm
from ..design.contraction import Contraction
from ..design.gather import Factor
from ..design.keys import FeatureKey, StatisticKey, SumKey
from ..local.categorical import CategoricalFactor
from ..local.family import FamilyFactor
from ..local.local_factor import LocalFactor, Part
from .lowering import BoundDocuments
from .tied import Ties


def document_factors(bound: BoundDocuments) -> list[LocalFactor]:
    """Return the local factors: the proportions of a document, and the topics of its tokens."""
    pattern = bound.pattern
    return [
        FamilyFactor(pattern.proportions, bound.of(pattern.proportions), Axis(pattern.document), bound.size),
        CategoricalFactor(pattern.assignment, bound.of(pattern.assignment), Axis(pattern.token), bound.size),
    ]


def compile_documents(bound: BoundDocuments, coordinates: Coordinates) -> tuple[Compiled, Part]:
    r"""Return the compiled model, and the part :math:`\sum_d n_{dv} r_{dvk}`, topics x words, that it needs."""
    own = _above(bound, [bound.pattern.topics], coordinates)
    pattern = bound.pattern
    (term,) = terms_of(pattern.word)
    (chosen,) = (operand for operand in term.operands if operand.node is pattern.topics)
    labels, words = StatisticKey(pattern.assignment.name, "x"), FeatureKey(pattern.word.name)
    part = Part(SumKey((labels,), words), tuple(map(bound.size, chosen.axes)), None, None, None)
    topics = StatisticKey(pattern.topics.name, chosen.statistic)
    factors = [Factor(topics, chosen.axes), Factor(part.key, chosen.axes)]
    meeting = GlobalTerm(pattern.word, Contraction(term.coefficient, factors, [], chosen.axes, bound.size))
    return Compiled((meeting, *own.terms), {part.key: part}, (), {}, {}, {}), part


def compile_tied(
    bound: BoundDocuments, coordinates: Coordinates, factors: Sequence[LocalFactor]
) -> tuple[Compiled, Part, Ties]:
    """Return the same of documents whose proportions have hidden parents, with what these and they need."""
    compiled, part = compile_documents(bound, coordinates)
    above = _above(bound, [bound.pattern.proportions], coordinates, factors[:1])
    ties = Ties(above, StatisticKey(bound.pattern.proportions.name, "log_x"))
    both = Compiled((*compiled.terms, *above.terms), {**compiled.parts, **above.parts}, (), {}, {}, {})
    return both, part, ties


def _above(
    bound: BoundDocuments,
    leaves: Sequence[Variable],
    coordinates: Coordinates,
    factors: Sequence[LocalFactor] = (),
) -> Compiled:
    """Return the compiled terms of some variables and of all that is above them."""
    above = tuple(nodes_above(leaves))
    rows = bound.data_plate if factors else None
    stated = BoundModel(above, bound.sizes, rows, {node: bound.of(node) for node in above})
    return compile_terms(stated, coordinates, factors)
