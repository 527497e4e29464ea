r"""Rotations: vectors that are multiplied only with each other, in the coordinates that are optimal for their priors.

Where u and w meet in :math:`u'w` alone, :math:`(R u)'(R^{-T} w)` is the same for every R that has an inverse. What
changes is what the priors say, and the volume. With the second moments C of n vectors, and T = R or :math:`R^{-T}`,

.. math:: f(R) = \sum_v n_v \log|\det T_v| + \ell_v(T_v C_v T_v'), \qquad
    \ell(S) = -\tfrac12 \mathrm{tr}(\Lambda S) \;\text{or}\; -\sum_k a_k \log(b_k + \tfrac12 S_{kk}),

the second with a Gamma precision of each coordinate at its optimum, of shape a, and of rate b without these vectors.

Sources: Luttinen and Ilin, "Transformations in variational Bayesian factor analysis to speed up learning"
(Neurocomputing 2010); Liu, Rubin and Wu, "Parameter expansion to accelerate EM: the PX-EM algorithm" (Biometrika 1998).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from ....._typing import Array, Statistics


@dataclass(frozen=True)
class Effort:
    """How long a turn is searched for.

    Attributes
    ----------
    rounds
        Searches after one another, at most.
    options
        Of each, as SciPy has them.
    """

    rounds: int
    options: Mapping[str, float]


EXACT = Effort(4, {"maxiter": 120, "maxcor": 20, "ftol": 1e-14, "gtol": 1e-5})
"""Close enough that the steps of the fit, and not what is left here, decide how fast it settles."""

BRIEF = Effort(1, {"maxiter": 12, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-5})
"""Most of what is to be gained, where the moments themselves change with each turn."""


class Side(Protocol):
    """What is known of vectors that turn together."""

    @property
    def count(self) -> Array | float:
        """How many vectors change their volume."""
        ...

    @property
    def is_dual(self) -> bool:
        """Whether they turn by the inverse transpose of R."""
        ...

    @property
    def curvature(self) -> Array:
        """Of what is said of them by the entries of a turn, about, (K, K)."""
        ...

    def turned(self, turn: Array) -> Side:
        """Return these vectors after a turn."""
        ...

    def value(self, turn: Array) -> tuple[float, Array]:
        """Return what is said of them once they are turned, and its derivative by the entries of ``turn``."""
        ...

    def natural_after(self, turn: Array, back: Array, natural: Statistics) -> Statistics:
        """Return the natural parameters of the factor that turns with them; ``back`` is the inverse of their turn."""
        ...


@dataclass(frozen=True)
class Turned:
    """What is known of the vectors that turn together.

    Attributes
    ----------
    moments
        Sum of the second moments, C: (K, K).
    count
        Vectors whose volume changes, n; of vectors with zeros one number for each coordinate, (K,).
    is_dual
        Whether they turn by the inverse transpose of R.
    precision
        Known precision of each vector, (K, K), or None.
    shape, rate
        Of the Gamma precision of each coordinate, a and b: (K,), or None.
    """

    moments: Array
    count: Array | float
    is_dual: bool
    precision: Array | None = None
    shape: Array | None = None
    rate: Array | None = None

    @property
    def curvature(self) -> Array:
        """Of what the prior says, by the entry k, j of a turn: the precision of k times the moments of j, (K, K)."""
        return np.outer(self.precisions, np.diagonal(self.moments))

    @property
    def precisions(self) -> Array:
        """Expected precision of each coordinate where nothing is turned, (K,)."""
        if self.shape is not None and self.rate is not None:
            return self.shape / (self.rate + 0.5 * np.diagonal(self.moments))
        return np.diagonal(np.asarray(self.precision))

    def turned(self, turn: Array) -> Turned:
        """Return these vectors after a turn."""
        return replace(self, moments=turn @ self.moments @ turn.T)

    def value(self, turn: Array) -> tuple[float, Array]:
        """Return what their prior says once they are turned, and its derivative by the entries of ``turn``."""
        turned = turn @ self.moments
        total: float = 0.0
        slope: Any = np.zeros_like(turn)
        if self.precision is not None:
            weighted = self.precision @ turned
            total -= 0.5 * float(np.sum(weighted * turn))
            slope = slope - weighted
        if self.shape is not None and self.rate is not None:
            rate = self.rate + 0.5 * np.sum(turned * turn, axis=1)
            total -= float(self.shape @ np.log(rate))
            slope = slope - (self.shape / rate)[:, None] * turned
        return total, slope

    def natural_after(self, turn: Array, back: Array, natural: Statistics) -> Statistics:
        """Return the natural parameters of the vectors after a turn, whose inverse is ``back``."""
        if len(natural) == 2:
            linear, quadratic = natural
            return linear @ back, back.T @ quadratic @ back
        # of vectors with zeros each coordinate is scaled
        included, linear, quadratic = natural
        scale = np.diagonal(back)
        return included + np.log(scale), linear * scale, quadratic * np.square(scale)


def best_rotation(sides: Sequence[Side], effort: Effort = EXACT) -> Array:
    """Return the best R, (K, K); the identity where none is found that is better.

    The search begins anew where it has come to, in the units of that place.
    """
    turn: Any = np.eye(len(sides[0].curvature))
    for _ in range(effort.rounds):
        step = _searched_rotation(sides, effort.options)
        if step is None:
            break
        turn = step @ turn
        dual: Any = np.linalg.inv(step).T
        sides = [own.turned(dual if own.is_dual else step) for own in sides]
    return turn


def foreseen(sides: Sequence[Side]) -> float:
    """Return about what the best rotation gains, by slope and curvature where nothing is turned."""
    units = _units(sides)
    slope = _slope(sides, np.eye(len(units)))[1]
    return 0.5 * float(np.sum(np.square(slope * units)))


def _slope(sides: Sequence[Side], turn: Array) -> tuple[float, Any]:
    """Return the objective after a turn, and its derivative by the entries of R."""
    sign, log_det = np.linalg.slogdet(turn)
    if sign <= 0 or not np.isfinite(log_det):
        return -np.inf, np.zeros_like(turn)
    dual: Any = np.linalg.inv(turn).T
    volume = float(sum((-1 if own.is_dual else 1) * float(np.mean(own.count)) for own in sides))
    total: float = volume * float(log_det)
    slope: Any = volume * dual
    for own in sides:
        value, by_own = own.value(dual if own.is_dual else turn)
        total += value
        # of the inverse transpose: d R^-T = -R^-T dR' R^-T
        slope = slope + (-dual @ by_own.T @ dual if own.is_dual else by_own)
    return total, slope


def _searched_rotation(sides: Sequence[Side], options: Mapping[str, float]) -> Array | None:
    """Return a better R than the identity, (K, K), or None.

    The entries of R - 1 are searched in units of their own curvature: coordinates that have fallen silent in one of the
    sides are stiffer than others by many orders of magnitude.
    """
    units = _units(sides)
    size = len(units)

    def loss(flat: Array) -> tuple[float, Any]:
        total, slope = _slope(sides, np.eye(size) + flat.reshape(size, size) * units)
        return -total, -(slope * units).ravel()

    found = _searched(loss, np.zeros(size * size), options)
    return np.eye(size) + found.reshape(size, size) * units if found.any() else None


def _units(sides: Sequence[Side]) -> Array:
    """Return the inverse roots of the curvatures of what the priors say by the entries of R, (K, K).

    Of a side with precisions p and moments C that of the entry k, j is :math:`p_k C_{jj}`, or :math:`p_j C_{kk}` if it
    turns by the inverse transpose.
    """
    total: Any = np.finfo(float).tiny
    for own in sides:
        total = total + (own.curvature.T if own.is_dual else own.curvature)
    return 1.0 / np.sqrt(total)


def best_scales(sides: Sequence[Side]) -> Array:
    """Return the best positive R among the diagonal ones, as its diagonal, (K,)."""
    size = len(sides[0].curvature)

    def loss(logs: Array) -> tuple[float, Any]:
        total: float = 0.0
        slope: Any = np.zeros(size)
        for own in sides:
            sign = -1.0 if own.is_dual else 1.0
            scale = np.exp(sign * logs)
            value, by_own = own.value(np.diag(scale))
            total += value + sign * float(np.sum(own.count * logs))
            slope += sign * (np.diagonal(by_own) * scale + own.count)
        return -total, -slope

    return np.exp(_searched(loss, np.zeros(size), EXACT.options))


def _searched(loss: Any, start: Array, options: Mapping[str, float]) -> Array:
    """Return where a function is least, near a start; the start where nothing is less."""
    with np.errstate(all="ignore"):
        before = loss(start)[0]
        found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options=dict(options))
    return found.x if np.isfinite(found.fun) and found.fun < before else start
