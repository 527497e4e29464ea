"""Components: what the only label of each row chooses from, where their rows can be cut, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....._typing import Array
from .....language import Plate, Variable
from ....design.backend import Workspace
from ....design.features import FeatureTable
from ....design.keys import FactorKey
from ....rows.row_map import RowMap
from ....rows.tasks import blocks_of, rows_at
from ...problem import Problem


@dataclass(frozen=True, eq=False)
class Components:
    """The components that the only label of each row chooses from.

    Attributes
    ----------
    key
        Of the label's factor.
    table
        Features that the label meets.
    size
        Number of components, K.
    own
        The globals of which each component has one.
    """

    key: FactorKey
    table: FeatureTable
    size: int
    own: tuple[Variable, ...]

    @classmethod
    def of(cls, problem: Problem) -> Components:
        """Return the components of a problem; :func:`why_no_swaps` says whether it has some."""
        (label,) = problem.factors
        plates = chosen_plates(problem)
        own = tuple(v for v in problem.order if plates & set(v.plates))
        return cls(label.key, problem.rows.tables[label], label.n_rows, own)


def why_no_swaps(problem: Problem) -> str:
    """Return why components cannot be swapped; nothing if they can."""
    if len(problem.factors) != 1 or problem.chains or problem.factors[0].values is None:
        return "it is for models whose rows have one hidden label and no other hidden variable"
    (label,) = problem.factors
    if len(label.labels) != 1 or label.labelled:
        return f"labels of '{label.name}' are known in part"
    if problem.point:
        return "a component of few rows may raise a likelihood without bound"
    if problem.coupled or not problem.rows.maximises:
        return "the globals share a factor, or local factors do not maximise the objective"
    if label not in problem.rows.tables or not any(
        chosen_plates(problem) & set(v.plates) for v in problem.order
    ):
        return f"'{label.name}' chooses nothing that meets the data in a matrix product"
    return ""


def chosen_plates(problem: Problem) -> set[Plate]:
    """Return the plates from which the label of the rows chooses."""
    (variable,) = problem.factors[0].labels
    slots = (
        slot for node in problem.bound.nodes if isinstance(node, Variable) for slot in node.slots.values()
    )
    return {chosen.plate for slot in slots if (chosen := slot.chosen_by(variable)) is not None}


def points_of(table: FeatureTable, rows: RowMap) -> Array:
    """Return what rows may be cut by: their features that are not squares, (n, d)."""
    features = zip(table.features, table.slices, strict=True)
    every = [(own, where) for own, where in features if own.source is not None and not own.is_tallied]
    chosen = [where for own, where in every if not own.is_square] or [where for _, where in every]
    found = np.zeros((rows.source.n_rows, sum(own.stop - own.start for own in chosen)))
    scratch = Workspace()
    for bounds in blocks_of(rows.model, rows.source) if chosen else ():
        block = rows_at(rows.source, bounds, every=True)
        values = np.empty((table.n_dense, block.n_rows))
        table.fill(block.columns, values, scratch)
        found[block.where] = np.concatenate([values[own] for own in chosen]).T
    return found
