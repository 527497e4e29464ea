"""The stick-breaking distribution of weights: each takes a Beta-distributed share of what those before it left."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape, safe_log
from caviar.families.base.marginals import Ends, Marginals, matched_beta
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.families.base.transforms import LogRatios, Transform
from caviar.families.dirichlet import Dirichlet, dirichlet_draws
from caviar.numerics.cached import cached_property

_DRAWS = 4000
"""For quantiles, which have no closed form: an end is then known to some percent of the interval's width."""


@dataclass(frozen=True, eq=False, repr=False)
class StickBreaking(ExponentialFamily):
    r"""Distributions of K weights that are the pieces of a broken stick.

    .. math:: v_k \sim \mathrm{Beta}(a_k, b_k) \;(k < K), \quad v_K = 1, \qquad
              x_k = v_k s_k, \quad s_k = \prod_{j < k} (1 - v_j) = \sum_{j \ge k} x_j

    .. math:: t = (\log x,\, \log s), \quad
              \eta = \bigl((a_1, \dots, a_{K-1}, b_{K-1}),\; (0,\, b_1 - a_2 - b_2,\, \dots,\,
              b_{K-2} - a_{K-1} - b_{K-1},\, 0)\bigr), \quad c = (-1, 0)

    Parameters
    ----------
    a, b
        Concentrations of the shares, each of shape (..., K - 1): a for the piece itself, b for what is left.

    Raises
    ------
    ParameterError
        If a concentration is missing or not positive, or a and b differ in length.

    Notes
    -----
    The generalised Dirichlet distribution of Connor and Mosimann (1969). The density is that of the weights, with
    respect to Lebesgue measure of the first K - 1; where b_k = a_{k+1} + b_{k+1} for every k it is a Dirichlet's.
    Statistics and natural parameters are redundant: :math:`\log s_1 = 0`, and :math:`s_K = x_K`. From any natural
    parameters :math:`a_k = \eta_{1k}` and :math:`b_k = \sum_{j > k} (\eta_{1j} + \eta_{2j})`.

    Examples
    --------
    >>> q = StickBreaking([1.0, 1.0], [3.0, 1.0])
    >>> q.mean
    array([0.25 , 0.375, 0.375])
    >>> q.sample(seed=0).round(3)
    array([0.141, 0.009, 0.85 ])
    """

    a: Array
    b: Array

    statistics: ClassVar[tuple[str, ...]] = ("log_x", "log_rest")
    transforms: ClassVar[tuple[Transform, ...]] = (LogRatios(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("s", "s")

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        parameters = read_parameters("StickBreaking", {"a": a, "b": b}, (1, 1))
        lengths = [value.shape[-1] for value in parameters.values()]
        if lengths[0] != lengths[1] or lengths[0] == 0:
            raise ParameterError(
                "StickBreaking: a and b must have one concentration for each of the K - 1 shares (K at least 2), "
                f"got {lengths[0]} and {lengths[1]}."
            )
        for name, value in parameters.items():
            require(value > 0, value, f"StickBreaking: {name} must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        weights, rests = np.broadcast_arrays(*natural)
        a = weights[..., :-1]
        b = _sums_from_the_end(weights + rests)[..., 1:]
        good = (np.minimum(a, b) > 0) & (np.maximum(a, b) < np.inf)
        if not np.logical_and.reduce(good, axis=None) or np.isnan(rests[..., 0]).any():
            good = np.all(good, axis=-1) & ~np.isnan(rests[..., 0])
            refuse_improper("StickBreaking", good, "every a and b must be positive and finite")
        return cls._trusted(a=a, b=b, natural=(weights, rests))

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log x and log s; the logarithm of 0 is taken as that of the smallest positive number."""
        x = as_value(value)
        return safe_log(x), safe_log(_sums_from_the_end(x))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(K,)."""
        return (self.a.shape[-1] + 1,)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """Inverse product of the weights."""
        return (-1.0, 0.0)

    @cached_property
    def _shares(self) -> Dirichlet:
        """The pairs (v_k, 1 - v_k), batch + (K - 1,)."""
        return Dirichlet._trusted(concentration=np.stack((self.a, self.b), axis=-1))

    @cached_property
    def natural(self) -> Statistics:
        """The concentrations a and the last b, and what each b exceeds the following a + b by."""
        a, b = self.a, self.b
        ends = np.zeros((*self.batch_shape, 1))
        excess = b[..., :-1] - a[..., 1:] - b[..., 1:]
        return np.concatenate((a, b[..., -1:]), axis=-1), np.concatenate((ends, excess, ends), axis=-1)

    @cached_property
    def expected_statistics(self) -> Statistics:
        r"""Expectations :math:`\log x_k = \log v_k + \log s_k` and :math:`\log s_k = \sum_{j<k} \log(1 - v_j)`."""
        (logs,) = self._shares.expected_statistics
        nothing = np.zeros((*self.batch_shape, 1))
        rest = np.concatenate((nothing, logs[..., 1].cumsum(axis=-1)), axis=-1)
        return np.concatenate((logs[..., 0], nothing), axis=-1) + rest, rest

    def _response_of_shares(self, change: Statistics) -> Statistics:
        """Return the natural parameters of the shares (v_k, 1 - v_k) that go with those of the weights."""
        weights, rests = change
        rest = _sums_from_the_end(weights + rests)[..., 1:]
        return (np.stack((weights[..., :-1], rest), axis=-1),)

    def response(self, change: Statistics) -> Statistics:
        (logs,) = self._shares.response(self._response_of_shares(change))
        nothing = np.zeros((*logs.shape[:-2], 1))
        rest = np.concatenate((nothing, logs[..., 1].cumsum(axis=-1)), axis=-1)
        return np.concatenate((logs[..., 0], nothing), axis=-1) + rest, rest

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        (shares,) = self._shares.response_of_value(self._response_of_shares(change))
        own = self._shares.mean
        total = np.zeros((*shares.shape[:-2], shares.shape[-2] + 1))
        for place in range(own.shape[-2]):
            only = np.broadcast_to(own, shares.shape).copy()
            only[..., place, :] = shares[..., place, :]
            # pieces before this share do not have it
            total[..., place:] += _pieces(only)[..., place:]
        return (total,)

    def covariance_of_value(self) -> Array:
        mean, share = self.mean, self._shares.mean
        second = self._shares.variance + share**2
        # pieces j < k share (1 - v_i)^2 of each i < j, and v_j (1 - v_j) of their first
        left = np.concatenate((np.ones((*mean.shape[:-1], 1)), second[..., 1].cumprod(axis=-1)), axis=-1)
        size = mean.shape[-1]
        products = np.zeros((*mean.shape, size))
        for j in range(size - 1):
            crossed = left[..., j] * (share[..., j, 0] - second[..., j, 0])
            after = crossed[..., np.newaxis] * _pieces(share[..., j + 1 :, :])
            products[..., j, j + 1 :] = after
            products[..., j + 1 :, j] = after
        products[..., range(size), range(size)] = _pieces(second)
        return products - mean[..., :, np.newaxis] * mean[..., np.newaxis, :]

    @cached_property
    def log_partition(self) -> Array:
        """Sum of the logarithms of the Beta functions of a_k and b_k."""
        return self._shares.log_partition.sum(axis=-1)

    @property
    def mean(self) -> Array:
        """Mean of each weight, shape (..., K)."""
        return _pieces(self._shares.mean)

    @property
    def variance(self) -> Array:
        """Variance of each weight, shape (..., K)."""
        share = self._shares.mean
        return np.maximum(_pieces(self._shares.variance + share**2) - self.mean**2, 0.0)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        # from draws, the same at each call
        lower, upper = np.quantile(self.sample(_DRAWS, np.random.default_rng(0)), ends, axis=0)
        return [Marginals(self.mean, np.sqrt(self.variance), lower, upper)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return matched_beta(own.mean, sd, ends)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at weights of shape (..., K).

        Minus infinity where they do not sum to one, and where nothing is left for the last share to be taken of.
        """
        x = np.broadcast_arrays(as_value(value), self.mean)[0]
        rest = _sums_from_the_end(x)
        inside = (x >= 0).all(axis=-1) & (np.abs(rest[..., 0] - 1.0) < 1e-8) & (rest[..., -2] > 0)
        known = np.where(inside[..., np.newaxis], rest, 1.0)
        shares = np.stack((x[..., :-1] / known[..., :-1], rest[..., 1:] / known[..., :-1]), axis=-1)
        shares = np.where(inside[..., np.newaxis, np.newaxis], shares, 0.5)
        density = self._shares.log_density(shares).sum(axis=-1)
        # the weights' volume is that of the shares times s_2 ... s_{K-1}
        return np.where(inside, density - np.log(known[..., 1:-1]).sum(axis=-1), -np.inf)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure: that of the shares about theirs."""
        return self._shares.entropy_about_base().sum(axis=-1)

    def _divergence(self, other: Self) -> Array:
        return self._shares.kl(other._shares).sum(axis=-1)

    def mode(self) -> Array:
        """Return the weights of largest density; equal shares where every point has the same.

        Raises
        ------
        ImproperError
            If an a_k is below 1 or a b_k below K - k: the density is unbounded at the edge.
        """
        k = np.arange(self.a.shape[-1], 0, -1.0)
        taken, left = self.a - 1.0, self.b - k
        if (np.minimum(taken, left) < 0).any():
            raise ImproperError(
                "A StickBreaking distribution has a mode if every a_k is at least 1 and b_k at least K - k, "
                f"got a of {self.a.min()} and b less than K - k by {-left.min()}. Use the mean."
            )
        total = taken + left
        flat = total == 0
        share = np.where(flat, 1.0 / (k + 1.0), taken / np.where(flat, 1.0, total))
        return _pieces(np.stack((share, 1.0 - share), axis=-1))

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (K,)."""
        concentration = self._shares.concentration
        shape = draw_shape(size, self.batch_shape) + concentration.shape[-2:]
        return _pieces(dirichlet_draws(concentration, shape, np.random.default_rng(seed)))


def _sums_from_the_end(value: Array) -> Array:
    return value[..., ::-1].cumsum(axis=-1)[..., ::-1]


def _pieces(shares: Array) -> Array:
    """Return products of shares (..., K - 1, 2), of what is taken and of what is left, as K pieces."""
    left = shares[..., 1].cumprod(axis=-1)
    one = np.ones((*left.shape[:-1], 1))
    return np.concatenate((shares[..., 0], one), axis=-1) * np.concatenate((one, left), axis=-1)
