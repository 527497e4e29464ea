"""Sets of components: how many each cell gets, and which."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from caviar.engine.rows.truncated import supports
from caviar.engine.rows.truncated.block import Block
from caviar.engine.rows.truncated.neighbours import order_of_neighbours
from caviar.engine.rows.truncated.supports import ASKED, Supports, allotted, sizes_for

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


def test_a_price_is_found_soon_where_some_cells_need_none(monkeypatch):
    """The cells that are asked for a price have room for all that they want; beside the others they have not."""
    n, mean, sizes, asked = 2048, 3.0, [1, 4], []
    losses = np.zeros((n, 2))
    losses[:, 0] = 1e-3
    losses[::4, 0] = 0.0
    cheapest = supports._cheapest
    monkeypatch.setattr(supports, "_cheapest", lambda *own: asked.append(1) or cheapest(*own))
    found = allotted(losses, sizes, mean)
    assert found.mean() <= mean
    assert len(asked) < 60


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


def test_cells_are_as_close_far_from_the_origin():
    """They are found in single precision, which has no digits left there."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20 * CELL, 3))
    near, far = (order_of_neighbours(X * 1e-3 + shift, CELL).reshape(-1, CELL) for shift in (0.0, 1e6))
    assert {frozenset(own) for own in near.tolist()} == {frozenset(own) for own in far.tolist()}


def test_values_that_are_all_equal_have_an_order():
    assert sorted(order_of_neighbours(np.ones((150, 2)), CELL)) == list(range(150))


@pytest.mark.parametrize("seed", range(5))
def test_sets_that_a_cell_has_are_exchanged_only_so_that_all_gain(seed):
    rng = np.random.default_rng(seed)
    sizes, n = [1, 2, 4, 8], 200
    losses = -np.sort(-rng.gamma(0.5, size=(n, 4)), axis=1)
    own = rng.choice(sizes, n, p=[0.3, 0.3, 0.2, 0.2])
    before = losses[np.arange(n), np.searchsorted(sizes, own)] * rng.choice([0.7, 1.0, 1.5], n)
    for mean in (own.mean(), 8.0):
        found = allotted(losses, sizes, mean, before, own)
        kept = found == 0
        assert np.where(kept, own, found).mean() <= mean
        chosen = losses[np.arange(n), np.searchsorted(sizes, np.where(kept, 1, found))]
        assert np.where(kept, before, chosen).sum() < before.sum()
    assert kept.any()
    # no other sets of few components are as good as those that all cells have
    np.testing.assert_array_equal(allotted(losses + 10, sizes, 2.0, np.zeros(n), own), 0)


def test_a_cell_keeps_its_set_or_has_the_first_of_those_found():
    own = Supports(np.arange(3 * CELL), 3 * CELL, CELL, np.array([1, 2, 1]), np.array([3, 0, 1, 5]), 5)
    found = own.found(np.array([[7, 8, 9], [6, 5, 4], [2, 1, 0]]), np.array([2, 0, 3]))
    np.testing.assert_array_equal(found.sizes, [2, 2, 3])
    np.testing.assert_array_equal(found.members, [7, 8, 0, 1, 2, 1, 0])
    assert found.age == 6


def test_searches_are_ever_rarer_and_ask_other_rows():
    own = Supports(np.arange(CELL), CELL, CELL, np.array([1]), np.array([0]))
    ages = [replace(own, age=age) for age in range(80)]
    searches = [own.age for own in ages if own.is_asked_anew]
    assert searches == [0, 1, 2, 4, 7, 15, 23, 31, 39, 47, 55, 63, 79]
    assert len({replace(own, n_searches=n).asked % ASKED for n in range(4)}) == ASKED
    sparing = [replace(own, is_sparing=True) for own in ages]
    assert [own.age for own in sparing if own.is_asked_anew] == [0, 7, 15, 23, 31, 39, 47, 55, 63, 79]


def test_searches_follow_soon_where_much_was_lost():
    """As long as the sets of a block fall behind by more than 0.01 nats a row from one search to the next."""
    own = Supports(np.arange(CELL), CELL, CELL, np.array([1]), np.array([0]), 7)
    ranked, sizes = np.array([[2, 3]]), np.array([1])
    for lost, wanted in ((0.02, 11), (0.005, 15)):
        found = own.found(ranked, sizes, lost)
        assert found.n_searches == own.n_searches + 1
        while not found.is_asked_anew:
            found = found.older()
        assert found.age == wanted
    # what was kept of a block is the same state again
    again = Supports.from_state(found.as_state())
    assert (again.is_behind, again.n_searches) == (found.is_behind, found.n_searches)


def test_supports_are_what_their_arrays_tell():
    sets = np.array([1, 2]), np.array([3, 0, 1])
    own = Supports(np.arange(2 * CELL), 100, CELL, *sets, 5, is_sparing=True)
    again = Supports.from_state(own.as_state())
    assert (again.n_rows, again.age, again.is_sparing) == (100, 5, True)
    np.testing.assert_array_equal(again.counted(np.array([1]), None).sum(), 100 - CELL)
