r"""CAVI for the Normal-Wishart mixture of vectors missing in part, with the local factor q(z) q(x_missing | z).

The prior and the factors of the globals are those of :mod:`normal_wishart_mixture`. With
:math:`\bar\Lambda_k = \nu_k B_k^{-1}`, missing entries m and observed entries o of a row,

.. math::

    q(x_m \mid k) = N\bigl(m_{k,m} - \bar\Lambda_{mm}^{-1} \bar\Lambda_{mo} (x_o - m_{k,o}),\;
    \bar\Lambda_{mm}^{-1}\bigr)
"""

from dataclasses import dataclass, replace
from math import exp, log, pi

import numpy as np

from caviar._typing import Array
from oracles.reference import normal_wishart_mixture as complete
from oracles.reference import wishart
from oracles.reference.normal_wishart_mixture import Factors, Prior


@dataclass(frozen=True)
class Completed:
    """Of one row in one component: E x (D,), Cov x (D, D) and the entropy of the missing entries."""

    mean: Array
    covariance: Array
    entropy: float


def completed(row: Array, q: Factors, k: int) -> Completed:
    """Return q(x_m | k) of a row whose missing entries are NaN, as moments of the whole row."""
    gone = [i for i, value in enumerate(row) if np.isnan(value)]
    seen = [i for i, value in enumerate(row) if not np.isnan(value)]
    precision = wishart.mean(q.dfs[k], q.inverse_scales[k])
    mean, covariance = np.array(row), np.zeros((len(row), len(row)))
    if not gone:
        return Completed(mean, covariance, 0.0)
    own = np.linalg.inv(precision[np.ix_(gone, gone)])
    mean[gone] = q.means[k][gone] - own @ precision[np.ix_(gone, seen)] @ (row[seen] - q.means[k][seen])
    covariance[np.ix_(gone, gone)] = own
    entropy = 0.5 * (len(gone) * log(2 * pi) + len(gone) + wishart.log_det(own))
    return Completed(mean, covariance, entropy)


def log_weight(row: Array, q: Factors, k: int) -> float:
    """Return <log p(x, z = k)> plus the entropy of q(x_m | k): the logit of r_nk, and its part of the ELBO."""
    d, own = len(row), completed(row, q, k)
    precision = wishart.mean(q.dfs[k], q.inverse_scales[k])
    residual = own.mean - q.means[k]
    square = d / q.mean_precisions[k] + residual @ precision @ residual + np.trace(precision @ own.covariance)
    log_det = wishart.expected_log_det(q.dfs[k], q.inverse_scales[k])
    log_weights = wishart.expected_log_weights(q.concentration)
    return log_weights[k] + 0.5 * log_det - 0.5 * d * log(2 * pi) - 0.5 * float(square) + own.entropy


def update_responsibilities(x: Array, q: Factors) -> Factors:
    """Set r_nk in proportion to the exponential of its logit."""
    r = np.empty((len(x), len(q.concentration)))
    for n, row in enumerate(x):
        logits = [log_weight(row, q, k) for k in range(len(q.concentration))]
        total = sum(exp(logit - max(logits)) for logit in logits)
        r[n] = [exp(logit - max(logits)) / total for logit in logits]
    return replace(q, responsibilities=r)


def elbo(x: Array, prior: Prior, q: Factors) -> float:
    """Return the ELBO in nats of responsibilities and globals, with q(x_m | z) at its optimum."""
    total = complete.elbo(
        np.empty((0, x.shape[1])), prior, replace(q, responsibilities=q.responsibilities[:0])
    )
    for row, r_n in zip(x, q.responsibilities, strict=True):
        for k, r in enumerate(r_n):
            if r > 0.0:
                total += r * (log_weight(row, q, k) - log(r))
    return total


def sweep(x: Array, prior: Prior, q: Factors) -> Factors:
    """Update the components and the weights, given the missing entries and the labels, then these."""
    d, k_max = x.shape[1], len(q.concentration)
    new = replace(q, means=q.means.copy(), inverse_scales=q.inverse_scales.copy(), dfs=q.dfs.copy())
    new = replace(new, mean_precisions=q.mean_precisions.copy(), concentration=prior.concentration.copy())
    for k in range(k_max):
        count, first, second = 0.0, np.zeros(d), np.zeros((d, d))
        for row, r_n in zip(x, q.responsibilities, strict=True):
            own = completed(row, q, k)
            count += r_n[k]
            first += r_n[k] * own.mean
            second += r_n[k] * (np.outer(own.mean, own.mean) + own.covariance)
        kappa = prior.mean_precision + count
        m = (prior.mean_precision * prior.mean + first) / kappa
        new.means[k], new.mean_precisions[k], new.dfs[k] = m, kappa, prior.df + count
        new.inverse_scales[k] = (
            prior.inverse_scale
            + second
            + prior.mean_precision * np.outer(prior.mean, prior.mean)
            - kappa * np.outer(m, m)
        )
        new.concentration[k] += count
    return update_responsibilities(x, new)
