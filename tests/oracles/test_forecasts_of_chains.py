"""States after the last observation of a sequence, against the enumeration of all paths."""

from itertools import product

import numpy as np
import pytest

import caviar as cv
from caviar.families import ForecastMarkovChain, MarkovChain

OBSERVED = np.array([True, True, False, False, False, True, False, False])
STARTS = np.array([True, False, False, True, False, True, False, True])
"""A sequence of two rows and one ahead, an empty one of two, one of one row and one ahead, and an empty one."""


def chain(seed: int, n_states: int = 2) -> tuple[ForecastMarkovChain, dict[tuple[int, ...], float]]:
    """Return a chain and the probability of each path, multiplied out step by step."""
    rng = np.random.default_rng(seed)
    weights, initial = rng.random((3, n_states)), rng.dirichlet(np.ones(n_states))
    transition = rng.dirichlet(np.ones(n_states), n_states)
    # the factors of an observed chain need not be normalised
    first, step = initial * rng.random(n_states), transition * rng.random((n_states, n_states))
    seen = MarkovChain(np.log(weights), STARTS[OBSERVED], np.log(first), np.log(step))
    paths = {}
    for path in product(range(n_states), repeat=len(STARTS)):
        density = 1.0
        for t, state in enumerate(path):
            begin, move = (first, step) if OBSERVED[t] else (initial, transition)
            density *= begin[state] if STARTS[t] else move[path[t - 1], state]
            if OBSERVED[t]:
                density *= weights[OBSERVED[:t].sum(), state]
        paths[path] = density
    return ForecastMarkovChain(seen, OBSERVED, STARTS, initial, transition), paths


@pytest.mark.parametrize("seed", range(4))
def test_everything_follows_from_the_probabilities_of_all_paths(seed: int) -> None:
    found, paths = chain(seed)
    total = sum(paths.values())
    shares = np.array(list(paths.values())) / total
    each = np.array(list(paths))
    assert found.log_partition == pytest.approx(np.log(total), abs=1e-12)
    assert found.entropy() == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-12)
    np.testing.assert_allclose(found.probabilities[:, 1], shares @ each, rtol=1e-12)
    np.testing.assert_allclose(found.mean, found.probabilities)
    np.testing.assert_allclose(found.log_density(each), np.log(shares), atol=1e-12)
    np.testing.assert_array_equal(found.mode(), each[shares.argmax()])


def test_draws_have_the_probabilities_of_paths() -> None:
    found, paths = chain(0)
    draws = found.sample((40_000,), seed=0)
    assert draws.shape == (40_000, len(STARTS))
    numbers = draws @ (2 ** np.arange(len(STARTS))[::-1])
    share = np.bincount(numbers, minlength=2 ** len(STARTS)) / len(draws)
    exact = np.array(list(paths.values())) / sum(paths.values())
    np.testing.assert_allclose(share, exact, atol=5 * np.sqrt(exact.max() / len(draws)))


def test_impossible_steps_stay_impossible() -> None:
    transition = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    with np.errstate(divide="ignore"):
        log_transition, log_initial = np.log(transition), np.log([1.0, 0.0, 0.0])
    seen = MarkovChain(np.zeros((1, 3)), np.array([True]), log_initial, log_transition)
    is_seen = np.array([True] + [False] * 4)
    found = ForecastMarkovChain(seen, is_seen, is_seen, np.array([1.0, 0.0, 0.0]), transition)
    assert found.probabilities[1, 2] == 0.0
    assert (np.diff(found.mode()) >= 0).all()
    assert (np.diff(found.sample((100,), seed=1)) >= 0).all()
    assert np.isfinite(found.entropy())


def test_the_forecast_is_the_expected_transition() -> None:
    """One step ahead it is exact under q, for transitions are independent of the path there."""
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    rows = cv.Dirichlet("transition", np.ones(2), plates=state)
    s = cv.MarkovChain("s", [0.3, 0.7], rows, along=time)
    model = cv.Model(cv.Normal("x", cv.Constant("mean", [0.0, 3.0], plates=state)[s], 1.0, plates=time))
    x = np.array([0.1, 0.2, 2.8, 3.3, -0.4, 0.3])
    posterior = model.fit({"x": x}, tol=1e-12)
    ahead = posterior.local({"x": np.append(x, np.nan)})["s"].probabilities
    draws = posterior["transition"].sample(200_000, seed=0)
    drawn = np.einsum("k,skl->l", ahead[-2], draws) / len(draws)
    np.testing.assert_allclose(ahead[-1], drawn, atol=5e-3 / np.sqrt(2))
    assert ahead[-1, 0] == pytest.approx(float(ahead[-2] @ posterior["transition"].mean[:, 0]), rel=1e-12)
