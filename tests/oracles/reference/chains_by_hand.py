"""Factors of hidden sequences written out: labels by all their paths, vectors by the joint precision of all states."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import logsumexp, xlogy

__all__ = ["GaussianPath", "LabelPath", "log_evidence_on_a_grid"]


class LabelPath:
    """The factor of a sequence of labels: a probability for each path.

    Attributes
    ----------
    paths
        All of them, (P, N).
    log_prior
        Of each path, (P,).
    marginals
        Of the factor, (N, K).
    divergence
        Of the factor from the prior, nats.
    """

    def __init__(self, initial: np.ndarray, transition: np.ndarray, starts: np.ndarray) -> None:
        size, n_rows = len(initial), len(starts)
        self.paths = np.array(list(product(range(size), repeat=n_rows)))
        self.log_prior = np.zeros(len(self.paths))
        for t in range(n_rows):
            if starts[t] or not t:
                self.log_prior += np.log(initial)[self.paths[:, t]]
            else:
                self.log_prior += np.log(transition)[self.paths[:, t - 1], self.paths[:, t]]
        self._one_hot = np.eye(size)[self.paths]
        self.update(np.zeros((n_rows, size)))

    def told(self, logits: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each path, (P,), from those of the states of each row, (N, K)."""
        return np.asarray(np.take_along_axis(logits, self.paths.T, axis=1).sum(axis=0))

    def update(self, logits: np.ndarray) -> None:
        joint = self.log_prior + self.told(logits)
        self.probabilities = np.exp(joint - logsumexp(joint))
        self.marginals = np.einsum("p,ptk->tk", self.probabilities, self._one_hot)
        self.divergence = float(
            xlogy(self.probabilities, self.probabilities).sum() - self.probabilities @ self.log_prior
        )


class GaussianPath:
    """The factor of a sequence of vectors: one Normal over all states, its precision inverted.

    Attributes
    ----------
    mean, second, covariance
        Of the states, (N, D), (N, D, D) and (N, D, D).
    whole_second
        Products of the entries of all states, (N, D, N, D).
    divergence
        Of the factor from the prior, nats.
    prior_mean, prior_covariance
        Of all states under the prior, (N D,) and (N D, N D).
    """

    def __init__(
        self,
        mean: np.ndarray,
        precision: np.ndarray,
        transition: np.ndarray,
        noise_precision: np.ndarray,
        starts: np.ndarray,
        inputs: np.ndarray | None = None,
    ) -> None:
        n_rows, size = len(starts), len(mean)
        about, spread = np.zeros((n_rows, size)), np.zeros((n_rows, size, n_rows, size))
        for t in range(n_rows):
            added = np.zeros(size) if inputs is None else inputs[t]
            if starts[t] or not t:
                about[t], spread[t, :, t] = mean, np.linalg.inv(precision)
                continue
            about[t] = transition @ about[t - 1] + added
            spread[t] = np.einsum("ij,jnk->ink", transition, spread[t - 1])
            spread[:, :, t] = np.moveaxis(spread[t], 0, -1)
            spread[t, :, t] = transition @ spread[t - 1, :, t - 1] @ transition.T + np.linalg.inv(
                noise_precision
            )
        self.shape = n_rows, size
        self.prior_mean, self.prior_covariance = about.ravel(), spread.reshape(n_rows * size, -1)
        self.update(np.zeros((n_rows, size)), np.zeros((n_rows, size, size)))

    def update(self, linear: np.ndarray, information: np.ndarray) -> None:
        n_rows, size = self.shape
        prior = np.linalg.inv(self.prior_covariance)
        whole = np.zeros((n_rows, size, n_rows, size))
        whole[np.arange(n_rows), :, np.arange(n_rows)] = information
        covariance = np.linalg.inv(prior + whole.reshape(n_rows * size, -1))
        mean = covariance @ (prior @ self.prior_mean + linear.ravel())
        self.mean = mean.reshape(n_rows, size)
        self.whole_second = (covariance + np.outer(mean, mean)).reshape(n_rows, size, n_rows, size)
        blocks = covariance.reshape(n_rows, size, n_rows, size)[np.arange(n_rows), :, np.arange(n_rows)]
        self.covariance = blocks
        self.second = blocks + self.mean[:, :, None] * self.mean[:, None, :]
        away = mean - self.prior_mean
        ratio = prior @ covariance
        self.divergence = float(
            0.5 * (np.trace(ratio) + away @ prior @ away - len(mean) - np.linalg.slogdet(ratio)[1])
        )


def log_evidence_on_a_grid(
    log_likelihood: np.ndarray,
    grid: np.ndarray,
    log_initial: np.ndarray,
    log_step: np.ndarray,
) -> float:
    """Return the log evidence of a sequence of hidden numbers, by the trapezoidal rule on an even grid.

    Parameters
    ----------
    log_likelihood
        Of each row at each point, (N, G).
    grid
        (G,).
    log_initial, log_step
        Densities of the first state, (G,), and of a state (columns) given the one before it, (G, G).
    """
    width = np.log(grid[1] - grid[0])
    forward = log_initial + log_likelihood[0]
    for own in log_likelihood[1:]:
        forward = logsumexp(forward[:, None] + log_step, axis=0) + width + own
    return float(logsumexp(forward) + width)
