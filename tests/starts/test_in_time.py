"""Segments of a sequence: the way to cut it that leaves the least squares, beside all ways to cut it."""

from itertools import combinations

import numpy as np
import pytest

from caviar.engine.starts.guesses.of_states import _segments


def _left(points, labels):
    return sum(
        np.square(points[labels == own] - points[labels == own].mean(axis=0)).sum()
        for own in np.unique(labels)
    )


@pytest.mark.parametrize(("n", "size", "n_columns"), [(9, 3, 1), (10, 5, 2), (7, 7, 1), (4, 6, 1), (1, 3, 1)])
def test_segments_leave_the_least_squares(n, size, n_columns):
    points = np.random.default_rng(n).normal(size=(n, n_columns))
    most = min(size, n)
    every = [
        np.repeat(np.arange(most), np.diff([0, *cuts, n])) for cuts in combinations(range(1, n), most - 1)
    ]
    found = _segments(points, size)
    assert (np.diff(found) >= 0).all()
    assert found.max() < size
    assert _left(points, found) == pytest.approx(min(_left(points, own) for own in every), abs=1e-12)


def test_long_sequences_are_cut_near_their_steps():
    rng = np.random.default_rng(0)
    steps = np.repeat([0.0, 4.0, 0.0, -4.0, 0.0], [1000, 700, 300, 1500, 500])
    found = _segments((steps + rng.normal(size=4000))[:, None], 5)
    np.testing.assert_allclose(np.flatnonzero(np.diff(found)) + 1, [1000, 1700, 2000, 3500], atol=10)
