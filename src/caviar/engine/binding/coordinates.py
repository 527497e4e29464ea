"""Coordinates: the reference points from which locations are measured.

Raw second moments of data far from the origin lose digits: with mean 1e8 and spread 1, xx' has none left. A
Normal density depends on x - m only, so everything that is compared as a location (the data, their means,
the priors of these) may be measured from any common point. The engine takes the mean of the data; exact,
and invisible outside.

A component that is narrow compared with its distance from that point still loses digits. Where one
Categorical chooses the location, each of its categories can have a point of its own: the *centres* (see
``Problem.recentred``). Where known labels do, or each row has a known mean, the data tell the points: see
:mod:`~caviar.engine.binding.origins`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import Array
from ...language import Axis, Constant, Indexed, Node, Plate, Slot, Variable, plate_axes
from ...lazy.block_map import total_of
from ...lazy.moments import medians_by_label
from ...numerics.cached import cached_property
from .bound_model import BoundModel
from .design_origins import DesignOrigin, design_origins_of
from .observed_moments import (
    are_like,
    axes_not_kept,
    known_precisions,
    medians_of,
    moments_of,
    rows_of,
    seen_rows,
)
from .origins import (
    KnownLocation,
    OwnMean,
    PointOfLabel,
    connected,
    has_sums,
    location_slot,
    together,
)

SHIFT, SHIFT_SQUARED = "shift", "shift_squared"
"""Statistics of how far the points of a location's mean are from its own, and of the products of that."""

_FARTHEST = 1e7
"""Standard deviations of the data between them and a prior mean, beyond which their squares leave no digits."""


@dataclass(frozen=True)
class Group:
    """Variables that move together, and the point they are measured from.

    Attributes
    ----------
    variables
        Members; every location slot among them is occupied by a member or by a known value.
    point
        Reference point: shape (sizes of the common plates..., event shape...).
    axes
        Axes of ``point`` that are plates.
    """

    variables: tuple[Variable, ...]
    point: Array
    axes: tuple[Axis, ...]
    spread: Array
    """Standard deviation of the first observed member, of the shape of ``point``."""
    location: KnownLocation | None = None
    """What is known of where each row is; then its observed members have a point for each row."""
    by_label: Array | None = None
    """Points of a latent ``location`` along the plate that known labels choose from, (repetitions, point shape...)."""

    @property
    def moved(self) -> Node | None:
        """The latent location whose repetitions have points of their own; all others are measured from one."""
        return None if self.location is None or self.by_label is None else self.location.node


