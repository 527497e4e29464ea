"""Linear Gaussian chains written out: the joint precision matrix of all states, inverted; any number type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from caviar.families import LinearGaussianChain

__all__ = ["Dense", "dense", "sums_over_steps"]


@dataclass(frozen=True)
class Dense:
    """Mean (N, D), covariance of all states (N, D, N, D), entropy, and log of the normaliser."""

    mean: np.ndarray
    covariance: np.ndarray
    entropy: float
    log_partition: float


def _joint(chain: LinearGaussianChain, precision: Any, linear: Any, number: Any) -> None:
    """Add the densities of all steps to a joint precision and what multiplies the states linearly, entry by entry."""
    n, d = chain.linear.shape

    def add(row: int, column: int, matrix: Any) -> None:
        for i in range(d):
            for j in range(d):
                precision[row * d + i, column * d + j] += matrix[i, j]

    a, q, p = (
        number(matrix) for matrix in (chain.transition, chain.noise_precision, chain.initial_precision)
    )
    from_mean = p @ number(chain.initial_mean[:, None])
    for t in range(n):
        add(t, t, number(chain.information[t]))
        is_first = t == 0 or chain.starts[t]
        for i in range(d):
            linear[t * d + i] += number(chain.linear[t][:, None])[i, 0] + is_first * from_mean[i, 0]
        if is_first:
            add(t, t, p)
        else:
            add(t, t, q)
            add(t - 1, t - 1, a.T @ q @ a)
            add(t, t - 1, -(q @ a))
            add(t - 1, t, -(a.T @ q))


def dense(chain: LinearGaussianChain, digits: int | None = None) -> Dense:
    """Return the exact moments by inversion of the joint precision, with so many digits if any are asked for."""
    n, d = chain.linear.shape
    size = n * d
    first = np.array(chain.starts, dtype=bool)
    first[0] = True
    own = 0.0
    for precision, count in (
        (chain.initial_precision, first.sum()),
        (chain.noise_precision, (~first).sum()),
    ):
        own += count * (0.5 * np.linalg.slogdet(precision)[1] - 0.5 * d * np.log(2 * np.pi))
    own -= 0.5 * first.sum() * chain.initial_mean @ chain.initial_precision @ chain.initial_mean
    if digits is None:
        joint, linear = np.zeros((size, size)), np.zeros(size)
        _joint(chain, joint, linear, np.asarray)
        covariance = np.linalg.inv(joint)
        mean, log_det = covariance @ linear, np.linalg.slogdet(joint)[1]
    else:
        with mpmath.workdps(digits):
            joint, linear = mpmath.zeros(size), mpmath.zeros(size, 1)
            _joint(chain, joint, linear, lambda matrix: mpmath.matrix(np.asarray(matrix).tolist()))
            inverse = joint**-1
            log_det = float(mpmath.log(mpmath.det(joint)))
            mean = np.array((inverse * linear).tolist(), dtype=float).ravel()
            covariance = np.array(inverse.tolist(), dtype=float)
            linear = np.array(linear.tolist(), dtype=float).ravel()
    entropy = 0.5 * (size * (1 + np.log(2 * np.pi)) - log_det)
    log_partition = own + 0.5 * linear @ mean + 0.5 * size * np.log(2 * np.pi) - 0.5 * log_det
    return Dense(mean.reshape(n, d), covariance.reshape(n, d, n, d), float(entropy), float(log_partition))


def sums_over_steps(chain: LinearGaussianChain, exact: Dense) -> dict[str, np.ndarray]:
    """Return the sums over first rows and steps, each from the moments of two rows."""
    n, d = chain.linear.shape

    def moment(row: int, column: int) -> np.ndarray:
        return exact.covariance[row, :, column] + np.outer(exact.mean[row], exact.mean[column])

    names = ("first_xx", "previous_xx", "pairs", "next_xx", "residual_xx")
    found = {name: np.zeros((d, d)) for name in names}
    found["first_x"] = np.zeros(d)
    a = chain.transition
    for t in range(n):
        if t == 0 or chain.starts[t]:
            found["first_x"] += exact.mean[t]
            found["first_xx"] += moment(t, t)
            continue
        before, cross, here = moment(t - 1, t - 1), moment(t - 1, t), moment(t, t)
        found["previous_xx"] += before
        found["pairs"] += cross
        found["next_xx"] += here
        found["residual_xx"] += here - a @ cross - cross.T @ a.T + a @ before @ a.T
    return found
