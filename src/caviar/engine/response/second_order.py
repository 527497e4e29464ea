r"""Means and variances to second order: derivatives of the evidence to second order by tilts of the log joint density.

With the log joint density tilted by s times a number g, the log evidence :math:`\log Z(s)` has the mean of g for its
first derivative at s = 0, and the variance for its second. The ELBO gives the mean of the factor and the variance of
linear response. The evidence to second order,

.. math:: \log Z(s) \approx \mathrm{ELBO}(s) + G(s), \qquad G = -\tfrac12 \log |I - V H|,

adds G'(0) to the former and G''(0) to the latter. Both are differences of G at the fixed points of two tilts.
"""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from ...numerics.records import replaced
from ..ascent.state import AscentState
from .landscape import landscape_of
from .operator import ResponseOperator
from .solution import FLAT, Solution

_TILT = 0.5
"""Of the tilts: by how many standard deviations the mean moves. The determinant is far from quadratic beyond one."""

_HALVINGS = 3
"""Of a tilt that has no fixed point among the factors."""

_MOST_STEPS = 12
"""To a tilted fixed point, by Newton's method with the response of the fit."""

_SETTLED = 2e-3
"""Standard deviations that are left of the way to a tilted fixed point."""

_MOST_NUMBERS = 4e6
"""Numbers of the covariances of statistics at all fixed points that are held together."""


class Tilts:
    """Fixed points of a fit whose log joint density is tilted.

    Parameters
    ----------
    state
        Of the fit.
    operator
        How its updates respond.
    solution
        What linear response adds to its factors.
    """

    def __init__(self, state: AscentState, operator: ResponseOperator, solution: Solution) -> None:
        natural = {own: operator.natural[own] for own in state.problem.order}
        self._around = landscape_of(replaced(state, natural=natural), operator)
        self._solved = solution.excess(np.eye(operator.size)) + np.eye(operator.size)
        # by how much the natural parameters change through those of all updates, with each coordinate
        self._images = self._around.images @ self._solved
        fit = self._around.fit[None]
        self._fit, self._correction_of_fit = self._settled(fit, np.zeros(fit.shape))
        if not solution.smallest_eigenvalue > FLAT:
            self._correction_of_fit[:] = np.nan

    def corrections(self, columns: Array, sds: Array) -> tuple[Array, Array]:
        """Return what second order adds to the means of some numbers, and to their variances, (n,) each.

        NaN of a number whose tilts have no fixed point; 0 of one that is known, or has no standard deviation.

        Parameters
        ----------
        columns
            What each number is in standardised coordinates, (r, n).
        sds
            Standard deviations by linear response, (n,).
        """
        found = np.zeros((2, len(sds)))
        asked = np.flatnonzero(np.isfinite(sds) & (sds > 0))
        most = max(1, int(_MOST_NUMBERS / self._around.root.shape[0] ** 2))
        for first in range(0, len(asked), most):
            own = asked[first : first + most]
            found[:, own] = self._corrections(columns[:, own].T @ self._around.inverse, sds[own])
        return found[0], found[1]

    def _corrections(self, tilts: Array, sds: Array) -> Array:
        """Return the corrections of some numbers, (2, n), from the natural parameters of each, (n, P)."""
        found, here = np.full((2, len(sds)), np.nan), self._correction_of_fit[0]
        slopes, sizes, left = self._steps(tilts)[0], _TILT / sds, np.arange(len(sds))
        for _ in range(_HALVINGS if np.isfinite(here) else 0):
            tilt, size = sizes[left, None] * tilts[left], sizes[left]
            above, a = self._settled(self._fit + sizes[left, None] * slopes[left], tilt)
            # the path bends to the same side
            begin = above - 2.0 * sizes[left, None] * slopes[left]
            begin[np.isnan(a)] = np.nan
            _, b = self._settled(begin, -tilt)
            found[:, left] = (a - b) / (2.0 * size), (a - 2.0 * here + b) / size**2
            left = left[np.isnan(found[1, left])]
            if not len(left):
                break
            sizes[left] /= 2.0
        return found

    def _settled(self, natural: Array, tilts: Array) -> tuple[Array, Array]:
        """Return the fixed points of n tilts of the natural parameters, near some, (n, P), and the corrections there.

        These are NaN where there is no fixed point.
        """
        natural, settled = natural.copy(), {}
        left, before = np.flatnonzero(np.isfinite(natural).all(axis=1)), np.full(len(natural), np.inf)
        for _ in range(_MOST_STEPS):
            if not len(left):
                break
            updates, places = self._around.updates(natural[left])
            steps, sizes = self._steps(updates + tilts[left] - natural[left])
            near = sizes < _SETTLED
            settled |= {int(left[own]): places[own] for own in np.flatnonzero(near)}
            going = ~near & (sizes < before[left])
            before[left] = sizes
            left = left[going]
            natural[left] += steps[going]
        corrections = np.full(len(natural), np.nan)
        if settled:
            corrections[list(settled)] = self._around.corrections(list(settled.values()))
        return natural, corrections

    def _steps(self, residuals: Array) -> tuple[Array, Array]:
        """Return the steps that residuals of the natural parameters take, (n, P), and their standard deviations, (n,).

        Both are NaN of residuals that are.
        """
        told = residuals @ self._around.root
        squared = ((told @ self._solved) * told).sum(axis=1)
        return residuals + told @ self._images.T, np.sqrt(np.maximum(squared, 0.0))
