"""Hidden variables that multiply each other in a predictor, as loadings and scores do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from .nodes.algebra import Predictor
from .nodes.node import Indexed, Node, Part
from .variable import Variable


def multiplied_together(nodes: Sequence[Node], hidden: Collection[Node]) -> Iterator[tuple[Variable, ...]]:
    """Yield the hidden variables of each addend of a predictor that has several of them as factors.

    Where all of these have mean 0 the ELBO has a saddle point, at which no update moves any of them.
    """
    for node in nodes:
        for stated in node.stated.values() if isinstance(node, Variable) else ():
            for addend in stated.addends if isinstance(stated, Predictor) else ():
                factors = (op.node if isinstance(op, Indexed | Part) else op for op in addend.operands)
                several = tuple(own for own in factors if isinstance(own, Variable) and own in hidden)
                if len(several) > 1:
                    yield several
