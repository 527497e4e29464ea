"""Hidden Markov models by plain sums over all paths, and by the textbook's loops, one sequence after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp

__all__ = ["Dirichlets", "Paths", "ascend", "enumerate_paths", "log_dirichlet_evidence", "sequences"]


def sequences(starts: np.ndarray) -> Iterator[slice]:
    """Yield the rows of each sequence."""
    begins = [t for t in range(len(starts)) if t == 0 or starts[t]]
    for begin, end in zip(begins, [*begins[1:], len(starts)], strict=True):
        yield slice(begin, end)


@dataclass(frozen=True)
class Paths:
    """Sums over all K^N paths."""

    marginals: np.ndarray
    first: np.ndarray
    pairs: np.ndarray
    log_partition: float
    entropy: float
    best: np.ndarray


def enumerate_paths(
    logits: np.ndarray, starts: np.ndarray, log_initial: np.ndarray, log_transition: np.ndarray
) -> Paths:
    n, k = logits.shape
    paths = list(product(range(k), repeat=n))
    weights = np.zeros(len(paths))
    for i, path in enumerate(paths):
        for t, state in enumerate(path):
            weights[i] += logits[t, state]
            weights[i] += log_initial[state] if t == 0 or starts[t] else log_transition[path[t - 1], state]
    log_partition = float(logsumexp(weights))
    marginals, first, pairs, entropy = np.zeros((n, k)), np.zeros(k), np.zeros((k, k)), 0.0
    for path, weight in zip(paths, weights, strict=True):
        p = np.exp(weight - log_partition)
        if p == 0:
            continue
        entropy -= p * (weight - log_partition)
        for t, state in enumerate(path):
            marginals[t, state] += p
            if t == 0 or starts[t]:
                first[state] += p
            else:
                pairs[path[t - 1], state] += p
    return Paths(marginals, first, pairs, log_partition, entropy, np.array(paths[int(np.argmax(weights))]))


def log_dirichlet_evidence(prior: np.ndarray, counts: np.ndarray) -> float:
    """Return the log evidence of counts of categories in a fixed order under Dirichlet priors, rows apart."""
    return float(
        np.sum(gammaln(prior + counts) - gammaln(prior))
        - np.sum(gammaln((prior + counts).sum(axis=-1)) - gammaln(prior.sum(axis=-1)))
    )


@dataclass(frozen=True)
class Dirichlets:
    """Concentrations of the first state, of the rows of transitions and of the rows of emissions."""

    initial: np.ndarray
    transition: np.ndarray
    emission: np.ndarray

    def expected_logs(self) -> "Dirichlets":
        each = (
            digamma(a) - digamma(a.sum(axis=-1, keepdims=True))
            for a in (self.initial, self.transition, self.emission)
        )
        return Dirichlets(*each)


def _kl(a: np.ndarray, b: np.ndarray) -> float:
    """Return KL(Dir(a) | Dir(b))."""
    if len(a) == 2:
        return float(betaln(*b) - betaln(*a) + (a - b) @ (digamma(a) - digamma(a.sum())))
    log_b = [gammaln(c).sum() - gammaln(c.sum()) for c in (a, b)]
    return float(log_b[1] - log_b[0] + (a - b) @ (digamma(a) - digamma(a.sum())))


def _forward_backward(
    likelihood: np.ndarray, initial: np.ndarray, transition: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    n, k = likelihood.shape
    alpha, beta, scale = np.zeros((n, k)), np.ones((n, k)), np.zeros(n)
    for t in range(n):
        for j in range(k):
            before = initial[j] if t == 0 else sum(alpha[t - 1, i] * transition[i, j] for i in range(k))
            alpha[t, j] = before * likelihood[t, j]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    pairs = np.zeros((k, k))
    for t in range(n - 2, -1, -1):
        for i in range(k):
            beta[t, i] = (
                sum(transition[i, j] * likelihood[t + 1, j] * beta[t + 1, j] for j in range(k)) / scale[t + 1]
            )
        for i in range(k):
            for j in range(k):
                pairs[i, j] += (
                    alpha[t, i] * transition[i, j] * likelihood[t + 1, j] * beta[t + 1, j] / scale[t + 1]
                )
    return alpha * beta, pairs, float(np.log(scale).sum())


def ascend(
    x: np.ndarray, starts: np.ndarray, prior: Dirichlets, q: Dirichlets, n_iter: int
) -> tuple[Dirichlets, list[float]]:
    """Return the factors after some iterations for categories x, and the ELBO after each, the start's first."""
    trace: list[float] = []
    k = len(prior.initial)
    for iteration in range(n_iter + 1):
        logs = q.expected_logs()
        first, pairs = np.zeros(k), np.zeros((k, k))
        emitted = np.zeros_like(prior.emission)
        elbo = -_kl(q.initial, prior.initial)
        for state in range(k):
            elbo -= _kl(q.transition[state], prior.transition[state])
            elbo -= _kl(q.emission[state], prior.emission[state])
        for rows in sequences(starts):
            gamma, xi, log_z = _forward_backward(
                np.exp(logs.emission[:, x[rows]].T), np.exp(logs.initial), np.exp(logs.transition)
            )
            elbo += log_z
            first += gamma[0]
            pairs += xi
            for t, value in enumerate(x[rows]):
                emitted[:, value] += gamma[t]
        trace.append(elbo)
        if iteration < n_iter:
            q = Dirichlets(prior.initial + first, prior.transition + pairs, prior.emission + emitted)
    return q, trace
