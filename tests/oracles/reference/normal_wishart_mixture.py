r"""CAVI for the Bayesian Gaussian mixture with joint Normal-Wishart factors (Bishop 2006, section 10.2).

.. math::

    \pi \sim \mathrm{Dir}(\alpha_0), \quad \Lambda_k \sim \mathrm{Wishart}(\nu_0, B_0), \quad
    \mu_k \mid \Lambda_k \sim N(m_0, (\beta_0 \Lambda_k)^{-1})

The inverse scale :math:`B = W^{-1}` stands where Bishop has the scale W. Equation numbers are his.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, pi

import numpy as np
from scipy.special import multigammaln
from scipy.stats import multivariate_t

from caviar._typing import Array
from oracles.reference import wishart

ORDER = ("responsibilities", "components", "weights")


@dataclass(frozen=True)
class Prior:
    """alpha_0 (K,), m_0 (D,), beta_0, nu_0, B_0 (D, D)."""

    concentration: Array
    mean: Array
    mean_precision: float
    df: float
    inverse_scale: Array


@dataclass(frozen=True)
class Factors:
    """r_nk (N, K); alpha_k (K,); m_k (K, D), beta_k (K,), nu_k (K,) and B_k (K, D, D)."""

    responsibilities: Array
    concentration: Array
    means: Array
    mean_precisions: Array
    dfs: Array
    inverse_scales: Array


def factors_at_prior(prior: Prior, responsibilities: Array) -> Factors:
    """Return every global factor at its prior, beside the given responsibilities (N, K)."""
    k = len(prior.concentration)
    return Factors(
        responsibilities=np.array(responsibilities, dtype=float),
        concentration=np.array(prior.concentration, dtype=float),
        means=np.array([prior.mean] * k, dtype=float),
        mean_precisions=np.full(k, float(prior.mean_precision)),
        dfs=np.full(k, float(prior.df)),
        inverse_scales=np.array([prior.inverse_scale] * k, dtype=float),
    )


def update_responsibilities(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set r_nk by 10.46, with the expected square D/beta_k + nu_k (x - m_k)' B_k^-1 (x - m_k) (10.64)."""
    d = x.shape[1]
    log_weights = wishart.expected_log_weights(q.concentration)
    r = np.empty((len(x), len(log_weights)))
    for n, x_n in enumerate(x):
        logits = []
        for k, log_weight in enumerate(log_weights):
            residual = x_n - q.means[k]
            quadratic = (
                d / q.mean_precisions[k] + residual @ wishart.mean(q.dfs[k], q.inverse_scales[k]) @ residual
            )
            log_det = wishart.expected_log_det(q.dfs[k], q.inverse_scales[k])
            logits.append(log_weight + 0.5 * log_det - 0.5 * d * log(2 * pi) - 0.5 * quadratic)
        highest = max(logits)
        total = sum(exp(logit - highest) for logit in logits)
        r[n] = [exp(logit - highest) / total for logit in logits]
    return replace(q, responsibilities=r)


