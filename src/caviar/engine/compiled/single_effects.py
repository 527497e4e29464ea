r"""Updates of single effects with the precisions of their sizes, if nothing else has these.

With messages :math:`\log\pi_j`, h and s to the entries, a precision :math:`\lambda` gives an effect the evidence

.. math:: \log Z(\lambda) = \log \sum_j \pi_j \sqrt{\frac{\lambda}{\lambda + s_j}}
          \exp\Bigl(\frac{h_j^2}{2 (\lambda + s_j)}\Bigr),

in which the effect is summed out. With k and b of what else is said to the precision, the pair is at its best where
:math:`\log Z + k \log\lambda - b \lambda` is largest. There may be two peaks, one of them at the variance zero. Updates
of the effect and of the precision in turn gain little in each turn; where the data need no effect, the variance falls
as one over their number. Here the effect gets its factor at the best precision, and the update of the precision, which
comes next, finds that as its own optimum.

Source: Wang, Sarkar, Carbonetto and Stephens (JRSS B 2020), section 3.1, which calls this empirical Bayes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import digamma

from ..._typing import Array, Statistics
from ...families import Gamma, SingleEffect
from ...language import Constant, Variable
from ...numerics.cached import cached_property
from ..binding.bound_model import BoundModel
from ..design.keys import StatisticKey
from .global_update import GlobalUpdate

_STEP = 1.3
"""Between two places of the logarithm of a precision at which peaks are looked for; they are about 1.4 wide."""

_WEAK, _WEAKEST = 10.0, 1e3
"""Precisions, as multiples of the largest s, beyond which no peak is looked for: if the variance zero is at one, and if
not. Beyond the second none is worth more than 1e-6 nats."""

_NONE = 1e10
"""An effect that the data do not need gets this multiple of the largest s as its precision. The variance is then zero
to rounding, and a sum of the precision and s still has six digits of s."""

_NEAR, _PEAKS = 0.5, 2
"""Nats below the highest place from which on no higher peak is near, and peaks that are climbed at most."""

_TINY = float(np.finfo(float).tiny)

_MOST_STEPS, _FARTHEST, _EXACT = 12, 1.5, 1e-4
"""Newton's steps at most, the farthest of them, and the last one: the next would be about its square."""


class EffectWithPrecision:
    """The update of a single effect at the best precision of its size.

    Parameters
    ----------
    effect, precision
        The updates of both by themselves.
    is_point
        Whether the precision is a point mass.
    """

    def __init__(self, effect: GlobalUpdate, precision: GlobalUpdate, *, is_point: bool) -> None:
        self._effect, self._precision, self._is_point = effect, precision, is_point
        self._of_precision, self._of_effect = (
            [StatisticKey(own.name, name) for name in own.family.statistics]
            for own in (precision.variable, effect.variable)
        )

    def natural(self, arrays: Mapping[Hashable, Array]) -> Statistics:
        """Return the natural parameters of the effect's factor, whatever the precision is in ``arrays``."""
        natural = self._effect.natural(_without(arrays, self._of_precision))
        shape, negative_rate = self._precision.natural(_without(arrays, self._of_effect))
        present = arrays[self._of_precision[1]]
        found = np.empty(present.shape)
        for at in np.ndindex(present.shape):
            included, linear, quadratic = (own if own.ndim == 1 else own[at] for own in natural)
            evidence = Evidence(
                log_prior=included,
                half_squares=0.5 * np.square(linear),
                curvature=-2.0 * quadratic,
                power=float(shape[at]) - self._is_point,
                rate=-float(negative_rate[at]),
            )
            found[at] = evidence.best(float(present[at]))
        log_precision = np.log(found)
        if not self._is_point:
            # an effect is at one entry, so the shape of the factor is known
            log_precision += digamma(shape + 0.5) - np.log(shape + 0.5)
        included, linear, quadratic = natural
        return included + 0.5 * log_precision[..., None], linear, quadratic - 0.5 * found[..., None]


