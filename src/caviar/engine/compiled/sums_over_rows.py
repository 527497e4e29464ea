"""The side of the rows: sums over the data plate that terms need, and the features they are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from ..._typing import AnyArray, Array
from ...language import Axis, Categorical, Data, Node, Operand, Plate, Term, Variable
from ..binding.bound_model import BoundModel, JoinedLabels
from ..binding.coordinates import Coordinates
from ..binding.known_statistics import beside, role_of
from ..binding.missing.values import OBSERVED
from ..design.contraction import Contraction
from ..design.features import CONSTANT, Feature, FeatureTable, Source
from ..design.gather import Factor
from ..design.keys import FeatureKey, StatisticKey, SumKey, together
from ..local.local_factor import LocalFactor, LocalTerm, Part
from ..local.missing_vector import WHOLE


class SumsOverRows:
    """The sums over the data plate that terms need, found one after another.

    Parameters
    ----------
    bound, coordinates
        The model with its data, and the points that locations are measured from.
    factors
        Its local factors.
    size
        Returns the size of an axis, but not of that of the rows.

    Attributes
    ----------
    sources
        The known arrays along the data plate.
    operands
        Of each, the variable in whose terms it is first, and the operand.
    users
        (local factor or None, key of a feature) -> the variables whose terms use the feature there.
    """

    def __init__(
        self,
        bound: BoundModel,
        coordinates: Coordinates,
        factors: Sequence[LocalFactor],
        size: Callable[[Axis], int],
    ) -> None:
        self.bound = bound
        self.size = size
        self.coordinates = coordinates
        self.data_axis = None if bound.data_plate is None else Axis(bound.data_plate)
        self.sources: dict[Node, Source] = {}
        self.operands: dict[Node, tuple[Variable, Operand]] = {}
        self.users: dict[tuple[LocalFactor | None, FeatureKey], set[Variable]] = {}
        self._factor_of: dict[Node, LocalFactor] = {
            variable: factor for factor in factors for variable in factor.variables
        }
        self._joined: dict[Node, JoinedLabels] = {joined.node: joined for joined in bound.joined.values()}
        self._features: dict[FeatureKey, Feature] = {}
        self._parts: dict[Hashable, Part] = {}
        self._local_terms: dict[Hashable, LocalTerm] = {}

    @property
    def local_terms(self) -> tuple[LocalTerm, ...]:
        """The local sides that are contracted on their own."""
        return tuple(self._local_terms.values())

    def finished(self) -> tuple[dict[Hashable, Part], dict[LocalFactor | None, FeatureTable]]:
        """Return the sums by key, and local factor (None: without local variables) -> features of its matrix product.

        Sums by a label are added up from those by its combinations, where some term needs these.
        """
        parts = {key: self._by_combination(part) for key, part in self._parts.items()}
        used: dict[LocalFactor | None, dict[FeatureKey, Feature]] = {}
        for part in parts.values():
            if part.feature is not None:
                used.setdefault(part.factor, {})[part.feature.key] = part.feature
        return parts, {factor: FeatureTable(_ordered(own)) for factor, own in used.items()}

    def _by_combination(self, part: Part) -> Part:
        """Return a sum by a label as one by the fewest combinations that its factor meets; other sums unchanged."""
        if not self._joined or part.feature is None or part.feature.source is None:
            return part
        label = part.feature.source.node
        finer = [
            (own.feature, labels[label])
            for own in self._parts.values()
            if own.factor is part.factor and label in (labels := self._labels_of(own.feature))
        ]
        if not finer:
            return part
        feature, labels = min(finer, key=lambda own: len(own[1]))
        return replace(part, feature=feature, labels=labels)

    def _labels_of(self, feature: Feature | None) -> Mapping[Node, AnyArray]:
        """Return the labels that each combination consists of, if a feature says which one a row has."""
        joined = None if feature is None or feature.source is None else self._joined.get(feature.source.node)
        return {} if joined is None else joined.labels

    def part(
        self,
        term: Term,
        rows: list[Operand],
        locals_: list[Operand],
        others: list[tuple[Axis, ...]],
    ) -> Factor:
        """Return the part of a term whose other operands have these axes."""
        local = self._local_operands(term.owner, locals_)
        if len(local) <= 1 and len(rows) <= 1:
            factor, stat, stat_axes = local[0] if local else (None, None, ())
            row_axes = self.off_rows(rows[0].axes) if rows else ()
            if not any(axis in stat_axes for axis in row_axes):
                summed = self._summed(rows[0], row_axes, others) if row_axes else ()
                if summed:
                    row_axes = tuple([axis for place, axis in enumerate(row_axes) if place not in summed])
                return self._fused(
                    term, rows[0] if rows else None, factor, stat, stat_axes + row_axes, summed
                )
        return self._unfused(term, rows, local, set().union(*others))

    def _source(self, owner: Variable, operand: Operand) -> Source:
        node = operand.node
        if node not in self.sources:
            is_joined = node in self._joined
            own = (
                Source(node, (), None)
                if is_joined
                else source_of(self.bound, self.coordinates, owner, operand)
            )
            self.sources[node], self.operands[node] = own, (owner, operand)
        return self.sources[node]

    def _feature(self, owner: Variable, operand: Operand | None, summed: tuple[int, ...] = ()) -> Feature:
        if operand is None:
            return self._features.setdefault(CONSTANT.key, CONSTANT)
        node = operand.node
        role = None if isinstance(node, Variable) else role_of(self.bound, operand)
        name = "" if role is None else role.name
        known = self._features.get(FeatureKey(node.name, operand.statistic, name, summed))
        if known is not None:
            return known
        source, n_labels = self._source(owner, operand), self._n_labels(operand)
        feature = Feature(source, operand.statistic, role, n_labels, summed)
        return self._features.setdefault(feature.key, feature)

    def _n_labels(self, operand: Operand) -> int | None:
        """Return the number of categories of an operand that is the one-hot of labels, else None."""
        node = operand.node
        is_labels = isinstance(node, Categorical) and operand.statistic == "x"
        if is_labels or (isinstance(node, Data) and operand.slot is None):
            return self.bound.size(operand.axes[-1])
        return None

    def off_rows(self, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        """Return axes without the data plate."""
        return tuple([axis for axis in axes if axis is not self.data_axis])

    def _local_operands(
        self, owner: Variable, locals_: list[Operand]
    ) -> list[tuple[LocalFactor, StatisticKey, tuple[Axis, ...]]]:
        """Return the local statistics of a term: (factor, key, axes without the data plate), one for each factor."""
        if owner in self._factor_of and self.bound.is_known(owner):
            # a vector missing in part that nothing of its row gates
            return [(self._factor_of[owner], StatisticKey(owner.name, WHOLE), ())]
        if not locals_:
            return []
        by_factor: dict[LocalFactor, list[Operand]] = {}
        for operand in locals_:
            by_factor.setdefault(self._factor_of[operand.node], []).append(operand)
        found = []
        for factor, operands in by_factor.items():
            if not factor.categories:
                (operand,) = operands
                found.append((factor, key_of(operand), self.off_rows(operand.axes)))
                continue
            # a label that is more than a choice, as that of a table, has its categories along an axis of the term
            own = {op.node: op.axes[-1] for op in operands if op.node in factor.labels}
            gated = [op for op in operands if op.node not in factor.labels]
            if gated:
                # its statistic comes times the one-hot of all labels; summed over, where the term lacks some
                categories = zip(factor.labels, factor.categories, strict=True)
                axes = (*(own.get(label, axis) for label, axis in categories), *self.off_rows(gated[0].axes))
                found.append((factor, key_of(gated[0]), axes))
                continue
            present = [label for label in factor.labels if label in own]
            key = together(label.name for label in present)
            found.append((factor, key, tuple([own[label] for label in present])))
        return found

    def _summed(
        self, row: Operand, axes: tuple[Axis, ...], others: list[tuple[Axis, ...]]
    ) -> tuple[int, ...]:
        """Return the axes of a row's statistic that nothing else of the term has: by place."""
        if self._n_labels(row) is not None or issparse(self.bound.of(row.node).values):
            return ()
        return tuple(
            place
            for place, axis in enumerate(axes)
            if isinstance(axis.of, Plate) and axes.count(axis) == 1 and not any(axis in own for own in others)
        )

    def _fused(
        self,
        term: Term,
        row: Operand | None,
        factor: LocalFactor | None,
        stat: StatisticKey | None,
        axes: tuple[Axis, ...],
        summed: tuple[int, ...],
    ) -> Factor:
        feature = self._feature(term.owner, row, summed)
        self.users.setdefault((factor, feature.key), set()).add(term.owner)
        key = SumKey(() if stat is None else (stat,), feature.key)
        if key not in self._parts:
            own = () if factor is None or stat is None else factor.shapes[stat]
            self._parts[key] = Part(key, own + feature.shape, factor, stat, feature)
        return Factor(key, axes)

    def _unfused(
        self,
        term: Term,
        rows: list[Operand],
        local: list[tuple[LocalFactor, StatisticKey, tuple[Axis, ...]]],
        elsewhere: set[Axis],
    ) -> Factor:
        assert self.data_axis is not None
        factors = [Factor(stat, (*axes, self.data_axis)) for _, stat, axes in local]
        by_key: dict[Hashable, Feature] = {}
        for operand in rows:
            feature = self._feature(term.owner, operand)
            by_key[feature.key] = feature
            factors.append(Factor(feature.key, (*self.off_rows(operand.axes), self.data_axis)))
        looked_up = _looked_up_apart(factors, by_key, elsewhere)
        if looked_up is not None:
            # its axis last
            factors = [*(factor for factor in factors if factor is not looked_up), looked_up]
        inside = dict.fromkeys(axis for factor in factors for axis in factor.axes)
        kept = tuple(axis for axis in inside if axis in elsewhere)
        # as many as there are already, so that no other sum has this number
        key = SumKey(tuple(stat for _, stat, _ in local), None, 1 + len(self._parts))
        part = Part(key, tuple(self.size(axis) for axis in kept), None, None, None)
        self._parts[key] = part
        whole = Factor(key, kept)
        if looked_up is None:
            contraction = Contraction(1.0, [whole, *factors], [], list(inside), self.size)
            self._local_terms[key] = LocalTerm(term.owner, contraction, tuple(by_key.values()), (part,))
            return whole
        alike = (term.owner, *factors[:-1], *kept[:-1])
        known = self._local_terms.get(alike)
        if known is None:
            of_rows = Factor(key, (*kept[:-1], self.data_axis))
            summed = [axis for axis in inside if axis != kept[-1]]
            contraction = Contraction(1.0, [of_rows, *factors[:-1]], [], summed, self.size)
            others = {factor.key for factor in factors[:-1]}
            features = tuple(feature for key, feature in by_key.items() if key in others)
            known = LocalTerm(term.owner, contraction, features, ())
        parts, look_ups = (*known.parts, part), (*known.look_ups, by_key[looked_up.key])
        self._local_terms[alike] = replace(known, parts=parts, look_ups=look_ups)
        return whole


