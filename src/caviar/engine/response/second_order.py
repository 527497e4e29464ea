r"""Means and variances to second order: derivatives of the evidence to second order by tilts of the log joint density.

With the log joint density tilted by s times a number g, the log evidence :math:`\log Z(s)` has the mean of g for its
first derivative at s = 0, and the variance for its second. The ELBO gives the mean of the factor and the variance of
linear response. The evidence to second order,

.. math:: \log Z(s) \approx \mathrm{ELBO}(s) + G(s), \qquad G = -\tfrac12 \log |I - V H|,

adds G'(0) to the former and G''(0) to the latter. Both are differences of G at the fixed points of two tilts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from ...numerics.records import replaced
from ..ascent.state import AscentState, at_natural, joined
from .operator import ResponseOperator
from .solution import Formed, log_determinant_at

_TILT = 0.5
"""Of the tilts: by how many standard deviations the mean moves. The determinant is far from quadratic beyond one."""

_HALVINGS = 3
"""Of a tilt that has no fixed point among the factors."""

_MOST_STEPS = 12
"""To a tilted fixed point, by Newton's method with the response of the fit."""

_SETTLED = 2e-3
"""Standard deviations that are left of the way to a tilted fixed point."""


class Tilts:
    """Fixed points of a fit whose log joint density is tilted.

    Parameters
    ----------
    state
        Of the fit.
    operator
        How its updates respond.
    factors
        Global factors by name.
    """

    def __init__(self, state: AscentState, operator: ResponseOperator, factors: Mapping[str, Any]) -> None:
        problem = state.problem
        self._operator, self._factors = operator, factors
        self._state = replaced(state, natural={own: operator.natural[own] for own in problem.order})
        self._root, images = operator.times(np.eye(operator.size)), operator.images()
        # the natural parameters that change a standardised coordinate by one
        self._inverse = _left_inverse(self._root)
        solved = Formed(operator, operator.transposed(images)).excess(np.eye(operator.size))
        self._solved = solved + np.eye(operator.size)
        # by how much the natural parameters change through those of all updates, with each coordinate
        self._images = images @ self._solved
        begin = joined(problem, self._state.natural)
        self._fit = self._settled(begin, np.zeros(operator.n_statistics))
        self._correction_of_fit = self._correction_at(self._fit)

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
        for number in np.flatnonzero(np.isfinite(sds) & (sds > 0)):
            found[:, number] = self._correction(columns[:, number] @ self._inverse, float(sds[number]))
        return found[0], found[1]

    def _correction(self, tilt: Array, sd: float) -> tuple[float, float]:
        if self._fit is None:
            return np.nan, np.nan
        fit, (slope, _) = joined(self._state.problem, self._fit.natural), self._step(tilt)
        size, here = _TILT / sd, self._correction_of_fit
        for _ in range(_HALVINGS):
            above = self._settled(fit + size * slope, size * tilt)
            a = self._correction_at(above)
            if above is not None and np.isfinite(a):
                # the path bends to the same side
                begin = joined(self._state.problem, above.natural) - 2.0 * size * slope
                b = self._correction_at(self._settled(begin, -size * tilt))
                if np.isfinite([b, here]).all():
                    return (a - b) / (2.0 * size), (a - 2.0 * here + b) / size**2
            size /= 2.0
        return np.nan, np.nan

    def _settled(self, natural: Array, tilt: Array) -> AscentState | None:
        """Return the fixed point of a tilt of the natural parameters, (P,), near some; None if there is none."""
        problem, before = self._state.problem, np.inf
        for _ in range(_MOST_STEPS):
            state = at_natural(self._state, natural)
            if state is None:
                return None
            own = {variable: problem.updates[variable].natural(state.arrays) for variable in problem.order}
            step, size = self._step(joined(problem, own) + tilt - natural)
            if size < _SETTLED:
                return state
            if not size < before:
                return None
            natural, before = natural + step, size
        return None

    def _step(self, residual: Array) -> tuple[Array, float]:
        """Return the step (P,) that a residual of the natural parameters takes, and its standard deviations."""
        told = self._root.T @ residual
        return residual + self._images @ told, float(np.sqrt(max(told @ self._solved @ told, 0.0)))

    def _correction_at(self, state: AscentState | None) -> float:
        """Return the correction of the ELBO; NaN of no factors."""
        if state is None:
            return np.nan
        try:
            looked = state.problem, state.q, state.arrays, state.rows, state.warm
            operator = ResponseOperator(*looked, self._factors, at=state.natural, like=self._operator)
            return -0.5 * log_determinant_at(operator)
        except np.linalg.LinAlgError:
            return np.nan


def _left_inverse(root: Array) -> Array:
    """Return a left inverse of L, (r, P), whatever the units of the statistics are."""
    sizes = np.sqrt((root * root).sum(axis=1))
    units = np.where(sizes > 0, sizes, 1.0)
    return np.linalg.pinv(root / units[:, None]) / units
