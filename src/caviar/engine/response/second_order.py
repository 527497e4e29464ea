r"""Means and variances to second order: derivatives of the evidence to second order by tilts of the log joint density.

With the log joint density tilted by s times a number g, the log evidence :math:`\log Z(s)` has the mean of g for its
first derivative at s = 0, and the variance for its second. The ELBO gives the mean of the factor and the variance of
linear response. The evidence to second order,

.. math:: \log Z(s) \approx \mathrm{ELBO}(s) + G(s), \qquad G = -\tfrac12 \log |I - V H|,

adds G'(0) to the former and G''(0) to the latter. Both are differences of G at the fixed points of two tilts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ...numerics.records import replaced
from ..ascent.state import AscentState, at_natural, joined
from .operator import ResponseOperator
from .solution import Formed

_TILT = 0.5
"""Of the tilts: by how many standard deviations the mean moves. The determinant is far from quadratic beyond one."""

_HALVINGS = 3
"""Of a tilt that has no fixed point among the factors."""

_STEPS = 2
"""Of Newton's method to a tilted fixed point. More steps change intervals by less than a hundredth."""


@dataclass(frozen=True, eq=False)
class _Place:
    """Factors with these natural parameters (P,), and how their updates respond."""

    natural: Array
    operator: ResponseOperator
    solution: Formed

    @property
    def correction(self) -> float:
        """The correction of the ELBO."""
        return -0.5 * self.solution.log_determinant


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
        self._factors = factors
        self._state = replaced(state, natural={own: operator.natural[own] for own in problem.order})
        # the natural parameters that change a standardised coordinate by one
        self._inverse = np.linalg.pinv(operator.times(np.eye(operator.size)))
        begin = self._at(joined(problem, self._state.natural))
        self._fit = None if begin is None else self._settled(begin, np.zeros(operator.n_statistics))

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
        size, here = _TILT / sd, self._fit.correction
        for _ in range(_HALVINGS):
            above, below = (self._settled(self._fit, sign * size * tilt) for sign in (1.0, -1.0))
            if above is not None and below is not None:
                a, b = above.correction, below.correction
                if np.isfinite([a, b, here]).all():
                    return (a - b) / (2.0 * size), (a - 2.0 * here + b) / size**2
            size /= 2.0
        return np.nan, np.nan

    def _settled(self, place: _Place, tilt: Array) -> _Place | None:
        """Return the fixed point of a tilt of the natural parameters, (P,), by steps from a place."""
        for _ in range(_STEPS):
            operator, problem = place.operator, self._state.problem
            residual = (joined(problem, operator.natural) + tilt - place.natural)[:, None]
            told = operator.transposed(residual)
            moved = place.natural[:, None] + residual + operator.changes(told + place.solution.excess(told))
            found = self._at(moved[:, 0])
            if found is None:
                return None
            place = found
        return place

    def _at(self, natural: Array) -> _Place | None:
        """Return the factors with these natural parameters; None if there are none."""
        try:
            state = at_natural(self._state, natural)
            if state is None:
                return None
            looked = state.problem, state.q, state.arrays, state.rows, state.warm
            operator = ResponseOperator(*looked, self._factors, at=state.natural)
            return _Place(natural, operator, Formed(operator))
        except np.linalg.LinAlgError:
            return None
