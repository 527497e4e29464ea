"""Recentring: when a component needs its own reference point.

With locations measured from a common point the quadratic form of component k loses about ``eps * (m_k -
ref)' <Lambda_k> (m_k - ref)``. Where that exceeds ``TOLERATED_LOSS`` the component gets features of its
own, measured from its own mean; see :class:`~caviar.engine.rows.terms.centred.Centres`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Constant, Indexed, Variable
from ...numerics.cached import cached_property
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates, Group
from ..compiled.terms import Compiled
from ..design.features import Feature
from ..local.categorical import CategoricalFactor
from ..local.local_factor import LocalFactor, Part
from ..local.statistics import Coefficients
from .terms.centred import Centres

TOLERATED_LOSS = 1e-8
"""Absolute error of a log-responsibility (nats) above which a component is measured from its own mean."""

_EPS = float(np.finfo(float).eps)
_NEGLIGIBLE_LOSS = 1e-10
_FAR = 300.0
"""Widths from the common point beyond which a start measures a component from its own mean."""


class Recentring:
    """Where the categories of one local Categorical are measured from, in one group of locations.

    Parameters
    ----------
    factor
        Of the Categorical.
    number
        Of the group in the frame.
    leaves
        The observed variables of the group.
    bound, coordinates, compiled
        The model, its reference points, and its terms.

    Attributes
    ----------
    centres
        The columns of the categories with separate points.
    """

    def __init__(
        self,
        factor: CategoricalFactor,
        number: int,
        leaves: Sequence[Variable],
        bound: BoundModel,
        coordinates: Coordinates,
        compiled: Compiled,
    ) -> None:
        self.group = number
        self.factor = factor
        self._leaves = tuple(leaves)
        self._parts = compiled.parts
        self._axes = coordinates.groups[number].axes
        self._known = bound.of(leaves[0].slots["mean"].node).values
        displaced = coordinates.centres.get(number)
        offsets = None if displaced is None else displaced[1]
        self.centres = Centres(factor.key, leaves, compiled.tables[factor], offsets)
        self._squares = [(own, columns) for own, columns in self.centres.features if own.statistic == "xx"]
        self._shared_squares = [part for part in compiled.parts.values() if self._is_shared_square(part)]

    def worst_loss(
        self, coordinates: Coordinates, q: Mapping[Variable, Any], coefficients: Coefficients
    ) -> float:
        """Return the largest error (nats) of a category's quadratic form at its mean."""
        return float(np.maximum.reduce(self._loss(coefficients, self._means(coordinates, q))))

    def offsets(
        self,
        coordinates: Coordinates,
        q: Mapping[Variable, Any],
        coefficients: Coefficients,
        *,
        may_return: bool,
    ) -> Array | None:
        """Return the displacements (K, ...) that the centres now need, zero where they stay; None if all stay.

        A category gets a separate point where digits would be lost from its present one. It goes back to the common
        point where that costs nothing, if it ``may_return``.
        """
        away = self._means(coordinates, q)
        moves = np.where(_by_category(self._loss(coefficients, away) > TOLERATED_LOSS, away), away, 0.0)
        if self.centres.is_used and may_return:
            present = coordinates.centres[self.group][1]
            home = (self._loss(coefficients, away + present) < _NEGLIGIBLE_LOSS) & present.any(
                axis=_behind(present)
            )
            moves = np.where(_by_category(home, away), -present, moves)
        return moves if moves.any() else None

    def offsets_from(self, parts: Mapping[Hashable, Array]) -> Array | None:
        """Return the displacements to the mean of each category's rows where that is far compared with their width."""
        counted, summed = self._sum(parts, self.factor, None), self._sum(parts, self.factor, "x")
        own, shared = self._sum(parts, self.factor, "xx"), self._sum(parts, None, "xx")
        if counted is None or summed is None:
            return None
        counts, sums = counted[1], summed[1]
        share = _by_category(1.0 / np.maximum(counts, np.finfo(float).tiny), sums)
        means = np.where(_by_category(counts > 0, sums), sums * share, 0.0)
        if own is not None:
            variances = _variances(own[0], _entries(*own) * share, means**2)
        elif shared is not None:
            # one width for all categories: that about their means
            feature, squares = shared[0], shared[1][None] / counts.sum()
            between = (sums * means).sum(axis=0)[None] / counts.sum()
            variances = _variances(feature, _entries(feature, squares), between)
        else:
            return None
        narrow = means**2 > _FAR**2 * variances
        far = (narrow & (means != 0)).any(axis=_behind(means))
        return np.where(_by_category(far, means), means, 0.0) if far.any() else None

    def _sum(
        self, parts: Mapping[Hashable, Array], factor: LocalFactor | None, statistic: str | None
    ) -> tuple[Feature, Array] | None:
        """Return a sum over the rows with its feature: of the first leaf's statistic, or of 1; None if not there."""
        for key, value in parts.items():
            part = self._parts.get(key)
            if part is not None and part.factor is factor and part.feature is not None:
                source = part.feature.source
                node, name = (None, None) if source is None else (source.node, part.feature.statistic)
                if name == statistic and node is (None if statistic is None else self._leaves[0]):
                    return part.feature, value
        return None

    def _loss(self, coefficients: Coefficients, away: Array) -> Array:
        """Return the error (nats) of each category's quadratic form at its mean, ``away`` from the reference."""
        loss: Array | None = None
        for feature, precision in self._precisions(coefficients, away):
            size = np.abs(away) * np.sqrt(np.maximum(precision, 0.0))
            # a vector's coordinates add up; repetitions and numbers are each a form of their own
            if feature.is_square:
                size = np.add.reduce(size, axis=-1)
            if size.ndim > 1:
                size = np.maximum.reduce(size.reshape(len(away), -1), axis=1)
            loss = size if loss is None else np.maximum(loss, size)
        return np.zeros(len(away)) if loss is None else _EPS * loss**2

    def _precisions(self, coefficients: Coefficients, like: Array) -> Iterator[tuple[Feature, Array]]:
        """Yield second moments of the leaves with the precision that multiplies them, of the shape of the means.

        Those that all categories share are not features of the labels.
        """
        # the states of a chain come first, and then the steps between them
        matrix = coefficients.matrices[self.factor.key][: len(like)]
        for feature, columns in self._squares:
            if feature.is_packed:
                # the diagonal comes first
                full = matrix[:, columns.start : columns.start + like[0].size].reshape(like.shape)
            else:
                full = _entries(feature, matrix[:, columns].reshape(-1, *feature.shape))
            full = -2 * full
            yield feature, full if full.shape == like.shape else np.broadcast_to(full, like.shape)
        for part in self._shared_squares:
            value = coefficients.parts.get(part.key)
            if value is not None:
                assert part.feature is not None
                full = _entries(part.feature, np.broadcast_to(value, part.shape)[None])
                yield part.feature, np.broadcast_to(-2 * full, like.shape)

    def _is_shared_square(self, part: Part) -> bool:
        """Whether a part is the sum of second moments of a leaf that no label takes part in."""
        if part.factor is not None or part.feature is None:
            return False
        source = part.feature.source
        return source is not None and source.node in self._leaves and part.feature.statistic == "xx"

    def _means(self, coordinates: Coordinates, q: Mapping[Variable, Any]) -> Array:
        """Return the mean of each category's location, from its present reference: (K, point shape...)."""
        slot = self._leaves[0].slots["mean"]
        if isinstance(slot.node, Variable):
            mean = q[slot.node].mean
            return self._turned(mean[0] if isinstance(mean, tuple) else mean)
        moved = coordinates.of_known(self._leaves[0], slot)
        assert moved is not None
        assert self._known is not None
        return self._turned(self._known) - moved[0]

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """Where the plate of the categories, and those of the reference point in their order, are of a location."""
        slot = self._leaves[0].slots["mean"]
        assert isinstance(slot.expression, Indexed)
        plates = slot.node.plates
        axes = list(map(Axis, plates))
        return (plates.index(slot.expression.plate), *(axes.index(axis) for axis in self._axes))

    def _turned(self, array: AnyArray) -> AnyArray:
        """Return an array over the plates of a location with the categories first, then as the point has them."""
        order = self._order
        return array.transpose(*order, *range(len(order), array.ndim))

    def translated(self, q: Mapping[Variable, Any], offsets: Array) -> dict[Variable, Any]:
        """Return the factors with those of the location measured from the displaced centres."""
        slot = self._leaves[0].slots["mean"]
        if not isinstance(slot.node, Variable):
            return dict(q)
        back = np.argsort(self._order)
        aligned = offsets.transpose(*back, *range(len(back), offsets.ndim))
        return {**q, slot.node: q[slot.node].translate(-aligned)}