@dataclass(frozen=True)
class Coordinates:
    """Reference points by variable, and centres by the Categorical that chooses among them.

    Attributes
    ----------
    groups
        The groups of variables that move together.
    centres
        Number of a group -> (Categorical that chooses its location, displacement of each category, (K,
        point shape...)).
    designs
        Observed variable, in no group -> what its rows are measured from, of which the coefficients have the point.
    """

    bound: BoundModel
    groups: tuple[Group, ...]
    centres: Mapping[int, tuple[Variable, Array]]
    designs: Mapping[Variable, DesignOrigin] = field(default_factory=dict)
    _references: dict[Variable, Array | None] = field(default_factory=dict, init=False, repr=False)
    """References that were asked for."""

    def of(self, variable: Variable) -> Array | None:
        """Return the reference of a variable's own value, or None: shape (plates but the data plate..., event...)."""
        if variable not in self._references:
            self._references[variable] = self._reference(variable)
        return self._references[variable]

    def _reference(self, variable: Variable) -> Array | None:
        number = self._group(variable)
        if number is None:
            # that of a leaf differs from row to row
            return np.zeros(()) if variable in self.designs else self._point_of_coefficients(variable)
        group, axes = self.groups[number], self._plate_axes(variable)
        if group.by_label is not None and variable is group.moved:
            return self._spread_by_label(group, axes, group.by_label)
        point = self._spread(group, axes)
        if number in self.centres:
            categorical, offsets = self.centres[number]
            plate = _plate_chosen_by(categorical, group.variables, variable)
            if plate is not None:
                point = point + self._spread_centres(group, axes, offsets, axes.index(Axis(plate)))
        return point

    def _point_of_coefficients(self, variable: Variable) -> Array | None:
        points = (own.point for own in self.designs.values() if own.coefficients is variable)
        return next(points, None)

    def origin_of(self, node: Node) -> PointOfLabel | OwnMean | DesignOrigin | None:
        """Return what the rows of a leaf, or of its known mean, are measured from; None if that is one point."""
        if isinstance(node, Variable) and node in self.designs:
            return self.designs[node]
        for group in self.groups:
            if group.location is None:
                continue
            if node is group.location.node and group.by_label is None:
                return OwnMean(node, (slice(None),) * len(node.plates))
            if isinstance(node, Variable) and node in group.variables and self.bound.is_known(node):
                return self._origin(group, node, group.location)
        return None

    def _origin(self, group: Group, leaf: Variable, location: KnownLocation) -> PointOfLabel | OwnMean:
        if group.by_label is None:
            return location.origin(leaf, self.bound)
        assert location.plate is not None
        label = leaf.slots["mean"].index
        assert label is not None
        axes = (Axis(location.plate), *self._plate_axes(leaf))
        return PointOfLabel(label, self._spread_by_label(group, axes, group.by_label))

    def is_shifted(self, variable: Variable) -> bool:
        """Whether a variable is measured from other points than the latent mean that it has."""
        number = self._group(variable)
        if number is None or variable is not self.groups[number].moved:
            return False
        return isinstance(variable.slots["mean"].node, Variable)

    def shift_of(self, variable: Variable) -> Array:
        """Return the point of a variable's mean less its own: shape (plates..., event...)."""
        number, own = self._group(variable), self.of(variable)
        assert number is not None
        assert own is not None
        return self._spread(self.groups[number], self._plate_axes(variable)) - own

    def size_of(self, variable: Variable) -> Array | None:
        """Return the size of the numbers in a variable's group: distance of the data from zero, and their spread."""
        number = self._group(variable)
        if number is None:
            return None
        return np.abs(self.groups[number].point) + self.groups[number].spread

    def spread_of(self, variable: Variable) -> Array | None:
        """Return the standard deviation of the data in a variable's group, or None; the shape is the point's."""
        number = self._group(variable)
        return None if number is None else self.groups[number].spread

    def of_known(self, owner: Variable, slot: Slot) -> tuple[Array, tuple[Axis, ...]] | None:
        """Return the reference for a known value in a location slot, with the plate axes of the reference.

        It is that of the variable whose mean the value is; for ``means[z]`` each category has its own.
        """
        number = self._group(owner)
        if number is None:
            point = self._point_of_coefficients(owner)
            return None if point is None else (point, ())
        group, axes = self.groups[number], self._plate_axes(owner)
        if number not in self.centres or slot.index is not self.centres[number][0]:
            reference = self.of(owner)
            assert reference is not None
            return reference, axes
        categorical, offsets = self.centres[number]
        axes = (Axis(categorical, "k"), *axes)
        return self._spread(group, axes) + self._spread_centres(group, axes, offsets, 0), axes

    def is_centred(self, owner: Variable, chooses: Node) -> bool:
        """Whether a variable is measured from points that the labels of ``chooses`` have of their own."""
        number = self._group(owner)
        if number is None or number not in self.centres:
            return False
        categorical, offsets = self.centres[number]
        return categorical is chooses and bool(offsets.any())

    def displaced(self, number: int, categorical: Variable, offsets: Array) -> Coordinates:
        """Return the frame with the centres of a group moved by ``offsets``."""
        before = self.centres[number][1] if number in self.centres else 0.0
        return replace(self, centres={**self.centres, number: (categorical, before + offsets)})

    def moved_since(self, before: Coordinates, number: int) -> Array:
        """Return how far the centres of a group are from those of an earlier frame: what rounding made of it."""
        point = self.groups[number].point
        earlier = before.centres[number][1] if number in before.centres else 0.0
        return (point + self.centres[number][1]) - (point + earlier)

    def _group(self, variable: Variable) -> int | None:
        return self._numbers.get(variable)

    @cached_property
    def _numbers(self) -> dict[Variable, int]:
        """Number of the group of each variable that is in one."""
        return {variable: i for i, group in enumerate(self.groups) for variable in group.variables}

    def _plate_axes(self, variable: Variable) -> tuple[Axis, ...]:
        rows, axes = self.bound.data_plate, plate_axes(variable)
        return tuple([axis for axis in axes if axis.of is not rows]) if axes else axes

    def _spread(self, group: Group, axes: tuple[Axis, ...]) -> Array:
        if axes == group.axes:
            return group.point
        event = group.point.shape[len(group.axes) :]
        order = [group.axes.index(axis) for axis in axes if axis in group.axes]
        turned = group.point.transpose(*order, *range(len(order), group.point.ndim))
        aligned = turned[tuple(slice(None) if axis in group.axes else None for axis in axes)]
        return np.broadcast_to(aligned, tuple(self.bound.size(axis) for axis in axes) + event)

    def _spread_by_label(self, group: Group, axes: tuple[Axis, ...], points: Array) -> Array:
        """Return the points of the repetitions of a location over these axes, that of the repetitions among them."""
        assert group.location is not None
        assert group.location.plate is not None
        aligned = self._spread_centres(group, axes, points, axes.index(Axis(group.location.plate)))
        event = group.point.shape[len(group.axes) :]
        return np.broadcast_to(aligned, tuple(self.bound.size(axis) for axis in axes) + event)

    def _spread_centres(self, group: Group, axes: tuple[Axis, ...], offsets: Array, position: int) -> Array:
        index = tuple(
            slice(None) if i == position or axis in group.axes else None for i, axis in enumerate(axes)
        )
        # offsets lead with the category; its place among the axes is ``position``
        before = sum(1 for axis in axes[:position] if axis in group.axes)
        order = [1 + group.axes.index(axis) for axis in axes if axis in group.axes]
        turned = offsets.transpose(0, *order, *range(1 + len(order), offsets.ndim))
        return np.moveaxis(turned, 0, before)[index]


