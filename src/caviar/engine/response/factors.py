"""Global factors in linear response: covariances of statistics, their square roots, and values that users see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...families.base.roots import MatrixRoots, Roots
from ...language import Variable
from ..ascent.problem import Problem

_NOTHING = 1e-13
"""Eigenvalue of a correlation matrix of statistics that is rounding: they are not free of each other."""

MOST_OF_SHARED = 2_000
"""Largest number of statistics of a shared factor for a dense square root of their covariance."""

_STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the differences over 1, 2, 3 and 4 steps either way: exact for polynomials of the eighth degree."""

_MOST_TOGETHER = 4_000
"""Numbers of the changes of all repetitions of a factor that are made together: larger ones gain nothing by it."""

_STEP, _SMALLEST_STEP = 1e-2, 1e-7
"""Of these differences, relative to the natural parameters; less where it leaves the domain."""


@dataclass(frozen=True, eq=False)
class FactorResponse:
    """How the repetitions of a global factor that are learnt respond to their natural parameters.

    Attributes
    ----------
    variable
        Whose factor it is.
    places
        Where the statistics of each repetition are among those of all globals, shape (R, p).
    roots
        Square roots L of the covariances of their statistics, V = L L', and the responses of their entries to
        standardised tilts.
    value_places
        Where the entries of the value of each repetition are among all entries of the variable, (R, G).
    covariances
        Of the entries of each repetition under the factor, (R, G, G).
    shapes
        Shape of each part of the value of all repetitions.
    counts
        Whether each repetition counts in the terms of others, (R,).
    forecasts
        Whether each is a forecast: one that does not count, whose ``covariances`` are averaged over its parents, (R,).
    """

    variable: Variable
    places: AnyArray
    roots: Roots
    value_places: AnyArray
    covariances: Array
    shapes: tuple[tuple[int, ...], ...]
    counts: AnyArray
    forecasts: AnyArray

    @property
    def n_entries(self) -> int:
        """Entries of all parts of the value."""
        return sum(map(math.prod, self.shapes))

    def tells(self, mine: slice) -> bool:
        """Whether the variances of some entries are computed."""
        return True

    def variances(self, mine: slice) -> Array:
        """Return the variances of some entries under the factor, (n,)."""
        found = np.zeros(self.n_entries)
        for places, own in zip(self.value_places, self.covariances, strict=True):
            found[places] = np.diagonal(own)
        return found[mine]

    def within(self, mine: slice, other: slice) -> Array:
        """Return the covariances of some entries with others under the factor."""
        found = np.zeros((self.n_entries, self.n_entries))
        for places, own in zip(self.value_places, self.covariances, strict=True):
            found[np.ix_(places, places)] = own
        return found[mine, other]


def factor_response(
    problem: Problem,
    variable: Variable,
    factor: Any,
    natural: Statistics,
    start: int,
    marginals: Mapping[str, Any],
) -> FactorResponse:
    """Return how a global factor responds.

    Parameters
    ----------
    factor
        The factor, with its known repetitions.
    natural
        Its natural parameters: of a point those that it is the mode for.
    start
        Place of its first statistic among those of all globals.
    marginals
        Of the variables of a shared factor, by name, with forecasts.
    """
    evidence = problem.bound.of(variable)
    shapes = tuple(np.shape(part.mean) for part in factor.entry_marginals((0.05, 0.95)))
    n_plates = len(variable.plates_of(variable.family.statistics[-1]))
    batch = natural[-1].shape[:n_plates]
    numbers, stop = [], start
    for eta in natural:
        numbers.append(np.arange(stop, stop + eta.size).reshape(*batch, -1))
        stop += eta.size
    offsets = np.cumsum([0, *map(math.prod, shapes)])
    entries = [np.arange(a, b).reshape(*batch, -1) for a, b in pairwise(offsets)]
    learnt = np.ones(batch, dtype=bool) if evidence.clamped is None else ~evidence.clamped.is_known
    if variable.is_point:
        # its place follows from no natural parameter; other variables respond as if it were known
        learnt = np.zeros(batch, dtype=bool)
    active = np.broadcast_to(np.ones((), dtype=bool) if evidence.active is None else evidence.active, batch)
    places, value_places = (np.concatenate(own, axis=-1)[learnt] for own in (numbers, entries))
    if not learnt.any():
        none = np.zeros((0, value_places.shape[1], value_places.shape[1]))
        return FactorResponse(
            variable, places, MatrixRoots([], []), value_places, none, shapes, active[learnt], active[learnt]
        )
    roots, own = _responding(problem, variable, factor, natural, learnt)
    if variable.members:
        own = own + _of_forecasts(problem, variable, own[0], marginals)
    counts = active[learnt]
    own, forecasts = _averaged(factor, own, counts)
    return FactorResponse(variable, places, roots, value_places, own, shapes, counts, forecasts)


