"""Rows go to the device once and stay while they fit; else they go again in each pass, and nothing changes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv
from caviar.execution.array_libraries import StrictLibrary
from caviar.execution.device import _spread_out
from device.devices import reached, strict, sums, uneven_weights

N = 1000


@pytest.fixture
def moved(monkeypatch):
    """Record the number of rows of every array that goes to a device."""
    sizes = []
    move = StrictLibrary.move

    def recorded(self, array, *, single):
        sizes.append(np.shape(array)[-1] if np.ndim(array) else 0)
        return move(self, array, single=single)

    monkeypatch.setattr(StrictLibrary, "move", recorded)
    return sizes


def rows():
    rng = np.random.default_rng(0)
    return rng.choice([-2.0, 2.0], (N, 1)) + rng.normal(size=(N, 2))


def fit(**arguments):
    return cv.models.gaussian_mixture(2, 3).fit({"x": rows()}, seed=0, tol=0.0, max_iter=6, **arguments)


def test_rows_are_moved_once(moved):
    fit(executor=strict(block_rows=100))
    assert moved.count(100) == N // 100


@pytest.mark.slow
def test_rows_that_do_not_fit_are_moved_in_each_pass(moved, monkeypatch):
    # room for four blocks of 100 rows of two columns
    monkeypatch.setattr(StrictLibrary, "free_memory", 4 * 100 * 2 * 8 / 0.6 + 1)
    few = fit(executor=strict(block_rows=100))
    # a fit may go on from where its start has passed over the rows
    assert moved.count(100) >= 4 + few.n_iter * 6
    monkeypatch.undo()
    assert_allclose(few.elbo_trace, fit(executor=strict(block_rows=100)).elbo_trace, rtol=0)


@pytest.mark.slow
def test_nothing_is_kept_after_a_fit(moved):
    device = strict(block_rows=100)
    fit(executor=device)
    assert device._held == {}
    before = moved.count(100)
    fit(executor=device)
    assert moved.count(100) == 2 * before


def test_blocks_without_weight_are_left_out(moved):
    weights = np.ones(N)
    weights[200:400] = 0.0
    here = fit(sample_weight=weights)
    there = fit(sample_weight=weights, executor=strict(block_rows=100))
    # columns and weights of eight blocks
    assert moved.count(100) == 16
    assert_allclose(there.elbo_trace, here.elbo_trace, rtol=1e-11)


@pytest.mark.slow
def test_block_sizes_agree():
    plan, q, row_map = reached(cv.models.gaussian_mixture(2, 3), {"x": rows()}, weights=uneven_weights(N))
    whole = sums(plan, q, row_map.source, strict(block_rows=N))
    for size in (1, 7, 333):
        found = sums(plan, q, row_map.source, strict(block_rows=size))
        for part, value in whole.parts.items():
            assert_allclose(found.parts[part], value, rtol=1e-12, atol=1e-12 * np.abs(value).max())


def test_strips_of_a_long_block():
    x = np.random.default_rng(1).normal(size=(2 * 4096 + 11, 3))
    # two clusters that overlap: a component of all rows has sums about its own mean that are rounding alone
    x[::2] += 1.5
    plan, q, row_map = reached(cv.models.gaussian_mixture(3, 2), {"x": x})
    exact = sums(plan, q, row_map.source, row_map.executor)
    found = sums(plan, q, row_map.source, strict(block_rows=len(x)))
    for part, value in exact.parts.items():
        assert_allclose(found.parts[part], value, rtol=1e-12, atol=1e-12 * np.abs(value).max())


def test_an_accelerator_gets_blocks_that_its_memory_has_room_for(monkeypatch):
    device = strict()
    plan, _, _ = reached(cv.models.gaussian_mixture(2, 3), {"x": rows()})
    assert device.block_rows(plan.rows) == plan.rows.block_rows
    for memory, expected in ((1e12, 1 << 17), (1e8, 1 << 16), (1e5, 4096)):
        monkeypatch.setattr(StrictLibrary, "free_memory", memory)
        device = strict()
        assert device.block_rows(plan.rows) <= expected
        assert device.block_rows(plan.rows) >= expected // 2


def test_a_sample_for_a_layout_is_of_rows_from_all_over_the_data():
    x = np.arange(5000.0)
    row_map = reached(cv.models.gaussian_mixture(1, 2), {"x": x[:, None]}, n_iter=1)[-1]
    sample = _spread_out(row_map.source, 1000)
    (rows,) = sample.columns.values()
    found = np.round(rows.ravel() - rows.min()).astype(int)
    assert len(np.unique(found)) == len(found) == sample.n_rows
    assert 900 <= len(found) <= 1000
    assert np.histogram(found, 10)[0].min() > 50
