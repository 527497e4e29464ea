r"""A shared Gaussian factor with many statistics: how it responds along the messages of the other factors.

The second derivative of the objective by two statistics of one factor is zero. So of all its statistics linear response
needs those combinations only that move with the natural parameters which the other globals send: with
:math:`H` of as many columns as these have coordinates, at most, the coordinates are

.. math:: z = W' H' (t - \langle t \rangle), \qquad W W' = (H' V H)^{-1},

and V H takes a response of the sparse precision for each column. Entries of the value that are at right angles to these
keep their covariances of the factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array, Statistics
from ...families.base.roots import MatrixRoots
from ...families.shared.coupled_response import responded
from ...language import Variable
from ..ascent.problem import Problem
from .factors import FactorResponse

_PARALLEL = 1e-10
"""Size of what is left of a message that is a combination of others, relative to its own."""

_MOST_PAIRS = 4e6
"""Covariances of entries that are formed at a time."""

_MOST_ASKED = 64
"""Entries of a variable that are told beside hidden variables of the rows: each takes some ten passes."""

_RESIDUAL, _MOST_STEPS = 1e-9, 200
"""Of conjugate gradients."""


@dataclass(frozen=True, eq=False)
class SharedResponse(FactorResponse):
    """How a shared factor with many statistics responds.

    Attributes
    ----------
    factor
        The Gaussian factor.
    through_rows
        What its statistics say to its own natural parameters through what the rows hide; None if nothing.
    given
        Number of a member -> covariances of its values, (count, width, width), where some are forecasts, and which.
    """

    factor: Any
    given: Mapping[int, tuple[Array, AnyArray]]
    through_rows: Callable[[Array], Array] | None = None

    @property
    def why_not_beside_rows(self) -> str:
        """Why there is no response where what the rows hide depends on other factors, too."""
        n_statistics = self.places.shape[1]
        return (
            f"linear response of a shared factor with {n_statistics:,} statistics, that of {self.variable.name}, takes "
            f"no hidden variables of the rows that depend on other variables. The factor itself has the covariances of "
            f"its variables; for linear response of all variables, fit with factors='apart'"
        )

    def tells(self, mine: slice) -> bool:
        return self.through_rows is None or mine.stop - mine.start <= _MOST_ASKED

    def variances(self, mine: slice) -> Array:
        if self.through_rows is None:
            found = np.square(np.asarray(self.factor.entry_marginals((0.05, 0.95))[0].sd))[mine]
        else:
            found = np.diagonal(self._beside_rows(mine, mine)).copy()
        for number, (own, is_forecast) in self.given.items():
            place = self.factor.layout.place(number)
            if (place.start, place.stop) == (mine.start, mine.stop):
                diagonal = np.diagonal(own, axis1=1, axis2=2)
                found = np.where(is_forecast[:, None], diagonal, found.reshape(diagonal.shape)).ravel()
        return found

    def within(self, mine: slice, other: slice) -> Array:
        every = np.arange(self.n_entries)
        i, j = np.meshgrid(every[mine], every[other], indexing="ij")
        if i.size > _MOST_PAIRS:
            raise ModelError(
                f"{i.size:,} covariances are too many to be formed together; posterior.sd(name) has the standard "
                f"deviations"
            )
        if self.through_rows is None:
            found = self.factor.precision.covariance(i.ravel(), j.ravel()).reshape(i.shape)
        elif i.shape[0] <= i.shape[1]:
            found = self._beside_rows(mine, other)
        else:
            found = self._beside_rows(other, mine).T
        for number, (own, is_forecast) in self.given.items():
            start, width = self.factor.layout.place(number).start, own.shape[1]
            repetition, entry = np.divmod(i - start, width)
            other_repetition, other_entry = np.divmod(j - start, width)
            same = (repetition == other_repetition) & (repetition >= 0) & (repetition < len(own))
            same[same] = is_forecast[repetition[same]]
            found[same] = own[repetition[same], entry[same], other_entry[same]]
        return found

    def _beside_rows(self, mine: slice, other: slice) -> Array:
        """Return covariances of entries given the other factors, what the rows hide at its optimum."""
        places = self._places_of_numbers
        if not self.tells(mine):
            raise ModelError(
                f"linear response tells at most {_MOST_ASKED} entries of a variable of a large shared factor beside "
                f"hidden variables of the rows; the factor itself has standard deviations of all of them, "
                f"posterior.summary(uncertainty='mean_field')"
            )
        units = np.zeros((self.places.shape[1], len(places[mine])))
        units[places[mine], np.arange(units.shape[1])] = 1.0
        return self._solved(units)[places[other]].T

    def along(self, messages: Array, through_rows: Callable[[Array], Array] | None = None) -> SharedResponse:
        """Return the response with coordinates along messages to its natural parameters, (P, n).

        Parameters
        ----------
        messages
            Of the other factors.
        through_rows
            What changes its natural parameters, (P, n), through what the rows hide, with its statistics; None if
            nothing does.
        """
        other = replace(self, through_rows=through_rows)
        sizes = np.linalg.norm(messages, axis=0)
        scaled = messages[:, sizes > 0] / sizes[sizes > 0]
        vectors, left, _ = np.linalg.svd(scaled, full_matrices=False)
        kept = vectors[:, left > _PARALLEL * left.max(initial=0.0)]
        moved = other._solved(kept)
        inner = kept.T @ moved
        values, turned = np.linalg.eigh(0.5 * (inner + inner.T))
        usable = values > _PARALLEL * values.max(initial=0.0)
        root = moved @ (turned[:, usable] / np.sqrt(values[usable]))
        return replace(other, roots=MatrixRoots([root], [root[self._places_of_numbers].T]))

    def _solved(self, natural: Array) -> Array:
        """Return the changes of the statistics with natural parameters, (P, n) both: (I - V H)^-1 V of these.

        H is what goes through the rows. By conjugate gradients in the inner product of V, in which H V is symmetric.
        """
        if self.through_rows is None:
            return self._responded(natural)
        residual, found = natural.copy(), np.zeros_like(natural)
        of_residual = self._responded(residual)
        direction, moved = residual.copy(), of_residual.copy()
        squared = (residual * of_residual).sum(axis=0)
        goal = _RESIDUAL**2 * squared
        for _ in range(_MOST_STEPS):
            going = squared > goal
            if not going.any():
                return found
            image = direction - self.through_rows(moved)
            curvature = (moved * image).sum(axis=0)
            if (curvature[going] <= 0).any():
                raise ModelError(
                    f"the fit has ended at a saddle point: along some direction of {self.variable.name} the ELBO "
                    f"rises, so it has no covariance there. Fit again with another seed or more restarts"
                )
            step = np.where(going, squared / np.where(going, curvature, 1.0), 0.0)
            found += step * moved
            residual -= step * image
            of_residual = self._responded(residual)
            renewed = np.where(going, (residual * of_residual).sum(axis=0), squared)
            share = np.where(going, renewed / np.where(going, squared, 1.0), 0.0)
            direction, moved = residual + share * direction, of_residual + share * moved
            squared = renewed
        raise ModelError(f"linear response does not settle in {_MOST_STEPS} steps")

    @property
    def _places_of_numbers(self) -> AnyArray:
        """Where the numbers themselves are among the statistics, (n,)."""
        layout = self.factor.layout
        stops = np.cumsum([0, *map(math.prod, layout.shapes)])
        own = [np.arange(stops[2 * k], stops[2 * k + 1]) for k in range(len(layout.members))]
        return np.concatenate(own)

    def _responded(self, natural: Array) -> Array:
        """Return V times changes of the natural parameters, (P, n)."""
        stops = np.cumsum([0, *map(math.prod, self.factor.layout.shapes)])
        shapes = list(zip(pairwise(stops.tolist()), self.factor.layout.shapes, strict=True))
        found = np.empty_like(natural)
        for number, own in enumerate(natural.T):
            parts = responded(self.factor, tuple(own[a:b].reshape(shape) for (a, b), shape in shapes))
            found[:, number] = np.concatenate([part.ravel() for part in parts])
        return found


def shared_response(
    problem: Problem,
    variable: Variable,
    factor: Any,
    natural: Statistics,
    start: int,
    marginals: Mapping[str, Any],
) -> SharedResponse:
    """Return the response of a shared factor, without coordinates yet."""
    n_statistics = sum(eta.size for eta in natural)
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
