r"""Repetitions of global variables without an observation below them, such as groups without rows: they do not count.

Whatever its parents are, the density of such a repetition integrates to one, so the marginal is exact without it:

.. math:: \int p(\theta_{k} \mid \phi) \, d\theta_k = 1.

With a factor of its own it would count as data for unknown parents, as the mean and the precision of a hierarchy. Its
factor stays at the optimum given these; the posterior has a forecast in its place, with what is not known of them
(``posterior/prediction/forecasts.py``).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Indexed, Node, Plate, Variable
from ...lazy.block_map import map_blocks
from .bound_model import BoundModel
from .missing.values import rows_first


def seen_globals(bound: BoundModel, points: Set[Variable] = frozenset()) -> dict[Variable, AnyArray]:
    """Return for global variables with unknown parents which repetitions lead to an observation: shape (plates...).

    Only those with a repetition that leads to none. A variable along a tied plate shares a statistic between its
    repetitions; all of them count. So do those of variables whose factors are ``points``: the objective is the density
    of these, and they are as good as observed.
    """
    if is_whole(bound):
        return {}
    search = _Search(bound, points)
    found = {}
    for variable in bound.latent:
        if bound.is_local(variable) or not variable.plates or variable.tied is not None:
            continue
        if variable in points or bound.of(variable).prior is not None:
            continue
        if not any(parent in bound.latent for parent in variable.parents):
            continue
        seen = search.reached(variable)
        if not seen.all():
            found[variable] = seen
    return found


def is_whole(bound: BoundModel) -> bool:
    """Whether everything leads to an observation: all leaves are known as a whole, and no known labels choose."""
    for node in bound.nodes:
        own = bound.of(node)
        if own.observed is not None or own.active is not None or own.entries is not None:
            return False
        if own.values is not None and 0 in own.values.shape:
            return False
        if isinstance(node, Variable) and any(slot.choices for slot in node.slots.values()):
            return False
        if isinstance(node, Variable) and any(bound.is_known(by) for by in node.indices):
            return False
    used = {parent for node in bound.nodes if isinstance(node, Variable) for parent in node.parents}
    return not any(node not in used for node in bound.latent)


class _Search:
    """Which repetitions of the variables of a model lead to an observation."""

    def __init__(self, bound: BoundModel, points: Set[Variable]) -> None:
        self._binding = bound
        self._points = points
        self._found: dict[Variable, AnyArray] = {}
        self._uses: dict[Node, list[_Use]] = {}
        for child in (node for node in bound.nodes if isinstance(node, Variable)):
            for slot in child.slots.values():
                self._uses.setdefault(slot.node, []).append(_Use(child, slot.expression))
                for own in slot.gates:
                    self._uses.setdefault(own.by, []).append(
                        _Use(child, own.by if own.through is None else own.through)
                    )

    def reached(self, variable: Variable) -> AnyArray:
        """Return which repetitions of a variable off the rows lead to an observation, or are known: (plates...)."""
        if variable not in self._found:
            self._found[variable] = self._reached(variable)
        return self._found[variable]

    def _reached(self, variable: Variable) -> AnyArray:
        bound = self._binding
        shape = tuple(bound.sizes[plate] for plate in variable.plates)
        if variable in self._points:
            return np.ones(shape, dtype=bool)
        if bound.is_known(variable):
            observed = bound.of(variable).observed
            return np.ones(shape, dtype=bool) if observed is None else np.asarray(observed)
        known = bound.of(variable).clamped
        seen = np.zeros(shape, dtype=bool) if known is None else known.is_known.copy()
        for use in self._uses.get(variable, ()):
            if not seen.all():
                seen |= self._through(variable, use, shape)
        return seen

    def _through(self, variable: Variable, use: _Use, shape: tuple[int, ...]) -> AnyArray:
        """Return which repetitions lead to an observation where the variable is used."""
        bound, rows, child = self._binding, self._binding.data_plate, use.child
        by, index = None, None
        if isinstance(use.expression, Indexed) and use.expression.given is not None:
            # whichever is chosen depends on a label that is hidden
            return np.ones(shape, dtype=bool)
        if isinstance(use.expression, Indexed):
            by, index = use.expression.plate, use.expression.by
        labels: Any = None if index is None else bound.of(index).values
        plates = _with_first(rows, child.plates)
        label_plates = () if index is None or labels is None else _with_first(rows, index.plates)
        mark = _Mark(
            shape,
            tuple(bound.sizes[plate] for plate in plates if plate is not rows),
            tuple(None if own is by or own not in plates else plates.index(own) for own in variable.plates),
            None if by is None or labels is None else variable.plates.index(by),
            tuple(plates.index(plate) for plate in label_plates),
        )
        if rows is None or rows not in plates:
            return mark(labels, self.reached(child), None)
        own = bound.of(child)
        seen = own.active if own.observed is None else own.observed
        if seen is not None:
            seen = rows_first(seen, child, rows)
        if index is None or rows not in label_plates:
            # each row says the same of the labels
            mark = replace(mark, labels=labels)
            if seen is None:
                return mark(None, np.ones((1, *mark.sizes), dtype=bool), None)
            blocks = map_blocks(_Seen(mark), seen, bound.row_weights)
        else:
            blocks = map_blocks(mark, rows_first(labels, index, rows), seen, bound.row_weights)
        found = np.zeros(shape, dtype=bool)
        for _, own in blocks:
            found |= own
        return found


@dataclass(frozen=True, eq=False)
class _Use:
    """A variable in whose slot another one is used, and what was stated there: the node, or one of its repetitions."""

    child: Variable
    expression: Node | Indexed


def _with_first(plate: Plate | None, plates: Sequence[Plate]) -> tuple[Plate, ...]:
    """Return plates with one of them first, where it is among them."""
    own = () if plate is None or plate not in plates else (plate,)
    return (*own, *(other for other in plates if other is not plate))


@dataclass(frozen=True, eq=False)
class _Mark:
    """Marks the repetitions of a variable that a child reaches.

    Attributes
    ----------
    shape
        Sizes of the plates of the variable.
    sizes
        Sizes of the plates of the child, without that of the rows, which is the first where it has it.
    axes
        For each plate of the variable, its place among those of the child; None where the child sees all of it, or
        where labels choose from it.
    chosen
        The plate that known labels choose from, if there are such.
    label_axes
        Places of the plates of the labels among those of the child.
    labels
        The labels, where they are the same for all rows.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    axes: tuple[int | None, ...]
    chosen: int | None
    label_axes: tuple[int, ...]
    labels: AnyArray | None = None

    def __call__(self, labels: AnyArray | None, seen: AnyArray | None, weights: AnyArray | None) -> AnyArray:
        """Return which repetitions a block of the child reaches, of which some were ``seen``."""
        labels = self.labels if labels is None else labels
        if seen is None:
            assert labels is not None
            seen = np.ones((len(labels), *self.sizes), dtype=bool)
        if weights is not None:
            seen = seen & (np.asarray(weights) > 0).reshape(-1, *(1,) * len(self.sizes))
        # a child without plates has one value, which is seen or not
        where = np.nonzero(seen) if np.ndim(seen) else ()
        index: list[Any] = [slice(None) if axis is None else where[axis] for axis in self.axes]
        if self.chosen is not None:
            assert labels is not None
            index[self.chosen] = np.asarray(labels)[tuple(where[axis] for axis in self.label_axes)].astype(
                np.intp
            )
        marked = np.zeros(self.shape, dtype=bool)
        if np.any(seen):
            marked[tuple(index)] = True
        return marked


@dataclass(frozen=True, eq=False)
class _Seen:
    """The same where no labels belong to the rows."""

    mark: _Mark

    def __call__(self, seen: AnyArray, weights: AnyArray | None) -> AnyArray:
        return self.mark(None, seen, weights)
