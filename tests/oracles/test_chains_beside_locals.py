"""Chains beside other hidden variables of a row: updates written out in NumPy, and evidence by enumeration or a grid.

All parameters are known, so that a fit is the best factors of what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import digamma, gammaln, log_ndtr, logsumexp, softmax, xlogy
from scipy.stats import multivariate_normal, norm, t

import caviar as cv
from oracles.reference.chains_by_hand import GaussianPath, LabelPath, log_evidence_on_a_grid

INITIAL, TRANSITION = np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.35, 0.65]])
MEANS = np.array([-0.5, 2.0])
STARTS = np.array([1, 0, 0, 0, 1, 0])
N = len(STARTS)
M0, P0, A, Q = 0.4, 0.6, 0.9, 3.0
TIME = cv.Plate("time")


class Found(NamedTuple):
    """The best bound, by updates written out, and the log evidence."""

    bound: float
    evidence: float


class Case(NamedTuple):
    """A model of a sequence, its data, and what is to be found."""

    model: cv.Model
    data: dict[str, Any]
    found: Callable[[], Found]
    local: str


def labels() -> cv.MarkovChain:
    return cv.MarkovChain("s", INITIAL, TRANSITION, along=TIME, starts=cv.Data("starts", plates=TIME))


def states() -> cv.LinearGaussianChain:
    return cv.LinearGaussianChain(
        "s", [M0], [[P0]], [[A]], [[Q]], along=TIME, starts=cv.Data("starts", plates=TIME)
    )


def label_path() -> LabelPath:
    return LabelPath(INITIAL, TRANSITION, STARTS)


def state_path() -> GaussianPath:
    return GaussianPath(np.array([M0]), np.eye(1) * P0, np.eye(1) * A, np.eye(1) * Q, STARTS)


def on_the_grid(log_likelihood: np.ndarray, grid: np.ndarray) -> float:
    """Return the log evidence of both sequences of states."""
    first = norm.logpdf(grid, M0, P0**-0.5)
    step = norm.logpdf(grid, A * grid[:, None], Q**-0.5)
    begins = [*np.flatnonzero(STARTS), N]
    return sum(log_evidence_on_a_grid(log_likelihood[a:b], grid, first, step) for a, b in pairwise(begins))


def of_all_paths(path: LabelPath, log_likelihood: np.ndarray) -> float:
    return float(logsumexp(path.log_prior + path.told(log_likelihood)))


GRID = np.linspace(-9, 9, 1201)


def student(kind: str) -> Case:
    half, tau = 1.5, 2.0
    rng = np.random.default_rng(3)
    x = np.array([-0.4, 2.2, 9.0, 1.6, -0.8, 0.3]) + 0.1 * rng.normal(size=N)
    u = cv.Gamma("u", half, half, plates=TIME)
    s = labels() if kind == "labels" else states()
    mean = cv.Constant("mu", MEANS, plates=cv.Plate("state", 2))[s] if kind == "labels" else cv.dot([1.0], s)
    model = cv.Model(cv.Normal("x", mean, u * tau, plates=TIME))

    def found() -> Found:
        path = label_path() if kind == "labels" else state_path()
        shape, rate = half + 0.5, np.full(N, half)
        for _ in range(400):
            weight = tau * shape / rate
            if isinstance(path, LabelPath):
                squares = (x[:, None] - MEANS) ** 2
                path.update(-0.5 * weight[:, None] * squares)
                square = (path.marginals * squares).sum(axis=1)
            else:
                path.update((weight * x)[:, None], weight[:, None, None])
                square = x**2 - 2 * x * path.mean[:, 0] + path.second[:, 0, 0]
            rate = half + 0.5 * tau * square
        log_u = digamma(shape) - np.log(rate)
        density = 0.5 * (np.log(tau) + log_u - np.log(2 * np.pi) - tau * shape / rate * square)
        prior = half * np.log(half) - gammaln(half) + (half - 1) * log_u - half * shape / rate
        entropy = shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)
        bound = (density + prior + entropy).sum() - path.divergence
        if isinstance(path, LabelPath):
            return Found(bound, of_all_paths(path, t.logpdf(x[:, None], 2 * half, MEANS, tau**-0.5)))
        return Found(bound, on_the_grid(t.logpdf(x[:, None], 2 * half, GRID, tau**-0.5), GRID))

    return Case(model, {"x": x, "starts": STARTS}, found, "u")


def mixture_of_labels() -> Case:
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    means, tau = np.array([-1.0, 0.5, 2.5]), 1.5
    x = np.array([-0.9, 0.2, 2.8, 1.0, -1.4, 0.7])
    z = cv.Categorical("z", cv.Constant("w", weights, plates=cv.Plate("state", 2))[labels()], plates=TIME)
    model = cv.Model(cv.Normal("x", cv.Constant("m", means, plates=cv.Plate("part", 3))[z], tau, plates=TIME))

    def found() -> Found:
        path, told = label_path(), norm.logpdf(x[:, None], means, tau**-0.5)
        best = -np.inf
        # two starts: coordinate ascent over labels may end in several places
        for begin in (softmax(told, axis=1), np.full((N, 3), 1 / 3)):
            shares = begin
            for _ in range(400):
                path.update(shares @ np.log(weights).T)
                shares = softmax(told + path.marginals @ np.log(weights), axis=1)
            inner = (shares * (told + path.marginals @ np.log(weights))).sum() - xlogy(shares, shares).sum()
            best = max(best, float(inner) - path.divergence)
        exact = logsumexp(told[:, None, :] + np.log(weights), axis=2)
        return Found(best, of_all_paths(path, exact))

    return Case(model, {"x": x, "starts": STARTS}, found, "z")


def mixture_of_states() -> Case:
    share, tau = np.array([0.8, 0.2]), np.array([4.0, 0.1])
    x = np.array([0.5, 0.2, 5.0, -0.3, 1.4, 0.9])
    z = cv.Categorical("z", share, plates=TIME)
    noise = cv.Constant("tau", tau, plates=cv.Plate("part", 2))[z]
    model = cv.Model(cv.Normal("x", cv.dot([1.0], states()), noise, plates=TIME))

    def found() -> Found:
        path, shares = state_path(), np.tile(share, (N, 1))
        for _ in range(400):
            weight = shares @ tau
            path.update((weight * x)[:, None], weight[:, None, None])
            square = x**2 - 2 * x * path.mean[:, 0] + path.second[:, 0, 0]
            told = np.log(share) + 0.5 * np.log(tau / (2 * np.pi)) - 0.5 * tau * square[:, None]
            shares = softmax(told, axis=1)
        bound = (shares * told).sum() - xlogy(shares, shares).sum() - path.divergence
        each = [
            np.log(share)[list(parts)].sum()
            + multivariate_normal.logpdf(
                x, path.prior_mean, path.prior_covariance + np.diag(1 / tau[list(parts)])
            )
            for parts in product(range(2), repeat=N)
        ]
        return Found(float(bound), float(logsumexp(each)))

    return Case(model, {"x": x, "starts": STARTS}, found, "z")


def answers(kind: str, link: str) -> Case:
    y = np.array([1, 0, 1, 1, 0, 0])
    s = labels() if kind == "labels" else states()
    mean = cv.Constant("mu", MEANS, plates=cv.Plate("state", 2))[s] if kind == "labels" else cv.dot([1.0], s)
    probability = cv.probit(mean) if link == "probit" else cv.logistic(mean)
    model = cv.Model(cv.Bernoulli("y", probability, plates=TIME))

    def found() -> Found:
        path = label_path() if kind == "labels" else state_path()
        sign = 2 * y - 1
        for _ in range(400):
            if isinstance(path, LabelPath):
                mean, second = path.marginals @ MEANS, path.marginals @ MEANS**2
            else:
                mean, second = path.mean[:, 0], path.second[:, 0, 0]
            if link == "probit":
                shown = mean + sign * np.exp(norm.logpdf(mean) - log_ndtr(sign * mean))
                weight = np.ones(N)
                inner = log_ndtr(sign * mean) - 0.5 * (second - mean**2)
            else:
                tilt = np.sqrt(second)
                shown, weight = y - 0.5, np.tanh(tilt / 2) / (2 * tilt)
                inner = (y - 0.5) * mean - np.log(2 * np.cosh(tilt / 2))
            bound = inner.sum() - path.divergence
            if isinstance(path, LabelPath):
                path.update(shown[:, None] * MEANS - 0.5 * weight[:, None] * MEANS**2)
            else:
                path.update(shown[:, None], weight[:, None, None])
        of = log_ndtr if link == "probit" else lambda eta: -np.log1p(np.exp(-eta))
        if isinstance(path, LabelPath):
            return Found(float(bound), of_all_paths(path, of(sign[:, None] * MEANS)))
        return Found(float(bound), on_the_grid(of(sign[:, None] * GRID), GRID))

    hidden = {"probit": "y.utility", "logit": "y.polya_gamma"}[link]
    return Case(model, {"y": y, "starts": STARTS}, found, hidden)


CASES: dict[str, Callable[[], Case]] = {
    "Student-t, labels": lambda: student("labels"),
    "Student-t, vectors": lambda: student("vectors"),
    "mixture, labels": mixture_of_labels,
    "mixture, vectors": mixture_of_states,
    "logit, labels": lambda: answers("labels", "logit"),
    "logit, vectors": lambda: answers("vectors", "logit"),
    "probit, labels": lambda: answers("labels", "probit"),
    "probit, vectors": lambda: answers("vectors", "probit"),
}


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_that_of_updates_written_out_and_below_the_evidence(name):
    model, data, found, local = CASES[name]()
    posterior = model.fit(data, factors=[], tol=1e-12, max_iter=3000)
    bound, evidence = found()
    assert posterior.elbo == pytest.approx(bound, abs=1e-7)
    assert bound < evidence
    # a look from nothing finds the same
    assert posterior.elbo_at({}, data) == pytest.approx(bound, abs=1e-7)
    assert {"s", local} <= posterior.local(data).keys()
