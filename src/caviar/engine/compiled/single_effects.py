r"""Updates of single effects with the precisions of their sizes, of which nothing else is made.

With messages :math:`\log\pi_j`, h and s to the entries, a precision :math:`\lambda` gives an effect the evidence

.. math:: \log Z(\lambda) = \log \sum_j \pi_j \sqrt{\frac{\lambda}{\lambda + s_j}}
          \exp\Bigl(\frac{h_j^2}{2 (\lambda + s_j)}\Bigr),

in which the effect is summed out. With k and b of what else is said to the precision, the pair is at its best where
:math:`\log Z + k \log\lambda - b \lambda` is largest: there may be two peaks, one of them at the variance zero. Updates of
the effect and of the precision in turn gain little in each turn; where the data need no effect, the variance falls as
one over their number. Here the effect gets its factor at the best precision, and the update of the precision, which
comes next, finds that as its own optimum.

Source: Wang, Sarkar, Carbonetto and Stephens (JRSS B 2020), section 3.2, "empirical Bayes".
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import digamma

from ..._typing import Array, Statistics
from ...families import Gamma, SingleEffect
from ...language import Constant, Variable
from ..binding.bound_model import BoundModel
from ..design.keys import StatisticKey
from .global_update import GlobalUpdate

_STEP = 1.3
"""Between two places of the logarithm of a precision at which peaks are looked for; they are about 1.4 wide."""

_WEAK = 1e3
"""Precision, as a multiple of the largest s, beyond which no peak is worth more than 1e-6 nats."""

_NONE = 1e10
"""Precision, as a multiple of the largest s, of an effect that the data do not need: its variance is zero but for
rounding, and s is not lost beside it."""

_NEAR, _PEAKS = 0.5, 2
"""Nats below the highest place from which on no higher peak is near, and peaks that are climbed at most."""

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
        self._told, self._asked = (
            [StatisticKey(own.name, name) for name in own.family.statistics]
            for own in (precision.variable, effect.variable)
        )

    def natural(self, arrays: Mapping[Hashable, Array]) -> Statistics:
        """Return the natural parameters of the effect's factor, whatever the precision is in ``arrays``."""
        included, linear, quadratic = self._effect.natural(_without(arrays, self._told))
        shape, negative_rate = self._precision.natural(_without(arrays, self._asked))
        evidence = Evidence(
            included, 0.5 * np.square(linear), -2.0 * quadratic, shape - float(self._is_point), -negative_rate
        )
        log_precision = evidence.best(np.log(arrays[self._told[1]]))
        precision = np.exp(log_precision)
        if not self._is_point:
            # an effect is at one entry, so the shape is known
            log_precision = log_precision + digamma(shape + 0.5) - np.log(shape + 0.5)
        return included + 0.5 * log_precision[..., None], linear, quadratic - 0.5 * precision[..., None]


