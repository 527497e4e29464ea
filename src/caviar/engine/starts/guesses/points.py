"""Points: what the data show of each repetition of a gate, as rows of numbers that can be clustered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...._typing import Array
from ....language import (
    Label,
    Multinomial,
    MultivariateNormal,
    Node,
    Normal,
    Plate,
    Variable,
)
from ...ascent.problem import Problem
from ...binding.bound_model import BoundModel
from ...local.local_factor import LocalFactor
from ...rows.subsample import Sample
from ..clustering.networks import pairs_of, points_in_network
from ..clustering.partitions import in_units, location_points
from ..clustering.points_of_groups import labels_of_groups, points_of_groups
from ..components.gates import Gate
from ..products.columns import sampled_values
from ..products.shares import points_of_rows

_MOST_POINTS = 1_000
"""Points that are brought into fewer coordinates, where they have more of them than there are points."""

_MANY_COLUMNS = 64, 512
"""Columns from which on it pays to ask whether they vary in fewer directions, and up to which."""

_SAME = 1e-9


@dataclass(frozen=True)
class Cloud:
    """Points, a row for each repetition of a gate, and their weights."""

    points: Array
    weights: Array


def clouds_of(problem: Problem, sample: Sample, gate: Gate) -> list[Cloud]:
    """Return the sets of points of a gate, columns in units of their spread, the most telling first; maybe none.

    They are the values whose location it chooses; all values that it has a say in, averaged over plates along which
    nothing that it chooses varies, or each by itself; and how far these are from their mean, where it chooses widths.
    Values of skew families are transformed so that clusters are about as wide as each other. Members of pairs
    whose labels meet have the leading singular vectors of their network.
    """
    if not gate.variable.plates:
        return []
    weights, found = weights_of(problem, sample, gate), []
    if gate.factor is not None:
        found += _located(problem, sample, gate, gate.factor)
    networks = list(_in_networks(problem, sample, gate))
    if networks:
        return [Cloud(points, weights) for points in networks]
    grouped = [_joined({leaf: own}, weights) for leaf, own in _of_groups(problem, sample, gate)]
    if grouped:
        found.append(np.concatenate(grouped, axis=1))
    leaves = leaves_below(problem, gate.variable)
    is_local = gate.factor is not None and not found
    within = points_of_rows(problem, sample, gate.variable, leaves) if is_local else None
    if within is not None:
        return [Cloud(within, weights)]
    is_located = bool(found) and all(_is_located(leaf, gate) for leaf in leaves)
    arranged = {
        leaf: values
        for leaf in leaves
        if not is_located or _chooses_width(leaf, gate)
        if (values := _arranged(problem, sample, gate, leaf)) is not None
    }
    if arranged and not is_located:
        found.append(
            _joined(
                {leaf: _averaged(problem, sample, gate, leaf, own) for leaf, own in arranged.items()}, weights
            )
        )
        found.append(_joined({leaf: _each(leaf, own) for leaf, own in arranged.items()}, weights))
    widths = {leaf: _each(leaf, own) for leaf, own in arranged.items() if _chooses_width(leaf, gate)}
    if widths:
        found.append(_joined({leaf: log_distances(own, weights) for leaf, own in widths.items()}, weights))
    distinct: list[Array] = []
    for points in found:
        fewer = _in_fewer(points)
        if fewer is not None and not any(_is_same(fewer, other) for other in distinct):
            distinct.append(fewer)
    return [Cloud(points, weights) for points in distinct]


def _located(problem: Problem, sample: Sample, gate: Gate, factor: LocalFactor) -> list[Array]:
    """Return the values whose location a gate alone chooses, all that it chooses, and all that its factor chooses.

    Locations that another label of the factor chooses may follow from the gate.
    """
    others = [node for node in problem.bound.latent if isinstance(node, Label) and node is not gate.variable]
    found = [location_points(problem, factor.labels or factor.variables[:1], sample)]
    if others:
        found.insert(0, location_points(problem, [gate.variable], sample))
        found.insert(0, location_points(problem, [gate.variable], sample, others))
    return [points for points in found if points is not None]


def _of_groups(problem: Problem, sample: Sample, gate: Gate) -> Iterator[tuple[Variable, Array]]:
    """Yield what records show of the groups that a gate is a label of."""
    if gate.factor is not None:
        return
    for leaf, labels in labels_of_groups(problem, sample, gate.variable):
        values = sampled_values(problem, sample, leaf)
        if values is not None:
            (n_groups,) = gate.shape(problem, sample.n_rows)
            yield leaf, points_of_groups(problem, sample, leaf, _each(leaf, values[0]), labels, n_groups)


def _in_networks(problem: Problem, sample: Sample, gate: Gate) -> Iterator[Array]:
    """Yield points of members whose labels meet."""
    for leaf, first, other in pairs_of(problem, sample, gate.variable):
        values = sampled_values(problem, sample, leaf)
        if gate.factor is None and values is not None:
            (n_members,) = gate.shape(problem, sample.n_rows)
            for column in _each(leaf, values[0]).T:
                yield from points_in_network(column, sample.row_weights, (first, other), n_members, gate.size)


def weights_of(problem: Problem, sample: Sample, gate: Gate) -> Array:
    """Return the weight of each repetition of a gate."""
    shape = gate.shape(problem, sample.n_rows)
    if gate.factor is None:
        return np.ones(math.prod(shape))
    return np.repeat(sample.row_weights, math.prod(shape[1:]))


def leaves_below(problem: Problem, gate: Variable) -> list[Variable]:
    """Return the observed variables that depend on a gate, directly or through hidden variables."""
    return problem.fact(("leaves below", gate), lambda: list(_leaves_below(problem.bound, gate)))


def _leaves_below(bound: BoundModel, gate: Variable) -> Iterator[Variable]:
    depends: set[Node] = {gate}
    for node in reversed(bound.nodes):
        if isinstance(node, Variable) and node is not gate and any(p in depends for p in node.parents):
            if not bound.is_known(node):
                if bound.is_local(node):
                    depends.add(node)
            elif set(gate.plates) <= set(node.plates):
                yield node


def is_added(problem: Problem, gate: Variable) -> bool:
    """Whether the mean of something that depends on a gate is a sum or product."""
    return any(slot.role.adds_up for leaf in leaves_below(problem, gate) for slot in leaf.slots.values())


def _is_located(leaf: Variable, gate: Gate) -> bool:
    """Whether a leaf is a plain Normal whose location a gate chooses: its values are located points as they are."""
    return isinstance(leaf, Normal | MultivariateNormal) and any(
        slot.role.moves and (slot.index is None or slot.chosen_by(gate.variable) is not None)
        for slot in leaf.slots.values()
    )


def _chooses_width(leaf: Variable, gate: Gate) -> bool:
    """Whether a gate chooses known precisions of a Normal, or its precision but not its location."""
    chosen = {
        slot.name: slot.node for slot in leaf.slots.values() if slot.chosen_by(gate.variable) is not None
    }
    precision = chosen.get("precision")
    return (
        isinstance(leaf, Normal | MultivariateNormal)
        and precision is not None
        and (precision.is_known or "mean" not in chosen)
    )


def _arranged(problem: Problem, sample: Sample, gate: Gate, leaf: Variable) -> Array | None:
    """Return the values of a leaf with the plates of the gate first, (repetitions, other plates..., event...)."""
    found = sampled_values(problem, sample, leaf)
    if found is None:
        return None
    values, plates = found
    own = _rows_first(problem, sample, gate)
    others = [plate for plate in plates if plate not in own]
    order = [plates.index(plate) for plate in (*own, *others)]
    turned = values.transpose(*order, *range(len(order), values.ndim))
    n = int(np.prod([turned.shape[i] for i in range(len(own))], dtype=int))
    return turned.reshape(n, *turned.shape[len(own) :])


def _rows_first(problem: Problem, sample: Sample, gate: Gate) -> list[Plate]:
    data = problem.bound.data_plate
    return sorted(gate.variable.plates, key=lambda plate: plate is not data)


def _averaged(problem: Problem, sample: Sample, gate: Gate, leaf: Variable, values: Array) -> Array:
    """Return the values averaged over the plates along which nothing that the gate chooses varies, (repetitions, d)."""
    found = sampled_values(problem, sample, leaf)
    assert found is not None
    own = _rows_first(problem, sample, gate)
    others = [plate for plate in found[1] if plate not in own]
    chosen = {
        plate
        for node in problem.bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.chosen_by(gate.variable) is not None
        for plate in slot.node.plates
    }
    values = leaf.evened(values)
    for axis in reversed(range(len(others))):
        if others[axis] in chosen:
            continue
        along = np.ones(values.shape[1 + axis])
        if others[axis] is problem.bound.data_plate:
            along = sample.row_weights
        weights = along.reshape(-1, *(1,) * (values.ndim - 2 - axis)) * ~np.isnan(values)
        total = np.nansum(weights * np.nan_to_num(values), axis=1 + axis)
        count = weights.sum(axis=1 + axis)
        values = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return values.reshape(len(values), -1)


def _each(leaf: Variable, values: Array) -> Array:
    return leaf.evened(values).reshape(len(values), -1)


def logs(values: Array) -> Array:
    """Return logarithms of numbers that are not negative."""
    return np.log(np.maximum(values, np.finfo(float).tiny))


def log_distances(points: Array, weights: Array) -> Array:
    """Return the logarithm of how far values are from their mean."""
    away = np.abs(points - np.nansum(points * weights[:, None], axis=0) / weights.sum())
    return np.log(np.maximum(away, 1e-3 * np.nanmean(away, axis=0)) + np.finfo(float).tiny)


def _joined(columns: Mapping[Variable, Array], weights: Array) -> Array:
    """Return the columns of leaves side by side in units of their spread, their means where they are missing."""
    filled = {leaf: _filled(own, weights) for leaf, own in columns.items()}
    return np.concatenate(
        [
            _in_one_unit(own, weights) if isinstance(leaf, Multinomial) else in_units(own, weights)
            for leaf, own in filled.items()
        ],
        axis=1,
    )


def _filled(columns: Array, weights: Array) -> Array:
    missing = np.isnan(columns)
    if not missing.any():
        return columns
    counts = weights @ ~missing
    means = np.divide(
        weights @ np.where(missing, 0.0, columns), counts, out=np.zeros(len(counts)), where=counts > 0
    )
    return np.where(missing, means, columns)


def _in_one_unit(columns: Array, weights: Array) -> Array:
    """Return columns with mean 0 and a mean variance of 1.

    Roots of shares have one unit as they are. In units of their own, words that are hardly used, of which there are
    many, would be as loud as the others.
    """
    share = weights / weights.sum()
    centred = columns - share @ columns
    spread = np.sqrt(np.mean(share @ centred**2))
    return centred / spread if spread > 1e-12 else np.zeros_like(centred)


def _in_fewer(points: Array) -> Array | None:
    """Return points in no more coordinates than there are points, their distances unchanged; None if too many."""
    n_points, size = points.shape
    if size <= max(n_points, 2):
        return _in_directions(points) if _MANY_COLUMNS[0] <= size <= _MANY_COLUMNS[1] else points
    if n_points > _MOST_POINTS:
        return None
    variances, directions = np.linalg.eigh(points @ points.T)
    kept = variances > _SAME * max(variances[-1], np.finfo(float).tiny)
    return directions[:, kept] * np.sqrt(variances[kept]) if kept.any() else np.zeros((n_points, 1))


def _in_directions(points: Array) -> Array:
    """Return points in the directions in which they vary if those are few, as of columns along a grid."""
    variances, directions = np.linalg.eigh(points.T @ points)
    kept = variances > _SAME * max(variances[-1], np.finfo(float).tiny)
    return points @ directions[:, kept] if 2 * kept.sum() < len(kept) else points


def _is_same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=1e-8)
