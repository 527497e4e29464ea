"""Responsibilities of a Gaussian mixture to fifty digits, and data on which doubles lose theirs."""

from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

from caviar._typing import Array

_DIGITS = 50


@dataclass(frozen=True)
class Expectations:
    """What the local update reads, for K components in D dimensions.

    ``log_weights`` <log pi_k> (K,); ``means`` m_k (K, D); ``covariances`` S_k (K, D, D) of q(mu_k);
    ``precisions`` <Lambda_k> (K, D, D); ``log_dets`` <log |Lambda_k|> (K,).
    """

    log_weights: Array
    means: Array
    covariances: Array
    precisions: Array
    log_dets: Array


def responsibilities(x: Array, q: Expectations) -> tuple[Array, Array]:
    r"""Return r_nk (N, K) and the log-normalisers (N,) of the local update.

    .. math::

        \log r_{nk} = \langle \log \pi_k \rangle + \tfrac12 \langle \log |\Lambda_k| \rangle
        - \tfrac D2 \log 2 \pi
        - \tfrac12 \left[ (x_n - m_k)' \langle \Lambda_k \rangle (x_n - m_k)
        + \mathrm{tr}(\langle \Lambda_k \rangle S_k) \right] + \mathrm{const}_n,

    computed with fifty digits from the doubles as they are given, and rounded once at the end.
    """
    r, log_normalisers = np.empty((len(x), len(q.means))), np.empty(len(x))
    with mp.workdps(_DIGITS):
        for n, x_n in enumerate(x):
            logits = [_logit(x_n, q, k) for k in range(len(q.means))]
            highest = max(logits)
            total = sum(mp.exp(logit - highest) for logit in logits)
            r[n] = [float(mp.exp(logit - highest) / total) for logit in logits]
            log_normalisers[n] = float(highest + mp.log(total))
    return r, log_normalisers


def _logit(x_n: Array, q: Expectations, k: int) -> mpf:
    d = len(x_n)
    residual = [mpf(float(x_n[i])) - mpf(float(q.means[k, i])) for i in range(d)]
    quadratic = mpf(0)
    for i in range(d):
        for j in range(d):
            precision = mpf(float(q.precisions[k, i, j]))
            quadratic += precision * (residual[i] * residual[j] + mpf(float(q.covariances[k, i, j])))
    log_scale = mpf(float(q.log_weights[k])) + mpf(float(q.log_dets[k])) / 2
    return log_scale - mpf(d) / 2 * mp.log(2 * mp.pi) - quadratic / 2


def two_distant_sites(rng: np.random.Generator, rows_per_component: int = 10) -> tuple[Array, Expectations]:
    """Return two sites 1e4 apart, each of two components of width 1e-4 whose means lie 2e-4 apart.

    Shape (4 * rows_per_component, 2). About any one reference point the quadratic form loses 16 digits: the
    squared distance over the squared width is 1e16.
    """
    centres = [(-1e-4, 0.0), (1e-4, 0.0), (1e4 - 1e-4, 0.0), (1e4 + 1e-4, 0.0)]
    return _clusters(rng, np.array(centres), 1e-4, rows_per_component)


def far_from_the_origin(rng: np.random.Generator, rows_per_component: int = 10) -> tuple[Array, Expectations]:
    """Return two components of width 1 whose means, near 1e8 in both coordinates, lie 2 apart.

    Raw second moments lose every digit here; moments about the mean of the data lose none.
    """
    return _clusters(rng, np.array([(1e8 - 1, 1e8), (1e8 + 1, 1e8)]), 1.0, rows_per_component)


def _clusters(
    rng: np.random.Generator, centres: Array, width: float, rows_per_component: int
) -> tuple[Array, Expectations]:
    k, d = centres.shape
    covariance = width**2 * np.array([[1.0, 0.3], [0.3, 1.0]])
    steps = rng.multivariate_normal(np.zeros(d), covariance, size=(k, rows_per_component))
    q = Expectations(
        log_weights=np.log(np.arange(1.0, k + 1) / sum(range(1, k + 1))),
        means=centres,
        covariances=np.array([covariance / rows_per_component] * k),
        precisions=np.array([np.linalg.inv(covariance)] * k),
        log_dets=np.full(k, -np.linalg.slogdet(covariance)[1]),
    )
    return (centres[:, None, :] + steps).reshape(-1, d), q
