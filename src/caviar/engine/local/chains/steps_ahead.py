r"""Forecasts of a linear Gaussian chain whose steps a label chooses: exact means and covariances of a mixture.

With :math:`M_{tk} = \langle [z_t = k] (1, s_t, s_t s_t') \rangle` a step takes these moments to those of the next one,

.. math:: \langle [z_t = k] s_t s_t' \rangle = A_k W_k A_k' + \dots + Q_k^{-1} w_k, \qquad
    W_k = \sum_j p(z_t = k \mid z_{t-1} = j) \langle [z_{t-1} = j] s_{t-1} s_{t-1}' \rangle,

and of each step one linear Gaussian step with the same means, covariances and covariance with the step before is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array


@dataclass(frozen=True)
class Drift:
    """A transition that is a weighted sum in each row.

    Attributes
    ----------
    parts
        The matrices, (P, D, D).
    mean, covariance
        Of their weights in each row, (N, P) and (N, P, P); no covariance if it is unknown. The weights of a row count
        as independent of those before it.
    """

    parts: Array
    mean: Array
    covariance: Array | None

    def transition(self, t: int) -> Array:
        """Return the expected transition to a row."""
        return np.einsum("k,kij->ij", self.mean[t], self.parts)

    def spread(self, t: int, second: Array) -> Array:
        """Return what the variance of a transition adds, from second moments (..., D, D) of the state before."""
        if self.covariance is None:
            return np.zeros(second.shape)
        return np.einsum("kl,kij,...jm,lnm->...in", self.covariance[t], self.parts, second, self.parts)


@dataclass(frozen=True)
class Modes:
    """How steps go in each of K modes, and how probable these are.

    Attributes
    ----------
    transition, covariance
        (K, D, D) each.
    pushes
        What is added in each row, (K, N, D).
    probabilities
        Of the modes in each row, (N, K).
    moves
        Of the next mode given the present one, (K, K); None if they are independent.
    drift
        What the transition is instead of that of the mode, if it drifts.
    """

    transition: Array
    covariance: Array
    pushes: Array
    probabilities: Array
    moves: Array | None = None
    drift: Drift | None = None


@dataclass(frozen=True)
class OneStep:
    """A linear Gaussian step for each of some rows: transition, precision of the noise, and what is added."""

    transition: Array
    precision: Array
    push: Array


def steps_ahead(
    modes: Modes,
    is_counted: AnyArray,
    starts: AnyArray,
    mean: Array,
    covariance: Array,
    initial: tuple[Array, Array],
) -> OneStep:
    """Return the steps to all rows, (N, ...); those to rows that count are not set.

    Parameters
    ----------
    modes
        See there.
    is_counted, starts
        Which rows have a distribution already, and where sequences begin, (N,).
    mean, covariance
        Of the states of the rows that count, (n, D) and (n, D, D).
    initial
        Mean and covariance of first states.
    """
    n_rows, size = len(is_counted), mean.shape[1]
    found = OneStep(
        np.zeros((n_rows, size, size)), np.tile(np.eye(size), (n_rows, 1, 1)), np.zeros((n_rows, size))
    )
    place = np.cumsum(is_counted) - 1
    moments: tuple[Array, Array, Array] | None = None
    for t in np.flatnonzero(~np.asarray(is_counted)).tolist():
        weights = modes.probabilities[t]
        if t == 0 or starts[t]:
            moments = _begun(weights, *initial)
            continue
        if is_counted[t - 1]:
            moments = _begun(modes.probabilities[t - 1], mean[place[t - 1]], covariance[place[t - 1]])
        assert moments is not None
        moments = _step(modes, t, moments, weights, found)
    return found


def _begun(weights: Array, mean: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Return the moments by mode of a state that is independent of the mode."""
    second = covariance + np.outer(mean, mean)
    return weights, weights[:, None] * mean, weights[:, None, None] * second


def _step(
    modes: Modes, t: int, before: tuple[Array, Array, Array], weights: Array, found: OneStep
) -> tuple[Array, Array, Array]:
    """Write the step to a row, and return the moments by mode after it."""
    if modes.moves is None:
        w0, w1, w2 = (np.multiply.outer(weights, own.sum(axis=0)) for own in before)
    else:
        w0, w1, w2 = (np.tensordot(modes.moves.T, own, axes=1) for own in before)
    a, push = modes.transition, modes.pushes[:, t]
    if modes.drift is not None:
        a = np.broadcast_to(modes.drift.transition(t), w2.shape)
    through = (a @ w1[:, :, None])[:, :, 0]
    first = through + w0[:, None] * push
    cross = through[:, :, None] * push[:, None, :]
    second = a @ w2 @ a.swapaxes(1, 2) + cross + cross.swapaxes(1, 2)
    second += w0[:, None, None] * (modes.covariance + push[:, :, None] * push[:, None, :])
    if modes.drift is not None:
        second += modes.drift.spread(t, w2)
    both = (a @ w2 + push[:, :, None] * w1[:, None, :]).sum(axis=0)
    old, new = before[1].sum(axis=0), first.sum(axis=0)
    spread = before[2].sum(axis=0) - np.outer(old, old)
    transition = np.linalg.solve(spread, (both - np.outer(new, old)).T).T
    noise = second.sum(axis=0) - np.outer(new, new) - transition @ spread @ transition.T
    found.transition[t], found.precision[t] = transition, inverse(0.5 * (noise + noise.T))
    found.push[t] = new - transition @ old
    return w0, first, second


def inverse(matrices: Array) -> Array:
    """Return the inverses of matrices (..., D, D)."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
