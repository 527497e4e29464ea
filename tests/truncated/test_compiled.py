"""Compiled loops over cells give what NumPy gives for the same cells: sums, log-partitions, and better sets."""

from dataclasses import replace

import numpy as np
import pytest

import caviar as cv
from caviar.engine.design.backend import Workspace
from caviar.engine.rows.truncated import truncated_rows
from caviar.engine.rows.truncated.block import Block
from truncated.looking import looking_at
from truncated.test_one_look import CASES, K

pytest.importorskip("numba")
compiled_block = pytest.importorskip("caviar.engine.rows.truncated.compiled_block")


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
    np.testing.assert_allclose(block.log_partitions(supports), other.log_partitions(supports), rtol=1e-10)
    # any sets may be exchanged, so these are such that others are better
    supports = replace(supports, members=(supports.members + 1) % K)
    size = int(supports.sizes[0])
    cells = np.flatnonzero(supports.sizes == size)
    found, is_new = supports.candidates(cells, size, 3)
    assert is_new.any()
    members, others = supports.members.copy(), supports.members.copy()
    block.exchange(supports, cells, members, found, is_new)
    other.exchange(supports, cells, others, found, is_new)
    places = supports.places(cells, size)
    assert (members != supports.members).any()
    np.testing.assert_array_equal(np.sort(members[places], axis=1), np.sort(others[places], axis=1))


@pytest.mark.parametrize("n", [2, 5])
def test_components_are_ranked_as_numpy_ranks_them(n):
    model, data, labels, changes = CASES["weighted"]()
    looking = looking_at(model, data, labels, n, **changes)
    supports, block = looking.supports(2), looking.block
    other = Block(block.terms, block.rows, block.coefficients, block.matrix, Workspace())
    sizes = [1, 3, K]
    pools = np.tile(np.arange(K), (supports.n_cells, 1))
    (ranked, losses), (others, other_losses) = (own.ranked(supports, pools, sizes) for own in (block, other))
    np.testing.assert_array_equal(ranked[:, :3], others[:, :3])
    np.testing.assert_allclose(losses, other_losses, rtol=1e-9, atol=1e-9)
    assert losses[:, 0].max() > 1e-3


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


def test_without_numba_numpy_does_it(monkeypatch):
    monkeypatch.setattr(truncated_rows, "can_compile", lambda: False)
    model, data, labels, _ = CASES["gaussian"]()
    assert type(looking_at(model, data, labels, 3).block) is Block
