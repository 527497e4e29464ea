"""The compiler: terms -> contractions, each split into a local side (rows of data) and a global side.

Every term of the log joint becomes one global contraction. Where a term runs over the data plate, what it
needs of the rows is a *part*: its local operands contracted over the data plate. A part is fused if it is
one local statistic times one feature of the data; all fused parts of a local factor come from one matrix
product. Otherwise it is contracted on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ...families.base.family import Pairs
from ...language import (
    Axis,
    Constant,
    Label,
    Operand,
    Plate,
    Slot,
    Term,
    Variable,
    base_terms_of,
    plate_axes,
    terms_of,
    zero_terms_of,
)
from ...lazy.block_map import map_blocks
from ..binding.bound_model import BoundModel
from ..binding.coordinates import SHIFT, SHIFT_SQUARED, Coordinates
from ..binding.known_statistics import BESIDE_VALUES, known_statistic
from ..binding.missing.values import OBSERVED
from ..design.contraction import Contraction
from ..design.fitted import Fitted
from ..design.gather import Factor, Gather, with_axis
from ..design.keys import StatisticKey
from ..local.local_factor import LocalFactor
from .known_designs import Designs, is_of_coefficients
from .labels_that_meet import is_label_of_rows
from .plan import MOST_PLANS, Plan, plan_key, plan_of
from .sums_over_rows import SumsOverRows, key_of
from .terms import Compiled, GlobalTerm


class _Side(NamedTuple):
    """Where an operand is: a global factor, a known array without rows, or (neither) a side of the rows."""

    is_known: bool
    factor: Factor | None = None
    known: tuple[Array, tuple[Axis, ...]] | None = None
    number: int = -1
    """Of the known array among all of them."""


class _Compiler:
    def __init__(self, bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> None:
        self.bound = bound
        self.coordinates = coordinates
        self.data_axis = None if bound.data_plate is None else Axis(bound.data_plate)
        # rows of any number have the same contractions
        self.size = bound.size.without(bound.data_plate)
        self.sums = SumsOverRows(bound, coordinates, factors, self.size)
        self.known: list[tuple[Variable, Operand]] = []
        """The known arrays without rows: variable in whose terms each is, and the operand."""
        self._designs = Designs(bound)
        self.uses: list[list[int]] = []
        """Numbers of the known arrays of each term."""

    @property
    def has_designs(self) -> bool:
        """Whether some terms have the values of known rows in them."""
        return self._designs.are_any

    def variable(self, owner: Variable) -> list[GlobalTerm]:
        """Compile the terms of a variable's density; an operand of several terms is looked at once."""
        prior = self.bound.of(owner).prior
        if prior is not None:
            return self._believed(owner, prior)
        return self.compiled(owner, (*_terms_in(self.coordinates, owner), *_base_terms(owner, self.bound)))

    def compiled(self, owner: Variable, terms: Sequence[Term]) -> list[GlobalTerm]:
        evidence = self.bound.of(owner)
        if evidence.entries is None and any(slot.index is not None for slot in owner.slots.values()):
            terms = [self._without_idle_choices(term) for term in terms]
        elif evidence.entries is not None and len(owner.indices) > 1:
            terms = _with_all_labels(owner, terms)
        # what takes missing entries, or latents that count nothing, out of a term that they are not in
        observed = None
        if evidence.observed is not None or (evidence.active is not None and self.bound.is_local(owner)):
            observed = Operand(owner, OBSERVED, plate_axes(owner))
        sides: dict[int, _Side] = {}
        return [self._term(term, observed, sides) for term in terms]

    def _believed(self, owner: Variable, belief: Any) -> list[GlobalTerm]:
        """Return the terms of a density that is a factor of an earlier fit: eta' t - A(eta), to its own measure."""
        points = {own.name: self.coordinates.of(own) for own in self.bound.latent_globals()}
        prior = belief.as_prior(owner.name, {name: own for name, own in points.items() if own is not None})
        size = self.size
        terms = [GlobalTerm(owner, Contraction(-prior.log_partition, [], [], (), size))]
        for statistic, natural in zip(owner.family.statistics, prior.natural, strict=True):
            plates = tuple([Axis(plate) for plate in owner.plates_of(statistic)])
            axes = plates + tuple([Axis(owner, letter) for letter in owner.letters[statistic]])
            factor = Factor(StatisticKey(owner.name, statistic), axes)
            terms.append(GlobalTerm(owner, Contraction(1.0, [factor], [(natural, axes)], axes, size)))
        return terms + [GlobalTerm(owner, self._of_pairs(owner, pairs)) for pairs in prior.pairs]

    def _of_pairs(self, owner: Variable, pairs: Pairs) -> Contraction:
        """Return the products with another variable that an earlier fit has coupled with the owner."""
        axis = Axis(Plate(f"{owner.name} and {pairs.other}"))
        other = next(own for own in self.bound.latent_globals() if own.name == pairs.other)
        factors, labels = [], {}
        for variable, places, side in ((owner, pairs.i, "first"), (other, pairs.j, "second")):
            axes = tuple([Axis(plate, side) for plate in variable.plates])
            axes += tuple([Axis(variable, letter) for letter in variable.letters["x"]])
            if axes:
                numbers = np.unravel_index(places, tuple(map(self.size, axes)))
                labels |= dict(zip(axes, numbers, strict=True))
            factors.append(Factor(StatisticKey(variable.name, "x"), axes))
        size = with_axis(self.size, axis, len(pairs.natural))
        return Contraction(1.0, factors, [(pairs.natural, (axis,))], (axis,), size, Gather(axis, labels))

    def _term(self, term: Term, observed: Operand | None, sides: dict[int, _Side]) -> GlobalTerm:
        """Compile one term: its local side becomes a part, its global side a contraction."""
        operands = term.operands
        if observed is not None and all(operand.node is not term.owner for operand in operands):
            operands = (*operands, observed)
        factors, known, rows, locals_ = [], [], [], []
        numbers: list[int] = []
        self.uses.append(numbers)
        for operand in operands:
            side = sides.get(id(operand)) or self._side(term.owner, operand, sides)
            if side.factor is not None:
                factors.append(side.factor)
            elif side.known is not None:
                known.append(side.known)
                numbers.append(side.number)
            else:
                (rows if side.is_known else locals_).append(operand)
        if self.data_axis not in term.axes:
            whole = Contraction(term.coefficient, factors, known, term.axes, self.size)
            seen = self._seen_global(term.owner)
            if seen is None:
                return GlobalTerm(term.owner, whole)
            counted = Contraction(term.coefficient, factors, [*known, seen], term.axes, self.size)
            return GlobalTerm(term.owner, counted, whole)
        axes, gather = self.sums.off_rows(term.axes), None
        joined = self._joined(rows, locals_)
        others = [*[f.axes for f in factors], *[own for _, own in known]]
        if joined is not None:
            rows, gather = joined
            others = [gather.axes(own) for own in others]
            axes = gather.axes(axes)
        fitted = None if joined is not None or locals_ else self._fitted(term, factors, known, rows)
        if fitted is not None:
            return GlobalTerm(term.owner, fitted)
        part = self.sums.part(term, rows, locals_, others)
        if axes and (rows or locals_):
            # what is summed over inside a part is not summed over again
            summed = {axis for operand in (*rows, *locals_) for axis in operand.axes}.difference(part.axes)
            axes = tuple([axis for axis in axes if axis not in summed])
        factors.append(part)
        contraction = Contraction(term.coefficient, factors, known, axes, self.size, gather)
        return GlobalTerm(term.owner, contraction)

    def _fitted(
        self,
        term: Term,
        factors: list[Factor],
        known: list[tuple[Array, tuple[Axis, ...]]],
        rows: list[Operand],
    ) -> Fitted | None:
        """Return a term with two vectors of coefficients of the same rows that are at hand; None of another one."""
        of_rows = next((own for own in rows if is_of_coefficients(own)), None)
        if of_rows is None:
            return None
        columns = of_rows.axes[-2:]
        own = {f.axes[-1]: place for place, f in enumerate(factors) if f.axes and f.axes[-1] in columns}
        if set(own) != set(columns) or any(axis in columns for _, axes in known for axis in axes):
            return None
        design = self._designs.of(of_rows, [other for other in rows if other is not of_rows])
        if design is None:
            return None
        places = own[columns[0]], own[columns[1]]
        axes = self.sums.off_rows(term.axes)
        return Fitted(term.coefficient, factors, known, axes, self.size, places, design)

    def _joined(self, rows: list[Operand], locals_: list[Operand]) -> tuple[list[Operand], Gather] | None:
        """Return the known sides of a term with its labels as one, and how other operands are looked up by these.

        None of a term with fewer than two labels, or with labels that choose for more than globals.
        """
        labels = [operand for operand in rows if is_label_of_rows(operand, self.bound)]
        joined = self.bound.joined.get(frozenset(operand.node for operand in labels))
        if joined is None or len(labels) != len(joined.labels):
            return None
        rest = [operand for operand in rows if operand not in labels]
        chosen = {operand.axes[-1]: joined.labels[operand.node] for operand in labels}
        if any(axis in chosen for operand in (*rest, *locals_) for axis in operand.axes):
            return None
        assert self.data_axis is not None
        gather = Gather(Axis(joined.combinations), chosen)
        return [*rest, Operand(joined.node, "one_hot", (self.data_axis, gather.axis))], gather

    def _seen_global(self, owner: Variable) -> tuple[Array, tuple[Axis, ...]] | None:
        """Return 1 for each repetition of a global variable that counts and 0 for the others; None if all do."""
        active = self.bound.of(owner).active
        if active is None or self.bound.is_local(owner):
            return None
        return active.astype(np.float64), plate_axes(owner)

    def _without_idle_choices(self, term: Term) -> Term:
        """Return a term without the labels that choose nothing in it, for their one-hot sums to one.

        What is measured from the centres of the categories depends on the label whatever the term says, and so does
        what is integrated out of a vector missing in part.
        """
        for choice in term.operands:
            category = choice.axes[-1] if choice.axes else None
            if not _is_choice(term, choice) or self.coordinates.is_centred(term.owner, choice.node):
                continue
            others = tuple(operand for operand in term.operands if operand is not choice)
            if all(category not in operand.axes for operand in others):
                axes = tuple(axis for axis in term.axes if axis is not category)
                term = term._replace(operands=others, axes=axes)
        return term

    def _side(self, owner: Variable, operand: Operand, sides: dict[int, _Side]) -> _Side:
        """Return where an operand of the owner's terms is, and keep it."""
        is_known = self.bound.is_known(operand.node) or operand.statistic in BESIDE_VALUES
        factor, known, number = None, None, -1
        if self.data_axis not in operand.axes:
            if is_known:
                known, number = known_statistic(self.bound, self.coordinates, owner, operand), len(self.known)
                self.known.append((owner, operand))
            else:
                factor = Factor(key_of(operand), operand.axes)
        side = sides[id(operand)] = _Side(is_known, factor, known, number)
        return side


