"""Matrix products of a block of rows: whole, or in strips where BLAS has a faster kernel for small products."""

import numpy as np
import pytest

from caviar.engine.design import backend
from caviar.engine.design.backend import HostBackend, Workspace
from caviar.engine.local.statistics import Sums
from caviar.numerics import blas
from caviar.numerics.blas import one_blas_thread

N_STATISTICS, N_FEATURES, N_ROWS = 32, 153, 64 * 43
RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(N_STATISTICS, N_FEATURES))
TABLE = RNG.normal(size=(N_FEATURES, N_ROWS))
EXPECTED = RNG.random(size=(N_STATISTICS, N_ROWS))


class Library:
    """A BLAS library as threadpoolctl tells of it."""

    def __init__(self, **told):
        self.told = told

    def info(self):
        return self.told


def products(monkeypatch, small):
    """Return both products of a block with BLAS that has a kernel for so many multiply-adds."""
    monkeypatch.setattr(backend, "small_product", lambda: small)
    host, projected = HostBackend(), np.empty((N_STATISTICS, N_ROWS))
    with one_blas_thread():
        host.project(MATRIX, TABLE, projected)
        return projected, host.accumulate(EXPECTED, TABLE, Workspace(), "key")


def test_products_are_whole_where_blas_has_no_kernel_for_small_ones(monkeypatch):
    """To the bit: strips, each copied by BLAS, would take longer."""
    projected, sums = products(monkeypatch, 0)
    with one_blas_thread():
        whole = np.empty((N_STATISTICS, N_FEATURES), order="F")
        np.testing.assert_array_equal(projected, MATRIX @ TABLE)
        np.testing.assert_array_equal(sums, np.matmul(EXPECTED, TABLE.T, out=whole))


def test_products_in_strips_are_the_same(monkeypatch):
    for one, other in zip(products(monkeypatch, 1_000_000), products(monkeypatch, 0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (["SkylakeX"], 1_000_000),
        (["SapphireRapids", "SapphireRapids"], 1_000_000),
        (["Haswell"], 0),
        (["SkylakeX", "Haswell"], 0),
        ([None], 0),
        ([], 0),
    ],
)
def test_which_blas_has_a_kernel_for_small_products(kernels, expected, monkeypatch):
    libraries = [Library() if own is None else Library(architecture=own) for own in kernels]
    monkeypatch.setattr(blas, "_libraries", lambda: tuple(libraries))
    assert blas.small_product.__wrapped__() == expected


def test_copies_of_sums_keep_their_order_in_memory():
    """The next block's sums have the same order: added in another, each number would be in another cache line."""
    own = np.asfortranarray(MATRIX)
    total = Sums.zero()
    for copied in (Sums({"z": own}, {}, {}, {}).copied(), total):
        copied.add(Sums({"z": own}, {}, {}, {}))
        assert copied.fused["z"].flags.f_contiguous
    np.testing.assert_array_equal(total.fused["z"], MATRIX)
