"""Predictions after the last step of a sequence, against recursions forward in time written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import caviar as cv

A = np.array([[1.0, 0.5], [0.0, 0.9]])
Q, P0 = np.diag([4.0, 2.0]), np.array([[1.5, 0.2], [0.2, 0.8]])
M0, MAP, TAU = np.array([0.3, -0.2]), np.array([1.0, 0.4]), 2.0
B = np.array([[0.5], [-0.3]])
TIME = cv.Plate("time")
SEQUENCES = (6, 1, 4)
AHEAD = 5
STARTS = np.concatenate([[1] + [0] * (n + AHEAD - 1) for n in SEQUENCES])
SEEN = np.concatenate([[True] * n + [False] * AHEAD for n in SEQUENCES])


def observed(rng: np.random.Generator) -> dict[str, Any]:
    x = np.where(SEEN, rng.normal(1.0, 2.0, len(SEEN)), np.nan)
    x[2] = np.nan
    return {"x": x, "starts": STARTS}


def kalman(x: np.ndarray, pushes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of x given all before it, forward in time."""
    means, variances = np.empty(len(x)), np.empty(len(x))
    mean, covariance = M0, np.linalg.inv(P0)
    for t in range(len(x)):
        if STARTS[t]:
            mean, covariance = M0, np.linalg.inv(P0)
        else:
            mean, covariance = A @ mean + pushes[t], A @ covariance @ A.T + np.linalg.inv(Q)
        means[t], variances[t] = MAP @ mean, MAP @ covariance @ MAP + 1 / TAU
        if np.isfinite(x[t]):
            gain = covariance @ MAP / variances[t]
            mean, covariance = mean + gain * (x[t] - means[t]), covariance - np.outer(gain, MAP @ covariance)
    return means, variances


@pytest.mark.parametrize("with_inputs", [False, True])
def test_a_linear_gaussian_chain_is_that_of_a_kalman_filter(with_inputs):
    rng = np.random.default_rng(0)
    data = observed(rng)
    arguments: dict[str, Any] = {}
    pushes = np.zeros((len(SEEN), 2))
    if with_inputs:
        data["u"] = rng.normal(size=(len(SEEN), 1))
        arguments = {"inputs": cv.Data("u", plates=TIME), "input_weights": B}
        pushes = data["u"] @ B.T
    s = cv.LinearGaussianChain(
        "s", M0, P0, A, Q, along=TIME, starts=cv.Data("starts", plates=TIME), **arguments
    )
    model = cv.Model(cv.Normal("x", cv.dot(MAP, s), TAU, plates=TIME))
    known = {name: values[SEEN] for name, values in data.items()}
    ahead = model.fit(known).predict(data)["x"]
    mean, variance = kalman(data["x"], pushes)
    np.testing.assert_allclose(ahead.mean[~SEEN], mean[~SEEN], atol=1e-10)
    np.testing.assert_allclose(ahead.standard_deviation[~SEEN] ** 2, variance[~SEEN], rtol=1e-10)
    assert np.all(np.diff(ahead.standard_deviation[~SEEN].reshape(len(SEQUENCES), AHEAD), axis=1) > 0)


INITIAL, TRANSITION = np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.2, 0.8]])
MEANS, SHARES = np.array([0.0, 3.0, -4.0]), np.array([[0.7, 0.3, 0.0], [0.1, 0.4, 0.5]])
SHARES[0] = [0.6, 0.3, 0.1]


def filtered(log_likelihood: np.ndarray) -> np.ndarray:
    """Return the probabilities of the states given all up to each step."""
    found, state = np.empty(log_likelihood.shape), INITIAL
    for t, own in enumerate(log_likelihood):
        predicted = INITIAL if STARTS[t] else state @ TRANSITION
        state = predicted * np.exp(own)
        state = found[t] = state / state.sum()
    return found


def labels() -> cv.MarkovChain:
    return cv.MarkovChain("s", INITIAL, TRANSITION, along=TIME, starts=cv.Data("starts", plates=TIME))