def source_of(bound: BoundModel, coordinates: Coordinates, owner: Variable, operand: Operand) -> Source:
    """Return a known array along the data plate, as an operand of a term of ``owner`` needs it."""
    node, own = operand.node, bound.of(operand.node)
    assert bound.data_plate is not None
    row_axis = node.plates.index(bound.data_plate)
    if operand.statistic == OBSERVED and isinstance(node, Variable) and own.active is not None:
        seen = own.active.shape
        shape = (*seen[:row_axis], *seen[row_axis + 1 :], *(1,) * node.value_rank)
        return Source(node, shape, None, has_missing=True)
    values = bound.values_of(node)
    shape = values.shape[:row_axis] + values.shape[row_axis + 1 :]
    reference = None
    if isinstance(node, Variable):
        reference = coordinates.of(node)
    elif operand.slot is not None and operand.slot.role.moves:
        moved, rows = coordinates.of_known(owner, operand.slot), Axis(bound.data_plate)
        axes = [axis for axis in operand.axes[: len(node.plates)] if axis is not rows]
        reference = None if moved is None else np.broadcast_to(_over(axes, *moved), shape)
    has_gaps, origin = own.entries is not None, coordinates.origin_of(node)
    has_missing = has_gaps or own.observed is not None
    others = beside(bound, node) if isinstance(node, Variable) else None
    return Source(node, shape, reference, has_missing, issparse(values), has_gaps, origin, others)


