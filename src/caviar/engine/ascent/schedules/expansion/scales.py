r"""Scales: positive numbers that are multiplied, in the units that are optimal for their priors.

Where u and w meet in products :math:`u_k w_k` alone, :math:`(s_k u_k)(w_k / s_k)` is the same for every s. What
changes is what the priors say. A factor of a Gamma is multiplied by s where its rate is divided by s. With the sums n
of the shapes, and :math:`\tau = \log s`, what depends on s is for each side

.. math:: \ell(\tau) = \sum_k n_k \tau_k - \sum_k r_k e^{\tau_k}
          - \sum_j a_j \log\Big(b_j + \sum_k c_{jk} e^{\tau_k}\Big),

where r is the sum of the numbers times their rates. The last sum takes its place where the rates are Gammas themselves,
which have their optimal factors for every s: of shape a, of rate b without these numbers, and c adds up the numbers
below each. The sum over the sides, with :math:`-\tau` for those that are divided, is concave, so Newton's method finds
its only top.

Source: Liu and Wu, "Parameter expansion for data augmentation" (JASA 1999), for scales as the group of such moves;
Gopalan, Hofman and Blei, "Scalable recommendation with hierarchical Poisson factorization" (UAI 2015), for the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....._typing import Array

_STEPS, _HALVINGS = 50, 40
_SETTLED = 1e-12
"""Nats that a step of Newton's method promises, relative to the size of the sums, below which it is the last."""


@dataclass(frozen=True)
class Learnt:
    """Rates that are Gammas, and have their optimal factors for each scale.

    Attributes
    ----------
    shape, rate
        Of their factors without the numbers below: a and b, (J, 1) where all scales meet in each, or (J, K).
    below
        Sum of the numbers below each, c: (J, K).
    weight
        How many rows each counts as, (J, 1).
    """

    shape: Array
    rate: Array
    below: Array
    weight: Array

    def rates(self, scales: Array) -> Array:
        """Return the rates of their factors, of the shape of ``rate``."""
        scaled = self.below * scales
        return self.rate + (scaled if self.is_each else scaled.sum(axis=1, keepdims=True))

    @property
    def is_each(self) -> bool:
        """Whether each scale meets rates of its own."""
        return self.rate.shape[1] == self.below.shape[1] > 1


@dataclass(frozen=True)
class Said:
    """What the priors of some numbers say of their scales.

    Attributes
    ----------
    count
        Sum of their shapes, n: (K,).
    linear
        Sum of the numbers times their rates, r: (K,).
    learnt
        Rates that are learnt from them alone, if any.
    is_dual
        Whether they are divided by the scales.
    """

    count: Array
    linear: Array
    learnt: Learnt | None
    is_dual: bool

    def value(self, logs: Array) -> float:
        """Return what the priors say at the logarithms of scales, (K,)."""
        own = -logs if self.is_dual else logs
        scales = np.exp(own)
        total = float(self.count @ own - self.linear @ scales)
        if self.learnt is not None:
            known = self.learnt
            total -= float(np.sum(known.weight * known.shape * np.log(known.rates(scales))))
        return total

    def derivatives(self, logs: Array) -> tuple[Array, Array]:
        """Return the first derivatives by the logarithms of the scales, (K,), and minus the second ones, (K, K)."""
        own = -logs if self.is_dual else logs
        scales = np.exp(own)
        slope, fall = self.count - self.linear * scales, np.diag(self.linear * scales)
        if self.learnt is not None:
            known = self.learnt
            part: Any = known.below * scales / known.rates(scales)
            shape = known.weight * known.shape
            if known.is_each:
                slope = slope - np.sum(shape * part, axis=0)
                fall = fall + np.diag(np.sum(shape * part * (1.0 - part), axis=0))
            else:
                slope = slope - part.T @ shape[:, 0]
                fall = fall + np.diag(part.T @ shape[:, 0]) - (part * shape).T @ part
        return -slope if self.is_dual else slope, fall


def best_logs(sides: Sequence[Said]) -> Array:
    """Return the logarithms of the best scales, (K,); zeros where none are better."""
    start = logs = np.zeros(len(sides[0].count))
    value = before = _value(sides, logs)
    for _ in range(_STEPS):
        slopes, falls = zip(*(own.derivatives(logs) for own in sides), strict=True)
        slope, fall = sum(slopes, np.zeros_like(logs)), sum(falls, np.zeros((len(logs), len(logs))))
        # a scale that nothing depends on stays
        fall = fall + np.diag(np.where(np.diagonal(fall) > 0, 0.0, 1.0))
        way = np.linalg.solve(fall, slope)
        share = min(1.0, 1.0 / max(float(np.abs(way).max()), 1.0))
        for _ in range(_HALVINGS):
            found = _value(sides, logs + share * way)
            if found >= value:
                break
            share *= 0.5
        else:
            break
        logs, value, promised = logs + share * way, found, float(slope @ way)
        if not promised > _SETTLED * max(abs(value), 1.0):
            break
    return logs if value > before else start


def gain_of(sides: Sequence[Said], logs: Array) -> float:
    """Return by how much scales raise the objective."""
    return _value(sides, logs) - _value(sides, np.zeros_like(logs))


@np.errstate(all="ignore")
def _value(sides: Sequence[Said], logs: Array) -> float:
    return sum(own.value(logs) for own in sides)
