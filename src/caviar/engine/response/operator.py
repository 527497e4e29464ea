r"""The operator of linear response: how the updates of all globals change with their expected statistics.

A tilt of the log joint by :math:`s\, c' t` moves the expected statistics at a fixed point by :math:`s\,x`,

.. math:: (I - V H)\, x = V c, \qquad H = \frac{\partial \eta}{\partial m},

with the natural parameters :math:`\eta(m)` of all updates at expected statistics m, local factors at their optimum.
With :math:`V = L L'` all of it is about the symmetric matrix :math:`K = L' H L`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array, Statistics
from ...language import Variable
from ..ascent.problem import Factors, Problem
from ..ascent.state import AscentState
from ..design.keys import FactorKey, StatisticKey
from ..local.statistics import Arrays, Sums
from ..rows.row_map import RowMap, Warm
from .blocks import RespondBlocks, is_worth_curving, look_with_curvature
from .factors import MOST_OF_SHARED, FactorResponse, factor_response
from .shared import SharedResponse, shared_response
from .terms import directions_of, terms_of

_MOST_AT_ONCE = 64
"""Changes of a pass: their sums over the rows are held together."""

_MOST_NUMBERS = 2e7
"""Numbers of changes that are held together: of the states of whole sequences, or of all statistics."""


class ResponseOperator:
    """How the updates of all globals respond, in standardised coordinates of their statistics.

    Parameters
    ----------
    problem, q
        The globals, measured from the reference points of the problem.
    arrays
        Expected statistics of these, and sums over the rows.
    rows
        The map over the rows.
    warm
        Local factors near their optimum, where these depend on each other.
    marginals
        Name of a variable with a shared factor -> its marginal, in which groups without rows are forecasts.
    curvature
        The change of the sums of each local factor with its matrix, if a pass has formed it.

    Attributes
    ----------
    coordinates
        Of each factor.
    rows_are_apart
        Whether what the rows hide is eliminated together with a shared factor: it is no part of the matrix.
    """

    rows_are_apart = False

    def __init__(
        self,
        problem: Problem,
        q: Factors,
        arrays: Mapping[Hashable, Array],
        rows: RowMap,
        warm: Warm,
        marginals: Mapping[str, Any] | None = None,
        *,
        is_whole: bool = True,
        curvature: Mapping[FactorKey, Array] | None = None,
    ) -> None:
        self.problem, self._arrays, self._curvature = problem, dict(arrays), curvature
        self._rows, self._warm, self._model = rows, warm, rows.model
        self.natural = {v: problem.updates[v].natural(self._arrays) for v in problem.order}
        self._shapes: dict[StatisticKey, tuple[int, ...]] = {}
        self.factors: list[FactorResponse] = []
        self._square = {key for v in problem.order for key in problem.keys[v] if v.is_matrix(key.statistic)}
        self._places: dict[str, int] = {}
        start = 0
        for variable in problem.order:
            own = self.natural[variable]
            self._places[variable.name] = start
            self._shapes |= {key: eta.shape for key, eta in zip(problem.keys[variable], own, strict=True)}
            size = sum(eta.size for eta in own)
            is_large = bool(variable.members) and (size > MOST_OF_SHARED or not is_whole)
            told = problem, variable, q[variable], self.natural[variable], start, marginals or {}
            self.factors.append((shared_response if is_large else factor_response)(*told))
            self._place_members(variable, start)
            start += size
        self.n_statistics = start
        self.coordinates = _coordinates(self.factors)
        self._terms = terms_of(problem)
        self._coefficients = self._model.coefficients(self._arrays) if problem.factors else None
        self._settle_shared()

    def _place_members(self, variable: Variable, start: int) -> None:
        """Note where variables of a shared factor are: the statistics of each come one after the other, and first."""
        own, before = self.natural[variable], 0
        for member in variable.members:
            after = before + len(member.family.statistics)
            self.natural[member] = own[before:after]
            self._places[member.name] = start + sum(eta.size for eta in own[:before])
            before = after

    def _settle_shared(self) -> None:
        """Give shared factors with many statistics their coordinates: along the messages of the others.

        What the rows hide is eliminated together with such a factor, on which it has to depend alone.
        """
        for number, factor in enumerate(self.factors):
            if not isinstance(factor, SharedResponse):
                continue
            place, others = factor.places[0], np.eye(self.size)
            messages = self.changes(others)[place]
            if self._coefficients is None:
                self.factors[number] = factor.along(messages)
                continue
            _, concerned = self._terms.of_coefficients.change(
                self._arrays, self._apart(self.times(others)), self.size
            )
            if concerned.any():
                raise ModelError(factor.why_not_beside_rows)

            def through_rows(moved: Array, place: AnyArray = place) -> Array:
                whole = np.zeros((self.n_statistics, moved.shape[1]))
                whole[place] = moved
                sums = self._sums_changes(self._apart(whole), moved.shape[1])
                return self._joined(
                    self._terms.of_updates.change(self._arrays, sums, moved.shape[1])[0], moved.shape[1]
                )[place]

            self.factors[number] = factor.along(messages, through_rows)
            self.rows_are_apart = True
        self.coordinates = _coordinates(self.factors)

    @property
    def size(self) -> int:
        """Number of standardised coordinates, r."""
        return self.coordinates[-1].stop if self.coordinates else 0

    def start_of(self, name: str) -> int:
        """Return the place of the first statistic of a variable among those of all globals."""
        return self._places[name]

    def expected(self, variable: Variable) -> tuple[Statistics, AnyArray]:
        """Return the expected statistics of a global, and which of its repetitions are in the objective."""
        found = tuple(self._arrays[key] for key in self.problem.keys[variable])
        n_plates = len(variable.plates_of(variable.family.statistics[-1]))
        batch = self.natural[variable][-1].shape[:n_plates]
        active = self.problem.bound.of(variable).active
        return found, np.broadcast_to(np.ones((), dtype=bool) if active is None else active, batch)

    @property
    def counts(self) -> AnyArray:
        """Whether each coordinate is of a repetition that counts in the terms of others, (r,)."""
        return self._of_coordinates([own for factor in self.factors for own in factor.counts])

    @property
    def forecasts(self) -> AnyArray:
        """The number of the repetition that each coordinate is of, (r,); -1 where this is no forecast."""
        are = np.array([own for factor in self.factors for own in factor.forecasts], dtype=bool)
        return self._of_coordinates(np.where(are, np.arange(len(are)), -1))

    def _of_coordinates(self, values: Sequence[Any] | AnyArray) -> AnyArray:
        """Return a value for each coordinate, (r,), from one for each repetition of all factors."""
        ranks = [rank for factor in self.factors for rank in factor.roots.ranks]
        return np.repeat(np.asarray(values), ranks)

    def matrix(self) -> Array:
        """Return K = L' H L, (r, r): a pass for every 64 coordinates.

        Where the rows hide nothing, a factor says nothing to itself, and the columns of all others are enough.
        """
        others = np.ones(self.size, dtype=bool)
        if self.silent is not None:
            others[self.coordinates[self.silent]] = False
        found = np.zeros((self.size, self.size))
        if not others.any():
            return found
        found[:, others] = self.apply(np.eye(self.size)[:, others])
        found[np.ix_(others, ~others)] = found[np.ix_(~others, others)].T
        return found

    @property
    def silent(self) -> int | None:
        """The number of the largest factor if it has no message to itself; None if K may not be symmetric."""
        if self._coefficients is not None or not self.counts.all():
            return None
        sizes = [own.stop - own.start for own in self.coordinates]
        number = int(np.argmax(sizes)) if sizes else 0
        if not sizes or self.factors[number].variable.name in self._terms.with_themselves:
            return None
        return number

    @property
    def is_straight(self) -> bool:
        """Whether the updates are linear in the expected statistics: H is the same wherever the globals are."""
        return self._coefficients is None and bool(self.counts.all()) and self._terms.are_bilinear

    def moved_to(self, state: AscentState) -> ResponseOperator:
        """Return the operator with the H of another state, in the coordinates of this one."""
        other = copy(self)
        other._arrays, other._rows, other._warm = dict(state.arrays), state.rows, state.warm
        other._coefficients = self._model.coefficients(other._arrays) if self.problem.factors else None
        other._curvature = None
        return other

    def apply(self, coordinates: Array) -> Array:
        """Return K times some columns of coordinates, (r, n)."""
        return self.transposed(self._images(coordinates))

    def _images(self, coordinates: Array) -> Array:
        images = [self.changes(columns) for columns in self._portions(coordinates)]
        return np.concatenate(images, axis=1) if images else np.zeros((self.n_statistics, 0))

    def times(self, coordinates: Array) -> Array:
        """Return the changes of the statistics, L z, (P, n), from coordinates, (r, n)."""
        found = np.zeros((self.n_statistics, coordinates.shape[1]))
        for factor, own in zip(self.factors, self.coordinates, strict=True):
            found[factor.places.ravel()] = factor.roots.times(coordinates[own])
        return found

    def transposed(self, natural: Array) -> Array:
        """Return changes of natural parameters in coordinates, L' times (P, n), shape (r, n)."""
        parts = [factor.roots.transposed(natural[factor.places.ravel()]) for factor in self.factors]
        return np.concatenate(parts) if parts else np.zeros((0, natural.shape[1]))

    def _portions(self, coordinates: Array) -> Iterator[Array]:
        most = _MOST_AT_ONCE
        if self._coefficients is None or self._is_curved:
            most = max(most, int(_MOST_NUMBERS / max(self.n_statistics, 1)))
        elif self._model.chains:
            longest = max(
                (stop - start for start, stop in self._rows.blocks(self._rows.source.n_rows)), default=1
            )
            most = max(
                1,
                min(most, int(_MOST_NUMBERS / (longest * sum(chain.n_rows for chain in self._model.chains)))),
            )
        for start in range(0, coordinates.shape[1], most):
            yield coordinates[:, start : start + most]

    def changes(self, coordinates: Array) -> Array:
        """Return by how much the natural parameters of all updates change, H L z, (P, n), from coordinates (r, n)."""
        n = coordinates.shape[1]
        changes = self._apart(self.times(coordinates))
        sums = {} if self.rows_are_apart else self._sums_changes(changes, n)
        natural, _ = self._terms.of_updates.change(self._arrays, {**changes, **sums}, n)
        return self._joined(natural, n)

    def _apart(self, statistics: Array) -> Arrays:
        """Return changes (P, n) of the statistics by key, (n, ...); those that do not change are left out."""
        found: Arrays = {}
        start = 0
        for key, shape in self._shapes.items():
            stop = start + math.prod(shape)
            own = statistics[start:stop]
            if own.any():
                found[key] = own.T.reshape(-1, *shape)
            start = stop
        return found

    def _joined(self, natural: Mapping[Hashable, Array], n: int) -> Array:
        """Return changes by key, (n, ...), one below the other, (P, n)."""
        parts = []
        for key, shape in self._shapes.items():
            own = natural.get(key)
            if own is None:
                parts.append(np.zeros((math.prod(shape), n)))
                continue
            if key in self._square:
                own = 0.5 * (own + own.swapaxes(-1, -2))
            parts.append(np.broadcast_to(own, (n, *shape)).reshape(n, -1).T)
        return np.concatenate(parts) if parts else np.zeros((0, n))

    def _sums_changes(self, changes: Arrays, n: int) -> Arrays:
        """Return by how much the sums over the rows change with n changes of the globals, (n, ...)."""
        if self._coefficients is None:
            return {}
        parts, concerned = self._terms.of_coefficients.change(self._arrays, changes, n)
        if not concerned.any():
            return {}
        if self._is_curved:
            return self._model.curved(self._whole_curvature, parts, n)
        directions, shares = directions_of(parts, concerned)
        own = self._responses(directions)
        return {key: np.tensordot(shares, value, axes=(1, 0)) for key, value in own.items()}

    def _responses(self, directions: Sequence[Arrays]) -> Arrays:
        """Return by how much the sums over the rows change along some changes of the coefficients, by a pass."""
        model, rows = self._model, self._rows
        assert self._coefficients is not None
        of_rows = tuple(model.changed(own, self._coefficients) for own in directions)
        work = RespondBlocks(model, self._coefficients, of_rows)
        chunks = rows.chunks
        carried = [self._warm.get(chunk.number) for chunk in chunks]
        total, _ = rows.executor.sum(work, rows.source, chunks, carried)
        found: dict[Hashable, list[Array]] = {}
        for number, change in enumerate(of_rows):
            own = Sums(
                {key: value[number] for key, value in total.fused.items()},
                {key: value[number] for key, value in total.parts.items()},
                {},
                {},
            )
            for key, value in model.summary(own, Sums.zero(), change).parts.items():
                found.setdefault(key, []).append(value)
        return {key: np.stack(values) for key, values in found.items()}

    @cached_property
    def _is_curved(self) -> bool:
        return self._curvature is not None or is_worth_curving(self._model, self.size)

    @property
    def _whole_curvature(self) -> Mapping[FactorKey, Array]:
        if self._curvature is None:
            assert self._coefficients is not None
            _, self._curvature = look_with_curvature(self._rows, self._coefficients)
        return self._curvature


def _coordinates(factors: Sequence[FactorResponse]) -> list[slice]:
    """Return the coordinates of each factor."""
    ranks = [sum(factor.roots.ranks) for factor in factors]
    return [slice(b - a, b) for a, b in zip(ranks, accumulate(ranks), strict=True)]
