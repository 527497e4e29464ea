r"""Fits in which some globals are known, where rows hide something that others meet: their evidence to second order.

The ELBO of such a fit is a bound, and its gap differs between values :math:`\theta` of the known globals. Linear
response of the others alone tells most of it,

.. math:: \log p(x, \theta) \approx L(\theta) - \tfrac12 \log |I - V H|,

and their standard deviations given the values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from ..._errors import ModelError
from ..._typing import Array, Statistics
from ..ascent.problem import Factors
from ..evaluation.given_by_passes import GivenByPasses, Passed, has_one_mode
from .entries import Entries
from .operator import ResponseOperator
from .solution import ALWAYS_FORMED, FLAT, Formed


class GivenInRows(GivenByPasses):
    """The fits, one after the other, each with linear response."""

    @property
    def is_available(self) -> bool:
        """Whether all globals have densities and rows, what the rows hide has one mode, and the response is small."""
        problem = self._state.problem
        if not has_one_mode(problem) or not self._have_densities:
            return False
        if any(problem.bound.of(own).active is not None for own in problem.bound.latent):
            return False
        sizes = [sum(eta.size for eta in own.expected_statistics) for own in self._state.q.values()]
        return sum(sizes) <= ALWAYS_FORMED

    def _passed(
        self,
        elbo: float,
        statistics: Mapping[str, Statistics],
        arrays: Mapping[Hashable, Array],
        q: Factors,
    ) -> Passed:
        found, state = super()._passed(elbo, statistics, arrays, q), self._state
        # what the known globals have for factors does not matter: nothing is said to these
        operator = ResponseOperator(state.problem, {**state.q, **q}, arrays, state.rows, state.warm)
        known = np.zeros(operator.size, dtype=bool)
        for factor, own in zip(operator.factors, operator.coordinates, strict=True):
            known[own] = factor.variable in self._known
        matrix = np.where(known | known[:, None], 0.0, operator.matrix())
        solution, entries = Formed(operator, matrix), Entries(operator)
        if not solution.smallest_eigenvalue > FLAT:
            raise ModelError("linear response of a fit with some globals known is flat along some direction")
        sds = {name: np.sqrt(entries.variances(name, solution)) for name in found.sds}
        return found._replace(log_density=found.log_density - 0.5 * solution.log_determinant, sds=sds)