def _without(arrays: Mapping[Hashable, Array], keys: Sequence[StatisticKey]) -> dict[Hashable, Array]:
    """Return arrays in which these say nothing."""
    return {**arrays, **{key: np.zeros_like(arrays[key]) for key in keys}}


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What a precision :math:`\lambda` of an effect is worth, with the effect summed out.

    Attributes
    ----------
    log_prior
        Logarithms of the probabilities of the entries, (D,).
    half_squares, curvature
        :math:`\tfrac12 h^2` and s of the messages, (D,); the latter are not negative.
    power, rate
        k and b of what else is said to the precision.
    """

    log_prior: Array
    half_squares: Array
    curvature: Array
    power: float
    rate: float

    def best(self, present: float) -> float:
        """Return the best precision, which is no worse than the present one."""
        if not (self._largest > 0 and self.power > -0.5):
            # the data say nothing, or there is no best one
            return present
        logs = self._places(present)
        values: list[float] = self.values(np.array(logs)).tolist()
        for place in self._peaks(values):
            log_precision = self._climbed(logs[place])
            logs.append(log_precision)
            values.append(self.values(np.array([log_precision])).item())
        return math.exp(logs[values.index(max(values))])

    def values(self, logs: Array) -> Array:
        """Return what precisions are worth, by their logarithms, (C,)."""
        precision = np.exp(logs)
        inverse = 1.0 / (precision[:, None] + self.curvature)
        weights = self.half_squares * inverse
        weights += self.log_prior
        largest = weights.max(axis=1)
        weights -= largest[:, None]
        np.exp(weights, out=weights)
        total = np.einsum("ij,ij->i", weights, np.sqrt(inverse, out=inverse))
        return np.log(total) + largest + (self.power + 0.5) * logs - self.rate * precision

    def slopes(self, log_precision: float) -> tuple[float, float]:
        """Return the first and the second derivative by the logarithm of a precision."""
        precision = math.exp(log_precision)
        inverse = 1.0 / (precision + self.curvature)
        own, half = precision * inverse, self.half_squares * inverse
        weights = half + self.log_prior
        weights -= weights.max()
        np.exp(weights, out=weights)
        weights *= np.sqrt(inverse)
        weights /= weights.sum()
        # of the logarithm of what each entry adds
        first = 0.5 - own * (0.5 + half)
        second = own * (half * (2.0 * own - 1.0) - 0.5 + 0.5 * own)
        mean, said = float(weights @ first), self.rate * precision
        curved = float(weights @ second + (weights * first) @ first) - mean * mean
        return mean + self.power - said, curved - said

    @cached_property
    def _largest(self) -> float:
        return float(self.curvature.max())

    def _places(self, present: float) -> list[float]:
        """Return logarithms of precisions at which peaks are looked for, in ascending order."""
        at_zero = np.exp(self.log_prior - self.log_prior.max()) @ (2.0 * self.half_squares - self.curvature)
        is_null = at_zero <= 0 and self.power <= 0
        # below the first the slope is positive, beyond the second it is negative
        square = 2.0 * float((self.half_squares / np.maximum(np.square(self.curvature), _TINY)).max())
        low = min(max(1.0 + 2.0 * self.power, 1e-3), 1.0) / max(square, 1.0 / self._largest)
        most, alone = (
            (own / self.rate if self.rate > 0 else math.inf) for own in (self.power + 0.5, self.power)
        )
        high = min((_WEAK if is_null else _WEAKEST) * self._largest, most)
        low, none = min(low, 0.1 * high), _NONE * self._largest
        # where all but the data is at its peak
        alone = min(max(alone, high), none, most)
        is_there = alone == none and present > 0.1 * none
        ends = [alone, present] if 0.0 < present < math.inf and not is_there else [alone]
        count = int(math.log(high / low) / _STEP) + 1
        gap = math.log(high / low) / count
        return sorted(
            [math.log(low) + gap * step for step in range(count + 1)] + [math.log(own) for own in ends]
        )

    def _peaks(self, values: Sequence[float]) -> list[int]:
        """Return which places are beside peaks that may be the highest, the highest place first."""
        least = max(values) - _NEAR
        # without a rate the last place is that of no effect, above which there is nothing
        left, right = [-math.inf, *values], [*values[1:], -math.inf if self.rate > 0 else math.inf]
        found = [
            place for place, own in enumerate(values) if own > least and left[place] <= own > right[place]
        ]
        return sorted(found, key=lambda place: -values[place])[:_PEAKS]

    def _climbed(self, log_precision: float) -> float:
        """Return the peak above a place, by Newton's steps between the ends that slopes show."""
        low, high = -math.inf, math.inf
        for _ in range(_MOST_STEPS):
            first, second = self.slopes(log_precision)
            if first > 0:
                low = log_precision
            else:
                high = log_precision
            step = -first / second if second < 0 else math.copysign(_FARTHEST, first)
            moved = log_precision + min(max(step, -_FARTHEST), _FARTHEST)
            if not low <= moved <= high:
                moved = 0.5 * (low + high)
            step, log_precision = moved - log_precision, moved
            if not abs(step) > _EXACT:
                break
        return log_precision


def precisions_of_effects(
    order: Sequence[Variable], point: Set[Variable], bound: BoundModel
) -> list[tuple[Variable, Variable]]:
    """Return each single effect whose precision is updated right after it, and that, if nothing else has it."""
    return [
        (effect, precision)
        for effect, precision in pairwise(order)
        if effect.family is SingleEffect
        and precision.family is Gamma
        and effect not in point
        and precision not in bound.floors
        and all(_is_free(bound, own) for own in (effect, precision))
        and _is_width(effect, precision, bound)
    ]


def _is_width(effect: Variable, precision: Variable, bound: BoundModel) -> bool:
    """Whether a Gamma is the precision of an effect about zero, for all its entries, and of nothing else."""
    slots = [own for own in effect.slots.values() if own.node is precision]
    children = [own for own in bound.nodes if isinstance(own, Variable) and precision in own.parents]
    if children != [effect] or len(slots) != 1 or slots[0].name != "precision":
        return False
    mean = effect.slots.get("mean")
    if mean is not None and (not isinstance(mean.node, Constant) or np.any(bound.values_of(mean.node))):
        return False
    return slots[0].index is None and slots[0].along is None and effect.plates == precision.plates


def _is_free(bound: BoundModel, variable: Variable) -> bool:
    """Whether a variable is hidden with all its repetitions, and has its own prior."""
    own = bound.of(variable)
    return own.clamped is None and own.prior is None and own.active is None
