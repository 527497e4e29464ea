"""Known inputs of a linear Gaussian chain, against the joint Normal of all states and updates written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv
from caviar.testing import check_model
from oracles.reference.chains_by_hand import GaussianPath

A = np.array([[0.9, 0.3], [-0.2, 1.05]])
Q = np.array([[2.0, 0.5], [0.5, 4.0]])
B = np.array([[1.0, -0.5, 0.2], [0.0, 0.8, -1.5]])
M0, P0 = np.array([0.5, -1.0]), np.array([[1.5, 0.2], [0.2, 0.8]])
STARTS = np.array([1, 0, 0, 0, 1, 0, 0, 0])
N = len(STARTS)
MAP, TAU = np.array([[1.0, 0.4]]), 2.5
TIME = cv.Plate("time")


def series(rng: np.random.Generator) -> dict[str, Any]:
    return {"starts": STARTS, "u": rng.normal(size=(N, 3)), "x": rng.normal(size=N)}


def seen_through(chain: cv.LinearGaussianChain) -> cv.Model:
    return cv.Model(cv.Normal("x", cv.dot(MAP[0], chain), TAU, plates=TIME))


def exact(data: dict[str, Any], pushes: np.ndarray, seen: np.ndarray, q: np.ndarray = Q) -> tuple[float, Any]:
    """Return the log evidence of what was seen, and the states given it."""
    path = GaussianPath(M0, P0, A, q, STARTS, pushes)
    maps = np.kron(np.eye(N), MAP)[seen]
    about = maps @ path.prior_mean
    spread = maps @ path.prior_covariance @ maps.T + np.eye(len(maps)) / TAU
    log_evidence = multivariate_normal.logpdf(data["x"][seen], about, spread)
    path.update(
        TAU * (seen * np.nan_to_num(data["x"]))[:, None] * MAP, TAU * seen[:, None, None] * (MAP.T @ MAP)
    )
    return float(log_evidence), path


@pytest.mark.parametrize("diagonal", [False, True])
def test_known_weights_give_the_exact_evidence_and_forecasts(diagonal):
    """The last two steps of each sequence are not observed, and one step within: their inputs count all the same."""
    data = series(np.random.default_rng(0))
    data["x"][[1, 3, 6, 7]] = np.nan
    q = np.diag(Q.diagonal()) if diagonal else Q
    chain = cv.LinearGaussianChain(
        "s",
        M0,
        P0,
        A,
        q,
        along=TIME,
        starts=cv.Data("starts", plates=TIME),
        inputs=cv.Data("u", plates=TIME),
        input_weights=B,
    )
    posterior = seen_through(chain).fit(data)
    log_evidence, path = exact(data, data["u"] @ B.T, np.isfinite(data["x"]), q)
    assert posterior.elbo == pytest.approx(log_evidence, rel=1e-12)
    states = posterior.local(data)["s"]
    np.testing.assert_allclose(states.mean, path.mean, atol=1e-11)
    np.testing.assert_allclose(states.covariance, path.covariance, atol=1e-11)


def test_a_vector_for_all_steps_is_a_drift():
    data = series(np.random.default_rng(1))
    chain = cv.LinearGaussianChain(
        "s",
        M0,
        P0,
        A,
        Q,
        along=TIME,
        starts=cv.Data("starts", plates=TIME),
        inputs=[1.0],
        input_weights=[[0.3], [-0.6]],
    )
    posterior = seen_through(chain).fit({name: data[name] for name in ("x", "starts")})
    log_evidence, _ = exact(data, np.tile([0.3, -0.6], (N, 1)), np.ones(N, dtype=bool))
    assert posterior.elbo == pytest.approx(log_evidence, rel=1e-12)


def learnt(known_transition: bool) -> cv.Model:
    rows, inputs = cv.Plate("row", 2), 3
    weights = cv.MultivariateNormal("B", np.zeros(inputs), 0.7 * np.eye(inputs), plates=rows)
    transition: Any = (
        A if known_transition else cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=rows)
    )
    chain = cv.LinearGaussianChain(
        "s",
        M0,
        P0,
        transition,
        cv.diagonal(cv.Gamma("q", 2.0, 1.0, plates=rows)),
        along=TIME,
        starts=cv.Data("starts", plates=TIME),
        inputs=cv.Data("u", plates=TIME),
        input_weights=weights,
    )
    return seen_through(chain)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("known_transition", [True, False])
def test_learnt_weights_pass_every_check(known_transition):
    data = series(np.random.default_rng(2))
    report = check_model(learnt(known_transition), data, seed=0)
    assert report.passed, str(report)


@pytest.mark.slow
def test_learnt_weights_follow_updates_written_out():
    data = series(np.random.default_rng(3))
    posterior = learnt(True).fit(data, tol=1e-13, max_iter=4000)
    after, shape, rate = np.flatnonzero(STARTS == 0), 2.0 + 0.5 * 6, np.ones(2)
    mean, covariance = np.zeros((2, 3)), np.stack([np.eye(3) / 0.7] * 2)
    u = data["u"]
    gram = u[after].T @ u[after]
    for _ in range(600):
        q = shape / rate
        path = GaussianPath(M0, P0, A, np.diag(q), STARTS, u @ mean.T)
        path.update(TAU * data["x"][:, None] * MAP, TAU * np.tile(MAP.T @ MAP, (N, 1, 1)))
        whole = path.whole_second
        residual = np.zeros((2, 2))
        meets = np.zeros((2, 3))
        for t in after:
            pair = whole[t - 1, :, t]
            back = A @ whole[t - 1, :, t - 1] @ A.T
            residual += whole[t, :, t] - A @ pair - pair.T @ A.T + back
            meets += np.outer(path.mean[t] - A @ path.mean[t - 1], u[t])
        covariance = np.stack([np.linalg.inv(0.7 * np.eye(3) + own * gram) for own in q])
        mean = np.stack([c @ (own * m) for c, own, m in zip(covariance, q, meets, strict=True)])
        second = covariance + mean[:, :, None] * mean[:, None, :]
        rate = 1.0 + 0.5 * (
            residual.diagonal() - 2 * (mean * meets).sum(axis=1) + (second * gram).sum(axis=(1, 2))
        )
    np.testing.assert_allclose(posterior["B"].mean, mean, atol=1e-6)
    np.testing.assert_allclose(posterior["B"].covariance, covariance, atol=1e-6)
    np.testing.assert_allclose(posterior["q"].mean, shape / rate, rtol=1e-6)


def test_linear_response_with_inputs_is_the_slope_of_refits():
    """One component in a state: what the inputs say must count once."""
    rng = np.random.default_rng(8)
    data = {"x": np.cumsum(rng.normal(size=30)), "u": rng.normal(size=(30, 1))}

    def fitted(rate: float) -> cv.Posterior:
        pushes: dict[str, Any] = {"inputs": cv.Data("u", plates=TIME), "input_weights": [[0.8]]}
        level = cv.LinearGaussianChain("level", [0.0], [[1.0]], [[0.9]], [[4.0]], along=TIME, **pushes)
        leaf = cv.Normal("x", cv.dot([1.0], level), cv.Gamma("tau", 2.0, rate), plates=TIME)
        return cv.Model(leaf).fit(data, seed=0, tol=1e-14, max_iter=2000)

    told = fitted(0.5).linear_response(data).sensitivity("tau")["tau.rate"]
    slope = (fitted(0.5 + 1e-3)["tau"].mean - fitted(0.5 - 1e-3)["tau"].mean) / 2e-3
    assert float(told) == pytest.approx(float(slope), rel=1e-3)


@pytest.mark.slow
def test_simulated_states_follow_their_inputs():
    """The mean of many draws of the first two steps."""
    chain = cv.LinearGaussianChain(
        "s", M0, P0, A, Q, along=TIME, inputs=cv.Data("u", plates=TIME), input_weights=B
    )
    u = np.array([[9.0, 9.0, 9.0], [1.0, -2.0, 0.5]])
    model = seen_through(chain)
    draws = [model.simulate(seed, data={"u": u})["s"] for seed in range(1500)]
    after = A @ M0 + B @ u[1]
    np.testing.assert_allclose(np.mean(draws, axis=0), [M0, after], atol=0.12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": [1.0]}, "has inputs but no input_weights"),
        ({"input_weights": B}, "has input_weights but no inputs"),
        ({"inputs": [1.0], "input_weights": [1.0, 2.0]}, "must be a matrix"),
        ({"inputs": [1.0, 2.0], "input_weights": B}, "length"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(cv.CaviarError, match=message):
        seen_through(cv.LinearGaussianChain("s", M0, P0, A, Q, along=TIME, **arguments)).fit(
            {"x": np.zeros(3)}
        )
