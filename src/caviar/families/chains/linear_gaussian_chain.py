r"""Linear Gaussian chains: the distribution of hidden vectors given Gaussian information about each step.

.. math::
    q(s) \propto \prod_{t\ \mathrm{first}} N(s_t \mid m_0, P_0^{-1})
    \prod_{t\ \mathrm{not\ first}} N(s_t \mid A s_{t-1}, Q^{-1}) \prod_t e^{h_t' s_t - s_t' J_t s_t / 2}

with rows t of one or several sequences, one after the other.

The Kalman filter and the Rauch-Tung-Striebel smoother as scans, for many steps at once.

What happens between two rows, :math:`p(s_j, \text{data of } i+1 \dots j \mid s_i)`, is an *element*: a Normal of
:math:`s_j` about :math:`A s_i + b` with covariance C, times :math:`e^{\eta' s_i - s_i' J s_i / 2}`. Elements of
successive stretches combine to that of both, so all prefixes of N elements follow in about 2 log N rounds of batched
operations (Särkkä and García-Fernández 2021). A first row has A = 0: it forgets what was before it, and sequences need
no further care. Matrices are only ever added to positive semi-definite ones, so that precisions of very different size
cost no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from caviar._errors import ImproperError
from caviar._typing import AnyArray, Array
from caviar.families.base.family import LOG_TWO_PI, Seed, Size, as_value, draw_shape
from caviar.families.chains.paths import Sequences
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.numerics.cached import cached_property
from caviar.numerics.linalg import (
    cholesky,
    inverse,
    inverse_from_factor,
    log_determinant,
    outer,
    symmetric_part,
    times_vector,
)


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
    subtracted; see :mod:`caviar.families.chains.recursions`.

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


Elements: TypeAlias = tuple[Array, ...]
"""Arrays over the rows, one a parameter of an element."""

_CHUNK = 4_096
"""Rows of a scan at once: enough that the calls do not count, few enough that what the rounds hold stays small."""


@dataclass(frozen=True)
class Kernels:
    r"""Each state given the one after it: :math:`N(m + G (s_{t+1} - A m), \Sigma)`, of rows filtered to :math:`m, P`.

    Attributes
    ----------
    mean
        m, shape (N, D): of the state given all rows up to its own.
    predicted
        A m, shape (N, D).
    gain
        :math:`G = \Sigma A' Q`; zero where a sequence ends, shape (N, D, D).
    covariance, factor
        :math:`\Sigma = (P^{-1} + A' Q A)^{-1}`, and a square root of it.
    log_determinant
        :math:`\log |\Sigma|`, shape (N,).
    shrink
        :math:`I - A G = (I + A P A' Q)^{-1}`, shape (N, D, D).
    """

    mean: Array
    predicted: Array
    gain: Array
    covariance: Array
    factor: Array
    log_determinant: Array
    shrink: Array


def filtered(
    linear: Array,
    information: Array,
    is_first: AnyArray,
    initial_linear: Array,
    initial_precision: Array,
    transition: Array,
    noise_precision: Array,
) -> tuple[Array, Array]:
    """Return mean and covariance of each state given the rows of its sequence up to its own, (N, D) and (N, D, D).

    ``transition`` and ``noise_precision`` are those of all steps, (D, D), or of the step to each row, (N, D, D).
    """
    outward = noise_precision @ transition
    prior = np.where(is_first[:, None, None], initial_precision, noise_precision)
    covariance = inverse_from_factor(inverse(_lower(prior + information)))
    mean = times_vector(covariance, linear + np.where(is_first[:, None], initial_linear, 0.0))
    goes_on = np.where(is_first, 0.0, 1.0)
    gain = goes_on[:, None, None] * (covariance @ outward)
    back = goes_on[:, None] * times_vector(outward.swapaxes(-1, -2), mean)
    told = symmetric_part(gain.swapaxes(-1, -2) @ information @ transition)
    _, mean, covariance, _, _ = _scan(_follow, (gain, mean, covariance, back, told))
    return mean, symmetric_part(covariance)


def _follow(earlier: Elements, later: Elements) -> Elements:
    """Return the elements of two successive stretches together."""
    a, b, c, eta, told = earlier
    a2, b2, c2, eta2, told2 = later
    size = a.shape[-1]
    between = np.eye(size) + c @ told2
    right = np.concatenate([a, (b + times_vector(c, eta2))[..., None], c], axis=-1)
    solved: Array = np.asarray(np.linalg.solve(between, right), dtype=np.float64)
    through, centre, spread = solved[..., :size], solved[..., size], solved[..., size + 1 :]
    returning = through.swapaxes(-1, -2)
    return (
        a2 @ through,
        times_vector(a2, centre) + b2,
        symmetric_part(a2 @ spread @ a2.swapaxes(-1, -2)) + c2,
        times_vector(returning, eta2 - times_vector(told2, b)) + eta,
        symmetric_part(returning @ told2 @ a) + told,
    )


def backward_kernels(
    mean: Array, covariance: Array, is_first: AnyArray, transition: Array, noise_precision: Array
) -> Kernels:
    """Return each state given the one after it, from what :func:`filtered` gives."""
    transition, noise_precision = _to_the_next(transition), _to_the_next(noise_precision)
    goes_on = np.append(~is_first[1:], False)[:, None, None]
    size = mean.shape[1]
    lower = _lower(covariance)
    moved = np.where(goes_on, transition @ lower, 0.0)
    inner = np.eye(size) + moved.swapaxes(-1, -2) @ noise_precision @ moved
    inner_lower = _lower(symmetric_part(inner))
    factor = lower @ inverse(inner_lower).swapaxes(-1, -2)
    own = factor @ factor.swapaxes(-1, -2)
    ahead = transition @ covariance @ transition.swapaxes(-1, -2) @ noise_precision
    return Kernels(
        mean,
        times_vector(transition, mean),
        np.where(goes_on, own @ (transition.swapaxes(-1, -2) @ noise_precision), 0.0),
        own,
        factor,
        log_determinant(lower) - log_determinant(inner_lower),
        inverse(np.eye(size) + ahead),
    )


def _to_the_next(matrices: Array) -> Array:
    """Return for each row the matrix of the step after it, from those of the steps to each row; one for all as it is.

    The last row has that of the first, which leads nowhere.
    """
    return matrices if matrices.ndim == 2 else np.roll(matrices, -1, axis=0)


def smoothed(kernels: Kernels) -> tuple[Array, Array]:
    """Return mean and covariance of each state given all rows, (N, D) and (N, D, D)."""
    shift = kernels.mean - times_vector(kernels.gain, kernels.predicted)
    backward = (kernels.gain[::-1], shift[::-1], kernels.covariance[::-1])
    _, mean, covariance = _scan(_precede, backward)
    return mean[::-1], symmetric_part(covariance[::-1])


def _precede(later: Elements, earlier: Elements) -> Elements:
    """Return s_i given what comes after both stretches, from those of s_j given that, and of s_i given s_j."""
    gain, shift, spread = later
    gain2, shift2, spread2 = earlier
    return (
        gain2 @ gain,
        times_vector(gain2, shift) + shift2,
        symmetric_part(gain2 @ spread @ gain2.swapaxes(-1, -2)) + spread2,
    )


def _scan(combine: Callable[[Elements, Elements], Elements], elements: Elements) -> Elements:
    """Return the combination of the first 1, 2, ..., N elements, in chunks that hand on their last one."""
    done = tuple(np.empty(array.shape) for array in elements)
    for start in range(0, len(elements[0]), _CHUNK):
        part = tuple(array[start : start + _CHUNK].copy() for array in elements)
        if start:
            carried = combine(tuple(array[start - 1 : start] for array in done), _at(part, slice(0, 1)))
            for array, first in zip(part, carried, strict=True):
                array[:1] = first
        for array, values in zip(done, _prefixes(combine, part), strict=True):
            array[start : start + _CHUNK] = values
    return done


def _prefixes(combine: Callable[[Elements, Elements], Elements], elements: Elements) -> Elements:
    """Return the same of few elements: of pairs of neighbours first, then of those between."""
    count = len(elements[0])
    if count == 1:
        return elements
    pairs = combine(_at(elements, slice(0, count - 1, 2)), _at(elements, slice(1, count, 2)))
    odd = _prefixes(combine, pairs)
    done = tuple(np.empty(array.shape) for array in elements)
    for array, first, values in zip(done, elements, odd, strict=True):
        array[0] = first[0]
        array[1::2] = values
    if count > 2:
        places = slice(2, count, 2)
        before = _at(odd, slice(0, len(range(2, count, 2))))
        for array, values in zip(done, combine(before, _at(elements, places)), strict=True):
            array[places] = values
    return done


def _at(elements: Elements, places: slice) -> Elements:
    return tuple(array[places] for array in elements)


def _lower(matrices: Array) -> Array:
    """Return Cholesky factors.

    Raises
    ------
    ImproperError
        If there are none.
    """
    try:
        factor = cholesky(matrices)
    except np.linalg.LinAlgError:
        factor = None
    if factor is None or not np.isfinite(factor).all():
        raise ImproperError(
            "the states of a linear Gaussian chain have no covariance in double precision: what is known of their "
            "directions, or their growth from step to step, differs too much. Rescale the components of the state, or "
            "give a transition that grows less"
        )
    return factor