def _without(arrays: Mapping[Hashable, Array], keys: Sequence[StatisticKey]) -> dict[Hashable, Array]:
    """Return arrays in which these say nothing."""
    return {**arrays, **{key: np.zeros_like(arrays[key]) for key in keys}}


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What a precision :math:`\lambda` of effects is worth, with the effects summed out.

    Attributes
    ----------
    log_prior
        Logarithms of the probabilities of the entries, (..., D).
    half_squares, curvature
        :math:`\tfrac12 h^2` and s of the messages, (..., D); the latter are not negative.
    power, rate
        k and b of what else is said to the precisions, (...).
    """

    log_prior: Array
    half_squares: Array
    curvature: Array
    power: Array
    rate: Array

    def best(self, present: Array) -> Array:
        """Return the logarithms of the best precisions, (...), no worse than the present ones."""
        places = self._places(present)
        values = self.value(places)
        below = np.full((1, *present.shape), -np.inf)
        # without a rate the last place is the precision of no effect, above which there is nothing
        above = np.where(self.rate > 0, below, np.inf)
        left, right = np.concatenate([below, values[:-1]]), np.concatenate([values[1:], above])
        is_peak = (values >= left) & (values > right) & (values > values.max(axis=0) - _NEAR)
        count = min(int(is_peak.sum(axis=0).max()), _PEAKS)
        if count:
            rank = np.where(is_peak, -values, np.inf).argsort(axis=0, kind="stable")[:count]
            found = self._climbed(np.take_along_axis(places, rank, axis=0))
            places, values = np.concatenate([places, found]), np.concatenate([values, self.value(found)])
        return np.take_along_axis(places, values.argmax(axis=0)[None], axis=0)[0]

    def value(self, logs: Array) -> Array:
        """Return what precisions are worth, by their logarithms, (C, ...)."""
        precision = np.exp(logs)
        weights, largest, *_ = self._weights(precision[..., None])
        found = np.log(weights.sum(axis=-1)) + largest + self.power * logs - self.rate * precision
        return np.where(np.isnan(found), -np.inf, found)

    def slopes(self, logs: Array) -> tuple[Array, Array]:
        """Return the first and the second derivative by the logarithm, (C, ...) each."""
        precision = np.exp(logs)
        weights, _, own, half = self._weights(precision[..., None])
        # half the derivatives of each entry's own logarithm
        rest = 1.0 - own
        first = 0.5 * rest - own * half
        second = own * (half * (own - rest) - 0.5 * rest) + np.square(first)
        total = weights.sum(axis=-1)
        mean = np.einsum("...i,...i->...", weights, first) / total
        curved = np.einsum("...i,...i->...", weights, second) / total - np.square(mean)
        said = self.rate * precision
        return mean + self.power - said, curved - said

    def _weights(self, precision: Array) -> tuple[Array, Array, Array, Array]:
        """Return the weights of the entries, (C, ..., D), the logarithm of their unit, and two parts of them."""
        inverse = 1.0 / (precision + self.curvature)
        own, half = precision * inverse, self.half_squares * inverse
        exponent = half + self.log_prior
        largest = exponent.max(axis=-1)
        exponent -= largest[..., None]
        weights = np.exp(exponent, out=exponent)
        weights *= np.sqrt(own)
        return weights, largest, own, half

    def _places(self, present: Array) -> Array:
        """Return where peaks are looked for, in ascending order, (C, ...)."""
        largest = self.curvature.max(axis=-1)
        square = 2.0 * (self.half_squares / np.square(self.curvature)).max(axis=-1)
        low = -np.log(np.maximum(square, 1.0 / largest)) + np.log(np.clip(1.0 + 2.0 * self.power, 1e-3, 1.0))
        # beyond the first the slope is negative; at the second all but the data is at its peak
        most, alone = (
            np.log(np.where(self.rate > 0, own / self.rate, np.inf)) for own in (self.power + 0.5, self.power)
        )
        none = np.log(_NONE * largest)
        high = np.minimum(np.log(_WEAK * largest), most)
        low = np.minimum(low, high - 2.0)
        alone = np.clip(alone, high, np.minimum(none, most))
        if not (np.isfinite(low) & np.isfinite(alone)).all():
            # the data say nothing
            low, alone = (
                np.where(np.isfinite(low) & np.isfinite(alone), own, present) for own in (low, alone)
            )
        count = int(np.max((high - low) / _STEP)) + 2
        shares = np.linspace(0.0, 1.0, count).reshape(-1, *(1 for _ in present.shape))
        ends = [np.broadcast_to(own, present.shape)[None] for own in (alone, present)]
        places = np.concatenate([low + (high - low) * shares, *ends])
        return np.sort(np.where(np.isfinite(places), places, low), axis=0)

    def _climbed(self, logs: Array) -> Array:
        """Return the peaks above places, by Newton's steps between the ends that slopes show."""
        low, high = np.full(logs.shape, -np.inf), np.full(logs.shape, np.inf)
        for _ in range(_MOST_STEPS):
            first, second = self.slopes(logs)
            low, high = np.where(first > 0, logs, low), np.where(first < 0, logs, high)
            step = np.where(second < 0, -first / second, np.sign(first) * _FARTHEST)
            moved = logs + np.clip(step, -_FARTHEST, _FARTHEST)
            is_out = ~((moved > low) & (moved < high))
            moved = np.where(is_out, np.where(np.isfinite(low + high), 0.5 * (low + high), logs), moved)
            farthest, logs = np.abs(moved - logs).max(), moved
            if not farthest > _EXACT:
                break
        return logs


def precisions_of_effects(
    order: Sequence[Variable], point: Set[Variable], bound: BoundModel
) -> dict[Variable, Variable]:
    """Return the precision of each single effect whose update comes right after it, if nothing else is made of it."""
    found: dict[Variable, Variable] = {}
    for effect, precision in pairwise(order):
        if effect.family is not SingleEffect or precision.family is not Gamma or effect in point:
            continue
        slots = [own for own in effect.slots.values() if own.node is precision]
        children = [own for own in bound.nodes if isinstance(own, Variable) and precision in own.parents]
        mean = effect.slots["mean"].node if "mean" in effect.slots else None
        if (
            children == [effect]
            and [own.name for own in slots] == ["precision"]
            and slots[0].index is None
            and slots[0].along is None
            and effect.plates == precision.plates
            and not (isinstance(mean, Constant) and np.any(bound.values_of(mean)))
            and (mean is None or isinstance(mean, Constant))
            and precision not in bound.floors
            and all(_is_free(bound, own) for own in (effect, precision))
        ):
            found[effect] = precision
    return found


def _is_free(bound: BoundModel, variable: Variable) -> bool:
    """Whether a variable is hidden with all its repetitions."""
    own = bound.of(variable)
    return all(known is None for known in (own.clamped, own.prior, own.active))
