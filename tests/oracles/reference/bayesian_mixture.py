r"""CAVI for the Bayesian Gaussian mixture whose means and precisions are independent under q, term by term.

.. math::

    \pi \sim \mathrm{Dir}(\alpha), \quad \mu_k \sim N(m_0, S_0), \quad
    \Lambda_k \sim \mathrm{Wishart}(a, B), \quad c_n \sim \mathrm{Cat}(\pi), \quad
    x_n \mid c_n \sim N(\mu_{c_n}, \Lambda_{c_n}^{-1})

with B the inverse scale. The factors of q are, in the order of a sweep, ``"responsibilities"``, ``"means"``,
``"precisions"`` and ``"weights"``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, pi

import numpy as np

from caviar._typing import Array
from oracles.reference import wishart

ORDER = ("responsibilities", "means", "precisions", "weights")


@dataclass(frozen=True)
class Prior:
    """alpha (K,), m0 (D,), S0 (D, D), a, B (D, D)."""

    concentration: Array
    mean: Array
    covariance: Array
    df: float
    inverse_scale: Array


@dataclass(frozen=True)
class Factors:
    """r_nk (N, K); alpha_k (K,); m_k (K, D) and S_k (K, D, D); a_k (K,) and B_k (K, D, D)."""

    responsibilities: Array
    concentration: Array
    means: Array
    covariances: Array
    dfs: Array
    inverse_scales: Array


def factors_at_prior(prior: Prior, responsibilities: Array) -> Factors:
    """Return every global factor at its prior, beside the given responsibilities (N, K)."""
    k = len(prior.concentration)
    return Factors(
        responsibilities=np.array(responsibilities, dtype=float),
        concentration=np.array(prior.concentration, dtype=float),
        means=np.array([prior.mean] * k, dtype=float),
        covariances=np.array([prior.covariance] * k, dtype=float),
        dfs=np.full(k, float(prior.df)),
        inverse_scales=np.array([prior.inverse_scale] * k, dtype=float),
    )


def expected_log_density(x_n: Array, q: Factors, k: int) -> float:
    r"""Return <log N(x_n; mu_k, Lambda_k^-1)>.

    .. math::

        \tfrac12 \langle \log |\Lambda_k| \rangle - \tfrac D2 \log 2 \pi - \tfrac12 \left[ (x_n - m_k)'
        \langle \Lambda_k \rangle (x_n - m_k) + \mathrm{tr}(\langle \Lambda_k \rangle S_k) \right]
    """
    precision = wishart.mean(q.dfs[k], q.inverse_scales[k])
    residual = x_n - q.means[k]
    quadratic = float(residual @ precision @ residual + np.trace(precision @ q.covariances[k]))
    log_det = wishart.expected_log_det(q.dfs[k], q.inverse_scales[k])
    return 0.5 * log_det - 0.5 * len(x_n) * log(2 * pi) - 0.5 * quadratic


def update_responsibilities(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set log r_nk = <log N(x_n; mu_k, Lambda_k^-1)> + <log pi_k> + const_n."""
    log_weights = wishart.expected_log_weights(q.concentration)
    r = np.empty((len(x), len(log_weights)))
    for n, x_n in enumerate(x):
        logits = [expected_log_density(x_n, q, k) + l_k for k, l_k in enumerate(log_weights)]
        highest = max(logits)
        total = sum(exp(logit - highest) for logit in logits)
        r[n] = [exp(logit - highest) / total for logit in logits]
    return replace(q, responsibilities=r)