def _is_choice(term: Term, operand: Operand) -> bool:
    """Whether an operand is the label by which a term chooses, of a Categorical or known."""
    if operand.slot is not None or operand.node is term.owner:
        return False
    return operand.statistic == "one_hot" or (operand.statistic == "x" and isinstance(operand.node, Label))


def compile_terms(
    bound: BoundModel,
    coordinates: Coordinates,
    factors: Sequence[LocalFactor],
    plans: dict[Hashable, Plan | None] | None = None,
) -> Compiled:
    """Return the compiled model: cost linear in the number of terms, none of it in the number of rows.

    Parameters
    ----------
    plans
        Those of the structure, by what they depend on; None where an earlier one had this key without a plan.
    """
    zeros = _terms_of_zeros(bound)
    numbers = tuple([(variable, place) for variable, own in zeros for place, _ in own])
    key = None if plans is None else plan_key(bound, coordinates, factors, numbers)
    known = None if plans is None or key is None else plans.get(key)
    if known is not None:
        return known.filled(bound, coordinates, factors)
    compiler = _Compiler(bound, coordinates, factors)
    terms = [term for node in bound.nodes if isinstance(node, Variable) for term in compiler.variable(node)]
    zero_terms = [term for node, own in zeros for term in compiler.compiled(node, [zero for _, zero in own])]
    sums = compiler.sums
    parts, tables = sums.finished()
    compiled = Compiled(
        tuple(terms),
        parts,
        sums.local_terms,
        tables,
        {node: source for node, source in sums.sources.items() if bound.is_known(node)},
        sums.users,
        tuple(zero_terms),
    )
    if plans is not None and key is not None and not compiler.has_designs:
        if len(plans) >= MOST_PLANS:
            plans.clear()
        # what comes once needs no plan
        seen = key in plans
        own = (compiled, compiler.known, compiler.uses, sums.operands, coordinates)
        plans[key] = plan_of(*own) if seen else None
    return compiled


