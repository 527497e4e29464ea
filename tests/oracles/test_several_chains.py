"""Several chains in a model: updates written out in NumPy, and evidence by enumeration or by one dense Normal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv
from oracles.reference.chains_by_hand import GaussianPath, LabelPath

TIME = cv.Plate("time")
STARTS, OTHER = np.array([1, 0, 0, 0, 1, 0]), np.array([1, 0, 1, 0, 1, 0])
N = len(STARTS)
X = np.array([-0.4, 1.2, 3.0, 1.6, -0.8, 2.3])
TAU = 1.7
PARTS = (
    (np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.35, 0.65]]), np.array([-0.5, 2.0])),
    (
        np.array([0.2, 0.5, 0.3]),
        np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]),
        np.array([0.0, 0.7, -1.0]),
    ),
)
M0, P0, A, Q = 0.4, 0.6, 0.9, 3.0


class Case(NamedTuple):
    """A model, its data, and what returns the best bound of updates written out, and the log evidence."""

    model: cv.Model
    data: dict[str, Any]
    found: Callable[[], tuple[float, float]]


def labels(number: int, starts: str) -> tuple[cv.MarkovChain, Any]:
    initial, transition, means = PARTS[number]
    chain = cv.MarkovChain(f"s{number}", initial, transition, along=TIME, starts=cv.Data(starts, plates=TIME))
    plate = cv.Plate(f"state{number}", len(initial))
    return chain, cv.Constant(f"mu{number}", means, plates=plate)[chain]


def states(name: str, starts: str, noise: float = Q) -> cv.LinearGaussianChain:
    return cv.LinearGaussianChain(
        name, [M0], [[P0]], [[A]], [[noise]], along=TIME, starts=cv.Data(starts, plates=TIME)
    )


def paths(starts: np.ndarray, noise: float = Q) -> GaussianPath:
    return GaussianPath(np.array([M0]), np.eye(1) * P0, np.eye(1) * A, np.eye(1) * noise, starts)


def factorial() -> Case:
    """Two label chains that meet in a mean, with sequences of their own."""
    one, two = labels(0, "starts")[1], labels(1, "other")[1]
    model = cv.Model(cv.Normal("x", one + two, TAU, plates=TIME))

    def found() -> tuple[float, float]:
        first, second = LabelPath(*PARTS[0][:2], STARTS), LabelPath(*PARTS[1][:2], OTHER)
        a, b = PARTS[0][2], PARTS[1][2]
        for _ in range(80):
            first.update(-0.5 * TAU * (a**2 - 2 * a * (X - second.marginals @ b)[:, None]))
            second.update(-0.5 * TAU * (b**2 - 2 * b * (X - first.marginals @ a)[:, None]))
        one, two = first.marginals @ a, second.marginals @ b
        square = X**2 - 2 * X * (one + two) + first.marginals @ a**2 + second.marginals @ b**2 + 2 * one * two
        told = 0.5 * N * np.log(TAU / (2 * np.pi)) - 0.5 * TAU * square.sum()
        means = a[first.paths][:, None] + b[second.paths]
        each = norm.logpdf(X, means, TAU**-0.5).sum(axis=2) + first.log_prior[:, None] + second.log_prior
        return float(told) - first.divergence - second.divergence, float(logsumexp(each))

    return Case(model, {"x": X, "starts": STARTS, "other": OTHER}, found)


def two_vectors() -> Case:
    """Two Gaussian chains, one of which is multiplied by a known number of each step: players of known games."""
    v = np.array([1.0, -1.0, 1.0, 0.5, -1.0, 1.0])
    mean = cv.dot([1.0], states("one", "starts")) + cv.dot(
        cv.Data("v", plates=TIME), states("two", "other", 1.0)
    )
    model = cv.Model(cv.Normal("x", mean, TAU, plates=TIME))

    def found() -> tuple[float, float]:
        one, two = paths(STARTS), paths(OTHER, 1.0)
        for _ in range(600):
            one.update(TAU * (X - v * two.mean[:, 0])[:, None], np.full((N, 1, 1), TAU))
            two.update(TAU * (v * (X - one.mean[:, 0]))[:, None], TAU * (v**2)[:, None, None])
        m, w = one.mean[:, 0], v * two.mean[:, 0]
        square = X**2 - 2 * X * (m + w) + one.second[:, 0, 0] + v**2 * two.second[:, 0, 0] + 2 * m * w
        told = 0.5 * N * np.log(TAU / (2 * np.pi)) - 0.5 * TAU * square.sum()
        spread = one.prior_covariance + v[:, None] * two.prior_covariance * v + np.eye(N) / TAU
        evidence = multivariate_normal.logpdf(X, one.prior_mean + v * two.prior_mean, spread)
        return float(told) - one.divergence - two.divergence, float(evidence)

    return Case(model, {"x": X, "v": v[:, None], "starts": STARTS, "other": OTHER}, found)


def switching() -> Case:
    """A label chain and a Gaussian chain: the label chooses the noise, and a shift of the mean."""
    chain, shift = labels(0, "other")
    taus = np.array([TAU, 0.3])
    noise = cv.Constant("tau", taus, plates=cv.Plate("noise", 2))[chain]
    model = cv.Model(cv.Normal("x", cv.dot([1.0], states("level", "starts")) + shift, noise, plates=TIME))

    def found() -> tuple[float, float]:
        level, label, a = paths(STARTS), LabelPath(*PARTS[0][:2], OTHER), PARTS[0][2]
        for _ in range(200):
            shares = label.marginals
            weight = shares @ taus
            level.update((weight * X - shares @ (taus * a))[:, None], weight[:, None, None])
            m, mm = level.mean[:, 0], level.second[:, 0, 0]
            square = (X**2 - 2 * X * m + mm)[:, None] - 2 * a * (X - m)[:, None] + a**2
            told = 0.5 * np.log(taus / (2 * np.pi)) - 0.5 * taus * square
            label.update(told)
        bound = (label.marginals * told).sum() - label.divergence - level.divergence
        each = [
            own
            + multivariate_normal.logpdf(
                X, level.prior_mean + a[path], level.prior_covariance + np.diag(1 / taus[path])
            )
            for path, own in zip(label.paths, label.log_prior, strict=True)
        ]
        return float(bound), float(logsumexp(each))

    return Case(model, {"x": X, "starts": STARTS, "other": OTHER}, found)


CASES: dict[str, Callable[[], Case]] = {
    "factorial": factorial,
    "two vectors": two_vectors,
    "switching": switching,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_that_of_updates_written_out_and_below_the_evidence(name):
    model, data, found = CASES[name]()
    posterior = model.fit(data, tol=1e-13, max_iter=3000)
    bound, evidence = found()
    assert posterior.elbo == pytest.approx(bound, abs=1e-7)
    assert bound < evidence
    assert posterior.elbo_at({}, data) == pytest.approx(bound, abs=1e-7)


def test_chains_that_share_no_term_are_models_of_their_own():
    """Both leaves, of which each has a chain, have the evidence of two models."""
    _, mean = labels(0, "starts")
    first = cv.Normal("x", mean, TAU, plates=TIME)
    second = cv.Normal("y", cv.dot([1.0], states("level", "other")), TAU, plates=TIME)
    data = {"x": X, "starts": STARTS, "y": X[::-1].copy(), "other": OTHER}
    together = cv.Model(first, second).fit(data)
    apart = [
        cv.Model(first).fit({"x": X, "starts": STARTS}),
        cv.Model(second).fit({"y": data["y"], "other": OTHER}),
    ]
    assert together.elbo == pytest.approx(sum(own.elbo for own in apart), abs=1e-11)
    path = LabelPath(*PARTS[0][:2], STARTS)
    exact = logsumexp(path.log_prior + path.told(norm.logpdf(X[:, None], PARTS[0][2], TAU**-0.5)))
    assert apart[0].elbo == pytest.approx(exact, abs=1e-10)
