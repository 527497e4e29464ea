"""From a statement to its terms, and the proof that each variable has an update inside its family.

The log joint density of a model is a sum of terms, each a coefficient times a product of sufficient
statistics, summed over axes. If every variable stands in each term at most once, through statistics of its
own family, the expected log joint is multilinear in the expected statistics, and everything that coordinate
ascent needs follows (see the derivation, section 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._errors import ConjugacyError, ModelError, PlateError
from .nodes import Data, Indexed, Node
from .plates import Plate
from .slots import Slot
from .templates import Summand
from .variable import Variable

__all__ = ["Axis", "Operand", "Term", "base_terms_of", "nodes_above", "prove_conjugate", "terms_of"]


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
        known: dict[str, Axis] | None = of.__dict__.get("_axes")
        if known is None:
            known = of.__dict__["_axes"] = {}
        axis = known.get(letter)
        if axis is None:
            axis = known[letter] = super().__new__(cls)
            axis.of, axis.letter = of, letter
        return axis

    def __repr__(self) -> str:
        return f"Axis({self.of.name!r}, {self.letter!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Axis, (self.of, self.letter)


@dataclass(frozen=True)
class Operand:
    """A statistic of a node, with the axes of its array: plates first, then event axes."""

    node: Node
    statistic: str
    axes: tuple[Axis, ...]
    slot: Slot | None = None
    """The slot in which the node stands; None for the variable itself, and for what chooses from a plate."""


@dataclass(frozen=True)
class Term:
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
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in found:
            return
        found[id(node)] = node
        if isinstance(node, Variable):
            for parent in node.parents:
                visit(parent)

    for leaf in leaves:
        visit(leaf)
    return _children_first(list(found.values()))


def _children_first(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes as they are, but each only after everything that depends on it."""
    waiting = dict.fromkeys(nodes, 0)
    for node in nodes:
        for parent in _parents(node):
            waiting[parent] += 1
    ordered: list[Node] = []
    while waiting:
        node = next(node for node, children in waiting.items() if not children)
        del waiting[node]
        ordered.append(node)
        for parent in _parents(node):
            waiting[parent] -= 1
    return ordered


def _parents(node: Node) -> Iterable[Node]:
    return dict.fromkeys(node.parents) if isinstance(node, Variable) else ()


def terms_of(variable: Variable) -> tuple[Term, ...]:
    """Return the terms of the log density of a variable given its parents.

    Where one Categorical chooses among the parents, it gates the whole density: log p(x | z) = sum_k z_k log p(x | k).
    """
    # a variable never changes, so its terms are made once
    if "_terms" not in vars(variable):
        gates = variable.indices
        vars(variable)["_terms"] = tuple(_term(variable, summand, gates) for summand in variable.log_density)
    return vars(variable)["_terms"]


def base_terms_of(variable: Variable) -> tuple[Term, ...]:
    """Return the terms of the logarithm of the base measure of a variable."""
    return tuple(_term(variable, summand, ()) for summand in variable.base)


def _term(variable: Variable, summand: Summand, gates: Sequence[Variable]) -> Term:
    repeated = variable.batch_plates if summand.is_once else variable.density_plates
    plates = _axes(repeated)
    events = {letter: Axis(variable, letter) for letter in summand.letters}
    factors = [factor for factor in summand.factors if factor.slot]
    slots = [variable.slots[factor.slot] if factor.slot != "self" else None for factor in factors]
    operands = []
    for factor, slot in zip(factors, slots, strict=True):
        letters = tuple(events[letter] for letter in factor.letters)
        if slot is None:
            own = plates if variable.tied is None else _axes(variable.plates_of(factor.statistic))
            operands.append(Operand(variable, factor.statistic, own + letters))
        elif slot.along is not None:
            # the plate of a diagonal, or of the rows of a matrix, is the event axis
            axes = tuple(letters[0] if plate is slot.along else Axis(plate) for plate in slot.node.plates)
            operands.append(Operand(slot.node, factor.statistic, axes + letters[1:], slot))
        else:
            axes = _chosen_plates(slot, factor.statistic) + letters
            operands.append(Operand(slot.node, factor.statistic, axes, slot))
    if len(gates) > 1:
        used = {id(slot.index) for slot in slots if slot is not None}
        gates = tuple(gate for gate in gates if id(gate) in used)
    for gate in gates:
        axes = (*(Axis(plate) for plate in gate.plates), Axis(gate, "k"))
        operands.append(Operand(gate, "x", axes))
    operands += _known_choices(slots)
    own = (*plates, *events.values(), *(Axis(gate, "k") for gate in gates))
    axes = dict.fromkeys((*own, *(axis for operand in operands for axis in operand.axes)))
    return Term(variable, summand.coefficient, tuple(operands), tuple(axes))


def _known_choices(slots: Sequence[Slot | None]) -> list[Operand]:
    """Return the one-hot labels by which a term chooses from plates, each once."""
    choices: dict[Axis, Operand] = {}
    for slot in slots:
        if slot is not None and isinstance(slot.index, Data):
            assert isinstance(slot.expression, Indexed)
            data, category = slot.index, _category(slot.expression)
            axes = (*(Axis(p) for p in data.plates), category)
            choices[category] = Operand(data, "one_hot", axes)
    return list(choices.values())


def _category(indexed: Indexed) -> Axis:
    """Return the axis of what is chosen from: of a Categorical its categories, of known labels the plate itself."""
    if isinstance(indexed.by, Data):
        return Axis(indexed.plate, indexed.by.name)
    return Axis(indexed.by, "k")


def _axes(plates: Iterable[Plate]) -> tuple[Axis, ...]:
    return tuple(Axis(plate) for plate in plates)


def _chosen_plates(slot: Slot, statistic: str) -> tuple[Axis, ...]:
    plates = slot.node.plates_of(statistic)
    if not isinstance(slot.expression, Indexed):
        return _axes(plates)
    chosen = slot.expression.plate
    return tuple(_category(slot.expression) if plate is chosen else Axis(plate) for plate in plates)


def prove_conjugate(nodes: Sequence[Node]) -> None:
    """Check that a model is conditionally conjugate, term by term.

    The slots have checked that each parent has the statistics that its place needs; what remains is that
    names tell nodes apart and that no variable stands twice in one term.

    Raises
    ------
    ModelError
        If two nodes or two plates share a name.
    ConjugacyError
        If a variable stands twice in a term: the message names both.
    """
    _check_names(nodes)
    for variable in nodes:
        if not isinstance(variable, Variable):
            continue
        for term in terms_of(variable):
            _check_multilinear(variable, term)


def _check_multilinear(variable: Variable, term: Term) -> None:
    seen: set[int] = set()
    for operand in term.operands:
        node = operand.node
        if not isinstance(node, Variable):
            continue
        if id(node) in seen:
            raise ConjugacyError(
                f"'{node.name}' stands twice in the term {term} of {type(variable).__name__} '{variable.name}', so "
                f"its update would leave the {type(node).__name__} family. Use two variables, or one joint factor "
                f"passed whole (NormalGamma, NormalWishart)."
            )
        seen.add(id(node))


def _check_names(nodes: Sequence[Node]) -> None:
    by_name: dict[str, Node] = {}
    plates: dict[str, Plate] = {}
    for node in nodes:
        other = by_name.setdefault(node.name, node)
        if other is not node:
            raise ModelError(
                f"two parts of the model are both named '{node.name}': {other!r} and {node!r}; rename one"
            )
        for plate in node.plates:
            if plates.setdefault(plate.name, plate) is not plate:
                raise PlateError(
                    f"two Plate objects are both named '{plate.name}': use the same object, or rename one"
                )