def _terms_of_zeros(bound: BoundModel) -> list[tuple[Variable, list[tuple[int, Term]]]]:
    """Return for each variable the terms that count known zeros, if there are any, with their places."""
    found = []
    for node in bound.nodes:
        if isinstance(node, Variable) and node.zeros and bound.of(node).prior is None:
            terms = zero_terms_of(node, lambda own: own.is_known)
            own = [(place, term) for place, term in enumerate(terms) if _has_zeros(term, bound)]
            found += [(node, own)] if own else []
    return found


def _base_terms(node: Variable, bound: BoundModel) -> Sequence[Term]:
    """An observed variable's density counts with its base measure; a latent one's cancels against its factor's."""
    return base_terms_of(node) if bound.is_known(node) else ()


def _with_all_labels(owner: Variable, terms: Sequence[Term]) -> list[Term]:
    """Return the terms of a vector missing in part, each with all labels that choose for it.

    What is integrated out depends on all of them.
    """
    labels = {op.node: op for term in terms for op in term.operands if op.node in owner.indices}
    completed = []
    for term in terms:
        more = [op for node, op in labels.items() if all(own.node is not node for own in term.operands)]
        axes = dict.fromkeys((*term.axes, *(axis for op in more for axis in op.axes)))
        completed.append(term._replace(operands=(*term.operands, *more), axes=tuple(axes)))
    return completed


