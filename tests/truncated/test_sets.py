"""Sets of components: how many each cell gets, and which."""

import itertools

import numpy as np
import pytest

from caviar.engine.rows.truncated.block import Block, _better
from caviar.engine.rows.truncated.neighbours import order_of_neighbours
from caviar.engine.rows.truncated.supports import Supports, allotted, sizes_for

CELL = Block.cell


def test_sizes_leave_the_least_loss_of_all_that_cost_as_much():
    rng = np.random.default_rng(0)
    sizes = [1, 2, 4]
    losses = -np.sort(-rng.gamma(0.5, size=(6, 3)), axis=1)
    numbers = allotted(losses, sizes, 2.0)
    assert numbers.mean() <= 2
    own = losses[np.arange(6), np.searchsorted(sizes, numbers)].sum()
    every = (np.array(chosen) for chosen in itertools.product(range(3), repeat=6))
    cheap = [chosen for chosen in every if np.take(sizes, chosen).sum() <= numbers.sum()]
    assert own <= min(losses[np.arange(6), chosen].sum() for chosen in cheap) + 1e-12


def test_more_members_than_components_are_all_of_them():
    assert sizes_for(20, 12) == [12]
    assert sizes_for(8, 12)[-1] == 12


def test_neighbours_come_together():
    rng = np.random.default_rng(1)
    centres = 100 * np.outer(np.arange(4), np.ones(4))
    labels = rng.permutation(np.repeat(np.arange(4), CELL))
    order = order_of_neighbours(centres[labels] + rng.normal(size=(4 * CELL, 4)), CELL)
    assert sorted(order) == list(range(4 * CELL))
    assert all(len(set(own)) == 1 for own in labels[order].reshape(4, CELL))


def test_values_that_are_all_equal_have_an_order():
    assert sorted(order_of_neighbours(np.ones((150, 2)), CELL)) == list(range(150))


@pytest.mark.parametrize("seed", range(5))
def test_members_are_exchanged_only_for_better_ones(seed):
    rng = np.random.default_rng(seed)
    natural = 5 * rng.normal(size=(6, 8, CELL)) + 3 * rng.normal(size=(6, 8, 1))
    counted = rng.choice([0.0, 1.0, 2.0], (8, CELL))
    kept = _better(natural.copy(), counted, 4)
    assert np.any(kept != np.arange(4)[:, None])
    for cell in range(8):
        own, first = natural[kept[:, cell], cell], natural[:4, cell]
        gain = (np.logaddexp.reduce(own) - np.logaddexp.reduce(first)) @ counted[cell]
        assert gain >= -1e-9
        assert len(set(kept[:, cell])) == 4


def test_supports_are_what_their_arrays_tell():
    own = Supports(np.arange(2 * CELL), 100, CELL, np.array([1, 2]), np.array([3, 0, 1]), 5)
    again = Supports.from_state(own.as_state())
    assert (again.n_rows, again.age) == (100, 5)
    np.testing.assert_array_equal(again.counted(np.array([1]), None).sum(), 100 - CELL)
