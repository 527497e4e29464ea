"""Distributions of a number of which only mean and standard deviation are known: quantiles and draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaln, gammaincc, gammaln, ndtr, ndtri, xlog1py, xlogy

from caviar._typing import AnyArray, Array

_DOUBLINGS = 200

_BLOCK = 2**16
"""Values of parts of a mixture that are found together: they stay in the cache."""


class ByMoments(ABC):
    """A family of distributions with a member for each mean and standard deviation."""

    is_discrete: ClassVar[bool] = False
    """Whether the values are whole numbers."""
    is_binary: ClassVar[bool] = False
    """Whether the values are 0 and 1."""

    @abstractmethod
    def below(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the probability of at most this value."""

    @abstractmethod
    def log_density(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the log density of a value, or its log probability if values are whole numbers."""

    @abstractmethod
    def draw(self, mean: Array, sd: Array, rng: np.random.Generator) -> Array:
        """Return a draw for each mean."""

    @abstractmethod
    def quantile(self, q: float, parts: tuple[tuple[Array, Array, Array], ...]) -> Array:
        """Return the smallest value such that the probability of at most this value is q, or more.

        Parameters
        ----------
        q
            Above 0 and below 1.
        parts
            Weight, mean and standard deviation of each part of a mixture.
        """

    def below_in_mixture(self, value: Array, parts: tuple[tuple[Array, Array, Array], ...]) -> Array:
        """Return the probability of at most this value under a mixture; parts without weight do not count."""
        return self._below(value, *_stacked(parts))

    def _below(self, value: Array, weight: Array, mean: Array, sd: Array) -> Array:
        """Return the same of parts along a first axis, (m, ...)."""
        found, size = np.zeros(np.shape(value)), max(1, _BLOCK // max(1, mean[0].size))
        for first in range(0, len(mean), size):
            some = slice(first, first + size)
            below = weight[some] * self.below(value, mean[some], sd[some])
            found = found + np.where(weight[some] > 0, below, 0.0).sum(axis=0)
        return found


def _stacked(parts: tuple[tuple[Array, Array, Array], ...]) -> tuple[Array, Array, Array]:
    """Return weight, mean and standard deviation of the parts of a mixture, (m, ...) each."""
    shape = np.broadcast_shapes(*[np.shape(own) for part in parts for own in part])
    weight, mean, sd = (
        np.stack([np.broadcast_to(own, shape) for own in several]) for several in zip(*parts, strict=True)
    )
    return weight, mean, sd


class Reals(ByMoments):
    """The Normal.

    Examples
    --------
    >>> one = (np.ones(1), np.zeros(1), np.ones(1))
    >>> Reals().quantile(0.975, (one,)).round(2)
    array([1.96])
    """

    def below(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the probability."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(sd > 0, ndtr((value - mean) / sd), np.where(value >= mean, 1.0, 0.0))

    def log_density(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the log density."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -0.5 * ((value - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)

    def draw(self, mean: Array, sd: Array, rng: np.random.Generator) -> Array:
        """Return a draw for each mean."""
        return rng.normal(mean, sd)

    def quantile(self, q: float, parts: tuple[tuple[Array, Array, Array], ...]) -> Array:
        """Return the quantile, by bisection between those of the parts."""
        stacked = weight, mean, sd = _stacked(parts)
        ends = np.where(weight > 0, mean + ndtri(q) * sd, np.nan)
        low, high = np.fmin.reduce(ends), np.fmax.reduce(ends)
        for _ in range(60 if len(parts) > 1 else 0):
            middle = 0.5 * (low + high)
            is_below = self._below(middle, *stacked) > q
            low, high = np.where(is_below, low, middle), np.where(is_below, middle, high)
        return 0.5 * (low + high)


class Counts(ByMoments):
    """Negative binomial if the variance is above the mean, Poisson if they are equal, and else a binomial.

    Examples
    --------
    >>> one = (np.ones(1), np.array([4.0]), np.array([2.0]))
    >>> Counts().quantile(0.5, (one,))
    array([4.])
    """

    is_discrete = True

    def below(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the probability."""
        value, mean, variance = np.broadcast_arrays(np.floor(value), mean, np.square(sd))
        # each function takes most of the time, and one of them is needed
        found = np.where(value < 0, 0.0, np.where(mean > 0, np.nan, 1.0))
        inside = (value >= 0) & (mean > 0)
        is_poisson = inside & _is_poisson(mean, variance)
        is_wide, is_narrow = (
            inside & ~is_poisson & (variance > mean),
            inside & ~is_poisson & (variance <= mean),
        )
        found[is_poisson] = gammaincc(value[is_poisson] + 1, mean[is_poisson])
        k, m, v = value[is_wide], mean[is_wide], variance[is_wide]
        with np.errstate(invalid="ignore"):
            found[is_wide] = betainc(m**2 / (v - m), k + 1, m / v)
        k, m, v = value[is_narrow], mean[is_narrow], variance[is_narrow]
        fewer = _trials(m, v)
        found[is_narrow] = np.where(
            k >= fewer, 1.0, betainc(np.maximum(fewer - k, 1e-300), k + 1, 1 - m / fewer)
        )
        return found

    def log_density(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the log probability; minus infinity of what is not a whole number of at least 0."""
        value, mean, variance = np.broadcast_arrays(value, mean, np.square(sd))
        k = np.maximum(np.floor(value), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            fewer, more = _trials(mean, variance), mean**2 / (variance - mean)
            share = np.minimum(mean / fewer, 1.0)
            failures = np.maximum(fewer - k, 0.0)
            narrow = (
                xlogy(k, share)
                + xlog1py(failures, -share)
                - betaln(failures + 1.0, k + 1.0)
                - np.log1p(fewer)
            )
            # of a large size two large logarithms would cancel
            wide = -more * np.log1p(mean / more) - xlogy(k, 1.0 + more / mean)
            wide = wide - np.where(k > 0, betaln(np.maximum(k, 1.0), more) + np.log(np.maximum(k, 1.0)), 0.0)
            found = np.where(variance > mean, wide, np.where(k <= fewer, narrow, -np.inf))
            found = np.where(_is_poisson(mean, variance), xlogy(k, mean) - mean - gammaln(k + 1.0), found)
        found = np.where(mean > 0, found, np.where(k == 0, 0.0, -np.inf))
        return np.where((value < 0) | (value != k), -np.inf, found)

    def draw(self, mean: Array, sd: Array, rng: np.random.Generator) -> Array:
        """Return a draw for each mean."""
        mean, variance = np.broadcast_arrays(mean, np.square(sd))
        rate, is_wide = np.array(mean), (variance > mean) & ~_is_poisson(mean, variance)
        wide, more = mean[is_wide], variance[is_wide] - mean[is_wide]
        # a negative binomial is a Poisson whose rate is a Gamma
        rate[is_wide] = rng.gamma(wide**2 / more, more / wide)
        found = rng.poisson(rate).astype(np.float64)
        is_narrow = (variance < mean) & ~_is_poisson(mean, variance)
        trials = _trials(mean[is_narrow], variance[is_narrow])
        found[is_narrow] = rng.binomial(trials.astype(np.int64), mean[is_narrow] / trials)
        return found

    def quantile(self, q: float, parts: tuple[tuple[Array, Array, Array], ...]) -> Array:
        """Return the quantile: from that of a Normal by steps that double, and then by bisection."""
        several = _stacked(parts)
        shape = several[0].shape[1:]
        weight, mean, sd = (own.reshape(len(own), -1) for own in several)

        def are_short(places: AnyArray, values: Array) -> AnyArray:
            return self._below(values, weight[:, places], mean[:, places], sd[:, places]) < q

        guess, step = _guess(q, weight, mean, sd)
        everywhere = np.arange(len(guess))
        low, high = guess - step, guess + step
        is_less = are_short(everywhere, low)
        low, high = np.where(is_less, low, -1.0), np.where(is_less, high, low)
        places = everywhere[is_less]
        for _ in range(_DOUBLINGS):
            places = places[are_short(places, high[places])]
            if not len(places):
                break
            low[places] = high[places]
            step[places] *= 2
            high[places] += step[places]
        else:
            high[places] = np.inf
        places = everywhere
        while True:
            # whole numbers above 1e16 are further apart than 1
            gap = high[places] - low[places]
            places = places[gap > np.maximum(1.0, 4.0 * np.spacing(high[places]))]
            if not len(places):
                return high.reshape(shape)
            middle = np.floor(0.5 * (low[places] + high[places]))
            is_less = are_short(places, middle)
            low[places[is_less]], high[places[~is_less]] = middle[is_less], middle[~is_less]


def _guess(q: float, weights: Array, means: Array, sds: Array) -> tuple[Array, Array]:
    """Return about where the quantiles of mixtures of counts are, and a step that is small beside their spread."""
    with np.errstate(all="ignore"):
        mean = np.where(weights > 0, weights * means, 0.0).sum(axis=0)
        spread = np.where(weights > 0, weights * (np.square(sds) + np.square(means - mean)), 0.0).sum(axis=0)
        sd = np.sqrt(spread)
        guess, step = np.floor(mean + ndtri(q) * sd), np.floor(0.2 * sd)
    known = np.isfinite(guess) & np.isfinite(step)
    return np.where(known, np.maximum(guess, 0.0), 0.0), np.where(known, np.maximum(step, 1.0), 1.0)


def _is_poisson(mean: Array, variance: Array) -> AnyArray:
    return np.abs(variance - mean) <= 1e-9 * mean


def _trials(mean: Array, variance: Array) -> Array:
    """Return the number of trials of the nearest binomial that can have this mean."""
    return np.maximum(np.round(mean**2 / (mean - variance)), np.ceil(mean))


class Binary(ByMoments):
    """The Bernoulli: 0 or 1.

    Examples
    --------
    >>> one = (np.ones(2), np.array([0.2, 0.7]), np.array([0.4, 0.46]))
    >>> Binary().quantile(0.5, (one,))
    array([0., 1.])
    """

    is_discrete = is_binary = True

    def below(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the probability."""
        return np.where(value < 0, 0.0, np.where(value < 1, 1.0 - mean, 1.0))

    def log_density(self, value: Array, mean: Array, sd: Array) -> Array:
        """Return the log probability."""
        with np.errstate(divide="ignore"):
            return np.where(value == 1, np.log(mean), np.where(value == 0, np.log1p(-mean), -np.inf))

    def draw(self, mean: Array, sd: Array, rng: np.random.Generator) -> Array:
        """Return a draw for each mean."""
        return (rng.random(np.shape(mean)) < mean).astype(np.float64)

    def quantile(self, q: float, parts: tuple[tuple[Array, Array, Array], ...]) -> Array:
        """Return 0 or 1."""
        return np.where(self.below_in_mixture(np.zeros(()), parts) >= q, 0.0, 1.0)


REALS, COUNTS, BINARY = Reals(), Counts(), Binary()
