r"""Counts with a Dirichlet prior on their probabilities; without labels the ELBO is the evidence."""

from math import lgamma

from caviar._typing import Array
from oracles.reference import wishart


def log_multinomial_coefficient(counts: Array) -> float:
    """Return log n! - sum_j log n_j!."""
    return lgamma(sum(counts) + 1) - sum(lgamma(c + 1) for c in counts)


def log_evidence(concentration: Array, counts: Array) -> float:
    r"""Return the log probability of one sequence of draws with these counts (no multinomial coefficient).

    .. math::

        \log \frac{\Gamma(\sum_j \alpha_j)}{\Gamma(\sum_j \alpha_j + n_j)}
        + \sum_j \log \frac{\Gamma(\alpha_j + n_j)}{\Gamma(\alpha_j)}
    """
    total = lgamma(sum(concentration)) - lgamma(sum(concentration) + sum(counts))
    return total + sum(lgamma(a + c) - lgamma(a) for a, c in zip(concentration, counts, strict=True))


def elbo(concentration: Array, counts: Array, posterior: Array) -> float:
    """Return <log p(draws, pi)> - <log q(pi)> for q = Dir(posterior), without the multinomial coefficient."""
    log_weights = wishart.expected_log_weights(posterior)
    total = wishart.expected_log_dirichlet(concentration, log_weights)
    total -= wishart.expected_log_dirichlet(posterior, log_weights)
    return total + sum(c * log_weight for c, log_weight in zip(counts, log_weights, strict=True))
