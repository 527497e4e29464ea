r"""Mixtures whose components have conjugate priors, by plain loops: all labellings, and coordinate ascent.

.. math::

    \pi \sim p(\pi), \quad c_n \sim \mathrm{Cat}(\pi), \quad \theta^{(d)}_k \sim p(\theta), \quad
    x_{nd} \mid c_n \sim p(x \mid \theta^{(d)}_{c_n})

A prior knows three things: what it becomes after weighted rows, the log probability of rows under it, and its
divergence from another of its kind. Given a labelling the posterior of everything else is exact, so that

.. math:: \log p(x) = \log \sum_c p(c) \prod_{dk} p(x_{S_k d}), \qquad
    \mathrm{KL}(q \,\|\, p(\cdot \mid x)) = \sum_c q(c) \Bigl[ \log \frac{q(c)}{p(c \mid x)} +
    \mathrm{KL}(q(\pi) \,\|\, p(\pi \mid c)) + \sum_{dk} \mathrm{KL}(q(\theta_k^{(d)}) \,\|\, p(\cdot \mid c, x)) \Bigr]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, lgamma, log, pi, prod
from typing import Any

import numpy as np
from scipy.special import digamma

from oracles.reference.dirichlet_counts import log_multinomial_coefficient


def _gamma_constant(shape: float, rate: float) -> float:
    return lgamma(shape) - shape * log(rate)


def _gamma_divergence(a: float, b: float, c: float, d: float) -> float:
    """Return KL(Gamma(a, b) || Gamma(c, d))."""
    return float((a - c) * digamma(a) - lgamma(a) + lgamma(c) + c * (log(b) - log(d)) + a * (d - b) / b)


def _log_dirichlet_constant(concentration: Sequence[float]) -> float:
    return sum(lgamma(a) for a in concentration) - lgamma(sum(concentration))


@dataclass(frozen=True)
class Counts:
    """x ~ Poisson(rate), rate ~ Gamma(shape, rate)."""

    shape: float
    rate: float

    def after(self, x, r):
        return Counts(self.shape + sum(r_n * x_n for x_n, r_n in zip(x, r, strict=True)), self.rate + sum(r))

    def log_evidence(self, x):
        q = self.after(x, [1.0] * len(x))
        ratio = _gamma_constant(q.shape, q.rate) - _gamma_constant(self.shape, self.rate)
        return ratio - sum(lgamma(x_n + 1) for x_n in x)

    def divergence(self, other):
        return _gamma_divergence(self.shape, self.rate, other.shape, other.rate)

    def expected_log_density(self, x_n):
        log_rate = float(digamma(self.shape)) - log(self.rate)
        return x_n * log_rate - self.shape / self.rate - lgamma(x_n + 1)


@dataclass(frozen=True)
class Times:
    """x ~ Gamma(known, rate), rate ~ Gamma(shape, rate)."""

    known: float
    shape: float
    rate: float

    def after(self, x, r):
        total = sum(r_n * x_n for x_n, r_n in zip(x, r, strict=True))
        return Times(self.known, self.shape + self.known * sum(r), self.rate + total)

    def log_evidence(self, x):
        q = self.after(x, [1.0] * len(x))
        ratio = _gamma_constant(q.shape, q.rate) - _gamma_constant(self.shape, self.rate)
        return ratio + sum((self.known - 1) * log(x_n) - lgamma(self.known) for x_n in x)

    def divergence(self, other):
        return _gamma_divergence(self.shape, self.rate, other.shape, other.rate)

    def expected_log_density(self, x_n):
        log_rate = float(digamma(self.shape)) - log(self.rate)
        density = (self.known - 1) * log(x_n) - x_n * self.shape / self.rate
        return density + self.known * log_rate - lgamma(self.known)


@dataclass(frozen=True)
class Labels:
    """x ~ Cat(p), p ~ Dirichlet(concentration); also the weights of a mixture."""

    concentration: tuple[float, ...]

    def after(self, x, r):
        counted = list(self.concentration)
        for x_n, r_n in zip(x, r, strict=True):
            counted[x_n] += r_n
        return Labels(tuple(counted))

    def log_evidence(self, x):
        q = self.after(x, [1.0] * len(x))
        return _log_dirichlet_constant(q.concentration) - _log_dirichlet_constant(self.concentration)

    def divergence(self, other):
        total = sum(self.concentration)
        constants = _log_dirichlet_constant(other.concentration) - _log_dirichlet_constant(self.concentration)
        pairs = zip(self.concentration, other.concentration, strict=True)
        return constants + sum((a - b) * float(digamma(a) - digamma(total)) for a, b in pairs)

    def expected_log_density(self, x_n):
        return float(digamma(self.concentration[x_n]) - digamma(sum(self.concentration)))


@dataclass(frozen=True)
class Tallies:
    """x ~ Mult(sum x, p), p ~ Dirichlet(concentration)."""

    concentration: tuple[float, ...]

    def after(self, x, r):
        added = [
            sum(r_n * x_n[j] for x_n, r_n in zip(x, r, strict=True)) for j in range(len(self.concentration))
        ]
        return Tallies(tuple(a + n for a, n in zip(self.concentration, added, strict=True)))

    def log_evidence(self, x):
        q = self.after(x, [1.0] * len(x))
        ratio = _log_dirichlet_constant(q.concentration) - _log_dirichlet_constant(self.concentration)
        return ratio + sum(log_multinomial_coefficient(x_n) for x_n in x)

    def divergence(self, other):
        return Labels(self.concentration).divergence(other)

    def expected_log_density(self, x_n):
        of_one = [Labels(self.concentration).expected_log_density(j) for j in range(len(x_n))]
        return log_multinomial_coefficient(x_n) + sum(n * e for n, e in zip(x_n, of_one, strict=True))


@dataclass(frozen=True)
class Sticks:
    """x ~ Cat(p), p broken off a stick with shares Beta(a_k, b_k), one after the other."""

    shares: tuple[Labels, ...]

    @staticmethod
    def prior(gamma, truncation):
        return Sticks((Labels((1.0, gamma)),) * (truncation - 1))

    def after(self, x, r):
        shares = []
        for k, share in enumerate(self.shares):
            reached = [(0 if x_n == k else 1, r_n) for x_n, r_n in zip(x, r, strict=True) if x_n >= k]
            shares.append(share.after([stop for stop, _ in reached], [r_n for _, r_n in reached]))
        return Sticks(tuple(shares))

    def log_evidence(self, x):
        return sum(
            share.log_evidence([0 if x_n == k else 1 for x_n in x if x_n >= k])
            for k, share in enumerate(self.shares)
        )

    def divergence(self, other):
        return sum(a.divergence(b) for a, b in zip(self.shares, other.shares, strict=True))

    def expected_log_density(self, x_n):
        total = sum(share.expected_log_density(1) for share in self.shares[:x_n])
        return total + (self.shares[x_n].expected_log_density(0) if x_n < len(self.shares) else 0.0)


@dataclass(frozen=True)
class Numbers:
    """x ~ N(mu, 1/tau), tau ~ Gamma(shape, rate), mu | tau ~ N(mean, 1/(kappa tau))."""

    mean: float
    kappa: float
    shape: float
    rate: float

    def after(self, x, r):
        q = self
        for x_n, r_n in zip(x, r, strict=True):
            kappa = q.kappa + r_n
            mean = (q.kappa * q.mean + r_n * x_n) / kappa
            q = Numbers(
                mean, kappa, q.shape + r_n / 2, q.rate + q.kappa * r_n / kappa * (x_n - q.mean) ** 2 / 2
            )
        return q

    def log_evidence(self, x):
        q = self.after(x, [1.0] * len(x))
        ratio = _gamma_constant(q.shape, q.rate) - _gamma_constant(self.shape, self.rate)
        return ratio + 0.5 * log(self.kappa / q.kappa) - len(x) / 2 * log(2 * pi)

    def divergence(self, other):
        ratio = other.kappa / self.kappa
        apart = other.kappa * (self.mean - other.mean) ** 2 * self.shape / self.rate
        gamma = _gamma_divergence(self.shape, self.rate, other.shape, other.rate)
        return 0.5 * (ratio - 1 - log(ratio) + apart) + gamma

    def expected_log_density(self, x_n):
        log_tau = float(digamma(self.shape)) - log(self.rate)
        square = 1 / self.kappa + self.shape / self.rate * (x_n - self.mean) ** 2
        return 0.5 * (log_tau - log(2 * pi) - square)


@dataclass(frozen=True)
class Mixture:
    """weights: Labels or Sticks; components[d][k]; each a prior, or a factor of q."""

    weights: Any
    components: Sequence[Sequence[Any]]

    @property
    def n_components(self) -> int:
        return len(self.components[0])


def _given(model: Mixture, columns: Sequence[Any], labels: Sequence[int]) -> tuple[float, Mixture]:
    """Return log p(labels, x), and the exact posterior given the labels."""
    log_joint = model.weights.log_evidence(labels)
    components = []
    for priors, x in zip(model.components, columns, strict=True):
        own = [[x_n for x_n, c in zip(x, labels, strict=True) if c == k] for k in range(len(priors))]
        log_joint += sum(prior.log_evidence(rows) for prior, rows in zip(priors, own, strict=True))
        components.append(
            [prior.after(rows, [1.0] * len(rows)) for prior, rows in zip(priors, own, strict=True)]
        )
    return log_joint, Mixture(model.weights.after(labels, [1.0] * len(labels)), components)


def _labellings(model: Mixture, columns: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    return product(range(model.n_components), repeat=len(columns[0]))


def log_evidence(model: Mixture, columns: Sequence[Any]) -> float:
    """Return log p(x), summed over all K^N labellings."""
    joints = [_given(model, columns, labels)[0] for labels in _labellings(model, columns)]
    return max(joints) + log(sum(exp(joint - max(joints)) for joint in joints))


def divergence(model: Mixture, columns: Sequence[Any], q: Mixture, r: Any) -> float:
    """Return KL(q || p(. | x)) for q(c) = prod_n r[n][c_n] and the factors q."""
    evidence = log_evidence(model, columns)
    total = 0.0
    for labels in _labellings(model, columns):
        weight = prod(float(r[n][c]) for n, c in enumerate(labels))
        if weight == 0.0:
            continue
        log_joint, exact = _given(model, columns, labels)
        apart = q.weights.divergence(exact.weights)
        for own, others in zip(q.components, exact.components, strict=True):
            apart += sum(a.divergence(b) for a, b in zip(own, others, strict=True))
        total += weight * (log(weight) - (log_joint - evidence) + apart)
    return total


def ascend(model: Mixture, columns: Sequence[Any], r: Any, n_sweeps: int) -> tuple[Mixture, Any]:
    """Return q and the responsibilities (N, K) after sweeps (weights and components, responsibilities)."""
    r = np.array(r, dtype=float)
    q = model
    n_rows, k = r.shape
    for _ in range(n_sweeps):
        labels = [c for _ in range(n_rows) for c in range(k)]
        q = Mixture(
            model.weights.after(labels, list(r.ravel())),
            [
                [prior.after(x, list(r[:, c])) for c, prior in enumerate(priors)]
                for priors, x in zip(model.components, columns, strict=True)
            ],
        )
        for n in range(n_rows):
            logits = [
                q.weights.expected_log_density(c)
                + sum(own[c].expected_log_density(x[n]) for own, x in zip(q.components, columns, strict=True))
                for c in range(k)
            ]
            total = sum(exp(logit - max(logits)) for logit in logits)
            r[n] = [exp(logit - max(logits)) / total for logit in logits]
    return q, r
