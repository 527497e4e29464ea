"""What a fit with a linear Gaussian chain owes: the same bits on any threads, ascent, sequences in any order."""

from typing import Any

import numpy as np
import pytest

import caviar as cv
import caviar.models


def model(d: int = 2, k: int = 4) -> cv.Model:
    return cv.models.linear_dynamical_system(k, d, with_starts=True)


def draw(seed: int, n: int, noise: float = 0.1, scale: float = 1.0) -> tuple[dict[str, Any], np.ndarray]:
    """Return four columns that show a slow rotation through noise, in seven sequences, and the rotation."""
    rng = np.random.default_rng(seed)
    turn = 0.98 * np.array([[np.cos(0.2), np.sin(0.2)], [-np.sin(0.2), np.cos(0.2)]])
    states = np.zeros((n, 2))
    starts = np.arange(n) % (n // 7) == 0
    for t in range(n):
        states[t] = rng.normal(size=2) if starts[t] else turn @ states[t - 1] + noise * rng.normal(size=2)
    x = states @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(n, 4))
    return {"x": scale * x, "starts": starts}, turn


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bits():
    data, _ = draw(0, 20_000)
    fits = [model().fit(data, seed=1, max_iter=2, executor=threads) for threads in (1, 2, 4)[::1]]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].elbo_trace, other.elbo_trace)
        np.testing.assert_array_equal(fits[0]["transition"].mean, other["transition"].mean)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "scale"), [(1e-4, 1.0), (0.1, 1.0), (3.0, 1.0), (0.1, 1e4), (0.1, 1e-4)])
def test_the_elbo_never_falls_and_its_parts_sum_to_it(noise, scale):
    data, _ = draw(1, 700, noise, scale)
    posterior = model().fit(data, seed=0, max_iter=60)
    assert np.diff(posterior.elbo_trace).min() > -1e-11 * abs(posterior.elbo) - 1e-8
    assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, rel=1e-9)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-9)


@pytest.mark.slow
def test_it_finds_the_dynamics_up_to_a_change_of_basis():
    data, turn = draw(2, 2_500)
    posterior = model().fit(data, seed=0, max_iter=300)
    found = np.linalg.eigvals(posterior["transition"].mean)
    np.testing.assert_allclose(np.abs(found), np.abs(np.linalg.eigvals(turn)), atol=0.02)
    np.testing.assert_allclose(np.abs(np.angle(found)), 0.2, atol=0.02)


@pytest.mark.slow
def test_sequences_may_stand_in_any_order():
    data, _ = draw(3, 700)
    init = {"loadings": np.random.default_rng(0).normal(size=(4, 2))}
    before = model().fit(data, init=init, max_iter=8, tol=0.0)
    turned = {name: np.concatenate([rows[300:], rows[:300]]) for name, rows in data.items()}
    after = model().fit(turned, init=init, max_iter=8, tol=0.0)
    np.testing.assert_allclose(after.elbo_trace, before.elbo_trace, rtol=1e-10)
    one, other = (p.local(d)["s"].mean for p, d in ((before, data), (after, turned)))
    np.testing.assert_allclose(np.concatenate([other[400:], other[:400]]), one, atol=1e-8)


@pytest.mark.slow
def test_steps_without_observations_are_bridged_and_forecast():
    """At the end of the data, rows that are missing are forecasts: they spread from step to step."""
    data, _ = draw(4, 700)
    posterior = model().fit(data, seed=0, max_iter=100)
    more = {
        "x": np.append(data["x"], np.full((20, 4), np.nan), axis=0),
        "starts": np.append(data["starts"], [0] * 20),
    }
    ahead = posterior.local(more)["s"]
    spread = np.linalg.slogdet(ahead.covariance[-21:])[1]
    assert np.all(np.diff(spread) > 0)
    transition = posterior["transition"].mean
    np.testing.assert_allclose(
        ahead.mean[-10], transition @ ahead.mean[-11], atol=0.02 * np.abs(ahead.mean).max()
    )


@pytest.mark.slow
def test_a_start_may_be_the_states_themselves():
    data, _ = draw(5, 210)
    first = model().fit(data, seed=0, max_iter=30)
    again = model().fit(data, init={"s": first.local(data)["s"].mean}, max_iter=30)
    assert again.elbo > first.elbo - 1.0


def test_draws_from_the_prior_follow_the_transition():
    given = {
        "transition": np.array([[0.9, 0.2], [-0.2, 0.9]]),
        "alpha": np.ones(2),
        "loadings": np.ones((4, 2)),
    }
    n = 20_000
    states = model().simulate(0, data={"starts": np.arange(n) == 0}, given=given)["s"]
    residual = states[1:] - states[:-1] @ given["transition"].T
    np.testing.assert_allclose(residual.T @ residual / n, np.eye(2), atol=8 / np.sqrt(n))
    np.testing.assert_allclose(residual.T @ states[:-1] / n, 0.0, atol=20 / np.sqrt(n))


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [1e-4, 1.0, 1e3])
def test_noise_of_any_size_is_found_with_an_unknown_transition(deviation):
    """Precisions from 1e-6 to 1e8, of the steps and of what is seen of them."""
    rng, n = np.random.default_rng(0), 300
    turn = 0.99 * np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    states = np.zeros((n, 2))
    states[0] = 1.0
    for t in range(1, n):
        states[t] = turn @ states[t - 1] + deviation * rng.normal(size=2)
    x = states + deviation * rng.normal(size=(n, 2))
    time, row, column = cv.Plate("time"), cv.Plate("row", 2), cv.Plate("column", 2)
    transition = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=row)
    q, tau = cv.Gamma("q", 1e-3, 1e-11, plates=row), cv.Gamma("tau", 1e-3, 1e-11)
    s = cv.LinearGaussianChain("s", np.zeros(2), np.eye(2), transition, cv.diagonal(q), along=time)
    seen = cv.dot(cv.Constant("seen", np.eye(2), plates=column), s)
    # a fall beyond rounding is a warning, which is an error here
    posterior = cv.Model(cv.Normal("x", seen, tau, plates=(time, column))).fit({"x": x}, seed=0, max_iter=100)
    np.testing.assert_allclose(posterior["A"].mean, turn, atol=0.06)
    np.testing.assert_allclose(posterior["q"].mean * deviation**2, 1.0, atol=0.35)
    assert posterior["tau"].mean * deviation**2 == pytest.approx(1.0, abs=0.35)


def test_a_start_takes_no_steps_from_rows_in_no_order():
    """Its sample is in the order of values: the transition and the noise of steps are at their priors."""
    x = np.cumsum(np.random.default_rng(1).normal(size=(50, 2)), axis=0)
    time, row, column = cv.Plate("time"), cv.Plate("row", 2), cv.Plate("column", 2)
    transition = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=row)
    s = cv.LinearGaussianChain(
        "s", np.zeros(2), np.eye(2), transition, cv.diagonal(cv.Gamma("q", 2.0, 4.0, plates=row)), along=time
    )
    seen = cv.dot(cv.Constant("seen", np.eye(2), plates=column), s)
    start = cv.Model(cv.Normal("x", seen, 1.0, plates=(time, column))).fit({"x": x}, seed=0, max_iter=0)
    np.testing.assert_allclose(start["A"].mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(start["q"].mean, 0.5, rtol=1e-12)
