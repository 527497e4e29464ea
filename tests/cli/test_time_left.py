"""The seconds that are left are guessed from how the changes shrink."""

from types import SimpleNamespace

import pytest

from caviar.cli.remaining import TimeLeft


def event(iteration, change, restart=0, n_restarts=1, max_iter=500):
    return SimpleNamespace(
        iteration=iteration, change_per_row=change, restart=restart, n_restarts=n_restarts, max_iter=max_iter
    )


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def after(changes, *, seconds=2.0, tol=1e-6, **more):
    clock = Clock()
    left = TimeLeft(tol, clock)
    for number, change in enumerate(changes):
        clock.now += seconds
        left.note(event(number + 1, change, **more))
    return left


def test_a_linear_convergence_is_followed_to_its_end():
    # from 1e-3 to 1e-6 at a tenth for each iteration: three iterations of two seconds
    assert after([1.0, 1e-1, 1e-2, 1e-3]).seconds() == pytest.approx(6.0)


def test_the_largest_number_of_iterations_is_the_end_as_well():
    assert after([1.0] * 6, max_iter=10).seconds() == pytest.approx(8.0)
    assert after([1.0, 1e-1, 1e-2, 1e-3], max_iter=5).seconds() == pytest.approx(2.0)


def test_starts_to_come_take_as_long_as_this_one():
    # six seconds between the first and the last note, two before it, and six to come: 14 for each of two more starts
    assert after([1.0, 1e-1, 1e-2, 1e-3], n_restarts=3).seconds() == pytest.approx(6 + 2 * 14)


def test_nothing_is_said_too_early_or_of_moments():
    assert after([1.0, 0.1]).seconds() is None
    assert after([1.0, 0.1]).words() == ""
    assert after([1.0, 1e-1, 1e-2, 1e-3], seconds=0.1).words() == ""
    assert after([1.0, 1e-1, 1e-2, 1e-3], seconds=20).words() == "  about 60 s left"
    assert after([1.0] * 6, seconds=60).words() == "  about 8.2 h left"
