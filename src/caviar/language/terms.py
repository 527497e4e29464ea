"""From a statement to its terms, and the proof that each variable has an update inside its family.

The log joint density of a model is a sum of terms, each a coefficient times a product of sufficient
statistics, summed over axes. If every variable is in each term at most once, through statistics of its
own family, the expected log joint is multilinear in the expected statistics, and everything that coordinate
ascent needs follows (see the derivation, section 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from .._errors import ConjugacyError, ModelError, PlateError
from ..families.tabulated.scalar import can_be_tabulated
from ..families.tabulated.scalar_functions import PLAIN, Function, product_of
from .nodes.node import Indexed, Label, Node
from .nodes.plates import Plate
from .nodes.slots import Slot
from .nodes.templates import Factor, Summand
from .variable import Variable


class Axis:
    """An axis that a term is summed over: a plate, or an event axis of a variable.

    The categories of a Categorical ``z`` are one axis, ``Axis(z, "k")``: of its own statistic, of the
    probabilities it is drawn with, and of every plate that it chooses from. There is one object for each
    axis, so that axes are compared by identity.
    """

    of: Plate | Variable
    letter: str

    def __new__(cls, of: Plate | Variable, letter: str = "") -> Axis:
        """Return the one object for this axis."""
        # threads that come at the same time get the same object
        known: Any = of.__dict__.get("_axes")
        if known is None:
            known = of.__dict__.setdefault("_axes", {})
        axis = known.get(letter)
        if axis is None:
            axis = super().__new__(cls)
            axis.of, axis.letter = of, letter
            axis = known.setdefault(letter, axis)
        return axis

    def __repr__(self) -> str:
        return f"Axis({self.of.name!r}, {self.letter!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Axis, (self.of, self.letter)


class Operand(NamedTuple):
    """A statistic of a node, with the axes of its array: plates first, then event axes."""

    node: Node
    statistic: str
    axes: tuple[Axis, ...]
    slot: Slot | None = None
    """The slot that the node is in; None for the variable itself, and for what chooses from a plate."""
    function: Function | None = None
    """The statistic as a function of the node, if the family of the node may lack it."""


class Term(NamedTuple):
    """A coefficient times a product of statistics, summed over ``axes``; part of the log density of ``owner``."""

    owner: Variable
    coefficient: float
    operands: tuple[Operand, ...]
    axes: tuple[Axis, ...]

    def __str__(self) -> str:
        factors = " ".join(f"<{operand.node.name}.{operand.statistic}>" for operand in self.operands)
        return f"{self.coefficient:g} {factors}".strip()


def nodes_above(leaves: Iterable[Variable]) -> list[Node]:
    """Return the leaves and everything above them, each once, a variable before its parents."""
    found: dict[Node, tuple[Node, ...]] = {}
    for leaf in leaves:
        if leaf not in found:
            _visit(leaf, found)
    return _children_first(found)


def _visit(node: Node, found: dict[Node, tuple[Node, ...]]) -> None:
    """Add a node and everything above it to the nodes found, each with its parents."""
    found[node] = parents = tuple(node.parents) if isinstance(node, Variable) else ()
    for parent in parents:
        if parent not in found:
            _visit(parent, found)


def _children_first(found: Mapping[Node, tuple[Node, ...]]) -> list[Node]:
    """Return nodes, given with their parents, as they are, but each only after everything that depends on it."""
    nodes = list(found)
    places = {node: place for place, node in enumerate(nodes)}
    parents = [{places[parent] for parent in own} if own else () for own in found.values()]
    waiting = [0] * len(nodes)
    for own in parents:
        for parent in own:
            waiting[parent] += 1
    ready = [place for place, children in enumerate(waiting) if not children]
    heapify(ready)
    ordered: list[Node] = []
    while ready:
        place = heappop(ready)
        ordered.append(nodes[place])
        for parent in parents[place]:
            waiting[parent] -= 1
            if not waiting[parent]:
                heappush(ready, parent)
    return ordered


def plate_axes(node: Node) -> tuple[Axis, ...]:
    """Return the axes of a node's plates."""
    # a node never changes, so they are made once
    known: tuple[Axis, ...] | None = vars(node).get("_plate_axes")
    if known is None:
        known = vars(node)["_plate_axes"] = tuple([Axis(plate) for plate in node.plates])
    return known


