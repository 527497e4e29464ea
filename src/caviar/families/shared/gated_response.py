"""How a factor of labels and of what they gate responds to its natural parameters."""

from __future__ import annotations

import itertools
import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from caviar._typing import Array, Statistics


def responded(factor: Any, change: Statistics) -> Statistics:
    """Return by how much the expected statistics change with the natural parameters: V times the change.

    Parameters
    ----------
    factor
        A :class:`~caviar.families.shared.gated_globals.GatedGlobals`.
    change
        In the order and shapes of the statistics.
    """
    moved, inside = _moved(factor, change)
    joint = []
    for member, own in zip(factor.layout.gated, inside, strict=True):
        conditional = factor.conditionals[member.name]
        for mean, through in zip(conditional.expected_statistics, conditional.response(own), strict=True):
            joint.append(_over(moved, mean) * mean + factor.weighted(through))
    return factor.with_marginals(moved, joint)


def _of_numbers(factor: Any, change: Statistics) -> Array:
    """Return by how much the means of all numbers change with the natural parameters, (numbers,)."""
    moved, inside = _moved(factor, change)
    axes = tuple(range(moved.ndim))
    found = [moved.sum(axis=tuple(other for other in axes if other != one)) for one in axes]
    for member, own in zip(factor.layout.gated, inside, strict=True):
        conditional = factor.conditionals[member.name]
        (through,) = conditional.response_of_value(own)
        mean = np.broadcast_to(conditional.mean, through.shape)
        found.append((_over(moved, mean) * mean + factor.weighted(through)).sum(axis=axes).ravel())
    return np.concatenate(found)


def _over(table: Array, like: Array) -> Array:
    return table.reshape(table.shape + (1,) * (like.ndim - table.ndim))


def _moved(factor: Any, change: Statistics) -> tuple[Array, list[Statistics]]:
    """Return the changes of the probabilities of the labels, and of the gated factors given the labels."""
    layout, inside = factor.layout, []
    table = layout.table(change)
    for member, own in zip(layout.gated, layout.given_labels(change), strict=True):
        for eta, mean in zip(own, factor.conditionals[member.name].expected_statistics, strict=True):
            table = table + (eta * mean).reshape(*layout.sizes, -1).sum(axis=-1)
        inside.append(own)
    p = factor.probabilities
    return p * (table - (p * table).sum()), inside


def covariances(factor: Any) -> tuple[Array, Array, Array]:
    """Return the covariances of all statistics, (p, p), of these with all numbers, (p, n), and of these, (n, n)."""
    shapes = factor.layout.shapes
    stops = [0, *accumulate(map(math.prod, shapes))]
    covariance = np.zeros((stops[-1], stops[-1]))
    crossed = np.zeros((stops[-1], factor.layout.n_numbers))
    is_matrix = _are_matrices(factor)
    for number, (start, stop) in enumerate(pairwise(stops)):
        for place in range(stop - start):
            change = [np.zeros(own) for own in shapes]
            change[number].reshape(-1)[place] = 1.0
            if is_matrix[number]:
                change[number] = 0.5 * (change[number] + change[number].swapaxes(-1, -2))
            unit = tuple(change)
            covariance[start + place] = np.concatenate([own.ravel() for own in responded(factor, unit)])
            crossed[start + place] = _of_numbers(factor, unit)
    return 0.5 * (covariance + covariance.T), crossed, _covariance_of_numbers(factor)


def _are_matrices(factor: Any) -> list[bool]:
    """Return of each statistic whether it ends with the axes of a symmetric matrix."""
    layout = factor.layout
    own = [len(shape) - len(member.shape) == 2 for member in layout.gated for shape in member.shapes]
    return [*[False] * len(layout.labels), *own, False, *own]


def _covariance_of_numbers(factor: Any) -> Array:
    """Return the covariance of the numbers of all variables, (n, n)."""
    layout, n = factor.layout, factor.layout.n_numbers
    every, found = [], np.zeros((n, n))
    for labels in itertools.product(*map(range, layout.sizes)):
        weight = float(factor.probabilities[labels])
        means = [np.eye(size)[own] for own, size in zip(labels, layout.sizes, strict=True)]
        for number, member in enumerate(layout.gated, len(layout.labels)):
            conditional, width = factor.conditionals[member.name], math.prod(member.event_shape)
            batch = (*layout.sizes, *member.shape)
            means.append(np.broadcast_to(conditional.mean, (*batch, *member.event_shape))[labels].ravel())
            within = np.broadcast_to(conditional.covariance_of_value(), (*batch, width, width))[labels]
            for repetition, own in enumerate(within.reshape(-1, width, width)):
                start = layout.place(number).start + repetition * width
                found[start : start + width, start : start + width] += weight * own
        every.append((weight, np.concatenate(means)))
    mean = sum((weight * own for weight, own in every), np.zeros(n))
    for weight, own in every:
        found += weight * np.outer(own - mean, own - mean)
    return found
