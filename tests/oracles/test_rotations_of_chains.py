"""States of a chain turned with their loadings and an unknown transition: values, slopes, and where that leads."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv
from caviar.engine.ascent.schedules.expansion import expanded
from caviar.engine.ascent.schedules.expansion.chains import TurnedChain
from caviar.engine.ascent.schedules.expansion.expanded import _best, _turn
from caviar.engine.ascent.schedules.expansion.groups import groups_of
from caviar.engine.ascent.schedules.expansion.sides import sides_of
from caviar.engine.ascent.schedules.expansion.turn import Turned
from caviar.engine.ascent.state import at_natural, joined
from oracles.turns import states_before_turns

NOISES = [np.ones(2), np.array([2.0, 0.7])]
PRIOR_MEAN = np.array([[0.8, 0.1], [-0.2, 0.5]])
PRIOR_PRECISION = np.array([[1.5, 0.3], [0.3, 0.9]])
FIRST_MEAN, FIRST_PRECISION = np.array([0.5, -1.0]), np.array([[1.2, 0.2], [0.2, 0.6]])


def _paths(seed, size=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length, size)).cumsum(axis=0) for length in (5, 4)]


def _chain_of(paths, noise):
    """Return what is known of states that are certain."""
    before, after = (np.concatenate([own[where] for own in paths]) for where in (np.s_[:-1], np.s_[1:]))
    first = np.stack([own[0] for own in paths])
    return TurnedChain(
        first=first.T @ first,
        before=before.T @ before,
        pairs=before.T @ after,
        after=after.T @ after,
        first_mean=first.sum(axis=0),
        count=float(sum(map(len, paths))),
        first_precision=FIRST_PRECISION,
        first_linear=FIRST_PRECISION @ FIRST_MEAN,
        noise=noise,
        prior_linear=PRIOR_MEAN @ PRIOR_PRECISION,
        prior_precision=PRIOR_PRECISION,
    )


def _log_density(paths, noise):
    """Return the log density of states, the transition summed out over a grid, row by row."""
    total = sum(
        multivariate_normal.logpdf(own[0], FIRST_MEAN, np.linalg.inv(FIRST_PRECISION)) for own in paths
    )
    before, after = (np.concatenate([own[where] for own in paths]) for where in (np.s_[:-1], np.s_[1:]))
    grid = np.linspace(-4, 4, 801)
    rows = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    for i, precision in enumerate(noise):
        prior = multivariate_normal.logpdf(rows, PRIOR_MEAN[i], np.linalg.inv(PRIOR_PRECISION))
        steps = norm.logpdf(after[:, i], rows @ before.T, precision**-0.5).sum(axis=1)
        total += logsumexp(prior + steps) + 2 * np.log(grid[1] - grid[0])
    return total


@pytest.mark.thinned(2)
@pytest.mark.parametrize("noise", NOISES)
def test_what_is_said_of_turned_states_is_their_density_without_the_transition(noise):
    paths, turn = _paths(0), np.array([[0.9, 0.3], [-0.4, 1.1]])
    chain = _chain_of(paths, noise)
    promised = chain.value(turn)[0] - chain.value(np.eye(2))[0]
    exact = _log_density([own @ turn.T for own in paths], noise) - _log_density(paths, noise)
    assert promised == pytest.approx(exact, abs=1e-6)
    assert chain.turned(turn).value(np.eye(2))[0] == pytest.approx(chain.value(turn)[0], rel=1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(3))
def test_the_slope_is_that_of_differences(seed, noise):
    chain = _chain_of(_paths(seed), noise)
    turn = np.eye(2) + 0.3 * np.random.default_rng(seed).normal(size=(2, 2))
    differences = approx_fprime(turn.ravel(), lambda flat: chain.value(flat.reshape(2, 2))[0], 1e-7)
    np.testing.assert_allclose(chain.value(turn)[1].ravel(), differences, rtol=1e-4, atol=1e-4)


def _system(kind, size=3, n_columns=5, n_chains=1):
    """Return a system with an unknown transition, and values of two sequences with some of them missing."""
    time, state, column = cv.Plate("time"), cv.Plate("state", size), cv.Plate("column", n_columns)
    mean, precision, noise, first = np.zeros(size), np.eye(size), np.eye(size), np.zeros(size)
    if kind == "relevance":
        precision = cv.diagonal(cv.Gamma("beta", 1e-2, 1e-2, plates=cv.Plate("before", size)))
    if kind == "walk":
        mean, first = np.full(size, 0.3), np.arange(size) - 1.0
    if kind == "noise":
        noise = cv.diagonal(cv.Gamma("q", 5.0, 5.0, plates=state))
    if kind == "first":
        first = cv.MultivariateNormal("m", np.zeros(size), 0.1 * np.eye(size))
    starts = cv.Data("starts", plates=time)
    alpha = cv.Gamma("alpha", 1e-2, 1e-2, plates=state)
    loadings = cv.MultivariateNormal("w", np.zeros(size), cv.diagonal(alpha), plates=column)
    level: Any = cv.Normal("level", 0, 1e-2, plates=column)
    for k in range(n_chains):
        transition = cv.MultivariateNormal(f"A{k}", mean, precision, plates=state)
        s = cv.LinearGaussianChain(
            f"s{k}", first, 0.5 * np.eye(size), transition, noise, along=time, starts=starts
        )
        level = level + cv.dot(loadings, s)
    model = cv.Model(cv.Normal("x", level, cv.Gamma("tau", 1, 1, plates=column), plates=(time, column)))
    return model, _values(n_columns)


def _values(n_columns, n_rows=80):
    rng = np.random.default_rng(5)
    angle, state, rows = 0.4, np.array([2.0, 0.0, 1.0]), []
    move = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 0.9]])
    for _ in range(n_rows):
        state = move @ state + 0.5 * rng.normal(size=3)
        rows.append(state)
    x = np.array(rows) @ rng.normal(size=(3, n_columns)) + 0.5 * rng.normal(size=(n_rows, n_columns))
    return {
        "x": np.where(rng.random(x.shape) < 0.1, np.nan, x),
        "starts": np.isin(np.arange(n_rows), [0, 30]),
    }


def _sides(state, group):
    found = sides_of(state, group)
    assert found is not None
    return found


def _turned_by(state, group, turn):
    place = Turned.of(state)
    _turn(state.problem, group, _sides(state, group), turn, place)
    found = at_natural(state, joined(state.problem, place.naturals))
    assert found is not None
    return found


KINDS = ["plain", "relevance", "walk", "noise", "first"]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_gains_what_it_promises_and_more(kind):
    model, data = _system(kind)
    seen, _ = states_before_turns(model, data, seed=0, max_iter=3)
    schedule, state = seen[1]
    (group,) = (own.group for own in schedule.turns)
    assert {own.variable.name for own in group.members} == {"w", "s0"}
    turn, gain = _best(group, _sides(state, group))
    assert gain > 0.01
    assert _turned_by(state, group, turn).elbo - state.elbo > gain - 1e-8


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_rises_with_a_turn_as_it_is_said_to(kind):
    model, data = _system(kind)
    seen, _ = states_before_turns(model, data, seed=0, max_iter=3)
    schedule, state = seen[-1]
    (group,) = (own.group for own in schedule.turns)
    for _ in range(60):
        # states and what follows from them at their optimum: the objective then rises by what the turn itself does
        state = _turned_by(state, group, np.eye(3))
    sides = _sides(state, group)
    rng = np.random.default_rng(1)
    for _ in range(3):
        way, step = rng.normal(size=(3, 3)), 1e-4
        ends = [_turned_by(state, group, np.eye(3) + sign * step * way).elbo for sign in (1, -1)]
        said = 0.0
        for own in sides:
            slope = own.value(np.eye(3))[1] + own.count * np.eye(3)
            said += float(np.sum(slope * (-way.T if own.is_dual else way)))
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(said, rel=1e-3, abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ends_are_the_same_and_nothing_moves_there(kind, monkeypatch):
    model, data = _system(kind)
    seen, found = states_before_turns(model, data, seed=0, max_iter=3000, tol=1e-9)
    assert found.converged
    assert np.all(np.diff(found.elbo_trace) > -1e-7)
    schedule, state = seen[-1]
    (group,) = (own.group for own in schedule.turns)
    assert 0 <= _best(group, _sides(state, group))[1] < 1e-3
    assert 0 <= schedule.step(state).elbo - state.elbo + 1e-9 < 1e-3
    monkeypatch.setattr(expanded, "_NEAR_OF_CHAINS", 0.0)
    plain = model.fit(data, seed=0, max_iter=3000, tol=1e-9)
    assert found.elbo > plain.elbo - 1e-2


def test_two_chains_with_the_same_loadings_turn_together():
    model, data = _system("plain", n_chains=2)
    seen, posterior = states_before_turns(model, data, seed=0, max_iter=8)
    (group,) = (own.group for own in seen[0][0].turns)
    assert {own.variable.name for own in group.members} == {"w", "s0", "s1"}
    assert np.all(np.diff(posterior.elbo_trace) > -1e-7)


def _groups(transition, noise=None, inputs=None, more=None, **arguments):
    time, column = cv.Plate("time"), cv.Plate("column", 4)
    given = {} if inputs is None else {"inputs": inputs, "input_weights": np.ones((2, 1))}
    noise = np.eye(2) if noise is None else noise
    s = cv.LinearGaussianChain("s", np.zeros(2), np.eye(2), transition, noise, along=time, **given)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=column)
    leaves = [cv.Normal("x", cv.dot(w, s), 1.0, plates=(time, column)), *(more(time, s) if more else ())]
    data = {"x": np.random.default_rng(0).normal(size=(20, 4)), **arguments}
    return groups_of(cv.Model(*leaves).fit(data, max_iter=1)._evaluator.bind(data)[0])


def test_only_chains_with_a_transition_of_their_own_turn():
    def unknown(precision=1.0):
        return cv.MultivariateNormal("A", np.zeros(2), precision * np.eye(2), plates=cv.Plate("row", 2))

    assert len(_groups(unknown())) == 1
    assert _groups(0.5 * np.eye(2)) == []
    assert _groups(unknown(), inputs=[1.0]) == []
    seen = {"y": np.random.default_rng(1).normal(size=20)}
    assert (
        _groups(
            unknown(), more=lambda time, s: [cv.Normal("y", cv.dot([1.0, 0.5], s), 1, plates=time)], **seen
        )
        == []
    )
    rows = unknown()
    also = cv.Normal("v", cv.dot(rows, [1.0, 1.0]), 1.0, plates=rows.plates)
    assert _groups(rows, more=lambda time, s: [also], v=np.zeros(2)) == []


@pytest.mark.slow
def test_systems_need_few_sweeps(monkeypatch):
    model = cv.models.linear_dynamical_system(5, 4, with_starts=True)
    data = _values(5, 300)
    found = model.fit(data, seed=0, max_iter=1000)
    monkeypatch.setattr(expanded, "_NEAR_OF_CHAINS", 0.0)
    plain = model.fit(data, seed=0, max_iter=1000)
    assert found.elbo > plain.elbo - 1e-2
    assert found.n_iter < plain.n_iter / 2


@pytest.mark.slow
def test_no_state_falls_silent_that_the_data_need(monkeypatch):
    capture = cv.datasets.load_motion_capture()
    two = capture.column("sequence") <= 2
    angles = capture.values[two, 2:]
    data = {
        "x": (angles - angles.mean(axis=0)) / angles.std(axis=0),
        "starts": np.diff(capture.column("sequence")[two], prepend=0) > 0,
    }
    model = cv.models.linear_dynamical_system(12, 8, with_starts=True)
    found = model.fit(data, seed=0, tol=1e-3)
    monkeypatch.setattr(expanded, "_NEAR_OF_CHAINS", np.inf)
    early = model.fit(data, seed=0, tol=1e-3)
    assert found.elbo > early.elbo + 100
