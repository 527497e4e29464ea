"""Gates: the latent labels of a model, to which a start must give values that distinguish their categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...._typing import AnyArray
from ....language import Axis, Label, Node, Plate, StickBreakingLogits, Variable
from ...ascent.problem import Problem
from ...local.chains.chain import ChainFactor
from ...local.local_factor import LocalFactor


@dataclass(frozen=True, eq=False)
class Gate:
    """A latent variable of labels: of the rows, of another plate, or of none.

    Attributes
    ----------
    variable
        The Categorical, or the chain of states.
    factor
        Its local factor, None where it is a global variable.
    size
        Number of categories.
    chosen
        The plates from which it chooses.
    """

    variable: Variable
    factor: LocalFactor | None
    size: int
    chosen: tuple[Plate, ...]

    @property
    def chain(self) -> ChainFactor | None:
        """The factor of its states, where these are a chain; None of a label that shares the factor of one."""
        return self.factor if self.variable.summed and isinstance(self.factor, ChainFactor) else None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of terms that its categories run along."""
        return (Axis(self.variable, "k"), *(Axis(plate) for plate in self.chosen))

    @property
    def steps(self) -> frozenset[Node]:
        """The probabilities of a chain's first states and steps, which can distinguish its states alone."""
        return (
            frozenset(slot.node for slot in self.variable.slots.values())
            if self.variable.summed
            else frozenset()
        )

    @property
    def has_known_labels(self) -> bool:
        """Whether some of its labels may have come with the data."""
        return self.factor is not None and self.variable in self.factor.labelled

    @property
    def is_asked_in_turn(self) -> bool:
        """Whether its categories answer questions that are asked one after another, so that their order matters."""
        stated = self.variable.stated
        return any(
            isinstance(stated.get(name), StickBreakingLogits) for name in ("probabilities", "transition")
        )

    @property
    def has_table_of_steps(self) -> bool:
        """Whether its categories are states of a chain with probabilities of steps, and not predictors of these."""
        return bool(self.variable.summed) and "transition" in self.variable.slots

    def shape(self, problem: Problem, n_rows: int) -> tuple[int, ...]:
        """Return the shape of its labels, rows first, for a number of rows."""
        others = tuple(
            problem.bound.sizes[p] for p in self.variable.plates if p is not problem.bound.data_plate
        )
        return others if self.factor is None else (n_rows, *others)

    def known(self, problem: Problem, labels: AnyArray) -> AnyArray:
        """Return labels of a global variable with those that came with the data in their places."""
        own = problem.bound.of(self.variable).clamped
        if own is None:
            return labels
        labels = labels.copy()
        labels[own.is_known] = own.value
        return labels


def gates_of(problem: Problem) -> tuple[Gate, ...]:
    """Return the latent labels of a problem, those of the rows first."""
    by_variable = {variable: factor for factor in problem.factors for variable in factor.variables}
    labels = problem.fact(
        "labels that choose",
        lambda: [
            (variable, tuple(dict.fromkeys(_chosen(problem, variable))))
            for variable in problem.bound.latent
            if isinstance(variable, Label)
        ],
    )
    found = [
        Gate(variable, factor, variable.dimension or 1, chosen)
        for variable, chosen in labels
        if (factor := by_variable.get(variable)) or variable in problem.order
    ]
    return tuple(sorted(found, key=lambda gate: gate.factor is None))


def _chosen(problem: Problem, gate: Variable) -> Iterator[Plate]:
    """Yield the plates from which a gate chooses for others; a chain also chooses its own transitions."""
    for node in problem.bound.nodes:
        if isinstance(node, Variable) and node is not gate:
            for slot in node.slots.values():
                chosen = slot.chosen_by(gate)
                if chosen is not None:
                    yield chosen.plate
