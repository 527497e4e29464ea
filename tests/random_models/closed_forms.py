"""Evidence: of discrete hidden values by enumeration, of conjugate pairs by formulas from SciPy's distributions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

import caviar as cv

from .statement import Stated

__all__ = ["PAIRS", "enumerated_evidence"]

_MOST = 1_500


def enumerated_evidence(
    stated: Stated, data: dict[str, Any], shapes: dict[str, tuple[int, ...]]
) -> float | None:
    """Return log p(x) where all but labels is known: a sum over every value of them; None where these are too many."""
    sizes = {name: stated.model.variables[name].categories for name in shapes}
    entries = [(name, index) for name, shape in shapes.items() for index in np.ndindex(shape)]
    if np.prod([float(sizes[name]) for name, _ in entries]) > _MOST:
        return None
    each = []
    for choice in itertools.product(*(range(sizes[name]) for name, _ in entries)):
        values = {name: np.zeros(shape, dtype=int) for name, shape in shapes.items()}
        for (name, index), label in zip(entries, choice, strict=True):
            values[name][index] = label
        each.append(stated.model.log_joint({**data, **values}))
    return float(logsumexp(each))


def _normal_mean(x: np.ndarray) -> tuple[cv.Model, float]:
    covariance = np.eye(len(x)) / 2.0 + 1 / 0.5
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.3, 0.5), 2.0, plates=cv.Plate("obs")))
    return model, stats.multivariate_normal(np.full(len(x), 0.3), covariance).logpdf(x)


def _vector_mean(x: np.ndarray) -> tuple[cv.Model, float]:
    noise, prior = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[0.5, -0.1], [-0.1, 0.8]])
    mean = cv.MultivariateNormal("m", np.array([0.3, -1.0]), prior)
    model = cv.Model(cv.MultivariateNormal("x", mean, noise, plates=cv.Plate("obs")))
    n = len(x)
    covariance = np.kron(np.eye(n), np.linalg.inv(noise)) + np.kron(np.ones((n, n)), np.linalg.inv(prior))
    return model, stats.multivariate_normal(np.tile([0.3, -1.0], n), covariance).logpdf(x.ravel())


def _precision(x: np.ndarray) -> tuple[cv.Model, float]:
    model = cv.Model(cv.Normal("x", 0.3, cv.Gamma("tau", 2.0, 1.5), plates=cv.Plate("obs")))
    shape = 1.5 / 2.0 * np.eye(len(x))
    return model, stats.multivariate_t(np.full(len(x), 0.3), shape, df=4.0).logpdf(x)


def _normal_gamma(x: np.ndarray) -> tuple[cv.Model, float]:
    model = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.3, 0.5, 2.0, 1.5), plates=cv.Plate("obs")))
    shape = 1.5 / 2.0 * (np.eye(len(x)) + 1 / 0.5)
    return model, stats.multivariate_t(np.full(len(x), 0.3), shape, df=4.0).logpdf(x)


def _normal_wishart(x: np.ndarray) -> tuple[cv.Model, float]:
    theta = cv.NormalWishart("theta", np.array([0.3, -1.0]), 0.5, 3.5, np.array([[2.0, 0.3], [0.3, 1.0]]))
    model = cv.Model(cv.MultivariateNormal("x", theta, plates=cv.Plate("obs")))
    mean, kappa, df, scale, total = np.array([0.3, -1.0]), 0.5, 3.5, np.array([[2.0, 0.3], [0.3, 1.0]]), 0.0
    for row in x:
        # the predictive density of each row given those before it
        free = df - 1
        total += stats.multivariate_t(mean, scale * (kappa + 1) / kappa / free, df=free).logpdf(row)
        away = row - mean
        scale = scale + kappa / (kappa + 1) * np.outer(away, away)
        mean, kappa, df = mean + away / (kappa + 1), kappa + 1, df + 1
    return model, total


def _rate(x: np.ndarray) -> tuple[cv.Model, float]:
    model = cv.Model(cv.Poisson("x", cv.Gamma("rate", 2.0, 1.5), plates=cv.Plate("obs")))
    total = sum(
        stats.nbinom(2.0 + x[:i].sum(), (1.5 + i) / (2.5 + i)).logpmf(count) for i, count in enumerate(x)
    )
    return model, float(total)


def _times(x: np.ndarray) -> tuple[cv.Model, float]:
    model = cv.Model(cv.Gamma("x", 2.5, cv.Gamma("rate", 2.0, 1.5), plates=cv.Plate("obs")))
    total = sum(
        stats.betaprime(2.5, 2.0 + 2.5 * i, scale=1.5 + x[:i].sum()).logpdf(time) for i, time in enumerate(x)
    )
    return model, float(total)


def _answers(x: np.ndarray) -> tuple[cv.Model, float]:
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 0.8, 1.5), plates=cv.Plate("obs")))
    return model, float(betaln(0.8 + x.sum(), 1.5 + len(x) - x.sum()) - betaln(0.8, 1.5))


def _categories(x: np.ndarray) -> tuple[cv.Model, float]:
    alpha = np.array([0.8, 1.5, 2.0])
    model = cv.Model(cv.Categorical("x", cv.Dirichlet("p", alpha), plates=cv.Plate("obs")))
    counts = np.bincount(x, minlength=3)
    # one sequence of so many with these counts
    sequences = gammaln(len(x) + 1) - gammaln(counts + 1).sum()
    return model, float(stats.dirichlet_multinomial(alpha, len(x)).logpmf(counts) - sequences)


def _tallies(x: np.ndarray) -> tuple[cv.Model, float]:
    alpha, total = np.array([0.8, 1.5, 2.0]), 0.0
    model = cv.Model(cv.Multinomial("x", 5, cv.Dirichlet("p", alpha), plates=cv.Plate("obs")))
    for i, row in enumerate(x):
        total += stats.dirichlet_multinomial(alpha + x[:i].sum(axis=0), 5).logpmf(row)
    return model, float(total)


PAIRS: dict[str, tuple[Callable[[np.ndarray], tuple[cv.Model, float]], Callable[[Any, int], np.ndarray]]] = {
    "normal mean": (_normal_mean, lambda rng, n: rng.normal(size=n)),
    "vector mean": (_vector_mean, lambda rng, n: rng.normal(size=(n, 2))),
    "precision": (_precision, lambda rng, n: rng.normal(size=n)),
    "normal-gamma": (_normal_gamma, lambda rng, n: 3 * rng.normal(size=n)),
    "normal-wishart": (_normal_wishart, lambda rng, n: 3 * rng.normal(size=(n, 2))),
    "poisson rate": (_rate, lambda rng, n: rng.poisson(2.0, n)),
    "gamma rate": (_times, lambda rng, n: rng.gamma(2.0, 1.0, n)),
    "answers": (_answers, lambda rng, n: rng.integers(0, 2, n)),
    "categories": (_categories, lambda rng, n: rng.integers(0, 3, n)),
    "tallies": (_tallies, lambda rng, n: rng.multinomial(5, [0.2, 0.3, 0.5], n)),
}