def update_components(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set the Normal-Wishart factors by 10.60 to 10.63 (with nu_k = nu_0 + N_k, as in the book's errata)."""
    means, mean_precisions = np.empty_like(q.means), np.empty_like(q.mean_precisions)
    dfs, inverse_scales = np.empty_like(q.dfs), np.empty_like(q.inverse_scales)
    beta_0, m_0 = prior.mean_precision, prior.mean
    for k in range(len(dfs)):
        count, centre, scatter = _statistics(x, q.responsibilities[:, k])
        mean_precisions[k] = beta_0 + count
        means[k] = (beta_0 * m_0 + count * centre) / mean_precisions[k]
        shift = beta_0 * count / (beta_0 + count) * np.outer(centre - m_0, centre - m_0)
        inverse_scales[k] = prior.inverse_scale + scatter + shift
        dfs[k] = prior.df + count
    return replace(q, means=means, mean_precisions=mean_precisions, dfs=dfs, inverse_scales=inverse_scales)


def update_weights(x: Array, prior: Prior, q: Factors) -> Factors:
    """Set alpha_k = alpha_0 + N_k (10.58)."""
    concentration = np.array(prior.concentration, dtype=float)
    for r_n in q.responsibilities:
        concentration += r_n
    return replace(q, concentration=concentration)


_UPDATES: dict[str, Callable[[Array, Prior, Factors], Factors]] = {
    "responsibilities": update_responsibilities,
    "components": update_components,
    "weights": update_weights,
}


def sweep(x: Array, prior: Prior, q: Factors, order: Sequence[str] = ORDER) -> Factors:
    """Update the named factors, each in turn."""
    for factor in order:
        q = _UPDATES[factor](x, prior, q)
    return q


def elbo(x: Array, prior: Prior, q: Factors) -> float:
    """Return Bishop's 10.70, the sum of 10.71 to 10.77, in nats, every constant kept, for any factors q."""
    log_weights = wishart.expected_log_weights(q.concentration)
    total = wishart.expected_log_dirichlet(prior.concentration, log_weights)  # 10.73
    total -= wishart.expected_log_dirichlet(q.concentration, log_weights)  # 10.76
    for r_n in q.responsibilities:
        for r, log_weight in zip(r_n, log_weights, strict=True):
            if r > 0.0:
                total += r * log_weight - r * log(r)  # 10.72, 10.75
    for k in range(len(log_weights)):
        total += _component_terms(x, prior, q, k)
    return total


def _component_terms(x: Array, prior: Prior, q: Factors, k: int) -> float:
    """Return what component k adds to 10.71, 10.74 and 10.77."""
    d = x.shape[1]
    beta, m, nu = float(q.mean_precisions[k]), q.means[k], float(q.dfs[k])
    precision = wishart.mean(nu, q.inverse_scales[k])
    log_det = wishart.expected_log_det(nu, q.inverse_scales[k])
    count, centre, scatter = _statistics(x, q.responsibilities[:, k])

    trace = float(np.trace(scatter @ precision))
    spread = float((centre - m) @ precision @ (centre - m))
    likelihood = 0.5 * (count * (log_det - d / beta - spread - d * log(2 * pi)) - trace)  # 10.71

    beta_0, offset = prior.mean_precision, m - prior.mean
    log_prior = 0.5 * (d * log(beta_0 / (2 * pi)) + log_det - d * beta_0 / beta)  # 10.74
    log_prior -= 0.5 * beta_0 * float(offset @ precision @ offset)
    log_prior += wishart.expected_log_density(prior.df, prior.inverse_scale, precision, log_det)

    log_q = 0.5 * log_det + 0.5 * d * log(beta / (2 * pi)) - 0.5 * d  # 10.77
    log_q -= wishart.entropy(nu, q.inverse_scales[k])
    return likelihood + log_prior - log_q


def _statistics(x: Array, r: Array) -> tuple[float, Array, Array]:
    """Return N_k, the weighted mean (0 if N_k = 0) and the scatter N_k S_k about it (10.51 to 10.53)."""
    count, total = 0.0, np.zeros(x.shape[1])
    for r_n, x_n in zip(r, x, strict=True):
        count += float(r_n)
        total += r_n * x_n
    centre = total / count if count > 0.0 else total
    scatter = np.zeros((x.shape[1], x.shape[1]))
    for r_n, x_n in zip(r, x, strict=True):
        scatter += r_n * np.outer(x_n - centre, x_n - centre)
    return count, centre, scatter


def log_evidence_of_one_component(x: Array, prior: Prior) -> float:
    r"""Return the exact log p(x) of one Normal-Wishart component, the ratio of its normalisers.

    .. math::

        -\tfrac{ND}2 \log \pi + \log \frac{\Gamma_D(\nu_N/2)}{\Gamma_D(\nu_0/2)}
        + \tfrac{\nu_0}2 \log |B_0| - \tfrac{\nu_N}2 \log |B_N| + \tfrac D2 \log \frac{\beta_0}{\beta_N}
    """
    n_rows, d = x.shape
    q = update_components(x, prior, factors_at_prior(prior, np.ones((n_rows, 1))))
    gammas = float(multigammaln(q.dfs[0] / 2, d) - multigammaln(prior.df / 2, d))
    determinants = prior.df / 2 * wishart.log_det(prior.inverse_scale)
    determinants -= float(q.dfs[0]) / 2 * wishart.log_det(q.inverse_scales[0])
    return (
        -0.5 * n_rows * d * log(pi)
        + gammas
        + determinants
        + 0.5 * d * log(prior.mean_precision / q.mean_precisions[0])
    )


def log_evidence_by_prediction(x: Array, prior: Prior) -> float:
    r"""Return the same log p(x), row by row from the Student-t predictive densities, by SciPy.

    With nu = nu_n + 1 - D degrees of freedom, location m_n and shape B_n (beta_n + 1) / (beta_n nu).
    """
    d, total = x.shape[1], 0.0
    for n in range(len(x)):
        q = update_components(x[:n], prior, factors_at_prior(prior, np.ones((n, 1))))
        df = float(q.dfs[0]) + 1 - d
        shape = q.inverse_scales[0] * (q.mean_precisions[0] + 1) / (q.mean_precisions[0] * df)
        total += float(multivariate_t.logpdf(x[n], loc=q.means[0], shape=shape, df=df))
    return total
