"""Moves of each component by itself: how long they are, and that fits rise faster with them than with common ones."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine import assemble
from caviar.engine.ascent.schedules import relaxed, renewing
from caviar.engine.ascent.schedules.batch import Batch
from caviar.engine.ascent.schedules.moves.acceleration import Memory, Move, Place

pytestmark = pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")


def test_each_component_goes_to_the_top_of_its_parabola():
    """Updates that shrink by rho each time come to their optimum after 1 / (1 - rho) of one, here 4 at the most."""
    rng = np.random.default_rng(0)
    rho, owners = np.array([0.2, 0.5, 0.7, 0.9]), np.repeat(np.arange(4), 3)
    metric = rng.uniform(0.5, 2.0, size=4)[owners]
    optimum, places = rng.normal(size=12), rng.normal(size=(2, 12))

    def at(natural):
        way = (1 - rho[owners]) * (optimum - natural)
        return Place(natural, metric * natural), Move(way, metric * way)

    (before, made), (place, move) = map(at, places)
    found = relaxed.step_lengths(Memory(before, made), place, move, owners, 4)
    np.testing.assert_allclose(found, [1.25, 2.0, 1 / 0.3, 4.0])


def test_an_update_that_grows_is_lengthened_as_far_as_may_be():
    place = Place(np.ones(2), np.ones(2))
    memory = Memory(Place(np.zeros(2), np.zeros(2)), Move(np.ones(2), np.ones(2)))
    found = relaxed.step_lengths(
        memory, place, Move(np.array([2.0, 0.0]), np.array([2.0, 0.0])), np.arange(2), 2
    )
    np.testing.assert_allclose(found, [4.0, 1.0])


def uniform(seed, n_rows=1000, n_components=25):
    X = np.random.default_rng(seed).uniform(size=(n_rows, 2))
    return X, ((X[:, None] - X[:n_components]) ** 2).sum(axis=2).argmin(axis=1)


def test_each_natural_parameter_belongs_to_a_component(monkeypatch):
    states, step = [], relaxed.Relaxed.step
    monkeypatch.setattr(relaxed.Relaxed, "step", lambda *own: (states.append(own[1]), step(*own))[1])
    X, labels = uniform(0)
    model = cv.models.normal_wishart_mixture(2, 25)
    model.fit({"x": X}, init={"z": labels}, responsibilities=6, max_iter=2, uncertainty="mean_field")
    owners = relaxed.owners_of(states[-1])
    # of each component a weight, two numbers, a vector and a matrix
    np.testing.assert_array_equal(np.bincount(owners, minlength=25), 1 + 2 + 2 + 4)


def climbed(X, labels, n, **arguments):
    model = cv.models.normal_wishart_mixture(2, 25)
    asked = {"schedule": "batch", "swaps": False, "uncertainty": "mean_field", "tol": 0.0}
    return model.fit({"x": X}, init={"z": labels}, responsibilities=6, max_iter=n, **asked, **arguments).elbo


@pytest.mark.parametrize("seed", [0, 1])
def test_fits_rise_faster_than_with_moves_of_all_components_together(seed, monkeypatch):
    X, labels = uniform(seed)
    by_itself = climbed(X, labels, 20)
    monkeypatch.setattr(assemble, "renewing", lambda own: own)
    together = climbed(X, labels, 20)
    assert by_itself > together + 0.01 * len(X)


def test_without_acceleration_no_component_goes_further():
    assert renewing.renewing(Batch()) == renewing.Renewing(relaxed.Relaxed())
    plain = Batch(None)
    assert renewing.renewing(plain) is plain