def _plate_chosen_by(
    categorical: Variable, members: tuple[Variable, ...], variable: Variable
) -> Plate | None:
    """Return the plate of ``variable`` that ``categorical`` chooses from, where that is the location of a member."""
    for member in members:
        slot = member.slots.get("mean")
        if slot is not None and slot.index is categorical and slot.node is variable:
            assert isinstance(slot.expression, Indexed)
            return slot.expression.plate
    return None


def coordinates_of(bound: BoundModel, measured: Sequence[Group] = ()) -> Coordinates:
    """Return the frame of a model with data: each group measured from the mean of its first observed member.

    Parameters
    ----------
    measured
        Groups of a fit of the same data, which are not measured again.
    """
    # of what is added up, values of priors say which addend is moved
    are_sums = bound.fact("has sums", lambda: has_sums(bound))
    sets = connected(bound) if are_sums else bound.fact("connected", lambda: connected(bound))
    if known := bound.gathered("in_part"):
        # what is known of the rows in part is measured from 0, as it came
        sets = [own for own in sets if known.keys().isdisjoint(own)]
    groups = tuple([group for own in sets if (group := _group_at_mean(bound, own, measured)) is not None])
    taken = [variable for group in groups for variable in group.variables]
    return Coordinates(bound, groups, {}, design_origins_of(bound, taken) if are_sums else {})


def _group_at_mean(
    bound: BoundModel, members: tuple[Variable, ...], measured: Sequence[Group]
) -> Group | None:
    told = bound.fact(("together", members), lambda: together(bound, members))
    observed, common = told.observed, told.common
    if observed is None:
        return None
    for before in measured:
        if (
            before.variables == members
            and told.location is None
            and are_like(before.point, bound, observed, common)
        ):
            return before
    point, spread = moments_of(bound, observed, common)
    known = _known_location(bound, members, common, told.has_precisions)
    if known is not None:
        point = np.broadcast_to(known, point.shape)
    elif told.has_precisions:
        point = medians_of(bound, observed, common)
    group = Group(members, point, told.axes, spread)
    return _by_row(bound, group, observed, common, told.location)


