"""Starts of a level that wanders, to which the states of a chain of labels add."""

import numpy as np
import pytest

import caviar as cv
from starts.case import TOLERANCE, Problem


def _wandering(rng, n_states):
    n_rows, drift = 300, 0.1
    states = [0]
    for _ in range(n_rows - 1):
        others = [state for state in range(n_states) if state != states[-1]]
        states.append(states[-1] if rng.random() < 0.95 else rng.choice(others))
    shifts = 3.0 * (np.arange(n_states) - (n_states - 1) / 2)
    y = np.cumsum(drift * rng.normal(size=n_rows)) + shifts[states] + 0.3 * rng.normal(size=n_rows)
    t, state, one = cv.Plate("t"), cv.Plate("state", n_states), cv.Plate("one", 1)
    level = cv.LinearGaussianChain(
        "level",
        mean=[0.0],
        precision=[[1.0]],
        transition=[[1.0]],
        noise_precision=cv.diagonal(cv.Gamma("d", 2, 0.02, plates=one)),
        along=t,
    )
    transition = cv.Dirichlet("transition", np.ones(n_states), plates=state)
    s = cv.MarkovChain("s", np.ones(n_states) / n_states, transition, along=t)
    mean = cv.dot([1.0], level) + cv.Normal("mu", 0, 0.1, plates=state)[s]
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=t))
    return Problem(model, {"y": y}, {"mu": shifts, "d": [drift**-2], "tau": 0.3**-2}, n_rows)


@pytest.mark.slow
@pytest.mark.parametrize(("made_by", "n_states", "seed"), [(12, 3, 0), (1000, 2, 1)])
def test_states_are_told_from_a_level_that_wanders(made_by, n_states, seed):
    problem = _wandering(np.random.default_rng(made_by), n_states)
    good = problem.model.fit(problem.data, init=problem.init, seed=0).elbo
    assert (good - problem.model.fit(problem.data, seed=seed).elbo) / problem.rows < TOLERANCE
