r"""Linear Gaussian chains: the distribution of hidden vectors given Gaussian information about each step.

.. math::
    q(s) \propto \prod_{t\ \mathrm{first}} N(s_t \mid m_0, P_0^{-1})
    \prod_{t\ \mathrm{not\ first}} N(s_t \mid A s_{t-1}, Q^{-1}) \prod_t e^{h_t' s_t - s_t' J_t s_t / 2}

with rows t of one or several sequences, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families._base import LOG_TWO_PI, Seed, Size, as_value, draw_shape
from caviar.families._paths import Sequences
from caviar.families._smoother import Kernels, backward_kernels, filtered, smoothed
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.numerics.cached import cached_property
from caviar.numerics.linalg import cholesky, log_determinant, outer, times_vector


@dataclass(frozen=True)
class StateMoments:
    r"""Moments of the states of a chain; a step is a row and the one before it in its sequence.

    Attributes
    ----------
    mean, covariance
        Of each state, shapes (N, D) and (N, D, D).
    first_x, first_xx
        :math:`\sum \langle s_t \rangle` and :math:`\sum \langle s_t s_t' \rangle` over the first rows of sequences.
    previous_xx, pairs, next_xx
        :math:`\sum \langle s_{t-1} s_{t-1}' \rangle`, :math:`\sum \langle s_{t-1} s_t' \rangle` and
        :math:`\sum \langle s_t s_t' \rangle` over the steps, shape (D, D).
    residual_xx
        :math:`\sum \langle (s_t - A s_{t-1}) (s_t - A s_{t-1})' \rangle` over the steps, without the loss of digits
        of the difference of the three sums before.
    n_first, n_steps
        Number of sequences and of steps.
    entropy
        Of all states together, nats.
    """

    mean: Array
    covariance: Array
    first_x: Array
    first_xx: Array
    previous_xx: Array
    pairs: Array
    next_xx: Array
    residual_xx: Array
    n_first: int
    n_steps: int
    entropy: float


@dataclass(frozen=True)
class LinearGaussianChain(Sequences):
    """Distribution of the states of one or several hidden sequences of vectors.

    Parameters
    ----------
    linear, information
        h and J of each row, shapes (N, D) and (N, D, D), J symmetric and positive semi-definite; zero where the row
        has no information about its state.
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    initial_mean, initial_precision
        :math:`m_0` and :math:`P_0` of the first state, shapes (D,) and (D, D).
    transition
        A, shape (D, D), or that of the step to each row, (N, D, D); of first rows it is not used.
    noise_precision
        Q, shape (D, D) or (N, D, D) likewise.

    Raises
    ------
    ImproperError
        In any method, if double precision is not sufficient.

    Notes
    -----
    Filter and smoother are scans: O(N D^3) in about log N calls of NumPy, and no two nearly equal matrices are
    subtracted; see :mod:`caviar.families._smoother`.

    Examples
    --------
    A level that wanders, seen twice with unit variance and once not at all:

    >>> chain = LinearGaussianChain(
    ...     np.array([[1.0], [0.0], [3.0]]),
    ...     np.array([1.0, 0.0, 1.0]).reshape(3, 1, 1),
    ...     np.array([True, False, False]),
    ...     np.zeros(1),
    ...     np.eye(1),
    ...     np.eye(1),
    ...     np.eye(1),
    ... )
    >>> chain.mean.ravel().round(4)
    array([0.8571, 1.5714, 2.2857])
    >>> chain.covariance.ravel().round(4)
    array([0.4286, 0.8571, 0.7143])
    """

    linear: Array
    information: Array
    starts: AnyArray
    initial_mean: Array
    initial_precision: Array
    transition: Array
    noise_precision: Array

    @cached_property
    def _kernels(self) -> Kernels:
        """Each state given the one after it."""
        own = filtered(
            self.linear,
            self.information,
            self._is_first,
            self.initial_precision @ self.initial_mean,
            self.initial_precision,
            self.transition,
            self.noise_precision,
        )
        return backward_kernels(*own, self._is_first, self.transition, self.noise_precision)

    @cached_property
    def smoothing(self) -> StateMoments:
        """Everything that follows from the scans forward and backward."""
        kernels = self._kernels
        mean, covariance = smoothed(kernels)
        first = self._is_first
        after = np.flatnonzero(~first)
        before = after - 1
        spread = covariance[after]
        # s_{t-1} = gain s_t + ..., hence cov(s_{t-1}, s_t) = gain cov(s_t)
        pairs = (kernels.gain[before] @ spread).sum(axis=0) + mean[before].T @ mean[after]
        surprise = times_vector(kernels.shrink[before], mean[after] - kernels.predicted[before])
        moved = kernels.shrink[before] @ spread @ kernels.shrink[before].swapaxes(-1, -2)
        return StateMoments(
            mean,
            covariance,
            mean[first].sum(axis=0),
            _second(mean[first], covariance[first]),
            _second(mean[before], covariance[before]),
            pairs,
            _second(mean[after], spread),
            _second(surprise, moved) + self._left_by(kernels.covariance[before], after),
            int(first.sum()),
            len(after),
            0.5 * float((kernels.log_determinant + mean.shape[1] * (1.0 + LOG_TWO_PI)).sum()),
        )

    def _left_by(self, covariance: Array, after: AnyArray) -> Array:
        """Return the sum of A C A' over the steps to some rows, from covariances C of the states before them."""
        if self.transition.ndim == 2:
            return self.transition @ covariance.sum(axis=0) @ self.transition.T
        through = self.transition[after]
        return (through @ covariance @ through.swapaxes(-1, -2)).sum(axis=0)

    @cached_property
    def pairs(self) -> Array:
        r""":math:`\langle s_{t-1} s_t' \rangle` of each step, (N, D, D); zero for first rows."""
        after = np.flatnonzero(~self._is_first)
        mean, covariance = self.mean, self.covariance
        found = np.zeros(covariance.shape)
        found[after] = self._kernels.gain[after - 1] @ covariance[after]
        found[after] += mean[after - 1, :, None] * mean[after, None, :]
        return found

    @cached_property
    def residuals(self) -> Array:
        r"""Second moments of :math:`s_t - A s_{t-1}` of each step, (N, D, D); zero for first rows."""
        after, kernels = np.flatnonzero(~self._is_first), self._kernels
        before, through = after - 1, at_steps(self.transition, after)
        surprise = times_vector(kernels.shrink[before], self.mean[after] - kernels.predicted[before])
        found = np.zeros(self.covariance.shape)
        found[after] = (
            kernels.shrink[before] @ self.covariance[after] @ kernels.shrink[before].swapaxes(-1, -2)
        )
        found[after] += outer(surprise) + through @ kernels.covariance[before] @ through.swapaxes(-1, -2)
        return found

    @property
    def mean(self) -> Array:
        """Mean of each state, shape (N, D)."""
        return self.smoothing.mean

    @property
    def covariance(self) -> Array:
        """Covariance of each state, shape (N, D, D)."""
        return self.smoothing.covariance

    @property
    def marginals(self) -> MultivariateNormal:
        """The marginal distribution of each state, a batch over the rows."""
        return MultivariateNormal(self.mean, np.linalg.inv(self.covariance))

    def entropy(self) -> float:
        """Return the entropy of all states together, in nats."""
        return self.smoothing.entropy

    def mode(self) -> Array:
        """Return the most probable states, shape (N, D): the means."""
        return self.smoothing.mean

    @cached_property
    def log_partition(self) -> float:
        r"""Log of :math:`\langle \prod_t e^{h_t' s_t - s_t' J_t s_t / 2} \rangle` before the rows were known of, nats.

        Where the information is that of Normal data, it is their log evidence up to their own constants.
        """
        moments, first = self.smoothing, self._is_first
        surprise = _second(moments.mean[first] - self.initial_mean, moments.covariance[first])
        prior = _log_normal(self.initial_precision, surprise, moments.n_first)
        prior += self._log_steps(moments)
        second = moments.covariance + outer(moments.mean)
        told = np.vdot(self.linear, moments.mean) - 0.5 * np.vdot(self.information, second)
        return float(told + prior + moments.entropy)

    def _log_steps(self, moments: StateMoments) -> float:
        """Return the expected log density of the steps."""
        if self.noise_precision.ndim == 2:
            return _log_normal(self.noise_precision, moments.residual_xx, moments.n_steps)
        after = np.flatnonzero(~self._is_first)
        constant = float(log_determinant(cholesky(self.noise_precision[after])).sum())
        constant -= after.size * self.linear.shape[1] * LOG_TWO_PI
        return 0.5 * (constant - float(np.vdot(self.noise_precision[after], self.residuals[after])))

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return states, shape size + (N, D): each drawn given the one after it."""
        kernels = self._kernels
        states = np.random.default_rng(seed).standard_normal(draw_shape(size, self.linear.shape))
        for t in reversed(range(len(kernels.mean))):
            centre: Array = kernels.mean[t]
            if t + 1 < len(kernels.mean):
                # the gain is zero where a sequence ends
                centre = centre + (states[..., t + 1, :] - kernels.predicted[t]) @ kernels.gain[t].T
            states[..., t, :] = centre + states[..., t, :] @ kernels.factor[t].T
        return states

    def log_density(self, value: Any) -> Array:
        """Return the log density of states (..., N, D), of shape (...)."""
        states, first = as_value(value), self._is_first
        after = np.flatnonzero(~first)
        through, noise_precision = at_steps(self.transition, after), at_steps(self.noise_precision, after)
        residual = states[..., after, :] - times_vector(through, states[..., after - 1, :])
        surprise = states[..., first, :] - self.initial_mean
        told = (self.linear * states).sum(axis=(-1, -2))
        told -= 0.5 * np.einsum("...ni,nij,...nj->...", states, self.information, states)
        for deviation, precision in ((surprise, self.initial_precision), (residual, noise_precision)):
            constants = log_determinant(cholesky(precision)) - deviation.shape[-1] * LOG_TWO_PI
            told += 0.5 * np.broadcast_to(constants, deviation.shape[-2]).sum()
            told -= 0.5 * (deviation * times_vector(precision, deviation)).sum(axis=(-1, -2))
        return np.asarray(told - self.log_partition)


def told_by_inputs(own: Array, before: Array, starts: AnyArray) -> Array:
    """Return what inputs of steps say of the states, linear terms (N, D).

    Parameters
    ----------
    own, before
        The linear terms from the input of each row for its own state and the one before, (N, D); unused in first rows.
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    """
    after = np.flatnonzero(~np.asarray(starts, dtype=bool)[1:]) + 1
    linear = np.zeros(own.shape)
    linear[after] += own[after]
    linear[after - 1] += before[after]
    return linear


def at_steps(matrices: Array, places: AnyArray) -> Array:
    """Return the matrices (B, D, D) at some steps; a matrix (D, D) that all share is returned unchanged."""
    return matrices if matrices.ndim == 2 else matrices[places]


def _second(mean: Array, covariance: Array) -> Array:
    """Return the sum of second moments."""
    return covariance.sum(axis=0) + mean.T @ mean


def _log_normal(precision: Array, second: Array, count: int) -> float:
    """Return the expected log density of Normal deviations from their summed second moments."""
    constant = float(log_determinant(cholesky(precision))) - len(precision) * LOG_TWO_PI
    return 0.5 * (count * constant - float(np.vdot(precision, second)))
