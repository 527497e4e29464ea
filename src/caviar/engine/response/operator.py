r"""The operator of linear response: how the updates of all globals change with their expected statistics.

A tilt of the log joint by :math:`s\, c' t` moves the expected statistics at a fixed point by :math:`s\,x`,

.. math:: (I - V H)\, x = V c, \qquad H = \frac{\partial \eta}{\partial m},

with the natural parameters :math:`\eta(m)` of all updates at expected statistics m, local factors at their optimum.
With :math:`V = L L'` all of it is about the symmetric matrix :math:`K = L' H L`.
"""

from __future__ import annotations

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
from ..design.keys import FactorKey
from ..local.statistics import Arrays
from ..rows.row_map import RowMap, Warm
from .factors import MOST_OF_SHARED, FactorResponse, factor_response
from .passes.blocks import is_worth_curving, look_with_curvature
from .passes.derivative import Derivative
from .shared import SharedResponse, shared_response

_MOST_AT_ONCE = 64
"""Changes of a pass: their sums over the rows are held together."""

_MOST_NUMBERS = 2e7
"""Numbers of changes that are held together: of the states of whole sequences, or of all statistics."""


NO_DETERMINANT = (
    "the determinant of linear response is not formed for large shared factors beside hidden "
    "variables of the rows"
)


class ResponseOperator(Derivative):
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
        Whether what the rows hide is eliminated together with a shared factor: it is not a part of the matrix.
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
        has_determinant: bool = False,
        curvature: Mapping[FactorKey, Array] | None = None,
    ) -> None:
        super().__init__(problem, arrays, rows, warm)
        self._has_determinant = has_determinant
        self._curvature = curvature
        self.factors: list[FactorResponse] = []
        for variable in problem.order:
            start = self._places[variable.name]
            size = sum(eta.size for eta in self.natural[variable])
            is_large = bool(variable.members) and (size > MOST_OF_SHARED or not is_whole)
            told = problem, variable, q[variable], self.natural[variable], start, marginals or {}
            self.factors.append((shared_response if is_large else factor_response)(*told))
            self._place_members(variable, start)
        self.coordinates = _coordinates(self.factors)
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
            if self._has_determinant:
                raise ModelError(NO_DETERMINANT)

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
    def meet_rows(self) -> AnyArray:
        """Whether each coordinate changes what the rows are sent, (r,)."""
        changes = self._apart(self.times(np.eye(self.size)))
        return self._terms.of_coefficients.change(self._arrays, changes, self.size)[1]

    @property
    def forecasts(self) -> AnyArray:
        """The number of the repetition that each coordinate is of, (r,); -1 where this is not a forecast."""
        are = np.array([own for factor in self.factors for own in factor.forecasts], dtype=bool)
        return self._of_coordinates(np.where(are, np.arange(len(are)), -1))

    def _of_coordinates(self, values: Sequence[Any] | AnyArray) -> AnyArray:
        """Return a value for each coordinate, (r,), from one for each repetition of all factors."""
        ranks = [rank for factor in self.factors for rank in factor.roots.ranks]
        return np.repeat(np.asarray(values), ranks)

    def matrix(self) -> Array:
        """Return K = L' H L, (r, r): a pass for every 64 coordinates, or from the curvature of the rows.

        Where the rows hide nothing, a factor says nothing to itself, and the columns of all others are enough.
        """
        if self._coefficients is not None and self._is_curved and self.counts.all():
            return self._by_curvature()
        others = np.ones(self.size, dtype=bool)
        if self.silent is not None:
            others[self.coordinates[self.silent]] = False
        found = np.zeros((self.size, self.size))
        if not others.any():
            return found
        found[:, others] = self.apply(np.eye(self.size)[:, others])
        found[np.ix_(others, ~others)] = found[np.ix_(~others, others)].T
        return found

    def _by_curvature(self) -> Array:
        """Return K where all coordinates count: what the rows are told and what they tell are of the same terms."""
        changes = self._apart(self.times(np.eye(self.size)))
        directly, _ = self._terms.of_updates.change(self._arrays, changes, self.size)
        found = self.transposed(self._joined(directly, self.size))
        if not self.rows_are_apart:
            told, _ = self._terms.of_coefficients.change(self._arrays, changes, self.size)
            found += self._model.curved_between(self._whole_curvature, told, self.size)
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
        is_settled = self._coefficients is not None and self._model.keeps_locals and not self._model.chains
        if self._coefficients is None or self._is_curved or is_settled:
            # local factors that depend on each other are settled once for all
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
        return self.moved(self.times(coordinates))

    def _through_rows(self, changes: Arrays, n: int) -> Arrays:
        return {} if self.rows_are_apart else super()._through_rows(changes, n)

    def _sums_along(self, parts: Arrays, concerned: AnyArray) -> Arrays:
        if self._is_curved:
            return self._model.curved(self._whole_curvature, parts, len(concerned))
        return super()._sums_along(parts, concerned)

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
