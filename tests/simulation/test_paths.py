"""Hidden sequences are drawn as they are stated, and the densities of paths sum to one."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from thinning import amount

import caviar as cv
from caviar import families
from caviar.testing import check_model

INITIAL, TRANSITION = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.1, 0.9]])


def _chain(n: int, seed: int) -> families.MarkovChain:
    rng = np.random.default_rng(seed)
    starts = np.arange(n) % 3 == 0
    return families.MarkovChain(rng.normal(size=(n, 2)), starts, np.log(INITIAL), np.log(TRANSITION))


def test_log_density_sums_to_one_and_is_that_of_the_marginals():
    chain = _chain(5, 0)
    paths = np.array(list(itertools.product(range(2), repeat=5)))
    logs = chain.log_density(paths)
    assert logs.shape == (32,)
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(np.exp(logs) @ np.eye(2)[paths].reshape(32, -1), chain.probabilities.ravel())
    assert -np.exp(logs) @ logs == pytest.approx(chain.entropy())


def test_draws_of_a_smoothed_chain_have_its_probabilities():
    chain, many = _chain(5, 1), 20_000
    draws = chain.sample(many, seed=0)
    assert draws.shape == (many, 5)
    np.testing.assert_allclose(draws.mean(axis=0), chain.probabilities[:, 1], atol=5 * 0.5 / np.sqrt(many))
    pairs = np.mean((draws[:, 0] == 0) & (draws[:, 1] == 1))
    paths = np.array(list(itertools.product(range(2), repeat=5)))
    exact = np.exp(chain.log_density(paths))[(paths[:, 0] == 0) & (paths[:, 1] == 1)].sum()
    assert pairs == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(many))
    assert chain.sample(seed=3).shape == (5,)


def _model(starts: bool = False) -> cv.Model:
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    transition = cv.Dirichlet("transition", np.ones(2), plates=state)
    marks = {"starts": cv.Data("starts", plates=time)} if starts else {}
    s = cv.MarkovChain("s", INITIAL, transition, along=time, **marks)
    mean = cv.Normal("mean", 0.0, 0.1, plates=state)
    return cv.Model(cv.Normal("x", mean[s], 2.0, plates=time))


def test_simulated_states_follow_the_transitions():
    given = {"transition": TRANSITION}
    states = _model().simulate(0, sizes={"time": 3_000}, given=given)["s"]
    counts = np.zeros((2, 2))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    share = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share, TRANSITION, atol=5 * 0.5 / np.sqrt(counts.sum(axis=1).min()))
    every = np.ones(3_000, dtype=bool)
    states = _model(True).simulate(0, data={"starts": every}, given=given)["s"]
    assert states.mean() == pytest.approx(INITIAL[1], abs=5 * 0.5 / np.sqrt(3_000))


def test_log_joint_of_a_hidden_sequence():
    values = {"x": [0.1, 2.0, 1.5], "s": [0, 1, 1], "mean": [0.0, 2.0], "transition": TRANSITION}
    emission = -0.5 * np.log(np.pi) * 3 - (np.array([0.1, 0.0, 0.5]) ** 2).sum()
    prior = np.log(0.1 / (2 * np.pi)) - 0.05 * 4.0
    steps = np.log([INITIAL[0], TRANSITION[0, 1], TRANSITION[1, 1]]).sum()
    assert _model().log_joint(values) == pytest.approx(emission + prior + steps)


@pytest.mark.slow
@pytest.mark.parametrize("starts", [False, True])
def test_hidden_sequences_pass_the_verification_kit(starts):
    data = {"x": np.random.default_rng(0).normal(size=12)}
    if starts:
        data["starts"] = np.arange(12) % 5 == 0
    check_model(_model(starts), data, n_draws=amount(80, 500)).raise_if_failed()