def terms_of(variable: Variable) -> tuple[Term, ...]:
    """Return the terms of the log density of a variable given its parents.

    Where one Categorical chooses among the parents, it gates the whole density: log p(x | z) = sum_k z_k log p(x | k).
    """
    # a variable never changes, so its terms are made once
    known: tuple[Term, ...] | None = vars(variable).get("_terms")
    if known is None:
        writer = _Writer(variable, variable.indices)
        known = vars(variable)["_terms"] = tuple([writer.term(s) for s in variable.log_density])
    return known


def base_terms_of(variable: Variable) -> tuple[Term, ...]:
    """Return the terms of the logarithm of the base measure of a variable."""
    if not variable.base:
        return ()
    writer = _Writer(variable, ())
    return tuple([writer.term(summand) for summand in variable.base])


def zero_terms_of(variable: Variable, is_known: Callable[[Node], bool]) -> tuple[Term, ...]:
    r"""Return the terms that count how often known probabilities of zero are in the density of a variable.

    A probability is written as :math:`p = e^{\ell} 0^z`, with z = 1 and :math:`\ell = 0` where it is zero. Then
    log densities stay finite sums, and what is impossible has a count above 0, by however little it is multiplied.

    Parameters
    ----------
    variable
        Whose density it is.
    is_known
        Whether the probabilities that a node holds are known.
    """
    writer = None
    terms = []
    for summand in variable.zeros:
        of_zero = summand.factors[0]
        slot = variable.slots.get(of_zero.slot)
        # the probability of a link is not a number of the model
        if slot is not None and of_zero.statistic in slot.role.zeros and is_known(slot.node):
            writer = writer or _Writer(variable, variable.indices)
            terms.append(writer.term(summand))
    return tuple(terms)


