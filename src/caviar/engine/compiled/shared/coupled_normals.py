"""Globals that share one Gaussian factor: Normal and MultivariateNormal variables that are added up.

The ascent treats them as one variable. Its statistics are those of each variable, and the products of the numbers that
appear together in a term. A term with two of the variables is rewritten with their product as one operand. So it is
again linear in a statistic of one factor, and everything else (updates, messages, the objective) follows as for any
other factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...._errors import ModelError
from ...._typing import AnyArray, Array, Statistics
from ....families import LinearGaussianChain, MultivariateNormal, Normal
from ....families.shared.coupled_member import Cross, Member
from ....families.shared.coupled_normals import CoupledLayout
from ....language import Axis, Plate, Variable, terms_of
from ...binding.bound_model import BoundModel
from ...binding.clamped.factor import Clamped
from ...design.contraction import Contraction
from ...design.gather import Factor, Gather, with_axis
from ...design.keys import StatisticKey
from ..terms import GlobalTerm
from .variable import SharedVariable, said

_MOST = 6_000
"""Largest number of rows of the dense matrix of the numbers that are not eliminated."""

_MOST_BY_DEFAULT, _MOST_WHOLE = 200, 300
"""Largest such matrix at which globals share a factor without being asked to: it then takes about the time of rows. The
second is for small factors, of which nothing is eliminated: a smaller number would leave out what larger ones have."""

_OF_VALUES = (Normal, MultivariateNormal, LinearGaussianChain)
"""Families of hidden values of the rows that are locations."""


class CoupledVariable(SharedVariable):
    """Variables that share one Gaussian factor, as one variable of the engine.

    Parameters
    ----------
    members, layout
        The variables, and the family of their factor.
    known
        Values of some of their repetitions, by name.
    """

    def __init__(
        self, members: Sequence[Variable], layout: CoupledLayout, known: Mapping[str, Clamped]
    ) -> None:
        super().__init__(members, layout)
        self.clamped = known

    def factor_of(self, natural: Statistics, point_of: Callable[[Variable], Array | None]) -> Any:
        return self.family.from_natural(natural, self._values(point_of) if self.clamped else None)

    def _values(self, point_of: Callable[[Variable], Array | None]) -> Array:
        """Return the values of known numbers, measured from the points of their variables, (numbers,); 0 of others."""
        found = np.zeros(self.family.pattern.size)
        for number, (variable, own) in enumerate(zip(self.members, self.family.members, strict=True)):
            if variable.name in self.clamped:
                known = self.clamped[variable.name]
                values = np.zeros((*own.shape, *own.event_shape))
                values[known.is_known] = known.points(variable, point_of(variable)).location
                found[self.family.place(number)] = values.ravel()
        return found

    def is_matrix(self, statistic: str) -> bool:
        """Whether a statistic ends with the axes of a symmetric matrix."""
        vectors = (own.name for own in self.family.members if own.dimension is not None)
        return any(statistic == f"{name}.xx" for name in vectors)

    def rewritten(self, terms: Sequence[GlobalTerm], bound: BoundModel) -> tuple[GlobalTerm, ...]:
        meetings = _meetings(self.members, terms, bound)
        return tuple(_rewritten(term, meeting, self) for term, meeting in zip(terms, meetings, strict=True))


@dataclass(frozen=True, eq=False)
class _Meeting:
    """A term with two of the variables, and where it has them.

    Attributes
    ----------
    cross
        The products of the pairs, without a name yet.
    places
        Positions of the two among the operands.
    axes
        Of the products.
    gather
        Labels by which operands are looked up.
    n_pairs
        Axis of the pairs that a known array selects, and how many there are; None if there is no such axis.
    """

    cross: Cross
    places: tuple[int, int]
    axes: tuple[Axis, ...]
    gather: Gather | None
    n_pairs: tuple[Axis, int] | None = None


def coupled_variable(
    members: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> CoupledVariable:
    """Return variables as one variable that has their joint factor.

    Raises
    ------
    ModelError
        If they cannot share a Gaussian factor; the message says which of them, and why.
    """
    for variable in members:
        why = _why_not(variable, bound)
        if why is not None:
            raise ModelError(f"factors= couples {said(members)}: '{variable.name}' {why}. Leave it out")
    layout = _layout(members, terms, bound)
    if layout.pattern.n_rest > _MOST:
        largest = max(layout.pattern.rest, key=lambda part: math.prod(layout.members[part].part))
        raise ModelError(
            f"factors= couples {said(members)}: without the most repeated of them they have "
            f"{layout.pattern.n_rest:,} numbers together, and the dense matrix of these may have at most {_MOST:,} "
            f"rows. Leave '{layout.members[largest].name}' out, so that it keeps its own factor"
        )
    known = {own.name: bound.of(own).clamped for own in members}
    return CoupledVariable(members, layout, {name: own for name, own in known.items() if own is not None})


def coupled_by_default(
    able: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> tuple[list[tuple[Variable, ...]], str]:
    """Return the groups of globals that share a Gaussian factor by default, and which are too large for that.

    These are the Normal and MultivariateNormal variables that are added up, directly or through others. Those that meet
    hidden Normal values of the rows, such as loadings, are left out: their sums over the rows have short cuts of their
    own. What hidden labels choose is left out, too: components with separate factors may change places. Values that are
    known in some rows are covariates: their coefficients share a factor with the intercept, also where a hidden label
    chooses both. Then the fit is the same from wherever a covariate is measured.
    """
    met = _meet_hidden_normals(bound)
    able = [own for own in able if own not in met and _why_not(own, bound) is None]
    if not bound.numbers_in_part:
        able = [own for own in able if not _is_chosen_by_hidden(own, bound)]
    groups, remarks = [], []
    for members in _connected(_never_multiplied(able, terms), terms):
        layout = _layout(members, terms, bound)
        if layout.pattern.n_rest <= (_MOST_BY_DEFAULT if layout.pattern.eliminated else _MOST_WHOLE):
            groups.append(members)
        else:
            names = ", ".join(repr(own.name) for own in members)
            remarks.append(
                f"{said(members)} have independent factors. One factor would need a dense matrix of "
                f"{layout.pattern.n_rest:,} rows; factors=[({names})] makes them share one."
            )
    return groups, " ".join(remarks)


def _meet_hidden_normals(bound: BoundModel) -> set[Any]:
    """Return the nodes that some term has together with a hidden Normal value of the rows, or of a chain.

    Beside covariates that are known in some rows these are only those that multiply it, which meet its square.
    """
    known = bound.numbers_in_part
    hidden = {own for own in bound.latent_locals() if own.family in _OF_VALUES and own not in known}
    terms = [term.operands for node in bound.nodes if isinstance(node, Variable) for term in terms_of(node)]
    return {
        operand.node
        for own in terms
        if any(each.node in hidden and not (known and each.statistic == "x") for each in own)
        for operand in own
    }


def _never_multiplied(able: Sequence[Variable], terms: Sequence[GlobalTerm]) -> list[Variable]:
    """Return the variables that no term multiplies with another one, or with other repetitions of themselves."""
    left = {own.name: own for own in able}
    while True:
        of_terms = [
            [key for key in term.contraction.keys if isinstance(key, StatisticKey) and key.variable in left]
            for term in terms
        ]
        beyond = [keys for keys in of_terms if len(keys) > 1 and not _is_pair(keys)]
        # the squares of what is multiplied meet; what is added to a product meets both, and is left once these are not
        squares = {key.variable for keys in beyond for key in keys if key.statistic != "x"}
        for name in squares or {key.variable for keys in beyond for key in keys}:
            del left[name]
        if not beyond:
            return list(left.values())


def _is_pair(keys: Sequence[StatisticKey]) -> bool:
    """Whether statistics are numbers of two different variables."""
    return (
        len(keys) == 2 and keys[0].variable != keys[1].variable and {key.statistic for key in keys} == {"x"}
    )


def _connected(able: Sequence[Variable], terms: Sequence[GlobalTerm]) -> list[tuple[Variable, ...]]:
    """Return the groups of at least two variables that terms connect, in their order."""
    number = {own.name: place for place, own in enumerate(able)}
    pairs = [
        [number[key.variable] for key in term.contraction.keys if _owner(key) in number]  # pyright: ignore
        for term in terms
    ]
    pairs = [own for own in pairs if len(own) == 2]
    if not pairs:
        return []
    i, j = np.transpose(pairs)
    _, labels = connected_components(
        coo_array((np.ones(len(i)), (i, j)), shape=(len(able), len(able))), False
    )
    groups = [
        tuple(own for own, mine in zip(able, labels, strict=True) if mine == one) for one in np.unique(labels)
    ]
    return [members for members in groups if len(members) > 1]


def _members(members: Sequence[Variable], bound: BoundModel) -> tuple[Member, ...]:
    return tuple(
        Member(
            variable.name,
            tuple(bound.sizes[plate] for plate in variable.plates),
            variable.dimension if variable.value_rank else None,
        )
        for variable in members
    )


def _layout(members: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel) -> CoupledLayout:
    crosses = [meeting.cross for meeting in _meetings(members, terms, bound) if meeting is not None]
    layout = CoupledLayout(_members(members, bound), tuple(crosses))
    known = [bound.of(variable).clamped for variable in members]
    if all(own is None for own in known):
        return layout
    of_repetitions = [None if own is None else ~own.is_known for own in known]
    return replace(layout, known=~layout.counted(of_repetitions))


def _why_not(variable: Variable, bound: BoundModel) -> str | None:
    """Return why a variable cannot be a part of a Gaussian factor; None if it can."""
    if variable.family not in (Normal, MultivariateNormal) or variable.tied is not None:
        return f"is a {type(variable).__name__}; only Normal and MultivariateNormal variables share a Gaussian factor"
    known = bound.of(variable).clamped
    if known is not None and known.are_all:
        return "has values in the data, all of them"
    return None


def _is_chosen_by_hidden(variable: Variable, bound: BoundModel) -> bool:
    """Whether a hidden label chooses a variable."""
    return any(
        slot.node is variable and isinstance(slot.index, Variable) and not bound.is_known(slot.index)
        for node in bound.nodes
        for slot in (node.slots.values() if isinstance(node, Variable) else ())
    )


def _meetings(
    members: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> Iterator[_Meeting | None]:
    """Yield for each term where it has two of the variables; None if it has at most one."""
    numbers = {variable.name: number for number, variable in enumerate(members)}
    shapes = [member.shape + member.event_shape for member in _members(members, bound)]
    found = 0
    for term in terms:
        places = [place for place, key in enumerate(term.contraction.keys) if _owner(key) in numbers]
        if len(places) < 2:
            yield None
            continue
        keys: list[Any] = [term.contraction.keys[place] for place in places]
        if not _is_pair(keys):
            names = " and ".join(sorted({f"'{key.variable}'" for key in keys}))
            raise ModelError(
                f"factors= couples {said(members)}, but {names} are multiplied with each other, or meet at two labels "
                f"of one plate, in the density of '{term.owner.name}': given the rest they are not jointly Gaussian. "
                f"Leave one out"
            )
        own = [numbers[key.variable] for key in keys]
        meeting = _meeting(term, (places[0], places[1]), [shapes[number] for number in own])
        name = f"{keys[0].variable}*{keys[1].variable}.{found}"
        found += 1
        yield replace(meeting, cross=replace(meeting.cross, name=name, members=(own[0], own[1])))


def _owner(key: Any) -> str | None:
    return key.variable if isinstance(key, StatisticKey) else None


def _meeting(term: GlobalTerm, places: tuple[int, int], shapes: Sequence[tuple[int, ...]]) -> _Meeting:
    contraction = term.contraction if term.whole is None else term.whole
    gather, n_pairs = contraction.gather, None
    own = [contraction.factors[place].axes for place in places]
    looked_up = own if gather is None else [gather.axes(axes) for axes in own]
    axes = tuple(dict.fromkeys((*looked_up[0], *looked_up[1])))
    constant, of_constant = contraction.constant, contraction.constant_axes
    if gather is None and len(axes) > max(map(len, own)) and set(axes) <= set(of_constant):
        # a known array, as the labels of groups of groups, says which of all pairs meet
        others = tuple(place for place, axis in enumerate(of_constant) if axis not in axes)
        meets = np.any(constant != 0, axis=others)
        kept = [axis for axis in of_constant if axis in axes]
        labels = dict(zip(kept, np.nonzero(meets), strict=True))
        pairs = Axis(Plate(f"pairs of {term.owner.name}"))
        gather, n_pairs, axes = Gather(pairs, labels), (pairs, int(meets.sum())), (pairs,)
    size = contraction.size if n_pairs is None else with_axis(contraction.size, *n_pairs)
    full = tuple(size(axis) for axis in axes)
    i, j = (
        _numbers(shape, mine, axes, gather, full).ravel() for shape, mine in zip(shapes, own, strict=True)
    )
    return _Meeting(Cross("", (0, 1), i, j, full), places, axes, gather, n_pairs)


def _numbers(
    shape: tuple[int, ...],
    own: tuple[Axis, ...],
    axes: tuple[Axis, ...],
    gather: Gather | None,
    full: tuple[int, ...],
) -> AnyArray:
    """Return for each product the position of its number in a variable, over the axes of the products."""
    numbers: Any = np.arange(math.prod(shape)).reshape(shape)
    if gather is not None:
        numbers, own = gather.take(numbers, own), gather.axes(own)
    order = sorted(range(len(own)), key=lambda place: axes.index(own[place]))
    numbers = numbers.transpose(order)
    present = [axis in own for axis in axes]
    stretched = numbers[tuple(slice(None) if here else None for here in present)]
    return np.broadcast_to(stretched, full)


def _rewritten(term: GlobalTerm, meeting: _Meeting | None, variable: CoupledVariable) -> GlobalTerm:
    names = {member.name for member in variable.members}
    if term.owner.name not in names and all(_owner(key) not in names for key in term.contraction.keys):
        return term
    owner = variable if term.owner.name in names else term.owner
    whole = None if term.whole is None else _with_products(term.whole, meeting, variable, names)
    return GlobalTerm(owner, _with_products(term.contraction, meeting, variable, names), whole)


def _with_products(
    contraction: Contraction, meeting: _Meeting | None, variable: CoupledVariable, names: set[str]
) -> Contraction:
    """Return a contraction with the statistics of the joint factor."""
    factors = []
    for place, (key, axes) in enumerate(contraction.factors):
        if meeting is not None and place in meeting.places:
            continue
        if isinstance(key, StatisticKey) and key.variable in names:
            key = StatisticKey(variable.name, f"{key.variable}.{key.statistic}")
        factors.append(Factor(key, axes))
    gather, size = contraction.gather, contraction.size
    if meeting is not None:
        factors.append(Factor(StatisticKey(variable.name, meeting.cross.name), meeting.axes))
        gather = meeting.gather
        size = size if meeting.n_pairs is None else with_axis(size, *meeting.n_pairs)
    return contraction.with_factors(factors, (), size, gather)
