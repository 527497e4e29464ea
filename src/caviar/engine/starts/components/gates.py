"""Gates: the latent labels of a model, which a start must give values that tell their categories apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...._typing import AnyArray
from ....language import Axis, Indexed, Label, Plate, Variable
from ...ascent.problem import Plan
from ...local.local_factor import LocalFactor

__all__ = ["Gate", "gates_of"]


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
    def axes(self) -> tuple[Axis, ...]:
        """The axes of terms that its categories run along."""
        return (Axis(self.variable, "k"), *(Axis(plate) for plate in self.chosen))

    def shape(self, plan: Plan, n_rows: int) -> tuple[int, ...]:
        """Return the shape of its labels, rows first, for so many rows."""
        others = tuple(
            plan.binding.sizes[p] for p in self.variable.plates if p is not plan.binding.data_plate
        )
        return others if self.factor is None else (n_rows, *others)

    def known(self, plan: Plan, labels: AnyArray) -> AnyArray:
        """Return labels of a global variable with those that came with the data in their places."""
        own = plan.binding.known.get(self.variable)
        if own is None:
            return labels
        labels = labels.copy()
        labels[own.is_known] = own.value
        return labels


def gates_of(plan: Plan) -> tuple[Gate, ...]:
    """Return the latent labels of a plan, those of the rows first."""
    by_variable = {variable: factor for factor in plan.factors for variable in factor.variables}
    found = [
        Gate(variable, factor, variable.dimension or 1, tuple(dict.fromkeys(_chosen(plan, variable))))
        for variable in plan.binding.latent
        if isinstance(variable, Label) and ((factor := by_variable.get(variable)) or variable in plan.order)
    ]
    return tuple(sorted(found, key=lambda gate: gate.factor is None))


def _chosen(plan: Plan, gate: Variable) -> Iterator[Plate]:
    """Yield the plates from which a gate chooses for others; a chain also chooses its own transitions."""
    for node in plan.binding.nodes:
        if isinstance(node, Variable) and node is not gate:
            for slot in node.slots.values():
                if slot.index is gate and isinstance(slot.expression, Indexed):
                    yield slot.expression.plate