class _Writer:
    """Writes the terms of one variable; a statistic that is in several of them is one operand."""

    def __init__(self, variable: Variable, gates: Sequence[Variable]) -> None:
        self.variable = variable
        self.plates = _axes(variable.density_plates)
        self.uses = {gate: _uses_of_label(variable, gate) for gate in gates}
        """Gates with what says of which group each record is: of labels that meet, two; None of labels of rows."""
        self.within = {
            slot.index: slot.along
            for slot in variable.slots.values()
            if slot.along and slot.index is not None
        }
        """Gates that choose for each entry of a value, with the plate that runs along the entries."""
        self.gates = [
            Operand(gate, "x", (*self._of_entries(gate, _axes_through(gate, through)), Axis(gate, letter)))
            for gate, uses in self.uses.items()
            for through, letter in zip(uses, "kl", strict=False)
        ]
        self.chooses = any(slot.index is not None for slot in variable.slots.values())
        self._operands: dict[Factor, Operand] = {}

    def term(self, summand: Summand) -> Term:
        """Return the term that a summand of the density is."""
        known = self._operands
        operands = [known.get(factor) or self._written(factor) for factor in summand.factors if factor.slot]
        if self.variable.functions:
            operands = _merged(operands)
        own = _axes(self.variable.batch_plates) if summand.is_once else self.plates
        if summand.letters:
            own += tuple([Axis(self.variable, letter) for letter in summand.letters])
        if self.chooses:
            slots = [operand.slot for operand in operands if operand.slot is not None]
            gates = self.gates
            if len(gates) > 1 or self.within or self.variable.summed:
                used = {self._category(chosen) for slot in slots for chosen in slot.gates}
                gates = [gate for gate in gates if gate.axes[-1] in used]
            categories = tuple([gate.axes[-1] for gate in gates])
            own += categories
            operands += (*gates, *self._known_choices(slots, categories))
        axes = dict.fromkeys(own)
        for operand in operands:
            if operand.axes:
                axes.update(dict.fromkeys(operand.axes))
        return Term(self.variable, summand.coefficient, tuple(operands), tuple(axes))

    def _of_entries(self, gate: Node, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """Return the axes of the plates of a gate, with the event axis for a plate along the entries."""
        along = self.within.get(gate)  # type: ignore[arg-type]
        if along is None:
            return axes
        return tuple([Axis(self.variable, "i") if axis is Axis(along) else axis for axis in axes])

    def _written(self, factor: Factor) -> Operand:
        """Return the operand of a statistic, and keep it."""
        name, statistic, letters = factor
        events = tuple([Axis(self.variable, letter) for letter in letters]) if letters else ()
        if name == "self":
            plates = _axes(self.variable.plates_of(statistic))
            operand = Operand(self.variable, statistic, plates + events)
        else:
            slot = self.variable.slots[name]
            function = self.variable.functions.get((name, statistic))
            axes = self._axes_in(slot, statistic, events)
            operand = Operand(slot.node, statistic, axes, slot, function)
        self._operands[factor] = operand
        return operand

    def _known_choices(self, slots: Sequence[Slot], categories: Sequence[Axis]) -> list[Operand]:
        """Return the one-hot labels by which a term chooses from plates, each once; also the groups of its gates."""
        choices: dict[Axis, Operand] = {}
        every = (own for slot in slots for each in slot.chosen for own in (each, *each.givens))
        known = [own for own in every if not isinstance(own.by, Variable)]
        of_gates = (own for slot in self.variable.slots.values() for own in slot.gates)
        records = [own.through for own in of_gates if self._category(own) in categories]
        for chosen in (*known, *(own for own in records if own is not None)):
            category = self._category(chosen)
            axes = plate_axes(chosen.by)
            of_gates = {Axis(own.plate): self._category(own) for own in chosen.givens}
            axes = tuple([of_gates.get(axis, axis) for axis in axes])
            choices[category] = Operand(chosen.by, "one_hot", (*axes, category))
        return list(choices.values())

    def _category(self, indexed: Indexed) -> Axis:
        """Return the axis of what is chosen from: of a Categorical its categories, of known labels the plate itself."""
        if not isinstance(indexed.by, Variable):
            return Axis(indexed.plate, indexed.by.name)
        uses = self.uses.get(indexed.by, (None,))
        is_second = len(uses) > 1 and indexed.through is not None and _is_same(indexed.through, uses[1])
        return Axis(indexed.by, "l" if is_second else "k")

    def _axes_in(self, slot: Slot, statistic: str, events: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """Return the axes of a statistic of the content of a slot, with these event axes."""
        node, expression = slot.node, slot.expression
        if not node.plates:
            return events
        if slot.along is not None:
            # the plate of a diagonal, or of the rows of a matrix, is the event axis
            own = {slot.along: events[0], **{chosen.plate: self._category(chosen) for chosen in slot.chosen}}
            return (*(own.get(plate) or Axis(plate) for plate in node.plates), *events[1:])
        plates = node.plates_of(statistic)
        if not isinstance(expression, Indexed):
            return (plate_axes(node) if plates is node.plates else _axes(plates)) + events
        chosen = {own.plate: self._category(own) for own in slot.chosen}
        return (*(chosen.get(plate) or Axis(plate) for plate in plates), *events)


def _merged(operands: list[Operand]) -> list[Operand]:
    """Return operands with those that are functions of the same scalar as one, their product."""
    merged = [operand for operand in operands if not _is_function(operand)]
    groups: dict[tuple[Node, tuple[Axis, ...]], list[Operand]] = {}
    for operand in operands:
        if _is_function(operand):
            groups.setdefault((operand.node, operand.axes), []).append(operand)
    for first, *others in groups.values():
        if others:
            function = product_of([own.function or PLAIN[own.statistic] for own in (first, *others)])
            first = first._replace(statistic=function.name, function=function)
        merged.append(first)
    return merged


def _is_function(operand: Operand) -> bool:
    """Whether an operand is a function of a scalar that may be tabulated."""
    if operand.slot is None or not isinstance(operand.node, Variable):
        return False
    return can_be_tabulated(operand.node.own_family) and (
        operand.function is not None or operand.statistic in PLAIN
    )


def _uses_of_label(owner: Variable, gate: Variable) -> tuple[Indexed | None, ...]:
    """Return what says of which group each record is, where a gate is a label of groups; of labels that meet, two.

    Raises
    ------
    ConjugacyError
        If the gate is used with three such, or with and without.
    """
    uses: list[Indexed | None] = []
    for own in (own for slot in owner.slots.values() for own in slot.gates if own.by is gate):
        if not any(_is_same(own.through, other) for other in uses):
            uses.append(own.through)
    if len(uses) == 1 or (len(uses) == 2 and None not in uses):
        return tuple(uses)
    raise ConjugacyError(
        f"'{gate.name}' chooses in '{owner.name}' as "
        f"{' and as '.join(_spelled(gate, own) for own in uses)}: at most two labels of groups may meet, "
        f"each chosen by known labels. Use another Categorical for each further one"
    )


def _is_same(one: Indexed | None, other: Indexed | None) -> bool:
    """Whether two records say the same of which group each is."""
    return one is other or (one is not None and other is not None and one.by is other.by)


def _spelled(gate: Variable, through: Indexed | None) -> str:
    return gate.name if through is None else repr(through)


def _axes_through(gate: Variable, through: Indexed | None) -> tuple[Axis, ...]:
    """Return the axes of a gate's plates; where it is a label of groups, that of the labels in the place of these."""
    if through is None:
        return plate_axes(gate)
    records = Axis(through.plate, through.by.name)
    return tuple([records if plate is through.plate else Axis(plate) for plate in gate.plates])


def _axes(plates: Iterable[Plate]) -> tuple[Axis, ...]:
    return tuple([Axis(plate) for plate in plates])


def prove_conjugate(nodes: Sequence[Node]) -> None:
    """Check that a model is conditionally conjugate, term by term.

    The slots have checked that each parent has the statistics that its place needs; what remains is that
    names tell nodes apart and that no variable appears twice in one term.

    Raises
    ------
    ModelError
        If two nodes or two plates share a name.
    ConjugacyError
        If a variable appears twice in a term: the message names both.
    """
    _check_names(nodes)
    for variable in nodes:
        if not isinstance(variable, Variable):
            continue
        parents = [parent for parent in variable.parents if isinstance(parent, Variable)]
        # where none is in two slots, none appears twice in a term
        distinct = set(parents)
        if len(distinct) < len(parents) or variable in distinct:
            for term in terms_of(variable):
                _check_multilinear(variable, term)


def _check_multilinear(variable: Variable, term: Term) -> None:
    seen: set[Node] = set()
    for operand in term.operands:
        node = operand.node
        # the second of two labels that meet
        if isinstance(node, Label) and isinstance(node, Variable) and Axis(node, "l") in operand.axes:
            continue
        # its entries, updated one after another, are in products of two
        if isinstance(node, Variable) and node.is_sequential:
            continue
        if node in seen:
            raise ConjugacyError(
                f"'{node.name}' appears twice in the term {term} of {type(variable).__name__} "
                f"'{variable.name}', so its update would not be a {type(node).__name__}. Use two "
                f"variables, or one joint factor passed whole (NormalGamma, NormalWishart)."
            )
        if isinstance(node, Variable):
            seen.add(node)


def _check_names(nodes: Sequence[Node]) -> None:
    by_name: dict[str, Node] = {}
    plates: dict[str, Plate] = {}
    for node in nodes:
        other = by_name.setdefault(node.name, node)
        if other is not node:
            alike = type(node) is type(other) and node.plates == other.plates
            same = "use one object where both are the same, or " if alike else ""
            raise ModelError(
                f"two parts of the model are both named '{node.name}': {other!r} and {node!r}; {same}rename one"
            )
        for plate in node.plates:
            if plates.setdefault(plate.name, plate) is not plate:
                raise PlateError(
                    f"two Plate objects are both named '{plate.name}': use the same object, or rename one"
                )
