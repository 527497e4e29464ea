"""Chains whose transitions depend on columns: from each present state, sticks broken at logistic functions."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

import caviar as cv

X = np.array([-1.5, -0.7, 0.6, 0.4, -0.9, 1.6])
Y = np.array([0.1, -0.4, 1.9, 2.1, 0.2, 2.3])


def chain(n_states: int = 2, at: Any = 0.0, precision: float = 1.0, *, is_started: bool = False) -> cv.Model:
    """Return a hidden Markov model with known means 0, 2, ..., whose steps depend on a column."""
    time, question = cv.Plate("time"), cv.Plate("question", n_states - 1)
    slope = cv.Normal("slope", at, precision, plates=(cv.Plate("present", n_states), question))
    starts = cv.Data("starts", plates=time) if is_started else None
    s = cv.MarkovChain(
        "s",
        np.full(n_states, 1 / n_states),
        cv.stick_breaking(slope * cv.Data("x", plates=time)),
        along=time,
        starts=starts,
    )
    means = cv.Constant("means", 2.0 * np.arange(n_states), plates=cv.Plate("state", n_states))
    return cv.Model(cv.Normal("y", means[s], 1.0, plates=time))


def log_steps(slopes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return log transitions (T, K, K) for slopes (K, K - 1)."""
    eta = slopes * x[:, None, None]
    ones = np.zeros((*eta.shape[:-1], 1))
    left = np.cumsum(log_expit(-eta), axis=-1)
    return np.concatenate([log_expit(eta), ones], axis=-1) + np.concatenate([ones, left], axis=-1)


def log_evidence(slopes: np.ndarray, x: np.ndarray, y: np.ndarray, starts: tuple[int, ...] = (0,)) -> float:
    """Return log p(y) given the slopes, by the forward recursion."""
    n_states, steps, total = len(slopes), log_steps(slopes, x), 0.0
    fit = norm.logpdf(y[:, None], 2.0 * np.arange(n_states))
    for start, stop in zip(starts, (*starts[1:], len(x)), strict=True):
        forward = np.full(n_states, -np.log(n_states)) + fit[start]
        for t in range(start + 1, stop):
            forward = logsumexp(forward[:, None] + steps[t], axis=0) + fit[t]
        total += logsumexp(forward)
    return float(total)


@pytest.mark.parametrize("n_states", [2, 3, 4])
def test_known_slopes_leave_the_evidence_of_a_chain(n_states: int) -> None:
    """The bound of a logistic function touches it where the predictor is known."""
    at = np.random.default_rng(n_states).normal(size=(n_states, n_states - 1))
    posterior = chain(n_states, at, 1e12).fit({"x": X, "y": Y}, tol=1e-13)
    assert posterior.elbo == pytest.approx(log_evidence(at, X, Y), abs=1e-5)
    starts = np.array([1, 0, 0, 1, 0, 0])
    apart = chain(n_states, at, 1e12, is_started=True).fit({"x": X, "y": Y, "starts": starts}, tol=1e-13)
    assert apart.elbo == pytest.approx(log_evidence(at, X, Y, (0, 3)), abs=1e-5)


def test_the_bound_is_below_quadrature_and_slopes_are_near() -> None:
    data = {"x": X, "y": Y}
    posterior = chain().fit(data, tol=1e-13)
    points, weights = np.polynomial.hermite_e.hermegauss(30)
    grid = np.array(list(itertools.product(points, repeat=2)))
    log_weights = np.log(np.prod(list(itertools.product(weights, repeat=2)), axis=1) / (2 * np.pi))
    joint = log_weights + np.array([log_evidence(own[:, None], X, Y) for own in grid])
    evidence = logsumexp(joint)
    assert evidence - 0.2 < posterior.elbo < evidence
    np.testing.assert_allclose(np.ravel(posterior["slope"].mean), np.exp(joint - evidence) @ grid, atol=0.05)
    assert max(cv.testing.elbo_slopes(posterior, data).values()) < 2e-3
    assert cv.testing.check_model(chain(), data).passed


