r"""A shared Gaussian factor with many statistics: how it responds along what the other factors say to it.

The second derivative of the objective by two statistics of one factor is zero. So of all its statistics linear response
needs those combinations only that move with the natural parameters which the other globals send: with
:math:`H` of as many columns as these have coordinates, at most, the coordinates are

.. math:: z = W' H' (t - \langle t \rangle), \qquad W W' = (H' V H)^{-1},

and V H takes a response of the sparse precision for each column. Entries of the value that are at right angles to these
keep their covariances of the factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array, Statistics
from ...families._coupled_response import responded
from ...families._roots import MatrixRoots
from ...language import Variable
from ..ascent.problem import Problem
from .factors import FactorResponse

_PARALLEL = 1e-10
"""Size of what is left of a message that is a combination of others, relative to its own."""

_MOST_PAIRS = 4e6
"""Covariances of entries that are formed at a time."""


@dataclass(frozen=True, eq=False)
class SharedResponse(FactorResponse):
    """How a shared factor with many statistics responds.

    Attributes
    ----------
    factor
        The Gaussian factor.
    given
        Number of a member -> covariances of its values, (count, width, width), where some are forecasts, and which.
    """

    factor: Any
    given: Mapping[int, tuple[Array, AnyArray]]

    def variances(self) -> Array:
        found = np.square(np.asarray(self.factor.entry_marginals((0.05, 0.95))[0].sd))
        for number, (own, is_forecast) in self.given.items():
            place = self.factor.layout.place(number)
            diagonal = np.diagonal(own, axis1=1, axis2=2)
            found[place] = np.where(
                is_forecast[:, None], diagonal, found[place].reshape(diagonal.shape)
            ).ravel()
        return found

    def within(self, mine: slice, other: slice) -> Array:
        every = np.arange(self.n_entries)
        i, j = np.meshgrid(every[mine], every[other], indexing="ij")
        if i.size > _MOST_PAIRS:
            raise ModelError(
                f"{i.size:,} covariances are too many to be formed together; posterior.sd(name) has the standard "
                f"deviations"
            )
        found = self.factor.precision.covariance(i.ravel(), j.ravel()).reshape(i.shape)
        for number, (own, is_forecast) in self.given.items():
            start, width = self.factor.layout.place(number).start, own.shape[1]
            repetition, entry = np.divmod(i - start, width)
            other_repetition, other_entry = np.divmod(j - start, width)
            same = (repetition == other_repetition) & (repetition >= 0) & (repetition < len(own))
            same[same] = is_forecast[repetition[same]]
            found[same] = own[repetition[same], entry[same], other_entry[same]]
        return found

    def along(self, messages: Array) -> SharedResponse:
        """Return the response with coordinates along messages to its natural parameters, (P, n)."""
        sizes = np.linalg.norm(messages, axis=0)
        scaled = messages[:, sizes > 0] / sizes[sizes > 0]
        vectors, left, _ = np.linalg.svd(scaled, full_matrices=False)
        kept = vectors[:, left > _PARALLEL * left.max(initial=0.0)]
        moved = np.stack([self._responded(own) for own in kept.T], axis=1) if kept.size else kept
        values, turned = np.linalg.eigh(kept.T @ moved)
        usable = values > _PARALLEL * values.max(initial=0.0)
        root = moved @ (turned[:, usable] / np.sqrt(values[usable]))
        return replace(self, roots=MatrixRoots([root], [root[self._places_of_numbers].T]))

    @property
    def _places_of_numbers(self) -> AnyArray:
        """Where the numbers themselves are among the statistics, (n,)."""
        layout = self.factor.layout
        stops = np.cumsum([0, *map(math.prod, layout.shapes)])
        own = [np.arange(stops[2 * k], stops[2 * k + 1]) for k in range(len(layout.members))]
        return np.concatenate(own)

    def _responded(self, natural: Array) -> Array:
        parts: list[Array] = []
        start = 0
        for shape in self.factor.layout.shapes:
            stop = start + math.prod(shape)
            parts.append(natural[start:stop].reshape(shape))
            start = stop
        return np.concatenate([own.ravel() for own in responded(self.factor, tuple(parts))])


def shared_response(
    problem: Problem,
    variable: Variable,
    factor: Any,
    natural: Statistics,
    start: int,
    marginals: Mapping[str, Any],
) -> SharedResponse:
    """Return the response of a shared factor, without coordinates yet.

    Raises
    ------
    ModelError
        If what the rows hide depends on it: then the second derivatives by its own statistics are not zero.
    """
    n_statistics = sum(eta.size for eta in natural)
    if problem.factors:
        raise ModelError(
            f"linear response of a shared factor with {n_statistics:,} statistics, that of {variable.name}, takes no "
            f"variables of the rows. The factor itself has the covariances of its variables; for linear response of "
            f"all variables, fit with factors='apart'"
        )
    n = len(factor.mean_of_all)
    return SharedResponse(
        variable,
        np.arange(start, start + n_statistics)[None],
        MatrixRoots([np.zeros((n_statistics, 0))], [np.zeros((0, n))]),
        np.arange(n)[None],
        np.zeros((1, 0, 0)),
        ((n,),),
        np.ones(1, dtype=bool),
        np.zeros(1, dtype=bool),
        factor,
        dict(_forecasts(problem, variable, marginals)),
    )


def _forecasts(
    problem: Problem, variable: Variable, marginals: Mapping[str, Any]
) -> Sequence[tuple[int, tuple[Array, AnyArray]]]:
    found = []
    for number, member in enumerate(variable.members):
        active = problem.bound.of(member).active
        if active is not None and member.name in marginals:
            count, width = variable.family.members[number].part  # type: ignore[attr-defined]
            own = marginals[member.name].covariance_of_value().reshape(count, width, width)
            found.append((number, (own, ~np.ravel(active))))
    return found
