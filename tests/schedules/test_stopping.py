"""A progress function that returns True ends a start, with every schedule; what is returned is sound all the same."""

import numpy as np
import pytest

import caviar as cv
from schedules.test_incremental import three_clusters

SCHEDULES = ["batch", cv.Incremental(4), cv.Stochastic(1_000)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_ends_where_it_is_asked_to(schedule):
    X = three_clusters(8_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    asked = model.fit({"x": X}, seed=0, schedule=schedule, tol=0, progress=lambda told: told.iteration == 2)
    most = model.fit({"x": X}, seed=0, schedule=schedule, tol=0, max_iter=2)
    assert asked.status.value == "stopped"
    assert not asked.converged
    assert asked.n_iter == most.n_iter
    np.testing.assert_array_equal(asked["weights"].concentration, most["weights"].concentration)
    exact = asked.elbo_at({name: asked[name] for name in asked}, {"x": X})
    assert asked.elbo == pytest.approx(exact, rel=1e-10)
    assert asked.n_updates == most.n_updates


def test_each_start_is_asked_anew():
    X = three_clusters(2_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    seen = []

    def stop_at_three(told):
        seen.append((told.restart, told.iteration))
        return told.iteration == 3

    posterior = model.fit({"x": X}, seed=0, tol=0, n_restarts=2, progress=stop_at_three)
    assert sorted(seen) == [(start, iteration) for start in (0, 1) for iteration in (1, 2, 3)]
    assert posterior.status.value == "stopped"


def test_other_answers_do_not_end_it():
    X = three_clusters(2_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    assert model.fit({"x": X}, seed=0, progress=lambda told: told.iteration).converged


@pytest.mark.parametrize(
    ("schedule", "updates"), [("batch", 3), (cv.Incremental(4), 12), (cv.Stochastic(1_024), 24)]
)
def test_updates_are_counted(schedule, updates):
    X = three_clusters(8_192)
    model = cv.models.normal_wishart_mixture(2, 3)
    found = model.fit({"x": X}, seed=0, schedule=schedule, tol=0, max_iter=3)
    assert found.n_updates == updates


def test_a_checkpoint_remembers_that_it_was_stopped(tmp_path):
    X = three_clusters(2_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    arguments = {"seed": 0, "tol": 0, "checkpoint": tmp_path / "fit.checkpoint", "checkpoint_every": 0}
    first = model.fit({"x": X}, progress=lambda told: told.iteration == 2, **arguments)
    again = model.fit({"x": X}, **arguments)
    assert (first.status, first.n_iter) == (again.status, again.n_iter)
