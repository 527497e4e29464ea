r"""CAVI for a mixture of Normals with known precision, learnt weights and a prior of its own for each mean.

.. math::

    \pi \sim \mathrm{Dir}(\alpha), \quad \mu_k \sim N(m_{0k}, v_{0k}), \quad c_n \sim \mathrm{Cat}(\pi), \quad
    x_n \mid c_n \sim N(\mu_{c_n}, 1/\tau)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, pi

import numpy as np

from caviar._typing import Array
from oracles.reference import wishart


@dataclass(frozen=True)
class Model:
    """alpha (K,), prior means and variances (K,), and the known precision tau of the observations."""

    concentration: Array
    prior_means: Sequence[float]
    prior_variances: Sequence[float]
    precision: float


@dataclass(frozen=True)
class Factors:
    """m_k (K,), v_k (K,), r_nk (N, K) and alpha_k (K,)."""

    means: Array
    variances: Array
    responsibilities: Array
    concentration: Array


def run(x: Array, model: Model, n_sweeps: int) -> Factors:
    """Return the factors after sweeps (responsibilities, means, weights) that start at the prior."""
    means, variances = np.array(model.prior_means), np.array(model.prior_variances)
    concentration = np.array(model.concentration)
    r = np.full((len(x), len(means)), 1.0 / len(means))
    for _ in range(n_sweeps):
        log_weights = wishart.expected_log_weights(concentration)
        for n, x_n in enumerate(x):
            logits = [
                log_weight - 0.5 * model.precision * ((x_n - m) ** 2 + v)
                for log_weight, m, v in zip(log_weights, means, variances, strict=True)
            ]
            total = sum(exp(logit - max(logits)) for logit in logits)
            r[n] = [exp(logit - max(logits)) / total for logit in logits]
        for k, (m_0, v_0) in enumerate(zip(model.prior_means, model.prior_variances, strict=True)):
            variances[k] = 1 / (1 / v_0 + model.precision * sum(r[:, k]))
            means[k] = variances[k] * (m_0 / v_0 + model.precision * sum(r[:, k] * x))
        concentration = np.array(model.concentration) + sum(r)
    return Factors(means, variances, r, concentration)


def elbo(x: Array, model: Model, q: Factors) -> float:
    """Return <log p(x, c, mu, pi)> - <log q> in nats, every constant kept, for any q."""
    log_weights = wishart.expected_log_weights(q.concentration)
    total = wishart.expected_log_dirichlet(model.concentration, log_weights)
    total -= wishart.expected_log_dirichlet(q.concentration, log_weights)
    for k, (m, v) in enumerate(zip(q.means, q.variances, strict=True)):
        m_0, v_0 = model.prior_means[k], model.prior_variances[k]
        total += -0.5 * log(2 * pi * v_0) - ((m - m_0) ** 2 + v) / (2 * v_0) + 0.5 * log(2 * pi * v) + 0.5
        for n, x_n in enumerate(x):
            r = q.responsibilities[n, k]
            log_density = 0.5 * log(model.precision / (2 * pi)) - 0.5 * model.precision * ((x_n - m) ** 2 + v)
            total += r * (log_density + log_weights[k] - log(r))
    return total