def _has_zeros(term: Term, bound: BoundModel) -> bool:
    """Whether the known probabilities that a term looks for zeros among have any."""
    operand = next(operand for operand in term.operands if operand.slot is not None)
    assert operand.slot is not None
    node, any_zero = operand.node, _AnyOf(operand.slot.role.zeros[operand.statistic])
    if isinstance(node, Constant):
        return any_zero(bound.values_of(node))
    return any(found for _, found in map_blocks(any_zero, bound.values_of(node)))


@dataclass(frozen=True, eq=False)
class _AnyOf:
    """Whether a function of some number of a block is not 0."""

    function: Callable[[Array], Array]

    def __call__(self, block: Array) -> bool:
        return bool(self.function(np.asarray(block, dtype=np.float64)).any())


def _terms_in(coordinates: Coordinates, owner: Variable) -> Sequence[Term]:
    r"""Return the terms of a variable's log density, with what a shift of its mean adds, for the points of a frame.

    The locations of known groups are measured from where their groups are, and the population mean from one point. With
    d the population's point less a group's, what a group's location is compared with is x + d, so in its density

    .. math:: x \to x + d, \qquad xx' \to xx' + 2 d x' + dd'
    """
    terms = terms_of(owner)
    if not coordinates.is_shifted(owner):
        return terms
    return [added for term in terms for added in (term, *_shifts_added(owner, owner.slots["mean"], term))]


def _shifts_added(owner: Variable, slot: Slot, term: Term) -> Iterator[Term]:
    """Yield what the shift of the mean adds to a term that has the mean."""
    for place, operand in enumerate(term.operands):
        if operand.slot is None or operand.slot.name != slot.name:
            continue
        rank = slot.role.rank
        plates, events = operand.axes[: -2 * rank or None], operand.axes[len(operand.axes) - 2 * rank :]
        if operand.statistic == "x":
            yield _in_place(
                term, place, 1.0, [_shift_of(owner, SHIFT, operand.axes[len(operand.axes) - rank :])]
            )
            continue
        x = Operand(operand.node, "x", (*plates, *events[rank:]), operand.slot)
        yield _in_place(term, place, 2.0, [_shift_of(owner, SHIFT, events[:rank]), x])
        yield _in_place(term, place, 1.0, [_shift_of(owner, SHIFT_SQUARED, events)])


def _shift_of(owner: Variable, statistic: str, events: Sequence[Axis]) -> Operand:
    return Operand(owner, statistic, (*plate_axes(owner), *events))


def _in_place(term: Term, place: int, times: float, operands: Sequence[Operand]) -> Term:
    """Return a term with other operands in the place of one."""
    rest = (*term.operands[:place], *operands, *term.operands[place + 1 :])
    return term._replace(coefficient=times * term.coefficient, operands=rest)