def _responding(
    problem: Problem, variable: Variable, factor: Any, natural: Statistics, learnt: AnyArray
) -> tuple[Roots, Array]:
    """Return the roots of the repetitions that are learnt, and the covariances of their entries, (R, G, G)."""
    if factor.learnt is not None and not variable.members:
        member = variable.family.from_natural(tuple(eta[learnt] for eta in natural))
        closed = member.roots()
        if closed is not None:
            return closed, member.covariance_of_value()
    if factor.learnt is not None and variable.members and (found := factor.learnt.roots()) is not None:
        return found[0], found[1][None]
    covariance, crossed, own = _responses(problem, variable, factor, natural, learnt)
    matrices, values = [], []
    for (root, inverse), own_crossed in zip(_roots(covariance), crossed, strict=True):
        matrices.append(root)
        values.append(inverse @ own_crossed)
    if own is None:
        # what a point says of its value it says by its statistics
        own = np.stack([value.T @ value for value in values]) if values else np.zeros((0, 0, 0))
    return MatrixRoots(matrices, values), own


def _averaged(factor: Any, own: Array, counts: AnyArray) -> tuple[Array, AnyArray]:
    """Return covariances of entries, those of forecasts as they are given, and which repetitions are forecasts, (R,).

    The optimum of a repetition that does not count is that at the expected parents; the factor that a posterior has
    in its place is averaged over these.
    """
    forecasts = np.zeros(len(own), dtype=bool)
    if counts.all() or factor.learnt is None:
        return own, forecasts
    given = np.reshape(factor.learnt.covariance_of_value(), own.shape)
    forecasts = ~counts & ~np.isclose(given, own, rtol=1e-9, atol=0.0).all(axis=(1, 2))
    return np.where(forecasts[:, None, None], given, own), forecasts


def _of_forecasts(problem: Problem, variable: Variable, own: Array, marginals: Mapping[str, Any]) -> Array:
    """Return what the forecasts of a shared factor add to the covariance of its numbers, (n, n).

    A forecast is a repetition without an observation, averaged over its parents.
    """
    added, layout = np.zeros_like(own), variable.family
    for number, member in enumerate(variable.members):
        active = problem.bound.of(member).active
        if active is None or member.name not in marginals:
            continue
        n_values, width = layout.members[number].part  # type: ignore[attr-defined]
        given = marginals[member.name].covariance_of_value().reshape(n_values, width, width)
        place = layout.place(number).start + np.arange(n_values * width).reshape(n_values, width)  # type: ignore[attr-defined]
        for repetition in np.flatnonzero(~np.ravel(active)):
            where = np.ix_(place[repetition], place[repetition])
            added[where] = given[repetition] - own[where]
    return added


def _responses(
    problem: Problem, variable: Variable, factor: Any, whole: Statistics, learnt: AnyArray
) -> tuple[Array, Array, Array | None]:
    """Return Cov(t), (R, p, p), Cov(t, g), (R, p, G), and Cov(g), (R, G, G), of the R repetitions that are learnt.

    The last is None of points.
    """
    if factor.learnt is None:
        return *_of_point(problem, variable, whole, learnt), None
    if variable.members:
        return _of_shared(factor.learnt)
    natural = tuple(eta[learnt] for eta in whole)
    covariance, crossed = (
        np.concatenate(parts, axis=1) for parts in zip(*_at_once(variable, natural), strict=True)
    )
    member = variable.family.from_natural(natural)
    return 0.5 * (covariance + covariance.swapaxes(1, 2)), crossed, member.covariance_of_value()