def update_means(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set S_k = (S0^-1 + N_k <Lambda_k>)^-1 and m_k = S_k (S0^-1 m0 + <Lambda_k> sum_n r_nk x_n)."""
    means, covariances = np.empty_like(q.means), np.empty_like(q.covariances)
    prior_precision = np.linalg.inv(prior.covariance)
    for k in range(len(q.means)):
        precision = wishart.mean(q.dfs[k], q.inverse_scales[k])
        count, total = 0.0, np.zeros(x.shape[1])
        for n, x_n in enumerate(x):
            count += q.responsibilities[n, k]
            total += q.responsibilities[n, k] * x_n
        covariances[k] = np.linalg.inv(prior_precision + count * precision)
        means[k] = covariances[k] @ (prior_precision @ prior.mean + precision @ total)
    return replace(q, means=means, covariances=covariances)


def update_precisions(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set a_k = a + N_k and B_k = B + sum_n r_nk [(x_n - m_k)(x_n - m_k)' + S_k]."""
    dfs, inverse_scales = np.empty_like(q.dfs), np.empty_like(q.inverse_scales)
    for k in range(len(dfs)):
        dfs[k], inverse_scales[k] = prior.df, prior.inverse_scale
        for n, x_n in enumerate(x):
            residual = x_n - q.means[k]
            dfs[k] += q.responsibilities[n, k]
            inverse_scales[k] += q.responsibilities[n, k] * (np.outer(residual, residual) + q.covariances[k])
    return replace(q, dfs=dfs, inverse_scales=inverse_scales)


def update_weights(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set alpha_k = alpha + N_k."""
    concentration = np.array(prior.concentration, dtype=float)
    for r_n in q.responsibilities:
        concentration += r_n
    return replace(q, concentration=concentration)


_UPDATES: dict[str, Callable[[Array, Prior, Factors], Factors]] = {
    "responsibilities": update_responsibilities,
    "means": update_means,
    "precisions": update_precisions,
    "weights": update_weights,
}


def sweep(x: Array, prior: Prior, q: Factors, order: Sequence[str] = ORDER) -> Factors:
    """Update the named factors, each in turn."""
    for factor in order:
        q = _UPDATES[factor](x, prior, q)
    return q


def elbo(x: Array, prior: Prior, q: Factors) -> float:
    """Return <log p(x, c, pi, mu, Lambda)> - <log q> in nats, every constant kept, for any factors q."""
    return sum(elbo_terms(x, prior, q).values())


def elbo_terms(x: Array, prior: Prior, q: Factors) -> dict[str, float]:
    """Return the ELBO by variable: the <log p> of each given its parents, plus its entropy ("x" has none)."""
    log_weights = wishart.expected_log_weights(q.concentration)
    rows = range(len(x))
    components = range(len(log_weights))
    likelihood, labels = 0.0, 0.0
    for n in rows:
        for k in components:
            r = q.responsibilities[n, k]
            if r > 0.0:
                likelihood += r * expected_log_density(x[n], q, k)
                labels += r * (log_weights[k] - log(r))
    weights = wishart.expected_log_dirichlet(prior.concentration, log_weights)
    weights -= wishart.expected_log_dirichlet(q.concentration, log_weights)
    return {
        "x": likelihood,
        "responsibilities": labels,
        "weights": weights,
        "means": sum(_mean_term(prior, q.means[k], q.covariances[k]) for k in components),
        "precisions": sum(_precision_term(prior, q.dfs[k], q.inverse_scales[k]) for k in components),
    }


def _mean_term(prior: Prior, m: Array, s: Array) -> float:
    """Return <log N(mu; m0, S0)> plus the entropy of N(m, S)."""
    d = len(m)
    prior_precision = np.linalg.inv(prior.covariance)
    offset = m - prior.mean
    quadratic = float(offset @ prior_precision @ offset + np.trace(prior_precision @ s))
    log_prior = -0.5 * d * log(2 * pi) - 0.5 * wishart.log_det(prior.covariance) - 0.5 * quadratic
    return log_prior + 0.5 * d * log(2 * pi) + 0.5 * d + 0.5 * wishart.log_det(s)


def _precision_term(prior: Prior, df: float, inverse_scale: Array) -> float:
    """Return <log Wishart(Lambda; a, B)> plus the entropy of Wishart(a_k, B_k)."""
    moments = wishart.mean(df, inverse_scale), wishart.expected_log_det(df, inverse_scale)
    log_prior = wishart.expected_log_density(prior.df, prior.inverse_scale, *moments)
    return log_prior + wishart.entropy(df, inverse_scale)