def recentrings_of(
    factors: Sequence[LocalFactor], bound: BoundModel, coordinates: Coordinates, compiled: Compiled
) -> dict[LocalFactor, list[Recentring]]:
    """Return for each local Categorical the groups of locations whose categories may have centres of their own.

    These are groups in which the Categorical chooses the location of every leaf, all features of the leaves
    belong to it, and the locations' own priors have known means.
    """
    found: dict[LocalFactor, list[Recentring]] = {}
    for factor in factors:
        if not isinstance(factor, CategoricalFactor) or factor not in compiled.tables:
            continue
        (gate,) = factor.variables
        if gate.plates != (bound.data_plate,):
            continue
        asked = "moved by", factor.key
        if asked not in compiled.facts:
            compiled.facts[asked] = _groups_moved(bound, coordinates, compiled, factor, gate)
        for number, leaves in compiled.facts[asked]:
            recentring = Recentring(factor, number, leaves, bound, coordinates, compiled)
            found.setdefault(factor, []).append(recentring)
    return found


def _groups_moved(
    bound: BoundModel,
    coordinates: Coordinates,
    compiled: Compiled,
    factor: CategoricalFactor,
    gate: Variable,
) -> list[tuple[int, list[Variable]]]:
    """Return the groups whose categories may have centres of their own: number, and observed variables."""
    several = [
        (number, group, [v for v in group.variables if bound.is_known(v)])
        for number, group in enumerate(coordinates.groups)
    ]
    return [
        (number, leaves)
        for number, group, leaves in several
        if _can_move(bound, compiled, factor, gate, group, leaves)
    ]