def simulated(n_rows: int = 600, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Return rows of a chain of two states whose steps follow a season, and the slopes."""
    rng, slopes = np.random.default_rng(seed), np.array([[[2.0, 1.5]], [[-2.0, 1.5]]])
    X = np.column_stack([np.ones(n_rows), np.sin(np.arange(n_rows) / 15)])
    states = [0]
    for t in range(1, n_rows):
        states.append(int(rng.random() >= expit(X[t] @ slopes[states[-1], 0])))
    return {"X": X, "y": np.array([-2.0, 2.0])[states] + rng.normal(size=n_rows)}, slopes


def season() -> cv.Model:
    time, question = cv.Plate("time"), cv.Plate("question", 1)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2), plates=(cv.Plate("present", 2), question))
    s = cv.MarkovChain("s", [0.5, 0.5], cv.stick_breaking(cv.dot(cv.Data("X", plates=time), w)), along=time)
    mean = cv.Normal("mean", 0.0, 0.05, plates=cv.Plate("state", 2))
    return cv.Model(cv.Normal("y", mean[s], 1.0, plates=time))


def test_slopes_of_a_simulation_are_found_and_forecasts_follow_their_columns(tmp_path: Path) -> None:
    data, slopes = simulated()
    posterior = season().fit(data, seed=0)
    order = np.argsort(posterior["mean"].mean)
    found, sd = np.array(posterior.mean("w")), np.array(posterior.sd("w"))
    if order[0] == 1:
        # the other state first: from each state the chance of the other one
        found, sd = -found[::-1], sd[::-1]
    assert np.abs((found - slopes) / sd).max() < 3.0
    np.testing.assert_allclose(np.sort(posterior["mean"].mean), [-2, 2], atol=0.3)

    # forecasts: from the last state on by the steps of the new columns
    ahead = np.column_stack([np.ones(4), [1.0, 1.0, -1.0, -1.0]])
    longer = {"X": np.vstack([data["X"], ahead]), "y": np.append(data["y"], np.full(4, np.nan))}
    told = posterior.predict(longer)["y"].mean[-4:]
    draws = np.random.default_rng(1)
    w = [
        draws.multivariate_normal(m[0], v[0], size=20_000)
        for m, v in zip(posterior["w"].mean, posterior["w"].covariance, strict=True)
    ]
    now = np.tile(posterior.local(data)["s"].probabilities[-1], (20_000, 1))
    for x, own in zip(ahead, told, strict=True):
        to_first = np.stack([expit(one @ x) for one in w], axis=1)
        first = (now * to_first).sum(axis=1)
        now = np.column_stack([first, 1 - first])
        assert own == pytest.approx(now.mean(axis=0) @ posterior["mean"].mean, abs=0.05)

    posterior.save(tmp_path / "fit.npz")
    again = cv.load(tmp_path / "fit.npz")
    np.testing.assert_array_equal(again.predict(longer)["y"].mean, posterior.predict(longer)["y"].mean)


def test_what_a_chain_cannot_take_is_refused() -> None:
    time, present = cv.Plate("time"), cv.Plate("present", 3)
    w = cv.Normal("w", 0, 1, plates=(present, cv.Plate("question", 2)))
    for transition, message in (
        (cv.softmax(w * cv.Data("x", plates=time)), "take stick_breaking"),
        (
            cv.stick_breaking(cv.Normal("v", 0, 1, plates=cv.Plate("question", 2))),
            "one of size 3 for the present state and one of size 2 for the questions.*'question' of size 2",
        ),
        (cv.logistic(cv.Normal("a", 0, 1)), "stick_breaking"),
    ):
        with pytest.raises(cv.CaviarError, match=message):
            cv.MarkovChain("s", np.ones(3) / 3, transition, along=time)