def key_of(operand: Operand) -> StatisticKey:
    """Return what the expected statistic of an operand is found by."""
    return StatisticKey(operand.node.name, operand.statistic)


def _looked_up_apart(
    factors: Sequence[Factor], features: Mapping[Hashable, Feature], elsewhere: set[Axis]
) -> Factor | None:
    """Return which operand of a term of the rows is looked up: none of the others has its columns."""
    for factor in factors:
        feature = features.get(factor.key)
        if feature is not None and (feature.is_sparse or (feature.n_labels and len(factor.axes) == 2)):
            others = {axis for other in factors if other is not factor for axis in other.axes}
            if factor.axes[0] in elsewhere - others:
                return factor
    return None


def _over(wanted: Sequence[Axis], reference: Array, axes: Sequence[Axis]) -> Array:
    """Return a reference over the wanted plate axes; it is constant along its axes that are left out."""
    kept = reference[tuple(slice(None) if axis in wanted else 0 for axis in axes)]
    present = [axis for axis in axes if axis in wanted]
    order = [present.index(axis) for axis in wanted if axis in present]
    turned = kept.transpose(*order, *range(len(order), kept.ndim))
    return turned[tuple(slice(None) if axis in present else None for axis in wanted)]


def _ordered(used: Mapping[FeatureKey, Feature]) -> list[Feature]:
    """Return the features with each value before its squares, the constant first, those tallied last."""
    return sorted(
        used.values(),
        key=lambda f: (
            f.is_tallied,
            f.source is not None,
            "" if f.source is None else f.source.node.name,
            f.statistic,
        ),
    )