def _by_row(
    bound: BoundModel,
    group: Group,
    observed: Variable,
    common: list[Plate],
    location: KnownLocation | None,
) -> Group:
    """Return a group with a point for each row, if the known values of the rows give one."""
    if location is None:
        return group
    if not isinstance(location.node, Variable):
        return replace(group, location=location)
    return replace(
        group, location=location, by_label=_points_of_groups(bound, group, observed, location, common)
    )


def _points_of_groups(
    bound: BoundModel, group: Group, observed: Variable, location: KnownLocation, common: list[Plate]
) -> Array:
    """Return the median of each known group's rows, or the known mean of its location where that is worth more rows."""
    plate, node, label = location.plate, location.node, observed.slots["mean"].index
    assert plate is not None
    assert isinstance(node, Variable)
    assert label is not None
    rows, weights = rows_of(bound, observed, bound.values_of(observed))
    points, number = medians_by_label(
        np.broadcast_to(group.point, (bound.sizes[plate], *group.point.shape)),
        axes_not_kept(bound, observed, common),
        rows,
        bound.values_of(label),
        weights,
        seen_rows(bound, observed),
        known_precisions(bound, observed),
    )
    mean, worth = node.slots["mean"].node, node.slots.get("mean_precision")
    if worth is not None and isinstance(worth.node, Constant) and isinstance(mean, Constant):
        worths = _averaged(bound, worth.node, [plate, *common])
        worths = worths.reshape(worths.shape + (1,) * (points.ndim - worths.ndim))
        points = np.where(worths > number, _averaged(bound, mean, [plate, *common]), points)
    return points


def _known_location(
    bound: BoundModel, members: tuple[Variable, ...], common: list[Plate], has_precisions: bool
) -> Array | None:
    """Return a known mean that is a better point than the data's, the common plates first, or None.

    It is that of rows with precisions of their own, if they have no latent location, or the prior mean of a joint
    factor which is worth more rows than there are: from the data's mean, its square would leave no digits of their
    spread.
    """
    for variable in members:
        slot, worth = variable.slots.get("mean"), variable.slots.get("mean_precision")
        if slot is None or slot.index is not None or not isinstance(slot.node, Constant):
            continue
        if bound.is_known(variable):
            is_better = len(members) == 1 and has_precisions
        elif worth is None or not isinstance(worth.node, Constant) or bound.is_local(variable):
            continue
        else:
            n_rows = bound.n_rows if bound.row_weights is None else total_of(bound.row_weights)
            is_better = bool(np.min(bound.values_of(worth.node)) > n_rows)
        if is_better:
            return _averaged(bound, slot.node, common)
    return None


def _averaged(bound: BoundModel, node: Constant, common: list[Plate]) -> Array:
    """Return a Constant averaged over the plates that are not common, with an axis for each one that is."""
    kept = [plate for plate in common if plate in node.plates]
    others = [place for place, plate in enumerate(node.plates) if plate not in common]
    value = bound.values_of(node)
    order = (*others, *(node.plates.index(plate) for plate in kept))
    value = value.transpose(*order, *range(len(node.plates), value.ndim))
    averaged = value.mean(axis=tuple(range(len(others)))) if others else value
    return averaged[tuple(slice(None) if plate in kept else None for plate in common)]


def coordinates_about(
    coordinates: Coordinates, factors: Mapping[str, Any], gate: Variable | None, category: int | None
) -> Coordinates:
    """Return the frame with each group measured from where its factors are, by name, instead of from the data.

    Then what a row gives does not depend, in its digits, on the rows beside it. What a Categorical (``gate``) chooses
    is measured from where its factors are in one category.
    """
    groups = tuple(_about(coordinates.bound, group, factors, gate, category) for group in coordinates.groups)
    designs = {leaf: _about_mean(own, factors) for leaf, own in coordinates.designs.items()}
    return replace(coordinates, groups=groups, designs=designs)


