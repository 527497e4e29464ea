"""Exact answers for models of the galleries: Normals of all data, probabilities of comparisons, sums over labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from caviar._typing import Array

__all__ = ["log_orthant", "normal_evidence", "over_grid", "path_evidence", "sum_over_labels"]


def normal_evidence(y: Array, mean: Array | float, *covariances: Array) -> float:
    """Return the log density of all data, whose covariance is a sum."""
    return float(multivariate_normal(np.broadcast_to(mean, len(y)), np.sum(covariances, axis=0)).logpdf(y))


def log_orthant(mean: Array, covariance: Array) -> float:
    """Return the log probability that all entries of a Normal vector are positive."""
    return float(
        np.log(
            multivariate_normal(-mean, covariance, abseps=1e-9, releps=1e-4, maxpts=60_000).cdf(
                np.zeros(len(mean)), rng=0
            )
        )
    )


def sum_over_labels(
    sizes: Sequence[int], log_joint: Callable[[tuple[int, ...]], float]
) -> tuple[float, Array]:
    """Return the log evidence, and the probabilities of all assignments of labels, shape ``sizes``."""
    logs = np.array([log_joint(own) for own in product(*map(range, sizes))]).reshape(sizes)
    total = logsumexp(logs)
    return float(total), np.exp(logs - total)


def path_evidence(initial: Array, transition: Array, log_likelihood: Array) -> float:
    """Return the log evidence of a hidden Markov model by the forward recursion, log-likelihoods (T, K)."""
    log_weights = np.log(initial) + log_likelihood[0]
    for own in log_likelihood[1:]:
        log_weights = logsumexp(log_weights[:, None] + np.log(transition), axis=0) + own
    return float(logsumexp(log_weights))


def over_grid(log_joint: Array, *axes: Array) -> tuple[float, list[float]]:
    """Return the log evidence and the posterior means over a grid of equal steps on each axis."""
    total = logsumexp(log_joint)
    cell = sum(np.log(axis[1] - axis[0]) for axis in axes)
    probability = np.exp(log_joint - total)
    means = [
        float(probability.sum(axis=tuple(j for j in range(len(axes)) if j != i)) @ axis)
        for i, axis in enumerate(axes)
    ]
    return float(total + cell), means
