"""Groups of hidden vectors that occur only in dot products with each other, so all of them can be rotated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....._typing import Array, Statistics
from .....families import Beta as BetaFamily
from .....families import Gamma as GammaFamily
from .....language import (
    Beta,
    Constant,
    Diagonal,
    Gamma,
    Indexed,
    LinearGaussianChain,
    Link,
    MultivariateNormal,
    Node,
    Normal,
    Part,
    Predictor,
    SparseVector,
    Variable,
)
from ....local.family import FamilyFactor
from ...problem import Problem
from .relevance import settled_precision

_FAR = 0.7
"""Change of the logarithm of a precision that is worth a pass over the rows."""


@dataclass(frozen=True, eq=False)
class Member:
    """A vector that turns.

    Attributes
    ----------
    variable
        The vector.
    is_dual
        Whether it turns by the inverse transpose.
    relevance
        The Gamma precisions of its coordinates, if nothing else has these; else None. Of a chain those of the
        rows of its transition.
    transition
        The rows of the transition of a chain, which have their optimal factors for each turn; else None.
    """

    variable: Variable
    is_dual: bool
    relevance: Gamma | None
    transition: MultivariateNormal | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """Vectors that turn together.

    Attributes
    ----------
    members
        All of them.
    """

    members: tuple[Member, ...]

    @property
    def is_scaled(self) -> bool:
        """Whether coordinates can only be scaled: zeros would be lost otherwise."""
        return any(own.variable.has_zeros for own in self.members)

    @property
    def has_chain(self) -> bool:
        """Whether some of them are the states of a chain."""
        return any(own.transition is not None for own in self.members)


def groups_of(problem: Problem) -> list[Group]:
    """Return the groups of vectors that can be turned; none where a predictor multiplies no two hidden vectors."""
    meets, elsewhere = problem.fact("vectors that meet", lambda: _vectors_that_meet(problem))
    found: list[Group] = []
    seen: set[Variable] = set()
    for variable in meets:
        if variable not in seen:
            sides = _sides(variable, meets)
            seen |= sides.keys()
            if _can_turn(problem, sides, meets, elsewhere):
                members = (_member(problem, own, dual) for own, dual in sides.items())
                found.append(Group(tuple(members)))
    return found


def _member(problem: Problem, variable: Variable, is_dual: bool) -> Member:
    transition = variable.slots["transition"].node if isinstance(variable, LinearGaussianChain) else None
    if isinstance(transition, MultivariateNormal):
        return Member(variable, is_dual, _relevance(problem, transition), transition)
    return Member(variable, is_dual, _relevance(problem, variable))


def _vectors_that_meet(problem: Problem) -> tuple[dict[Variable, list[Variable]], set[Node]]:
    """Return the vectors that each vector is multiplied with, and the vectors that are used otherwise."""
    meets: dict[Variable, list[Variable]] = {}
    elsewhere: set[Node] = set()
    for node in problem.bound.nodes:
        for stated in node.stated.values() if isinstance(node, Variable) else ():
            for operands, is_dot in _uses(stated):
                hidden = [own for own in operands if _is_vector(own)]
                if is_dot and len(hidden) == 2 and hidden[0] is not hidden[1]:
                    meets.setdefault(hidden[0], []).append(hidden[1])
                    meets.setdefault(hidden[1], []).append(hidden[0])
                else:
                    elsewhere.update(hidden)
    return meets, elsewhere


def _uses(stated: Any) -> Iterator[tuple[list[Any], bool]]:
    """Yield the nodes that are multiplied with each other in an argument, and whether they are of a dot product."""
    expression = stated.predictor if isinstance(stated, Link) else stated
    if isinstance(expression, Diagonal):
        yield [node_of(own) for own in expression.nodes], False
    elif isinstance(expression, Predictor):
        for addend in expression.addends:
            yield [node_of(own) for own in addend.numbers], False
            yield from (([node_of(own) for own in pair], True) for pair in addend.dots)
    else:
        yield [node_of(expression)], False


def node_of(value: Any) -> Any:
    """Return the node of an operand, without its index."""
    return value.node if isinstance(value, Indexed | Part) else value


def _is_vector(node: Any) -> bool:
    return isinstance(node, MultivariateNormal | SparseVector | LinearGaussianChain)


def _sides(first: Variable, meets: dict[Variable, list[Variable]]) -> dict[Variable, bool]:
    """Return the vectors that are connected with one, and whether each is on the other side than this one."""
    sides, waiting = {first: False}, [first]
    while waiting:
        variable = waiting.pop()
        for other in meets[variable]:
            if other not in sides:
                sides[other] = not sides[variable]
                waiting.append(other)
    return sides


def _can_turn(
    problem: Problem,
    sides: dict[Variable, bool],
    meets: dict[Variable, list[Variable]],
    elsewhere: set[Node],
) -> bool:
    """Whether only the priors of these vectors distinguish one rotation of them from another."""
    if any(sides[other] == own for variable, own in sides.items() for other in meets[variable]):
        return False
    if len({variable.dimension for variable in sides}) > 1 or elsewhere & sides.keys():
        return False
    return all(
        _is_free_chain(problem, own) if isinstance(own, LinearGaussianChain) else is_free(problem, own)
        for own in sides
    )


def _is_free_chain(problem: Problem, chain: LinearGaussianChain) -> bool:
    """Whether the states of a chain are hidden and alone in their factor, and its transition is, which it alone has."""
    transition = chain.slots["transition"].node
    if chain.by_step or "inputs" in chain.slots or not isinstance(transition, MultivariateNormal):
        return False
    factors = [factor for factor in problem.factors if chain in factor.variables]
    if not is_hidden(problem, chain) or any(len(own.variables) > 1 for own in factors):
        return False
    users = [own for own in problem.bound.nodes if isinstance(own, Variable) and transition in own.parents]
    if users != [chain] or transition in problem.point or transition not in problem.order:
        return False
    return is_hidden(problem, transition)


def is_free(problem: Problem, variable: Variable) -> bool:
    """Whether a vector is hidden with all its repetitions, about zero, and alone in its factor."""
    mean = variable.slots.get("mean")
    if not is_hidden(problem, variable) or mean is None:
        return False
    if not isinstance(mean.node, Constant) or np.any(problem.bound.values_of(mean.node)):
        return False
    if problem.bound.is_local(variable):
        alone = [factor for factor in problem.factors if variable in factor.variables]
        is_plain = all(isinstance(factor, FamilyFactor) for factor in alone)
        return is_plain and variable.plates == (problem.bound.data_plate,)
    return variable in problem.order


def is_hidden(problem: Problem, variable: Variable) -> bool:
    """Whether nothing is known of a variable but its prior, and it is measured from no other point."""
    own = problem.bound.of(variable)
    if problem.bound.is_known(variable) or variable.members or problem.coordinates.of(variable) is not None:
        return False
    return own.clamped is None and own.prior is None and own.active is None and own.entries is None


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Normal numbers about zero with precisions that are learnt, and that nothing else has.

    Attributes
    ----------
    variable
        The numbers, or vectors.
    relevance
        Their precisions.
    is_each
        Whether each coordinate of a vector, or each number, has its own; else one is for all numbers.
    """

    variable: Variable
    relevance: Gamma
    is_each: bool

    @property
    def priors(self) -> tuple[Variable, ...]:
        """What is learnt."""
        return (self.relevance,)

    def settled(
        self, problem: Problem, naturals: Mapping[Variable, Statistics]
    ) -> dict[Variable, Statistics] | None:
        """Return natural parameters of the priors where turns of updates lead; None where they are near there.

        Parameters
        ----------
        naturals
            Of the numbers at their optimum, and of the precisions as they are.
        """
        numbers: Any = problem.factor(self.variable, naturals[self.variable])
        mean = numbers.mean
        if self.variable.value_rank:
            variance = np.diagonal(numbers.covariance, axis1=-2, axis2=-1)
        else:
            variance = 1.0 / numbers.precision
        size = mean.shape[-1] if self.variable.value_rank else mean.size if self.is_each else 1
        mean, variance = mean.reshape(-1, size), variance.reshape(-1, size)
        before, negative_rate = naturals[self.relevance]
        alpha = np.ravel(before / -negative_rate)
        curvature = np.maximum(1.0 / variance - alpha, 0.0)
        shape, rate = known_parameters(problem, self.relevance, size)
        shape = shape + 0.5 * len(mean)
        found = settled_precision(alpha, mean / variance, curvature, shape, rate)
        if not np.abs(np.log(found / alpha)).max() > _FAR:
            return None
        return {
            self.relevance: tuple(np.reshape(own, np.shape(negative_rate)) for own in (shape, -shape / found))
        }


