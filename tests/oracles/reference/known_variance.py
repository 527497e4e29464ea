r"""CAVI for the one-dimensional Gaussian mixture with known variance and weights, term by term.

.. math::

    \mu_k \sim N(m_0, s_0^2), \quad c_n \sim \mathrm{Cat}(w), \quad x_n \mid c_n \sim N(\mu_{c_n}, v), \qquad
    q = \prod_k N(\mu_k; m_k, s_k^2) \prod_n \mathrm{Cat}(c_n; r_n)

An infinite prior variance states the flat improper prior density 1 on every mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, pi

import numpy as np

from caviar._typing import Array


@dataclass(frozen=True)
class Model:
    """The known quantities: weights (K,), variance v, prior mean m0 and prior variance s0^2."""

    weights: Sequence[float] | Array
    variance: float = 1.0
    prior_mean: float = 0.0
    prior_variance: float = 100.0


@dataclass(frozen=True)
class Factors:
    """The factors of q: means m_k (K,), their variances s_k^2 (K,), responsibilities r_nk (N, K)."""

    means: Array
    mean_variances: Array
    responsibilities: Array


def update_responsibilities(x: Array, model: Model, q: Factors) -> Factors:
    r"""Set r_nk proportional to w_k exp((m_k x_n - (m_k^2 + s_k^2)/2) / v)."""
    r = np.empty((len(x), len(model.weights)))
    for n, x_n in enumerate(x):
        logits = []
        for w, m, s2 in zip(model.weights, q.means, q.mean_variances, strict=True):
            logits.append(log(w) + (m * x_n - (m**2 + s2) / 2) / model.variance)
        highest = max(logits)
        total = sum(exp(logit - highest) for logit in logits)
        for k, logit in enumerate(logits):
            r[n, k] = exp(logit - highest) / total
    return replace(q, responsibilities=r)


def update_means(x: Array, model: Model, q: Factors) -> Factors:
    r"""Set s_k^2 = 1 / (1/s0^2 + N_k/v) and m_k = s_k^2 (m0/s0^2 + sum_n r_nk x_n / v)."""
    means, variances = np.empty(len(model.weights)), np.empty(len(model.weights))
    for k in range(len(model.weights)):
        precision, weighted = 1.0 / model.prior_variance, model.prior_mean / model.prior_variance
        for n, x_n in enumerate(x):
            precision += q.responsibilities[n, k] / model.variance
            weighted += q.responsibilities[n, k] * x_n / model.variance
        variances[k] = 1.0 / precision
        means[k] = variances[k] * weighted
    return replace(q, means=means, mean_variances=variances)


def sweep(x: Array, model: Model, q: Factors) -> Factors:
    """Update the responsibilities, then the means."""
    return update_means(x, model, update_responsibilities(x, model, q))


def run(x: Array, model: Model, q: Factors, n_sweeps: int) -> Factors:
    """Return the factors after a number of sweeps."""
    for _ in range(n_sweeps):
        q = sweep(x, model, q)
    return q


def elbo(x: Array, model: Model, q: Factors) -> float:
    """Return <log p(x, c, mu)> - <log q(c, mu)> in nats, every constant kept (log p(mu) = 0 if flat)."""
    v, total = model.variance, 0.0
    for m, s2 in zip(q.means, q.mean_variances, strict=True):
        if model.prior_variance < inf:
            total -= 0.5 * log(2 * pi * model.prior_variance)
            total -= ((m - model.prior_mean) ** 2 + s2) / (2 * model.prior_variance)
        total += 0.5 * log(2 * pi * s2) + 0.5
    for x_n, r_n in zip(x, q.responsibilities, strict=True):
        for w, r, m, s2 in zip(model.weights, r_n, q.means, q.mean_variances, strict=True):
            if r > 0.0:
                total += r * (log(w) - log(r))
                total += r * (-0.5 * log(2 * pi * v) - ((x_n - m) ** 2 + s2) / (2 * v))
    return total


def flat_two_component_sweep(
    x: Array, p: float, means: tuple[float, float], variances: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float], list[float]]:
    r"""Return one sweep with two components, v = 1 and the flat prior, in that model's own formulas.

    With log P_n = log p - ((x_n - m_1)^2 + s_1^2)/2 and log Q_n = log(1 - p) - ((x_n - m_2)^2 + s_2^2)/2,

    .. math:: r_n = P_n / (P_n + Q_n), \quad m_j = \sum_n r_{nj} x_n / N_j, \quad s_j^2 = 1 / N_j.

    Gives back the means, the variances and the r_n of the first component.
    """
    r = []
    for x_n in x:
        log_p = log(p) - ((x_n - means[0]) ** 2 + variances[0]) / 2
        log_q = log(1 - p) - ((x_n - means[1]) ** 2 + variances[1]) / 2
        r.append(1 / (1 + exp(log_q - log_p)))
    n_1, n_2 = sum(r), sum(1 - r_n for r_n in r)
    m_1 = sum(r_n * x_n for r_n, x_n in zip(r, x, strict=True)) / n_1
    m_2 = sum((1 - r_n) * x_n for r_n, x_n in zip(r, x, strict=True)) / n_2
    return (m_1, m_2), (1 / n_1, 1 / n_2), r
