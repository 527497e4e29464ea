r"""Fits in which some globals are known, where rows hide something that one large Gaussian factor alone meets.

As :class:`caviar.engine.response.given.GivenInRows`, whose matrix K would have a coordinate for each number,
square and product. Of K one block matters, between numbers and products, and it is a linear map: with draws
:math:`\delta` of the factor about its mean,

.. math:: \|K_{12}\|^2 = \mathrm E\, \eta_\delta' V \eta_\delta, \qquad
    \mathrm{Cov}(\theta) \approx \Sigma + \mathrm E\, \xi_\delta \delta', \qquad
    \eta_\delta = H V \Sigma^{-1} \delta, \quad \xi_\delta = (V H V \eta_\delta)_\theta,

with the covariances V of the statistics of the factor and the derivative H of the natural parameters. That takes two
passes for each draw. The draws are the same at all values, so that their error hardly differs between these. Both vary
slowly with the values: of a lattice every second one in each direction has draws.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ..._typing import Array, Statistics
from ...families.shared.coupled_normals import CoupledLayout, CoupledNormals
from ...families.shared.coupled_response import responded
from ...language import Variable
from ..ascent.state import AscentState
from ..evaluation.given_by_passes import Correction, GivenByPasses, Passed, has_one_mode
from .cost import EVERY, n_probes
from .passes.derivative import Derivative


class GivenByProbes(GivenByPasses):
    """The fits at values of the known globals, one after the other, each with the cubes of the rows by random draws."""

    every: ClassVar[int] = EVERY

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        super().__init__(state, names)
        self._shared = [own for own in self._others if isinstance(own.family, CoupledLayout)]

    @property
    def is_available(self) -> bool:
        """Whether one Gaussian factor alone meets the rows, whose expectations are in the ELBO.

        A repetition with nothing observed below it, as the place of a new group, says nothing to rows: it keeps what
        its factor has at each value.
        """
        problem = self._state.problem
        if problem.rows.maximises or not has_one_mode(problem) or not self._have_densities:
            return False
        return len(self._shared) == 1 and not self._others_meet()

    def correction(self, passed: Passed) -> Correction:
        (shared,), state = self._shared, self._state
        derivative = Derivative(state.problem, passed.arrays, state.rows, state.warm)
        with self._session():
            cubes, wider = _probed(derivative, shared, passed.q[shared])
        layout = passed.q[shared].layout
        places = {member.name: layout.place(number) for number, member in enumerate(shared.members)}
        return Correction(cubes / 6.0, {name: wider[place] for name, place in places.items()})


def _probed(derivative: Derivative, variable: Variable, factor: CoupledNormals) -> tuple[float, Array]:
    """Return the squared norm of the block between numbers and products, and what it adds to the variances, (p,)."""
    layout, mean = factor.layout, factor.mean_of_all
    noise = np.random.default_rng(0).standard_normal((len(mean), n_probes(len(mean))))
    deviations = factor.precision.drawn(noise)
    if factor.known is not None:
        deviations[factor.known] = 0.0
    # of statistics, the odd part in the deviation
    changes = np.stack(
        [
            0.5
            * (
                _flat(layout.statistics_of_numbers(mean + own))
                - _flat(layout.statistics_of_numbers(mean - own))
            )
            for own in deviations.T
        ],
        axis=1,
    )
    start = derivative.start_of(variable.name)
    place = slice(start, start + len(changes))

    def said(own: Array) -> Array:
        whole = np.zeros((derivative.n_statistics, own.shape[1]))
        whole[place] = own
        return derivative.moved(whole)[place]

    natural = said(changes)
    answered = _responded(factor, natural)
    squared = float((natural * answered).sum(axis=0).mean())
    back = _responded(factor, said(answered))
    numbers = np.concatenate([np.arange(a, b) for a, b in _own_places(layout)])
    return squared, np.maximum((back[numbers] * deviations).mean(axis=1), 0.0)


def _own_places(layout: CoupledLayout) -> list[tuple[int, int]]:
    """Return where the numbers of each variable are among all statistics."""
    stops = _stops(layout)
    return [(stops[2 * number], stops[2 * number + 1]) for number in range(len(layout.members))]


def _stops(layout: CoupledLayout) -> list[int]:
    return [0, *np.cumsum([int(np.prod(shape)) for shape in layout.shapes]).tolist()]


def _flat(statistics: Statistics) -> Array:
    return np.concatenate([np.ravel(own) for own in statistics])


def _responded(factor: CoupledNormals, natural: Array) -> Array:
    """Return V times changes of the natural parameters, (P, n) both."""
    layout = factor.layout
    places = list(zip(pairwise(_stops(layout)), layout.shapes, strict=True))
    parts = (tuple(own[a:b].reshape(shape) for (a, b), shape in places) for own in natural.T)
    return np.stack([_flat(responded(factor, own)) for own in parts], axis=1)
