"""Points that a user starts from are held while everything else is brought near them, until that has settled."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.status import Status
from caviar.engine.starts import from_user, warm_up


@pytest.fixture
def first_sweeps(monkeypatch):
    """Where the first sweeps over everything but what is given ended."""
    seen = []
    iterate = warm_up.iterate
    monkeypatch.setattr(warm_up, "iterate", lambda *given: seen.append(iterate(*given)) or seen[-1])
    return seen


def test_first_sweeps_settle_around_a_point(first_sweeps, monkeypatch):
    """Given the precision, the mean has one update: no sweeps follow, which would change nothing."""
    near, updated_at_once = [], from_user.updated_at_once
    monkeypatch.setattr(
        from_user, "updated_at_once", lambda *given: near.append(updated_at_once(*given)) or near[-1]
    )
    y = np.random.default_rng(0).normal(3.0, 0.5, 50)
    mean, precision = cv.Normal("mean", 0.0, 0.1), cv.Gamma("precision", 1.0, 1.0)
    model = cv.Model(cv.Normal("y", mean, precision, plates=cv.Plate("obs")))
    model.fit({"y": y}, init={"precision": 4.0}, max_iter=1)
    assert not first_sweeps
    (problem, q), raced = near[0].start, near[0].raced
    assert raced.q == q
    factors = {variable.name: factor for variable, factor in q.items()}
    reference = problem.coordinates.of(next(v for v in problem.order if v.name == "mean"))
    own = factors["mean"] if reference is None else factors["mean"].translate(reference)
    np.testing.assert_allclose(own.precision, 0.1 + 4.0 * 50)
    np.testing.assert_allclose(own.mean, 4.0 * y.sum() / (0.1 + 4.0 * 50))
    assert factors["precision"].value == 4.0


def test_first_sweeps_go_on_where_others_wait_for_each_other(first_sweeps):
    """A mean and the mean of its prior settle together, in more sweeps than one."""
    y = np.random.default_rng(0).normal(3.0, 0.5, 50)
    centre, precision = cv.Normal("centre", 0.0, 0.1), cv.Gamma("precision", 1.0, 1.0)
    mean = cv.Normal("mean", centre, 1.0)
    model = cv.Model(cv.Normal("y", mean, precision, plates=cv.Plate("obs")))
    model.fit({"y": y}, init={"precision": 4.0}, max_iter=1)
    (found,) = first_sweeps
    assert found.status is Status.CONVERGED
    assert found.n_iter > 1
    q = {variable.name: factor for variable, factor in found.q.items()}
    origin = {variable.name: found.problem.coordinates.of(variable) for variable in found.problem.order}
    means = {
        name: q[name].mean + (0.0 if origin[name] is None else origin[name]) for name in ("mean", "centre")
    }
    np.testing.assert_allclose(means["mean"], (4.0 * y.sum() + means["centre"]) / 201.0, rtol=1e-3)
    np.testing.assert_allclose(means["centre"], means["mean"] / 1.1, rtol=1e-3)
