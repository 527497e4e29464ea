"""Linear dynamics that switch are what structured mean field written by hand, and sums over all paths of modes, give.

By hand: the states of all steps are one dense Gaussian, and every path of modes is enumerated. Parameters are known, so
that states and modes are all that is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv

N, D, K = 7, 2, 2


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@dataclass
class Case:
    """Known parameters of each mode, and data."""

    transition: np.ndarray
    noise: np.ndarray
    drift: np.ndarray = field(default_factory=lambda: np.zeros((K, D)))
    initial: np.ndarray = field(default_factory=lambda: np.array([0.4, 0.6]))
    moves: np.ndarray = field(default_factory=lambda: np.array([[0.8, 0.2], [0.3, 0.7]]))
    starts: np.ndarray = field(default_factory=lambda: np.arange(N) == 0)
    y: np.ndarray = field(default_factory=lambda: np.random.default_rng(3).normal(size=(N, D)))
    is_chain: bool = True
    start: np.ndarray | None = None

    def paths(self):
        """Return all paths of modes (M, N) with their log probabilities; a label of a first step chooses nothing."""
        found, logs = np.array(list(product(range(K), repeat=N))), []
        for path in found:
            total = 0.0
            for t in range(N):
                if self.is_chain and not self.starts[t]:
                    total += np.log(self.moves[path[t - 1], path[t]])
                elif self.is_chain or not self.starts[t]:
                    total += np.log(self.initial[path[t]])
            logs.append(total)
        if not self.is_chain:
            keep = (found[:, self.starts] == 0).all(axis=1)
            return found[keep], np.array(logs)[keep]
        return found, np.array(logs)

    def information(self, weights):
        """Return precision, linear term and constant of log p(x, y) with modes of these probabilities (N, K)."""
        precision, linear, constant = np.zeros((N, D, N, D)), np.zeros((N, D)), 0.0
        seen = ~np.isnan(self.y).any(axis=1)
        for t in range(N):
            if seen[t]:
                precision[t, :, t] += 4 * np.eye(D)
                linear[t] += 4 * self.y[t]
                constant += 0.5 * D * np.log(4) - 0.5 * D * np.log(2 * np.pi) - 2 * self.y[t] @ self.y[t]
            constant -= 0.5 * D * np.log(2 * np.pi)
            if self.starts[t]:
                precision[t, :, t] += np.eye(D)
                continue
            for k in range(K):
                a, q, b, r = self.transition[k], self.noise[k], self.drift[k], weights[t, k]
                precision[t, :, t] += r * q
                precision[t - 1, :, t - 1] += r * a.T @ q @ a
                precision[t, :, t - 1] -= r * q @ a
                precision[t - 1, :, t] -= r * a.T @ q
                linear[t] += r * q @ b
                linear[t - 1] -= r * a.T @ q @ b
                constant += 0.5 * r * (np.linalg.slogdet(q)[1] - b @ q @ b)
        return precision.reshape(N * D, N * D), linear.ravel(), constant

    def evidence(self):
        """Return the log evidence: the sum over all paths of modes."""
        paths, logs = self.paths()
        each = []
        for path in paths:
            precision, linear, constant = self.information(np.eye(K)[path])
            each.append(constant + 0.5 * linear @ np.linalg.solve(precision, linear))
            each[-1] += 0.5 * (N * D * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1])
        return logsumexp(logs + each)

    def mean_field(self):
        """Return the bound of the best product of a distribution of states and one of paths, and both."""
        paths, logs = self.paths()
        weights, before = self.start, -np.inf
        zero = self.information(np.zeros((N, K)))
        each = [[self.information(one_step(t, k)) for k in range(K)] for t in range(N)]
        for _ in range(4000):
            precision, linear, _ = self.information(weights)
            covariance = np.linalg.inv(precision)
            mean = covariance @ linear
            second = covariance + np.outer(mean, mean)
            entropy = 0.5 * (N * D * (1 + np.log(2 * np.pi)) - np.linalg.slogdet(precision)[1])
            told = np.array(
                [
                    [
                        one[2] - zero[2] + (one[1] - zero[1]) @ mean - 0.5 * np.vdot(one[0] - zero[0], second)
                        for one in own
                    ]
                    for own in each
                ]
            )
            scores = logs + told[np.arange(N), paths].sum(axis=1)
            q = np.exp(scores - logsumexp(scores))
            weights = np.array([[q[paths[:, t] == k].sum() for k in range(K)] for t in range(N)])
            bound = zero[2] + zero[1] @ mean - 0.5 * np.vdot(zero[0], second) + entropy + logsumexp(scores)
            if abs(bound - before) < 1e-13:
                break
            before = bound
        return bound, weights, mean.reshape(N, D), covariance


def one_step(t, k):
    """Return weights of modes that are zero but for one mode of one step, (N, K)."""
    weights = np.zeros((N, K))
    weights[t, k] = 1.0
    return weights


def stated(case, *, diagonal=False, inputs=False, same=False):
    time, mode = cv.Plate("time"), cv.Plate("modes", K)
    starts = cv.Data("starts", plates=time)
    if case.is_chain:
        z = cv.MarkovChain("z", case.initial, case.moves, along=time, starts=starts)
    else:
        z = cv.Categorical("z", case.initial, plates=time)
    a = case.transition[0] if same else cv.Constant("a", case.transition, plates=mode)[z]
    if diagonal:
        dim = cv.Plate("dim", D)
        q = cv.diagonal(cv.Constant("q", case.noise.diagonal(axis1=1, axis2=2), plates=(mode, dim))[z])
    else:
        q = cv.Constant("q", case.noise, plates=mode)[z]
    of_inputs = {}
    if inputs:
        dim = cv.Plate("to", D)
        weights = cv.Constant("b", case.drift[:, :, None], plates=(mode, dim))[z]
        of_inputs = {"inputs": [1.0], "input_weights": weights}
    x = cv.LinearGaussianChain("x", np.zeros(D), np.eye(D), a, q, along=time, starts=starts, **of_inputs)
    return cv.Model(cv.MultivariateNormal("y", x, 4 * np.eye(D), plates=time))


FULL = np.array([[2.0, 0.5], [0.5, 1.0]])
TWO = np.stack([0.9 * turned(0.7), 0.5 * turned(-1.5)])
DIAGONAL = np.stack([np.diag([2.0, 1.0]), np.diag([0.3, 5.0])])
CASES = {
    "transitions": (Case(TWO, np.stack([FULL, FULL])), {}),
    "transitions and noise": (Case(TWO, np.stack([FULL, 3 * np.eye(D)])), {}),
    "labels": (Case(TWO, np.stack([FULL, 3 * np.eye(D)]), is_chain=False), {}),
    "noise alone": (Case(np.stack([TWO[0]] * 2), DIAGONAL), {"diagonal": True, "same": True}),
    "noise matrices alone": (Case(np.stack([TWO[0]] * 2), np.stack([FULL, np.eye(D)])), {"same": True}),
    "diagonal noise": (Case(TWO, DIAGONAL), {"diagonal": True}),
    "drifts": (Case(TWO, DIAGONAL, np.array([[0.5, 0.0], [-1.0, 2.0]])), {"diagonal": True, "inputs": True}),
    "drifts, full noise": (
        Case(TWO, np.stack([FULL] * 2), np.array([[0.5, 0.0], [-1.0, 2.0]])),
        {"inputs": True},
    ),
    "two sequences": (Case(TWO, np.stack([FULL, 3 * np.eye(D)]), starts=np.arange(N) % 4 == 0), {}),
    "labels of two sequences": (
        Case(TWO, np.stack([FULL, 3 * np.eye(D)]), starts=np.arange(N) % 4 == 0, is_chain=False),
        {},
    ),
    "missing steps": (
        Case(
            TWO,
            np.stack([FULL, 3 * np.eye(D)]),
            y=np.where(
                np.isin(np.arange(N), [0, 2, 3])[:, None],
                np.nan,
                np.random.default_rng(3).normal(size=(N, D)),
            ),
        ),
        {},
    ),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", CASES)
def test_bound_and_both_factors_are_those_of_mean_field_by_hand(name):
    case, how = CASES[name]
    data = {"y": case.y, "starts": case.starts.astype(float)}
    posterior = stated(case, **how).fit(data, tol=1e-14, max_iter=3000)
    local = posterior.local(data)
    modes = local["z"].probabilities
    case.start = modes
    bound, weights, mean, covariance = case.mean_field()
    assert posterior.elbo == pytest.approx(bound, abs=1e-9)
    assert posterior.elbo < case.evidence() + 1e-9
    assert posterior.elbo > case.evidence() - 2.5
    after = np.ones(N, bool) if case.is_chain else ~case.starts
    np.testing.assert_allclose(modes[after], weights[after], atol=1e-6)
    np.testing.assert_allclose(local["x"].mean, mean, atol=1e-6)
    every = np.arange(N)
    np.testing.assert_allclose(
        local["x"].covariance, covariance.reshape(N, D, N, D)[every, :, every], atol=1e-6
    )


@pytest.mark.parametrize("is_chain", [True, False])
def test_forecasts_are_the_mixture_over_all_paths_of_modes(is_chain):
    """Three steps after the last observation, whose modes are summed over."""
    case = Case(
        TWO,
        DIAGONAL,
        np.array([[0.5, 0.0], [-1.0, 2.0]]),
        starts=np.isin(np.arange(N), [0, 2]),
        is_chain=is_chain,
    )
    case.y[-2:] = np.nan
    data = {"y": case.y, "starts": case.starts.astype(float)}
    data = {name: np.concatenate([own, own[-1:] * (name == "y")]) for name, own in data.items()}
    posterior = stated(case, diagonal=True, inputs=True).fit(data, tol=1e-14)
    local = posterior.local(data)
    begin, covariance = local["x"].mean[-4], local["x"].covariance[-4]
    mean, second, total = 0.0, 0.0, 0.0
    for path in product(range(K), repeat=4):
        chance = local["z"].probabilities[-4, path[0]]
        for k, later in pairwise(path):
            chance *= case.moves[k, later] if is_chain else case.initial[later]
        m, v = begin, covariance
        for k in path[1:]:
            a = case.transition[k]
            m, v = a @ m + case.drift[k], a @ v @ a.T + np.linalg.inv(case.noise[k])
        total, mean, second = total + chance, mean + chance * m, second + chance * (v + np.outer(m, m))
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(local["x"].mean[-1], mean, atol=1e-12)
    np.testing.assert_allclose(local["x"].covariance[-1], second - np.outer(mean, mean), atol=1e-12)
    ahead = posterior.predict(data)["y"]
    np.testing.assert_allclose(ahead.mean[-1], mean, atol=1e-12)
