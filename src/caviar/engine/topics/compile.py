"""What the compiler leaves of a model of documents: the terms of the topics, and one that meets the counts of words."""

from __future__ import annotations

from ...language import Axis, nodes_above, terms_of
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


def document_factors(bound: BoundDocuments) -> list[LocalFactor]:
    """Return the local factors: the proportions of a document, and the topics of its tokens."""
    pattern = bound.pattern
    return [
        FamilyFactor(pattern.proportions, bound.of(pattern.proportions), Axis(pattern.document), bound.size),
        CategoricalFactor(pattern.assignment, bound.of(pattern.assignment), Axis(pattern.token), bound.size),
    ]


def compile_documents(bound: BoundDocuments, coordinates: Coordinates) -> tuple[Compiled, Part]:
    r"""Return the compiled model, and the part :math:`\sum_d n_{dv} r_{dvk}`, topics x words, that it needs."""
    pattern = bound.pattern
    above = tuple(nodes_above([pattern.topics]))
    stated = BoundModel(above, bound.sizes, None, {node: bound.of(node) for node in above})
    own = compile_terms(stated, coordinates, ())
    (term,) = terms_of(pattern.word)
    (chosen,) = (operand for operand in term.operands if operand.node is pattern.topics)
    labels, words = StatisticKey(pattern.assignment.name, "x"), FeatureKey(pattern.word.name)
    part = Part(SumKey((labels,), words), tuple(map(bound.size, chosen.axes)), None, None, None)
    topics = StatisticKey(pattern.topics.name, chosen.statistic)
    factors = [Factor(topics, chosen.axes), Factor(part.key, chosen.axes)]
    meeting = GlobalTerm(pattern.word, Contraction(term.coefficient, factors, [], chosen.axes, bound.size))
    return Compiled((meeting, *own.terms), {part.key: part}, (), {}, {}, {}), part