def _about_mean(origin: DesignOrigin, factors: Mapping[str, Any]) -> DesignOrigin:
    if origin.coefficients.name not in factors:
        return origin
    mean = factors[origin.coefficients.name].mean
    return replace(origin, point=np.asarray(mean[0] if isinstance(mean, tuple) else mean, dtype=np.float64))


def _about(
    bound: BoundModel, group: Group, factors: Mapping[str, Any], gate: Variable | None, category: int | None
) -> Group:
    """Return a group measured from where its factors are; the repetitions that known labels choose from, each there."""
    point = _point_of_factors(bound, group, factors, gate, category)
    moved = group if point is None else replace(group, point=point)
    if group.location is None or group.by_label is None or group.location.node.name not in factors:
        return moved
    mean = factors[group.location.node.name].mean
    mean = np.asarray(mean[0] if isinstance(mean, tuple) else mean, dtype=np.float64)
    plates = [Axis(plate) for plate in group.location.node.plates]
    assert group.location.plate is not None
    order = [plates.index(axis) for axis in (Axis(group.location.plate), *group.axes)]
    return replace(moved, by_label=mean.transpose(*order, *range(len(order), mean.ndim)))


def _point_of_factors(
    bound: BoundModel, group: Group, factors: Mapping[str, Any], gate: Variable | None, category: int | None
) -> Array | None:
    """Return the mean of a group's factor or known mean, the middle one over plates that the group does not share."""
    for variable in group.variables:
        slot = location_slot(bound, variable)
        if slot is None or not (isinstance(slot.node, Constant) or slot.node.name in factors):
            continue
        value = (
            bound.values_of(slot.node) if isinstance(slot.node, Constant) else factors[slot.node.name].mean
        )
        location = np.asarray(value[0] if isinstance(value, tuple) else value, dtype=np.float64)
        axes = [Axis(plate) for plate in slot.node.plates]
        if isinstance(slot.expression, Indexed) and slot.index is gate:
            chosen = axes.index(Axis(slot.expression.plate))
            location = np.take(location, category or 0, axis=chosen)
            del axes[chosen]
        if set(group.axes) <= set(axes):
            middle = _middle(location, tuple(i for i, axis in enumerate(axes) if axis not in group.axes))
            kept = [axis for axis in axes if axis in group.axes]
            order = [kept.index(axis) for axis in group.axes]
            return middle.transpose(*order, *range(len(order), middle.ndim))
    return None


def _middle(values: Array, axes: tuple[int, ...]) -> Array:
    """Return the middle one of the values along axes: a single one far away does not move it, as it moves their mean.

    Of two in the middle it is the one nearer to zero.
    """
    if not axes:
        return values
    first = np.moveaxis(values, axes, range(len(axes)))
    every = np.sort(first.reshape(-1, *first.shape[len(axes) :]), axis=0)
    low, high = every[(len(every) - 1) // 2], every[len(every) // 2]
    return np.where(np.abs(low) <= np.abs(high), low, high)


def refuse_far_priors(bound: BoundModel, coordinates: Coordinates) -> None:
    """Say so if a prior mean is too far from the data for double precision: to be called when an update has failed.

    Raises
    ------
    DataError
        If one is.
    """
    for variable in bound.latent:
        slot, spread = variable.slots.get("mean"), coordinates.spread_of(variable)
        moved = None if slot is None else coordinates.of_known(variable, slot)
        known = slot is not None and isinstance(slot.node, Constant) and not bound.is_flat(variable)
        if slot is None or not known or moved is None or spread is None:
            continue
        widest = float(np.max(spread))
        distance = float(np.max(np.abs(bound.values_of(slot.node) - moved[0])))
        if widest > 0 and distance > _FARTHEST * widest:
            raise DataError(
                f"the prior mean of '{variable.name}' is {distance / widest:.1g} standard deviations of the data away "
                f"from them, too far for double precision; move the prior or the data"
            )
