"""Global factors at many natural parameters at once: expected statistics and their covariances."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...families._many_normals import ManyNormals
from ...numerics.cached import cached_property
from ..ascent.problem import Problem
from .factors import FactorResponse, flat, units


class FactorBatch(ABC):
    """A global factor at n natural parameters.

    Attributes
    ----------
    is_proper
        Which of these are those of distributions, (n,); the figures of the others are any numbers.
    """

    is_proper: AnyArray

    @cached_property
    @abstractmethod
    def expected(self) -> Array:
        """Expected statistics of the repetitions that respond, (n, R, p)."""

    @cached_property
    @abstractmethod
    def covariances(self) -> Array:
        """Covariances of these, (n, R, p, p)."""

    def squares(self, weights: Array) -> Array:
        """Return W' V W, (n, c, c), with W (R, p, c) for the statistics of all repetitions."""
        return (weights.swapaxes(1, 2) @ (self.covariances @ weights)).sum(axis=1)


def batch_of(problem: Problem, factor: FactorResponse, like: Statistics, natural: Array) -> FactorBatch:
    """Return a factor at natural parameters (n, P) of all globals, of which the first are proper.

    Parameters
    ----------
    like
        Natural parameters of the variable at the fit, which give the shapes.
    """
    if factor.variable.members:
        many = factor.variable.family.many(natural[:, factor.places[0]])  # type: ignore[attr-defined]
        return _OfNormals(many) if many is not None else _OfSharedFactor(problem, factor, like, natural)
    return _OfFamily(factor, like, natural)


class _OfFamily(FactorBatch):
    """A variable with a factor of its own: all its repetitions as one batch of the family."""

    def __init__(self, factor: FactorResponse, like: Statistics, natural: Array) -> None:
        variable = factor.variable
        n_plates = len(variable.plates_of(variable.family.statistics[-1]))
        self._family, self._shape = variable.family, (len(natural), *factor.places.shape)
        self._events = [eta.shape[n_plates:] for eta in like]
        self._square = [variable.is_matrix(own) for own in variable.family.statistics]
        own = natural[:, factor.places]
        self.is_proper = self._proper(own)
        own[~self.is_proper] = own[0]
        self._natural = self._apart(own)
        self._member = self._family.from_natural(self._natural)

    def _apart(self, own: Array) -> Statistics:
        """Return natural parameters (n, R, p) as those of a batch of n R distributions."""
        found, start = [], 0
        for shape, is_square in zip(self._events, self._square, strict=True):
            stop = start + math.prod(shape)
            eta = own[..., start:stop].reshape(-1, *shape)
            found.append(0.5 * (eta + eta.swapaxes(-1, -2)) if is_square else eta)
            start = stop
        return tuple(found)

    def _proper(self, own: Array) -> AnyArray:
        """Return which natural parameters (n, R, p) are those of distributions, (n,)."""
        if len(own) == 0:
            return np.ones(0, dtype=bool)
        try:
            _ = self._family.from_natural(self._apart(own)).expected_statistics
        except (ImproperError, np.linalg.LinAlgError):
            if len(own) == 1:
                return np.zeros(1, dtype=bool)
            return np.concatenate([self._proper(half) for half in np.array_split(own, 2)])
        return np.isfinite(own).all(axis=(1, 2))

    @cached_property
    def expected(self) -> Array:
        n = self._shape[0] * self._shape[1]
        parts = zip(self._member.expected_statistics, self._events, strict=True)
        shaped = [np.broadcast_to(own, (n, *shape)) for own, shape in parts]
        return flat(shaped, n).reshape(self._shape)

    @cached_property
    def covariances(self) -> Array:
        n = self._shape[0] * self._shape[1]
        columns = [flat(self._member.response(change), n) for change in units(self._natural)]
        found = np.stack(columns, axis=1).reshape(*self._shape, self._shape[2])
        return 0.5 * (found + found.swapaxes(-1, -2))


class _OfNormals(FactorBatch):
    """A Gaussian factor that several variables share."""

    def __init__(self, many: ManyNormals) -> None:
        self._many, self.is_proper = many, many.is_proper

    @cached_property
    def expected(self) -> Array:
        return self._many.expected_statistics[:, None]

    @cached_property
    def covariances(self) -> Array:
        return self._many.covariances_of_statistics()[:, None]

    def squares(self, weights: Array) -> Array:
        return self._many.covariances_of_sums(weights[0])


class _OfSharedFactor(FactorBatch):
    """A factor that several variables share, made at each place by itself."""

    def __init__(self, problem: Problem, factor: FactorResponse, like: Statistics, natural: Array) -> None:
        self._like, self._problem, self._variable = like, problem, factor.variable
        members = [self._at(own) for own in natural[:, factor.places[0]]]
        self.is_proper = np.array([own is not None for own in members])
        self._members = [members[0] if own is None else own for own in members]

    def _at(self, natural: Array) -> Any | None:
        """Return the factor with natural parameters (p,); None if they are those of none."""
        if not np.isfinite(natural).all():
            return None
        parts = np.split(natural, np.cumsum([eta.size for eta in self._like])[:-1])
        shaped = tuple(own.reshape(eta.shape) for own, eta in zip(parts, self._like, strict=True))
        try:
            return self._problem.factor(self._variable, shaped)
        except ImproperError:
            return None

    @cached_property
    def expected(self) -> Array:
        of_each = (zip(own.expected_statistics, self._like, strict=True) for own in self._members)
        return np.stack(
            [[np.concatenate([np.broadcast_to(t, eta.shape).ravel() for t, eta in own])] for own in of_each]
        )

    @cached_property
    def covariances(self) -> Array:
        return np.stack([own.covariance_of_statistics()[0][None] for own in self._members])