def _can_move(
    bound: BoundModel,
    compiled: Compiled,
    factor: LocalFactor,
    gate: Variable,
    group: Group,
    leaves: list[Variable],
) -> bool:
    if not all("mean" in leaf.slots for leaf in leaves):
        return False
    slots = [leaf.slots["mean"] for leaf in leaves]
    chosen = {slot.node for slot in slots if isinstance(slot.node, (Variable, Constant))}
    if any(slot.index is not gate for slot in slots) or len(chosen) != 1:
        return False
    locations = [v for v in group.variables if not bound.is_known(v)]
    if any(v not in chosen or not v.is_stated_with_constant("mean") for v in locations):
        return False
    for leaf, slot in zip(leaves, slots, strict=True):
        plates = tuple(Axis(p) for p in leaf.plates if p is not bound.data_plate)
        if plates != group.axes or len(leaf.indices) != 1:
            return False
        assert isinstance(slot.expression, Indexed)
        chosen = slot.expression.plate
        if {Axis(plate) for plate in slot.node.plates if plate is not chosen} != set(group.axes):
            return False
    uses = [
        feature.source.node
        for other, table in compiled.tables.items()
        for feature in table.features
        if other is not factor
        and feature.source is not None
        # what no label takes part in is of the leaf's own density, and returns to the labels where it is centred
        and (other is not None or compiled.users[None, feature.key] != {feature.source.node})
    ]
    return not any(leaf in uses for leaf in leaves) and not compiled.local_terms


def _entries(feature: Feature, values: Array) -> Array:
    """Return of second moments (K, ...) those of each entry of a value; summed axes have length one."""
    full = np.expand_dims(values, tuple(1 + place for place in feature.summed))
    return np.einsum("...ii->...i", full) if feature.is_square else full


def _variances(feature: Feature, second_moments: Array, squared_means: Array) -> Array:
    """Return the variance of each entry; where these are summed, the same for all that the sum is of."""
    axes = tuple(1 + place for place in feature.summed)
    if not axes:
        return second_moments - squared_means
    number = np.prod([squared_means.shape[axis] for axis in axes])
    return (second_moments - squared_means.sum(axis=axes, keepdims=True)) / number


def _behind(array: Array) -> tuple[int, ...]:
    """Return the axes behind the first."""
    return tuple(range(1, array.ndim))


def _by_category(values: AnyArray, like: Array) -> AnyArray:
    """Return values by category with axes of length one behind, to go with ``like``."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))
