"""Compiled loops over cells give what NumPy gives for the same cells: sums, log-partitions, and better sets."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv
from caviar.engine.design.backend import Workspace
from caviar.engine.rows.truncated import block as block_module
from caviar.engine.rows.truncated import supports, truncated_rows
from caviar.engine.rows.truncated.block import Block
from truncated.looking import looking_at
from truncated.test_one_look import CASES, K

pytest.importorskip("numba")
kernels = pytest.importorskip("caviar.engine.rows.truncated.kernels")
compiled_block = pytest.importorskip("caviar.engine.rows.truncated.compiled_block")
search_kernels = pytest.importorskip("caviar.engine.rows.truncated.search_kernels")


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", ["gaussian", "weighted"])
def test_a_compiled_block_gives_what_numpy_gives(name, n):
    model, data, labels, changes = CASES[name]()
    looking = looking_at(model, data, labels, n, **changes)
    supports, block = looking.supports(3), looking.block
    assert isinstance(block, compiled_block.CompiledBlock)
    other = Block(block.terms, block.rows, block.coefficients, block.matrix, Workspace())
    (sums, total), (others, others_total) = block.sums(supports), other.sums(supports)
    np.testing.assert_allclose(sums, others, rtol=1e-10, atol=1e-10 * np.abs(others).max())
    np.testing.assert_allclose(total, others_total, rtol=1e-12)


@pytest.mark.parametrize("age", [0, 2, 3])
def test_the_components_to_choose_from_are_those_of_numpy(age, monkeypatch):
    monkeypatch.setattr(block_module, "FAR", 3.0)
    monkeypatch.setattr(compiled_block, "FAR", 3.0)
    model, data, labels, changes = CASES["weighted"]()
    looking = looking_at(model, data, labels, 3, **changes)
    supports, block = replace(looking.supports(2), age=age), looking.block
    other = Block(block.terms, block.rows, block.coefficients, block.matrix, Workspace())
    lists, others = (own.shortlists(supports, 11) for own in (block, other))
    np.testing.assert_array_equal(np.sort(lists, axis=1), np.sort(others, axis=1))
    (pools, counts), (expected, numbers) = (own.pools(supports, lists, [2, 4, 6]) for own in (block, other))
    np.testing.assert_array_equal(counts, numbers)
    assert set(counts) == {2, 4, 6}
    for cell, (start, size) in enumerate(zip(supports.starts, supports.sizes, strict=True)):
        own, most = pools[cell, : counts[cell]], counts[cell]
        assert set(own) == set(expected[cell, :most])
        assert set(own) >= set(supports.members[start : start + size])
        assert len(set(own)) == most


@pytest.mark.parametrize("is_compiled", [True, False])
def test_components_of_cells_beside_a_cell_are_among_those_to_choose_from(is_compiled, monkeypatch):
    """Only some rows of a cell are asked, and the others are like rows of its neighbours."""
    monkeypatch.setattr(truncated_rows, "can_compile", lambda: is_compiled)
    for module in (block_module, compiled_block):
        monkeypatch.setattr(module, "FAR", 8.0)
    model, data, labels, changes = CASES["gaussian"]()
    looking = looking_at(model, data, labels, 3, **changes)
    supports, block = looking.supports(1), looking.block
    lists = np.tile(np.arange(K), (-(-supports.n_cells // supports.together), 1))
    counts = {}
    for beside in (0.0, 4.0, np.inf):
        for module in (block_module, compiled_block):
            monkeypatch.setattr(module, "BESIDE", beside)
        counts[beside] = block.pools(supports, lists, list(range(1, K + 1)))[1]
    assert np.all(counts[0.0] >= counts[4.0])
    assert np.all(counts[4.0] >= counts[np.inf])
    assert counts[0.0].sum() > counts[4.0].sum() > counts[np.inf].sum()


@pytest.mark.parametrize("n", [2, 5])
def test_components_are_ranked_as_numpy_ranks_them(n):
    model, data, labels, changes = CASES["weighted"]()
    looking = looking_at(model, data, labels, n, **changes)
    supports, block = looking.supports(2), looking.block
    # any sets may be compared, so these are such that others are better
    supports = replace(supports, members=(supports.members + 1) % K)
    other = Block(block.terms, block.rows, block.coefficients, block.matrix, Workspace())
    sizes = [1, 3, K]
    lists = np.tile(np.arange(K), (-(-supports.n_cells // supports.together), 1))
    pools, counts = block.pools(supports, lists, [3, K])
    found, others = (own.ranked(supports, pools, counts, sizes) for own in (block, other))
    np.testing.assert_array_equal(found[0][:, :3], others[0][:, :3])
    (losses, before), (expected, expected_before) = found[1:], others[1:]
    np.testing.assert_array_equal(np.isinf(losses), np.isinf(expected))
    is_finite = np.isfinite(losses)
    np.testing.assert_allclose(losses[is_finite], expected[is_finite], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(before, expected_before, rtol=1e-9, atol=1e-9)
    assert losses[:, 0].max() > 1e-3
    # differences of losses are those of log-partitions
    for own in (block, other):
        some = supports.found(found[0], np.full(supports.n_cells, 3))
        gained = own.sums(some)[1] - own.sums(supports)[1]
        np.testing.assert_allclose(gained, (before - losses[:, 1]).sum(), rtol=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 11])
def test_products_are_the_features(columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, columns))
    model = cv.models.normal_wishart_mixture(columns, 4)
    looking = looking_at(model, {"x": X}, rng.integers(0, 4, 50), 2)
    table, rows = looking.rows._table, looking.block.rows
    products = compiled_block.Products.of(table)
    whole, given = (np.empty((own.n_dense, 50)) for own in (table, products.table))
    table.fill(rows.columns, whole, Workspace())
    products.table.fill(rows.columns, given, Workspace())
    assert len(given) == 1 + columns
    found = np.concatenate([given, given[products.pairs[:, 0]] * given[products.pairs[:, 1]]])
    np.testing.assert_array_equal(found, whole[products.columns])


@pytest.mark.parametrize("room", [1, 5, 8, 9])
def test_a_list_has_the_components_that_come_closest_at_some_row(room):
    """As many as there is room for, of equal ones the first."""
    rng = np.random.default_rng(room)
    natural = np.round(rng.normal(size=(9, 16)), 1)
    natural[[3, 6]] = natural[2]
    flat, top, scores, found = natural.ravel(), np.empty(16), np.empty(9), np.empty(room, dtype=np.int64)
    _looked_through(flat, top, scores, found)
    np.testing.assert_array_equal(top, natural.max(axis=0))
    np.testing.assert_array_equal(scores, (natural - top).max(axis=1))
    np.testing.assert_array_equal(found, np.sort(np.argsort(-scores, kind="stable")[:room]))
    natural[4:7] = np.nan
    _looked_through(natural.ravel(), top, scores, found)
    assert len(set(found)) == room


@search_kernels.numba.njit
def _looked_through(natural, top, scores, found):
    search_kernels.tops(natural, 9, top)
    search_kernels.closest(natural, 9, top, scores)
    search_kernels._chosen(scores, found)


@pytest.mark.parametrize("size", [1, 4, 7])
@pytest.mark.parametrize("columns", [1, 5])
def test_sums_of_products_in_vectors(columns, size):
    """Of any number of members, the last of them maybe alone in its vectors, and of features that fill no whole one."""
    rng, n_padded = np.random.default_rng(size), 8 * -(-(1 + columns * (columns + 3) // 2) // 8)
    given = rng.normal(size=(2, 1 + columns, 16))
    pairs = 1 + np.stack(np.triu_indices(columns), axis=1)
    X = np.concatenate([given[1], given[1, pairs[:, 0]] * given[1, pairs[:, 1]]])
    matrix, members = np.zeros((9, n_padded)), rng.permutation(9)[:size]
    matrix[:, : len(X)] = rng.normal(size=(9, len(X)))
    sums, found = np.zeros((10, n_padded)), np.empty(1)
    weights, sizes = np.append(np.ones(15), 0.0), np.array([size])
    kernels.add_cells(given[1:], pairs, np.array([0]), sizes, members, weights, matrix, sums, found)
    logits = matrix[members, : len(X)] @ X
    shares = np.exp(logits - logsumexp(logits, axis=0)) * weights
    np.testing.assert_allclose(found[0], logsumexp(logits, axis=0) @ weights, rtol=1e-12)
    np.testing.assert_allclose(sums[members, : len(X)], shares @ X.T, rtol=1e-11, atol=1e-12)
    others = np.setdiff1d(np.arange(9), members)
    assert not sums[others].any()
    assert not sums[:9, len(X) :].any()


@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_cells_need_is_kept_from_pass_to_pass(is_compiled, monkeypatch):
    monkeypatch.setattr(truncated_rows, "can_compile", lambda: is_compiled)
    # searches as many passes apart as there are where nothing is lost
    monkeypatch.setattr(supports, "_BEHIND", np.inf)
    model, data, labels, _ = CASES["gaussian"]()
    read: list[int] = []
    rows_at = block_module.rows_at
    for own in (block_module, compiled_block):
        monkeypatch.setattr(own, "rows_at", lambda *given: read.append(1) or rows_at(*given))
    counts = []
    for n_passes in (8, 10):
        read.clear()
        model.fit(data, init={"z": labels}, responsibilities=3, max_iter=n_passes, tol=0.0, accelerate=False)
        counts.append(len(read))
    # rows are read for searches, and there is none between
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("name", ["gaussian", "weighted"])
def test_rows_that_are_kept_give_what_others_give(name, monkeypatch):
    monkeypatch.setattr(truncated_rows, "can_compile", lambda: False)
    model, data, labels, changes = CASES[name]()
    looking = looking_at(model, data, labels, 3, **changes)
    supports, block = looking.supports(3), looking.block
    kept = Block(block.terms, replace(block.rows, tables={}), block.coefficients, block.matrix, Workspace())
    for _ in range(2):
        (sums, total), (others, others_total) = kept.sums(supports), block.sums(supports)
        np.testing.assert_allclose(sums, others, rtol=1e-12, atol=1e-12 * np.abs(others).max())
        np.testing.assert_allclose(total, others_total, rtol=1e-13)


def test_without_numba_numpy_does_it(monkeypatch):
    monkeypatch.setattr(truncated_rows, "can_compile", lambda: False)
    model, data, labels, _ = CASES["gaussian"]()
    assert type(looking_at(model, data, labels, 3).block) is Block


@pytest.mark.parametrize("least", [0.3, 1e-20, 1e-300])
def test_sums_of_logarithms_are_those_of_products_only_where_these_are_numbers(least):
    rng = np.random.default_rng(0)
    values, counted = rng.uniform(least, 1.0, 32), np.concatenate([np.zeros(16), np.ones(16)])
    values[3:5] = least
    expected = np.log(values[:16]).sum()
    np.testing.assert_allclose(kernels.log_sum(values[:16], counted, 16), expected, rtol=1e-14)
    assert kernels.log_sum(values[:16], counted, 0) == 0.0
    counted[20] = 3.0
    expected += 2 * np.log(values[4])
    np.testing.assert_allclose(kernels.log_sum(values[:16], counted, 16), expected, rtol=1e-14)