def mixed(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = shares @ MEANS
    return mean, shares @ (MEANS**2 + 1 / TAU) - mean**2


def test_a_markov_chain_mixes_what_its_states_say():
    data = observed(np.random.default_rng(1))
    table = cv.Constant("mu", MEANS[:2], plates=cv.Plate("state", 2))
    posterior = cv.Model(cv.Normal("x", table[labels()], TAU, plates=TIME)).fit(data)
    ahead = posterior.predict(data)["x"]
    told = np.nan_to_num(norm.logpdf(data["x"][:, None], MEANS[:2], TAU**-0.5))
    shares = filtered(told) @ np.eye(2, 3)
    mean, variance = mixed(shares)
    np.testing.assert_allclose(ahead.mean[~SEEN], mean[~SEEN], atol=1e-10)
    np.testing.assert_allclose(ahead.standard_deviation[~SEEN] ** 2, variance[~SEEN], rtol=1e-9)


def test_parts_of_a_state_have_its_probabilities_ahead():
    """From the last state on the forecast is exact: the shares of the parts are averaged over the states."""
    data = observed(np.random.default_rng(2))
    z = cv.Categorical("z", cv.Constant("w", SHARES, plates=cv.Plate("state", 2))[labels()], plates=TIME)
    table = cv.Constant("mu", MEANS, plates=cv.Plate("part", 3))
    posterior = cv.Model(cv.Normal("x", table[z], TAU, plates=TIME)).fit(data, tol=1e-12)
    ahead, states = posterior.predict(data)["x"], posterior.local(data)["s"].probabilities
    last = np.flatnonzero(SEEN & ~np.append(SEEN[1:], False))
    for begin in last:
        state = states[begin]
        for t in range(begin + 1, begin + AHEAD + 1):
            state = state @ TRANSITION
            mean, variance = mixed(state @ SHARES)
            assert ahead.mean[t] == pytest.approx(mean, abs=1e-10)
            assert ahead.standard_deviation[t] ** 2 == pytest.approx(variance, rel=1e-9)


def test_wide_noise_of_a_student_t_stays_ahead():
    """Beside a Gaussian chain, scales of steps ahead are those of their prior."""
    data = observed(np.random.default_rng(3))
    s = cv.LinearGaussianChain("s", M0, P0, A, Q, along=TIME, starts=cv.Data("starts", plates=TIME))
    u = cv.Gamma("u", 2.0, 2.0, plates=TIME)
    posterior = cv.Model(cv.Normal("x", cv.dot(MAP, s), u * TAU, plates=TIME)).fit(data, tol=1e-12)
    ahead, states = posterior.predict(data)["x"], posterior.local(data)["s"]
    spread = np.einsum("i,nij,j->n", MAP, states.covariance, MAP) + 2.0 / 1.0 / TAU
    gaps = np.isnan(data["x"])
    np.testing.assert_allclose(ahead.mean[gaps], (states.mean @ MAP)[gaps], atol=1e-12)
    np.testing.assert_allclose(ahead.standard_deviation[~SEEN] ** 2, spread[~SEEN], rtol=1e-10)


def test_observed_steps_keep_their_values():
    """They were predictions of another value of the same step, where a page and ``predict`` said that values stay."""
    data = observed(np.random.default_rng(5))
    s = cv.LinearGaussianChain("s", M0, P0, A, Q, along=TIME, starts=cv.Data("starts", plates=TIME))
    gaussian = cv.Normal("x", cv.dot(MAP, s), TAU, plates=TIME)
    mu = cv.Constant("mu", MEANS[:2], plates=cv.Plate("k", 2))
    level = cv.Normal("x", mu[labels()], TAU, plates=TIME)
    there = ~np.isnan(data["x"])
    for leaf in (gaussian, level):
        found = cv.Model(leaf).fit(data).predict(data)["x"]
        np.testing.assert_array_equal(found.mean[there], data["x"][there])
        assert not found.standard_deviation[there].any()
        assert (found.standard_deviation[~there] > 0.5).all()
        np.testing.assert_allclose(found.interval(0.9)[0][there], data["x"][there])


def test_what_has_no_missing_value_is_not_predicted():
    data = {name: values[:2] for name, values in observed(np.random.default_rng(4)).items()}
    posterior = cv.Model(
        cv.Normal("x", cv.Constant("mu", MEANS[:2], plates=cv.Plate("k", 2))[labels()], TAU, plates=TIME)
    ).fit(data)
    with pytest.raises(KeyError, match="is in the data"):
        posterior.predict(data)["x"]
