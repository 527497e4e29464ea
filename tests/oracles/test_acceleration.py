"""Moves beyond the updates: the secant step against dense BFGS, and what they do to fits."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.engine.ascent.schedules import batch
from caviar.engine.ascent.schedules.batch import Batch
from caviar.engine.ascent.schedules.moves.acceleration import (
    Memory,
    Move,
    Pair,
    Place,
    secant_move,
    share_of_secant,
)
from caviar.engine.ascent.state import updated_from
from caviar.numerics.records import replaced


@pytest.mark.parametrize("n_pairs", [1, 3, 8])
def test_secant_step_is_that_of_dense_bfgs(n_pairs):
    """With F the first guess of the curvature, f = F^-1 h, the step is H h with H updated pair by pair."""
    rng = np.random.default_rng(n_pairs)
    root, curvature = rng.normal(size=(2, 6, 6))
    inverse = np.linalg.inv(root @ root.T + np.eye(6))
    hessian = curvature @ curvature.T + np.eye(6)
    dense, pairs = inverse, []
    for place in rng.normal(size=(n_pairs, 6)):
        # of a concave objective the gradient falls along the move; noise, for F is not constant
        expected = -hessian @ place + 0.01 * rng.normal(size=6)
        pairs.append(Pair(place, inverse @ expected, expected))
        rho = 1.0 / pairs[-1].curvature
        left = np.eye(6) + rho * np.outer(place, expected)
        dense = left @ dense @ left.T + rho * np.outer(place, place)
    gradient = rng.normal(size=6)
    step = secant_move(Move(inverse @ gradient, gradient), tuple(pairs))
    np.testing.assert_allclose(step, dense @ gradient, rtol=1e-9)


def test_a_secant_step_that_goes_too_far_is_cut_to_the_top_of_a_parabola():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    hessian, place, gradient = root @ root.T + np.eye(4), rng.normal(size=4), rng.normal(size=4)
    memory = Memory(Place(place, place), Move(gradient, gradient))
    top = gradient @ gradient / (gradient @ hessian @ gradient)
    for share in (0.2, 0.45):
        way = top / share * gradient
        gain = gradient @ way - 0.5 * way @ hessian @ way
        assert share_of_secant(memory, place + way, gain) == pytest.approx(share)
    assert share_of_secant(memory, place + 1e4 * gradient, -1e9) == pytest.approx(0.1)


@pytest.mark.parametrize(("next_pause", "n_tried"), [(4, 1), (8, 2)])
def test_after_several_refused_moves_a_part_of_the_next_one_is_tried(next_pause, n_tried, monkeypatch):
    """A first refused move is no more than that: the way may be a wrong one."""
    states, step = [], Batch.step
    monkeypatch.setattr(Batch, "step", lambda *own: (states.append(own[1]), step(*own))[1])
    cv.models.normal_wishart_mixture(2, 2).fit({"x": cv.datasets.load_faithful().values}, seed=0, tol=1e-9)
    state = states[-2]
    _, after, _ = updated_from(state)
    tried, at = [], batch.at_natural

    def too_far(memory, _):
        way = memory.move.natural
        return replaced(memory, is_secant=True, next_pause=next_pause), memory.place.natural + 1e3 * way

    monkeypatch.setattr(batch, "proposal", too_far)
    monkeypatch.setattr(batch, "at_natural", lambda *own: (tried.append(own[1]), at(*own))[1])
    batch._further(state, after, Memory(), 1e-6)
    place = batch.place_in(state).natural
    assert len(tried) == n_tried
    if n_tried == 2:
        shares = (tried[1] - place) / (tried[0] - place)
        assert shares == pytest.approx(shares[0])
        assert 0.1 <= shares[0] <= 0.5


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_accelerated_fits_rise_and_end_at_fixed_points(name):
    """The ELBO never falls, and where it settles plain sweeps cannot raise it."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 60)
    posterior = case.fit(data, tol=1e-11, max_iter=3000)
    assert np.diff(posterior.elbo_trace).min(initial=0.0) >= -1e-9 * abs(posterior.elbo)
    plain = case.fit(
        data, init={key: posterior[key] for key in posterior}, tol=0, max_iter=3, accelerate=False
    )
    assert plain.elbo <= posterior.elbo + 1e-6 * 60


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_moves_are_kept_where_they_end_no_lower_than_the_updates(name, monkeypatch):
    """What the updates gain follows from divergences, without their objective, and decides as it would."""
    is_worth_it = batch.is_worth_it

    def watched(found, before, after, memory):
        is_kept = is_worth_it(found, before, after, memory)
        rounding = 1e-10 * abs(before.elbo)
        if abs(found.elbo - after.elbo) > rounding:
            assert is_kept == (found.elbo > after.elbo)
        if after.problem.tells_gains:
            gained = after.elbo - before.elbo
            assert batch.gain_of_updates(before, after, memory) == pytest.approx(
                gained, rel=1e-6, abs=rounding
            )
            assert gained <= memory.move.natural @ memory.move.expected + rounding
        return is_kept

    monkeypatch.setattr(batch, "is_worth_it", watched)
    case = CASES[name]
    case.fit(case.draw(np.random.default_rng(0), 60), tol=1e-11, max_iter=40)


def test_the_objective_of_the_updates_is_not_computed_for_moves_that_gain_more(monkeypatch):
    is_worth_it, computed = batch.is_worth_it, []

    def watched(found, before, after, memory):
        is_kept = is_worth_it(found, before, after, memory)
        computed.append("value" in vars(after.objective))
        return is_kept

    monkeypatch.setattr(batch, "is_worth_it", watched)
    cv.models.normal_wishart_mixture(2, 2).fit({"x": cv.datasets.load_faithful().values}, seed=0)
    # the last gains little more than rounding
    assert computed[0] is False


@pytest.mark.slow
def test_overlapping_components_take_a_fraction_of_the_iterations():
    """From the same start, to the same tolerance, and no lower."""
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (1000, 2)) + rng.choice([-0.8, 0.8], (1000, 1))
    model = cv.models.normal_wishart_mixture(2, 3)
    labels = rng.integers(0, 3, 1000)
    fits = {
        accelerate: model.fit({"x": x}, init={"z": labels}, max_iter=5000, tol=1e-9, accelerate=accelerate)
        for accelerate in (True, False)
    }
    assert fits[True].converged
    assert 3 * fits[True].n_iter < fits[False].n_iter
    assert fits[True].elbo > fits[False].elbo - 0.01


def test_point_masses_are_accelerated_too():
    """EM of overlapping components: the same likelihood in fewer iterations."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 1, 500), rng.normal(1.5, 0.7, 500)])
    mean = cv.Normal("mean", 0.0, 0.0, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=(obs := cv.Plate("obs")))
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))
    arguments = {"init": {"mean": [-0.1, 0.4]}, "point": ["weights", "mean"], "tol": 1e-12, "max_iter": 5000}
    fast, slow = (model.fit({"x": x}, **arguments, accelerate=accelerate) for accelerate in (True, False))
    assert fast.elbo == pytest.approx(slow.elbo, abs=1e-5)
    assert fast.n_iter < slow.n_iter / 2