def shrunk_of(problem: Problem) -> list[Shrunk]:
    """Return the shared Normal numbers about zero whose precisions are learnt from nothing else."""
    found: list[Shrunk] = []
    for variable in problem.order:
        if not isinstance(variable, Normal | MultivariateNormal) or variable in problem.point:
            continue
        relevance = _relevance(problem, variable)
        if relevance is None or not is_free(problem, variable):
            continue
        if relevance.plates and variable.value_rank:
            found.append(Shrunk(variable, relevance, True))
        elif not variable.value_rank and relevance.plates in ((), variable.plates):
            found.append(Shrunk(variable, relevance, bool(relevance.plates)))
    return found


def own_prior(
    problem: Problem, variable: Variable, slot_name: str, kind: type[Gamma] | type[Beta]
) -> Gamma | Beta | None:
    """Return the variable in a slot if it is learnt, with known parameters, and nothing else has it.

    Of a vector there is one for each coordinate, or one for all.
    """
    slots = [own for own in variable.slots.values() if own.name == slot_name]
    if len(slots) != 1 or not isinstance(slots[0].node, kind) or slots[0].index is not None:
        return None
    (slot,), node = slots, slots[0].node
    own = problem.bound.of(node)
    children = [
        child for child in problem.bound.nodes if isinstance(child, Variable) and node in child.parents
    ]
    if children != [variable] or node not in problem.order or node in problem.point:
        return None
    if own.clamped is not None or own.prior is not None or node.family not in (GammaFamily, BetaFamily):
        return None
    if variable.value_rank and node.plates != (slot.along,):
        return None
    return node if all(isinstance(found.node, Constant) for found in node.slots.values()) else None


def _relevance(problem: Problem, variable: Variable) -> Gamma | None:
    """Return the Gammas that are the precisions of a variable, of a vector of its coordinates, and of nothing else."""
    found = own_prior(problem, variable, "precision", Gamma)
    return found if isinstance(found, Gamma) else None


def known_parameters(problem: Problem, prior: Gamma | Beta, size: int) -> tuple[Array, Array]:
    """Return the two known parameters of Gammas or Betas, one of each for every coordinate."""
    values = [np.asarray(problem.bound.values_of(own.node), dtype=np.float64) for own in prior.slots.values()]
    if len(values) == 1:
        # a Beta has both in one slot
        values = [values[0][..., 0], values[0][..., 1]]
    first, second = (np.broadcast_to(own, (size,)) for own in values)
    return first, second
