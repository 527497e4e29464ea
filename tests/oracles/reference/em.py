r"""Maximum likelihood by EM for the Gaussian mixture with full covariances, densities by SciPy."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from caviar._typing import Array


@dataclass(frozen=True)
class Parameters:
    """pi (K,), mu_k (K, D) and the covariances Lambda_k^-1 (K, D, D)."""

    weights: Array
    means: Array
    covariances: Array


def log_joint(x: Array, parameters: Parameters) -> Array:
    """Return log pi_k + log N(x_n; mu_k, Lambda_k^-1), shape (N, K)."""
    joint = np.empty((len(x), len(parameters.weights)))
    for n, x_n in enumerate(x):
        for k, weight in enumerate(parameters.weights):
            density = multivariate_normal.logpdf(x_n, parameters.means[k], parameters.covariances[k])
            joint[n, k] = np.log(weight) + density
    return joint


def log_likelihood(x: Array, parameters: Parameters) -> float:
    """Return log p(x | pi, mu, Lambda) in nats."""
    return float(sum(logsumexp(row) for row in log_joint(x, parameters)))


def responsibilities(x: Array, parameters: Parameters) -> Array:
    """Return r_nk proportional to pi_k N(x_n; mu_k, Lambda_k^-1), shape (N, K)."""
    return np.array([np.exp(row - logsumexp(row)) for row in log_joint(x, parameters)])


def maximise(x: Array, r: Array) -> Parameters:
    r"""Return pi_k = N_k/N, mu_k = sum_n r_nk x_n / N_k and sum_n r_nk (x_n - mu_k)(x_n - mu_k)' / N_k."""
    n_components, d = r.shape[1], x.shape[1]
    weights, means = np.zeros(n_components), np.zeros((n_components, d))
    covariances = np.zeros((n_components, d, d))
    for k in range(n_components):
        count = sum(r[:, k])
        weights[k] = count / len(x)
        for n, x_n in enumerate(x):
            means[k] += r[n, k] * x_n / count
        for n, x_n in enumerate(x):
            covariances[k] += r[n, k] * np.outer(x_n - means[k], x_n - means[k]) / count
    return Parameters(weights, means, covariances)


def run(x: Array, start: Parameters, n_steps: int) -> tuple[Parameters, list[float]]:
    """Return the parameters after some EM steps, and the log-likelihood at the start and after each step."""
    parameters, path = start, [log_likelihood(x, start)]
    for _ in range(n_steps):
        parameters = maximise(x, responsibilities(x, parameters))
        path.append(log_likelihood(x, parameters))
    return parameters, path
