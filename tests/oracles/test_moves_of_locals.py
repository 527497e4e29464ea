"""Moves beyond the updates that take kept local factors along: those of rows that depend on each other."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules import batch
from caviar.engine.ascent.state import at_natural, joined
from caviar.engine.local.kept import last_update, moved_to
from oracles.turns import states_before_turns

ROW, COLUMN, PART = cv.Plate("row"), cv.Plate("column", 15), cv.Plate("part", 3)


def counts(seed, shape=2.0):
    """Counts all of whose parts are present: there scales gain next to nothing."""
    rng = np.random.default_rng(seed)
    scores, loadings = (rng.gamma(shape, 1 / shape, (n, 3)) for n in (60, 15))
    u, v = (cv.Gamma(name, shape, shape, plates=(own, PART)) for name, own in (("u", ROW), ("v", COLUMN)))
    model = cv.Model(cv.Poisson("x", cv.dot(u, v), plates=(ROW, COLUMN)))
    return model, {"x": rng.poisson(scores @ loadings.T)}


def _state(model, data, step=3, **arguments):
    seen, _ = states_before_turns(model, data, seed=0, max_iter=step + 2, tol=0, **arguments)
    return seen[step][1]


def _update(state):
    return last_update(state.problem.rows.apart.movable, state.warm, state.rows.weights)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_fits_settle_in_fewer_iterations(seed, monkeypatch):
    model, data = counts(seed)
    found = model.fit(data, seed=0, max_iter=2000)
    monkeypatch.setattr(batch, "last_update", lambda *_: None)
    without = model.fit(data, seed=0, max_iter=2000)
    assert found.elbo > without.elbo - 1e-3
    assert found.n_iter < 0.6 * without.n_iter


def test_the_largest_factor_is_not_moved():
    state = _state(*counts(0))
    assert [own.name for own in state.problem.rows.apart.movable] == ["u"]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_pass_leaves_where_kept_factors_were_and_where_they_are(is_weighted):
    model, data = counts(0)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 2.0) if is_weighted else np.ones(60)
    state = _state(model, data, sample_weight=weights)
    found = _update(state)
    assert found is not None
    counted = weights[weights > 0]
    for own in found:
        # log x and x of three parts for each row
        shape, negative_rate = own.natural.reshape(2, 3, -1)
        q = cv.families.Gamma(shape, -negative_rate)
        for told, expected in zip(own.expected.reshape(2, 3, -1), q.expected_statistics, strict=True):
            np.testing.assert_allclose(told, expected * counted, rtol=1e-12)
    # the next pass begins where this one has ended, or where they are moved to
    there = found[1].natural * 1.1
    for moved, start in (({}, found[1].natural), (there, there)):
        natural = joined(state.problem, state.natural)
        after = at_natural(state, np.concatenate([natural, moved]) if len(moved) else natural)
        assert after is not None
        again = _update(after)
        assert again is not None
        np.testing.assert_array_equal(again[0].natural, start)


def test_factors_are_not_moved_where_they_would_be_none():
    state = _state(*counts(0))
    found = _update(state)
    assert found is not None
    natural = np.concatenate([joined(state.problem, state.natural), -found[1].natural])
    assert at_natural(state, natural) is None
    with pytest.raises(cv.ImproperError):
        moved_to(state.problem.rows.apart.movable, state.warm, -found[1].natural)


def test_rows_without_such_factors_have_none():
    obs = cv.Plate("obs")
    size = cv.Gamma("size", 2.0, 2.0, plates=obs)
    model = cv.Model(cv.Poisson("x", size * cv.Gamma("rate", 1.0, 1.0), plates=obs))
    state = _state(model, {"x": np.arange(9)}, step=0)
    assert state.problem.rows.apart.movable == ()
    assert _update(state) is None


def test_a_fit_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(tmp_path):
    model, data = counts(1)
    whole = model.fit(data, seed=0)

    class Interrupted(Exception):
        pass

    def interrupt(progress):
        if progress.iteration == 12:
            raise Interrupted

    path = tmp_path / "fit"
    with pytest.raises(Interrupted):
        model.fit(data, seed=0, checkpoint=path, progress=interrupt)
    again = model.fit(data, seed=0, checkpoint=path)
    np.testing.assert_array_equal(again.elbo_trace, whole.elbo_trace)
    np.testing.assert_array_equal(again["v"].mean, whole["v"].mean)