def _at_once(variable: Variable, natural: Statistics) -> Iterator[tuple[Array, Array]]:
    """Yield how statistics (R, c, p) and entries (R, c, G) respond to c changes of one entry of natural parameters.

    Small factors take all changes together, as many distributions.
    """
    changes, n = units(natural), len(natural[0])
    size = sum(eta[0].size for eta in natural) if n else 1
    together = max(1, _MOST_TOGETHER // max(n * size, 1))
    for start in range(0, len(changes), together):
        own = changes[start : start + together]
        each = tuple(np.concatenate(parts) for parts in zip(*own, strict=True))
        member = variable.family.from_natural(tuple(np.concatenate([eta] * len(own)) for eta in natural))
        responses = (flat(found(each), n * len(own)) for found in (member.response, member.response_of_value))
        statistics, entries = (found.reshape(len(own), n, -1).swapaxes(0, 1) for found in responses)
        yield statistics, entries


def _of_shared(factor: Any) -> tuple[Array, Array, Array]:
    """Return the same for a factor that several variables share, as one repetition."""
    covariance, crossed, own = factor.covariance_of_statistics()
    return covariance[None], crossed[None], own[None]


def _of_point(
    problem: Problem, variable: Variable, whole: Statistics, learnt: AnyArray
) -> tuple[Array, Array]:
    """Return how statistics, (R, p, p), and entries, (R, p, G), of points respond to natural parameters.

    By differences of the eighth order: modes have no closed form where a width has a floor.
    """
    natural = tuple(eta[learnt] for eta in whole)
    n = len(natural[0])
    if variable.family.statistics == ("x",):
        # labels stay as they are
        size = natural[0].reshape(n, -1).shape[1]
        return np.zeros((n, size, size)), np.zeros((n, size, 1))

    def at(moved: Statistics) -> tuple[Array, Array]:
        # in their places, where each has a floor of its own
        placed = tuple(np.array(eta) for eta in whole)
        for eta, own in zip(placed, moved, strict=True):
            eta[learnt] = own
        value = variable.mode_of(placed, problem.bound.floors.get(variable))
        parts = value if isinstance(value, tuple) else (value,)
        statistics = variable.family.statistics_of(value)
        return flat(_chosen(statistics, learnt), n), flat(_chosen(parts, learnt), n)

    found = [_slopes(at, natural, change) for change in _scaled_units(natural)]
    covariance, crossed = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    return 0.5 * (covariance + covariance.swapaxes(1, 2)), crossed


def _chosen(arrays: Sequence[Any], learnt: AnyArray) -> list[Array]:
    """Return the repetitions that are learnt of arrays over all, (R, ...)."""
    events = (np.shape(own)[learnt.ndim :] for own in arrays)
    return [
        np.broadcast_to(own, (*learnt.shape, *event))[learnt]
        for own, event in zip(arrays, events, strict=True)
    ]


def _slopes(
    at: Callable[[Statistics], tuple[Array, ...]], natural: Statistics, change: Sequence[Array]
) -> tuple[Array, ...]:
    """Return the derivatives of functions of natural parameters along a change divided by its size."""
    size = _sizes(natural, change)
    step = _STEP
    while True:
        try:
            total: list[Array | float] = []
            for times, weight in enumerate(_STENCIL, start=1):
                above, below = (
                    at(tuple(eta + sign * times * step * c for eta, c in zip(natural, change, strict=True)))
                    for sign in (1.0, -1.0)
                )
                steps = [weight * (a - b) for a, b in zip(above, below, strict=True)]
                total = [t + s for t, s in zip(total, steps, strict=True)] if total else list(steps)
            return tuple(np.asarray(t) / (step * size[:, None]) for t in total)
        except (ImproperError, np.linalg.LinAlgError):
            step /= 4.0
            if step < _SMALLEST_STEP:
                raise


def _sizes(natural: Statistics, change: Sequence[Array]) -> Array:
    """Return the size of a change, (R,): that of its only entry, or of its two symmetric ones together."""
    return sum((np.abs(c).reshape(len(c), -1).sum(axis=1) for c in change), np.zeros(len(natural[0])))


def _scaled_units(natural: Statistics) -> list[Statistics]:
    """Return changes of one entry at a time, as large as the natural parameters are."""
    found = []
    for change in units(natural):
        scaled = []
        for eta, own in zip(natural, change, strict=True):
            if eta.ndim == 3 and eta.shape[1] == eta.shape[2]:
                diagonal = np.sqrt(np.abs(np.einsum("nii->ni", eta))) + 1e-300
                scale = diagonal[:, :, None] * diagonal[:, None, :]
            else:
                largest = np.abs(eta).reshape(len(eta), -1).max(axis=1, initial=0.0)
                largest = np.where(largest > 0, largest, 1.0)
                scale = np.where(eta != 0, np.abs(eta), largest.reshape(-1, *(1,) * (eta.ndim - 1)))
            scaled.append(own * scale)
        found.append(tuple(scaled))
    return found


def units(natural: Statistics) -> list[Statistics]:
    """Return changes of one entry at a time, of all R repetitions; of a symmetric matrix half of each of two."""
    found = []
    for number, eta in enumerate(natural):
        shape = eta.shape[1:]
        for entry in range(math.prod(shape)):
            change = [np.zeros(own.shape) for own in natural]
            change[number].reshape(len(eta), -1)[:, entry] = 1.0
            if len(shape) == 2 and shape[0] == shape[1] and np.array_equal(eta, eta.swapaxes(1, 2)):
                change[number] = 0.5 * (change[number] + change[number].swapaxes(1, 2))
            found.append(tuple(change))
    return found


def flat(parts: Sequence[Any], n: int) -> Array:
    """Return arrays of R repetitions side by side, (R, total)."""
    return np.concatenate(
        [np.broadcast_to(part, (n, *np.shape(part)[1:])).reshape(n, -1) for part in parts], axis=1
    )


def _roots(covariances: Array) -> Iterator[tuple[Array, Array]]:
    """Yield L with V = L L', of full column rank (p, rank), and its left inverse on the range of V, of each V."""
    sd = np.sqrt(np.maximum(np.einsum("nii->ni", covariances), 0.0))
    inverse_sd = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    every = np.linalg.eigh(inverse_sd[:, :, None] * covariances * inverse_sd[:, None, :])
    for values, vectors, size, inverse in zip(*every, sd, inverse_sd, strict=True):
        kept = values > _NOTHING * max(len(values), 1)
        roots, directions = np.sqrt(values[kept]), vectors[:, kept]
        yield size[:, None] * directions * roots, (directions / roots).T * inverse
