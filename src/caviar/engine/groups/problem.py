"""Many problems as one: a statement that is repeated over a plate of groups, compiled once, its objective by group.

The repetitions share nothing, so one update of a global factor of the repeated statement is the update of each group.
Compiler, families, contractions and updates are those of a single fit: they see one more plate. What is of its own here
is the pass over the rows, a stack of small products (``rows.py``), and that the objective is a number for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from ...language import Axis, Node, Plate, Variable
from ...numerics.cached import cached_property
from ...numerics.records import replaced
from ..ascent.problem import Factors, Problem
from ..compiled.terms import GlobalTerm
from ..design.contraction import Evaluation
from ..design.features import FeatureTable
from ..design.keys import ColumnKey, SumKey
from ..local.statistics import Arrays
from ..rows.terms.products import layouts_of
from .repeated import Assemble, is_repeated, repeated
from .rows import GroupedRows, padded, written

_BLOCK = 2**16
"""Numbers of the groups that are added up together: they stay in the cache."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Data of groups that have the same columns.

    Attributes
    ----------
    data
        Column of the rows -> its values, (G, N, ...); rows that a group does not have are any numbers. Where the groups
        share their rows, these are there once, (1, N, ...).
    counts
        Rows of each group, (G,).
    constants, floors
        Name of a constant, or of a variable with a smallest variance -> its value in each group, where they differ.
    few
        Name of an observed variable -> rows that have the mean and the spread of each group, (G, 3, ...), once they are
        known.
    """

    data: Mapping[ColumnKey, AnyArray]
    counts: AnyArray
    constants: Mapping[str, Array]
    floors: Mapping[str, Array]
    few: Mapping[str, AnyArray] = field(default_factory=dict)
    is_shared: bool = False
    """Whether all groups have the same rows."""
    weights: Array | None = None
    """Weights of rows that all groups share, (N,); None where every row counts once."""
    numbers: AnyArray | None = None
    """Which of the groups of the data they are, (G,); None where they are all of them."""

    def values(self, key: ColumnKey) -> AnyArray:
        """Return the values of a column, (G, N, ...), or (1, N, ...) where the groups share their rows."""
        values = self.data[key]
        return values if self.numbers is None else values[self.numbers, : int(self.counts.max())]

    @property
    def n_numbers(self) -> int:
        """Numbers of the data of a group."""
        return sum(values[0].size for values in self.data.values())

    @property
    def totals(self) -> AnyArray:
        """Weight of the rows of each group, (G,)."""
        return self.counts if self.weights is None else np.full(len(self.counts), self.weights.sum())

    def taken(self, groups: AnyArray) -> Groups:
        """Return some of the groups; their data stay where they are."""
        numbers = groups if self.numbers is None else self.numbers[groups]
        return Groups(
            self.data,
            self.counts[groups],
            {name: values[groups] for name, values in self.constants.items()},
            {name: values[groups] for name, values in self.floors.items()},
            {name: values[groups] for name, values in self.few.items()},
            self.is_shared,
            self.weights,
            None if self.is_shared else numbers,
        )

    @classmethod
    def joined(cls, several: Sequence[Groups]) -> Groups:
        """Return the groups of several, none of which share their rows; their data are copied."""
        most = max([int(own.counts.max()) for own in several])

        def each(name: str) -> dict[str, Any]:
            found = [getattr(own, name) for own in several]
            return {key: np.concatenate([own[key] for own in found]) for key in found[0]}

        columns = {
            key: np.concatenate([padded(own.values(key)[:, :most], most, 1) for own in several])
            for key in several[0].data
        }
        counts = np.concatenate([own.counts for own in several])
        return cls(columns, counts, each("constants"), each("floors"), each("few"))


@dataclass(frozen=True, eq=False)
class Share:
    """Groups of a problem with their rows and nothing of the others, for a problem of groups of several."""

    one: Problem
    assemble: Assemble
    groups: Groups
    rows: GroupedRows
    static: Arrays


class GroupedProblem:
    """The problem of many groups, and their rows.

    Parameters
    ----------
    one
        The problem of one of the groups: what a pass over the rows of each is.
    assemble
        Returns the problem of what is bound.
    groups
        Their data.
    rows
        Features of their rows; None to write them.
    static
        Sums of each group that no local variable enters, by key; None to add them up.
    """

    def __init__(
        self,
        one: Problem,
        assemble: Assemble,
        groups: Groups,
        rows: GroupedRows | None = None,
        static: Arrays | None = None,
    ) -> None:
        self.one, self.groups, self._assemble = one, groups, assemble
        self.size = len(groups.counts)
        self._plate = Plate(_new_name(one.bound.nodes), self.size)
        few = {} if groups.is_shared else {leaf.name: self._few(leaf) for leaf in self._leaves}
        self.groups = groups = replaced(groups, few=few)
        known, is_there = self._counted(few)
        differing = groups.constants, groups.floors
        self.problem = repeated(one, assemble, self._plate, *differing, known, is_there)
        # rows that are written already are those of groups that are
        self.is_like_one = rows is not None or self._is_like_one()
        """Whether the terms are those of one group, with an axis of the groups: if not, the groups are no batch."""
        if not self.is_like_one:
            return
        self._layouts = layouts_of(one.compiled.tables, one.compiled.parts.values(), one.compiled.facts)
        (self._local,) = one.factors or (None,)
        self._derivatives, self._keys = self._matched()
        self.rows = self._looked_at() if rows is None else rows
        self.static = self._static_sums() if static is None else static
        self._values = [self._value(*pair) for pair in self._pairs()]

    def _is_like_one(self) -> bool:
        axis, terms = Axis(self._plate), (self.one.compiled.terms, self.problem.compiled.terms)
        if len(terms[0]) != len(terms[1]) or not all(is_repeated(*pair, axis) for pair in self._pairs()):
            return False
        tables = self.one.compiled.tables.values()
        sources = [own.source for table in tables for own in table.features if own.source is not None]
        # of rows that groups share all is known that one has of them
        return self.groups.is_shared or all(own.is_alone and own.key in self.groups.data for own in sources)

    def taken(self, groups: AnyArray) -> GroupedProblem:
        """Return the problem of some of the groups."""
        rows, static = self.rows.taken(groups), {key: sums[groups] for key, sums in self.static.items()}
        return GroupedProblem(self.one, self._assemble, self.groups.taken(groups), rows, static)

    def share(self, groups: AnyArray) -> Share:
        """Return some of the groups, whose rows are copied."""
        static = {key: sums[groups] for key, sums in self.static.items()}
        own = Groups.joined([self.groups.taken(groups)]), GroupedRows.joined([self.rows.taken(groups)])
        return Share(self.one, self._assemble, *own, static)

    @classmethod
    def joined(cls, shares: Sequence[Share]) -> GroupedProblem:
        """Return the problem of groups of several that repeat one statement."""
        first, several = shares[0], len(shares) > 1
        groups = Groups.joined([own.groups for own in shares]) if several else first.groups
        rows = GroupedRows.joined([own.rows for own in shares]) if several else first.rows
        static = {key: np.concatenate([own.static[key] for own in shares]) for key in first.static}
        return cls(first.one, first.assemble, groups, rows, static)

    @property
    def has_labels(self) -> bool:
        """Whether something is hidden in the rows."""
        return self._local is not None

    @property
    def n_categories(self) -> int:
        """Categories of the label of a row."""
        assert self._local is not None
        return self._local.n_rows

    @property
    def _leaves(self) -> list[Variable]:
        return [node for node in self.one.bound.observed if ColumnKey(node.name) in self.groups.data]

    @property
    def observed(self) -> list[tuple[Variable, AnyArray]]:
        """The observed variables of one group, with the values of all, (G, N, ...)."""
        return [(node, self.groups.values(ColumnKey(node.name))) for node in self._leaves]

    def vector(self, naturals: Mapping[Variable, Statistics]) -> Array:
        """Return the natural parameters of all global factors of each group in one array, (G, P)."""
        arrays = [array for variable in self.problem.order for array in naturals[variable]]
        return np.concatenate([array.reshape(self.size, -1) for array in arrays], axis=1)

    def apart(self, vector: Array, like: Mapping[Variable, Statistics]) -> dict[Variable, Statistics]:
        """Return the natural parameters of each global factor, shaped like others, from those of all, (G, P)."""
        found, start = {}, 0
        for variable in self.problem.order:
            parts = []
            for array in like[variable]:
                stop = start + array.size // self.size
                parts.append(vector[:, start:stop].reshape(array.shape))
                start = stop
            found[variable] = tuple(parts)
        return found

    def _pairs(self) -> Iterator[tuple[GlobalTerm, GlobalTerm]]:
        """Return the terms of one group, each with that of all: both compilers go through them in one order."""
        return zip(self.one.compiled.terms, self.problem.compiled.terms, strict=True)

    def factors(self, vector: Array, groups: AnyArray) -> dict[str, Any]:
        """Return the global factors of some groups by name, measured from the origin of the data.

        Parameters
        ----------
        vector
            Natural parameters of all groups, (G, P); only those of ``groups`` need be proper.
        """
        whole = np.broadcast_to(vector[groups[0]], vector.shape).copy()
        whole[groups] = vector[groups]
        found = {}
        for variable, natural in self.apart(whole, self._shapes).items():
            factor = self.problem.factor(variable, natural)
            point = self.problem.coordinates.of(variable)
            found[variable.name] = (factor if point is None else factor.translate(point))[groups]
        return found

    def factors_of_one(self, vector: Array, group: int) -> tuple[Factors, Mapping[Variable, Statistics]]:
        """Return the global factors of a group that shares its rows, and the natural parameters they are made of.

        Parameters
        ----------
        vector
            Natural parameters of all groups, (G, P).
        """
        apart = self.apart(vector, self._shapes)
        pairs = zip(self.one.order, self.problem.order, strict=True)
        natural = {node: tuple([own[group] for own in apart[variable]]) for node, variable in pairs}
        return {node: self.one.factor(node, own) for node, own in natural.items()}, natural

    @property
    def _shapes(self) -> dict[Variable, Statistics]:
        return {own: tuple(self.problem.updates[own].fixed) for own in self.problem.order}

    def _few(self, leaf: Variable) -> AnyArray:
        """Return rows that have the mean and spread of each group, (G, 3, ...)."""
        if leaf.name in self.groups.few:
            return self.groups.few[leaf.name]
        return self._few_of(leaf, self.groups.values(ColumnKey(leaf.name)))

    def _few_of(self, leaf: Variable, values: AnyArray) -> AnyArray:
        if self.one.coordinates.of(leaf) is None:
            return np.array(values[:, [0, 0, 0]], dtype=np.float64)
        found, size = [], max(1, _BLOCK // max(1, values[0].size))
        for first in range(0, len(values), size):
            own = values[first : first + size]
            counts = self.groups.counts[first : first + len(own)]
            mean, spread = _mean_and_spread(own, counts)
            found.append(np.stack([mean - spread, mean + spread, mean], axis=1))
        return np.concatenate(found)

    def _counted(self, few: Mapping[str, AnyArray]) -> tuple[Mapping[str, AnyArray], AnyArray | None]:
        """Return rows that the repeated statement is measured from, (G, 2 or 3, ...), and which of them there are.

        The rows themselves are seen by :class:`GroupedRows` alone. Where groups have different numbers of rows one row
        is missing, so that the compiler counts the rows of each.
        """
        counts = self.groups.counts
        if counts.min() == counts.max():
            return {name: rows[:, :2] for name, rows in few.items()}, None
        is_there = np.ones((self.size, 3), dtype=bool)
        is_there[0, 2] = False
        return few, is_there

    def _looked_at(self) -> GroupedRows:
        """Return the features of the local factor, measured from the reference points of the repeated statement."""
        table = self.one.compiled.tables[self._local]
        features, largest = self._written(table)
        return GroupedRows.of(features, self.groups.counts, self.groups.weights, largest)

    def _written(self, table: FeatureTable) -> tuple[Array, Array]:
        """Return the features of the rows of all groups, (F, G, N), or (F, 1, N) where they share them.

        Beside them, the size of the largest entry of each.
        """
        groups, counts = self.groups, self.groups.counts
        if groups.is_shared:
            return written(table, {key: (values, None) for key, values in groups.data.items()}, counts)
        points = {own.name: self.problem.coordinates.of(own) for own in self.problem.bound.observed}
        columns = {key: (groups.values(key), points[key.name]) for key in groups.data if key.name in points}
        return written(table.without_references, columns, counts)

    def _matched(self) -> tuple[list[tuple[SumKey, Evaluation]], dict[SumKey, tuple[SumKey, bool]]]:
        """Return what multiplies each sum of one group; and for each sum of all groups that of one, and if by group."""
        derivatives, keys, axis = [], {}, Axis(self._plate)
        for own, every in self._pairs():
            pairs = zip(own.contraction.keys, every.contraction.factors, strict=True)
            for place, (key, factor) in enumerate(pairs):
                if isinstance(key, SumKey):
                    keys[factor.key] = key, axis in factor.axes
                    if key.local:
                        derivatives.append((key, every.contraction.derivative(place).function))
        return derivatives, keys

    def matrices(self, arrays: Mapping[Hashable, Array]) -> Array:
        """Return what the rows of each group need of its globals, (G, K, F)."""
        coefficients: Arrays = {}
        for key, derivative in self._derivatives:
            found, before = derivative(arrays), coefficients.get(key)
            coefficients[key] = found if before is None else before + found
        assert self._local is not None
        return self._layouts[self._local.key].packed_each(coefficients, self.size)

    def parts(self, sums: Array | None) -> Arrays:
        """Return the sums over rows as the terms have them, from those of a look, (G, K, F)."""
        found = dict(self.static)
        if self._local is not None and sums is not None:
            found |= self._layouts[self._local.key].unpacked_each(sums)
        # what the repeated statement counts for all groups at once is the same in each
        return {
            other: found[key] if by_group else found[key][0] for other, (key, by_group) in self._keys.items()
        }

    def _static_sums(self) -> Arrays:
        """Return the sums of each group that no local variable enters, by their keys in the problem of one."""
        layout = self._layouts.get("")
        if layout is None:
            return {}
        if all(feature.source is None for feature in layout.table.features):
            sums = np.repeat(self.groups.totals.astype(np.float64)[:, None], layout.table.n_dense, axis=1)
        else:
            (features, _), weights = self._written(layout.table), self.groups.weights
            sums = (features.sum(axis=-1) if weights is None else features @ weights).T
        return layout.unpacked_each(np.broadcast_to(sums, (self.size, sums.shape[1]))[:, None])

    def _value(self, one: GlobalTerm, every: GlobalTerm) -> Callable[[Mapping[Hashable, Array]], Any]:
        """Return what returns the value of a term in each group, (G,), or a number that is the same in all."""
        by_group = every.contraction.kept_along(Axis(self._plate))
        if by_group is not None:
            return by_group
        keys = one.contraction.keys
        if any(self.static[key].ndim > 1 for key in keys):
            sums = [{key: self.static[key][group] for key in keys} for group in range(self.size)]
            known = np.array([one.contraction.value(own) for own in sums])
            return lambda arrays: known
        counted = one.contraction.value({key: np.ones(()) for key in keys})
        # the rows of each group are all that enters it
        alone = counted * (self.static[keys[0]] if keys else 1.0)
        return lambda arrays: alone

    def objective(self, arrays: Mapping[Hashable, Array], entropies: Array) -> Array:
        """Return the objective of each group, (G,), without :meth:`own_entropy`.

        Parameters
        ----------
        entropies
            Of the local factors, (G,).
        """
        total = np.array(entropies)
        for value in self._values:
            total += value(arrays)
        return total

    @cached_property
    def _base_values(self) -> dict[Variable, list[Evaluation]]:
        """What returns the log density of the measure of each point in each group."""
        axis = Axis(self._plate)
        kept = {
            variable: [own.kept_along(axis) for own in self.problem.base_of(variable)]
            for variable in self.problem.point
        }
        return {
            variable: [value for value in values if value is not None] for variable, values in kept.items()
        }

    def own_entropy(self, q: Factors, arrays: Mapping[Hashable, Array]) -> Array:
        """Return what the global factors alone add to the objective of each group, (G,)."""
        total = np.zeros(self.size)
        for variable, factor in q.items():
            total += self._own_entropy(variable, factor, arrays)
        return total

    def _own_entropy(self, variable: Variable, factor: Any, arrays: Mapping[Hashable, Array]) -> Array:
        if variable in self.problem.point:
            return sum([value(arrays) for value in self._base_values[variable]], np.zeros(self.size))
        return factor.entropy_about_base().reshape(self.size, -1).sum(axis=-1)


def _mean_and_spread(values: AnyArray, counts: AnyArray) -> tuple[Array, Array]:
    """Return means and mean absolute deviations of the rows of groups, (G, ...), from their values, (G, N, ...)."""
    shape = len(values), *values.shape[2:]
    # along the rows NumPy's loops are long
    rows = np.array(values.reshape(*values.shape[:2], -1).swapaxes(1, 2), dtype=np.float64, order="C")
    is_row = (np.arange(values.shape[1]) < counts[:, None]).astype(np.float64)[..., None]
    mean = rows @ is_row / counts[:, None, None]
    rows -= mean
    spread = np.abs(rows, out=rows) @ is_row / counts[:, None, None]
    return mean.reshape(shape), spread.reshape(shape)


def _new_name(nodes: Sequence[Node]) -> str:
    """Return a name of a plate that no node has."""
    names = {plate.name for node in nodes for plate in node.plates} | {node.name for node in nodes}
    return next(name for name in map("group{}".format, count()) if name not in names)
