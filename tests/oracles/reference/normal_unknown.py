r"""A Normal sample with unknown mean and precision: the joint conjugate prior, and the factorised one.

Joint:       :math:`\tau \sim \mathrm{Gamma}(a_0, b_0), \; \mu \mid \tau \sim N(m_0, 1/(\kappa_0 \tau))`.
Factorised:  :math:`\tau \sim \mathrm{Gamma}(a_0, b_0), \; \mu \sim N(m_0, v_0)`, with q(mu) q(tau).

Gamma has a shape and a rate.
"""

from dataclasses import dataclass
from math import exp, lgamma, log, pi

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import gamma, multivariate_normal
from scipy.stats import t as student_t

from caviar._typing import Array


@dataclass(frozen=True)
class NormalGamma:
    """mean m, mean_precision kappa (in units of tau), shape a, rate b."""

    mean: float
    mean_precision: float
    shape: float
    rate: float


@dataclass(frozen=True)
class Factorised:
    """mean m and variance v of the Normal, shape a and rate b of the Gamma: a prior, or q(mu) q(tau)."""

    mean: float
    variance: float
    shape: float
    rate: float


def normal_gamma_posterior(x: Array, prior: NormalGamma) -> NormalGamma:
    """Return the exact posterior, row by row: b grows by kappa (x - m)^2 / (2 (kappa + 1))."""
    q = prior
    for x_n in x:
        kappa = q.mean_precision
        q = NormalGamma(
            mean=(kappa * q.mean + x_n) / (kappa + 1),
            mean_precision=kappa + 1,
            shape=q.shape + 0.5,
            rate=q.rate + kappa * (x_n - q.mean) ** 2 / (2 * (kappa + 1)),
        )
    return q


def normal_gamma_log_evidence(x: Array, prior: NormalGamma) -> float:
    r"""Return the ratio of normalisers.

    .. math::

        \log \frac{\Gamma(a_N)}{\Gamma(a_0)} + a_0 \log b_0 - a_N \log b_N
        + \tfrac12 \log \frac{\kappa_0}{\kappa_N} - \tfrac N2 \log 2 \pi
    """
    q = normal_gamma_posterior(x, prior)
    gammas = lgamma(q.shape) - lgamma(prior.shape) + prior.shape * log(prior.rate) - q.shape * log(q.rate)
    return gammas + 0.5 * log(prior.mean_precision / q.mean_precision) - 0.5 * len(x) * log(2 * pi)


def student_t_log_evidence(x: Array, prior: NormalGamma) -> float:
    """Return the same from the predictive densities: Student-t(2a, m, scale^2 = b (kappa + 1)/(a kappa))."""
    total = 0.0
    for n, x_n in enumerate(x):
        q = normal_gamma_posterior(x[:n], prior)
        scale = np.sqrt(q.rate * (q.mean_precision + 1) / (q.shape * q.mean_precision))
        total += float(student_t.logpdf(x_n, df=2 * q.shape, loc=q.mean, scale=scale))
    return total


def update_mean(x: Array, prior: Factorised, q: Factorised) -> Factorised:
    """Set v = 1/(1/v0 + N <tau>) and m = v (m0/v0 + <tau> sum x)."""
    tau = q.shape / q.rate
    variance = 1 / (1 / prior.variance + len(x) * tau)
    return Factorised(variance * (prior.mean / prior.variance + tau * sum(x)), variance, q.shape, q.rate)


def update_precision(x: Array, prior: Factorised, q: Factorised) -> Factorised:
    """Set a = a0 + N/2 and b = b0 + sum [(x - m)^2 + v] / 2."""
    rate = prior.rate + sum((x_n - q.mean) ** 2 + q.variance for x_n in x) / 2
    return Factorised(q.mean, q.variance, prior.shape + len(x) / 2, rate)


def factorised_fixed_point(x: Array, prior: Factorised, n_sweeps: int = 1000) -> Factorised:
    """Return q(mu) q(tau) after many sweeps (mean, then precision) from the prior."""
    q = prior
    for _ in range(n_sweeps):
        q = update_precision(x, prior, update_mean(x, prior, q))
    return q


def factorised_elbo(x: Array, prior: Factorised, q: Factorised) -> float:
    """Return <log p(x, mu, tau)> - <log q> in nats, every constant kept, for any q."""
    tau, log_tau = q.shape / q.rate, float(digamma(q.shape)) - log(q.rate)
    total = -0.5 * log(2 * pi * prior.variance) - ((q.mean - prior.mean) ** 2 + q.variance) / (
        2 * prior.variance
    )
    total += 0.5 * log(2 * pi * q.variance) + 0.5
    total += expected_log_gamma(prior, tau, log_tau) - expected_log_gamma(q, tau, log_tau)
    for x_n in x:
        total += 0.5 * log_tau - 0.5 * log(2 * pi) - 0.5 * tau * ((x_n - q.mean) ** 2 + q.variance)
    return total


def factorised_log_evidence(x: Array, prior: Factorised) -> float:
    """Return log p(x) of the factorised prior: mu integrated out exactly, tau by quadrature over log tau."""

    def integrand(log_tau: float) -> float:
        tau = exp(log_tau)
        covariance = np.eye(len(x)) / tau + prior.variance
        log_p = multivariate_normal.logpdf(x, np.full(len(x), prior.mean), covariance)
        return float(np.exp(log_p + gamma.logpdf(tau, prior.shape, scale=1 / prior.rate) + log_tau))

    pieces = [quad(integrand, low, low + 5, epsabs=0, epsrel=1e-11)[0] for low in range(-30, 10, 5)]
    return log(sum(pieces))


def expected_log_gamma(distribution: Factorised, tau: float, log_tau: float) -> float:
    """Return <log Gamma(tau; a, b)> given <tau> and <log tau>."""
    a, b = distribution.shape, distribution.rate
    return a * log(b) - lgamma(a) + (a - 1) * log_tau - b * tau
