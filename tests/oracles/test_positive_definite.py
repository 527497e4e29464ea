"""Which matrices of a stack have a Cholesky factor: as LAPACK says of each, near singular ones and NaN included."""

from __future__ import annotations

import numpy as np
import pytest

from caviar.numerics.linalg import cholesky, positive_definite


def _has_factor(matrix: np.ndarray) -> bool:
    try:
        return bool(np.isfinite(cholesky(matrix)).all() and (np.diagonal(cholesky(matrix)) > 0).all())
    except np.linalg.LinAlgError:
        return False


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_each_matrix_of_a_stack_is_told(size: int) -> None:
    rng = np.random.default_rng(size)
    roots = rng.normal(size=(300, size, size + 1))
    stack = roots @ roots.swapaxes(-1, -2)
    stack[::3] -= 2 * rng.random((100, 1, 1)) * np.eye(size)
    single = rng.normal(size=(60, size, 1))
    stack[1::5] = single @ single.swapaxes(-1, -2)
    stack *= 10.0 ** rng.integers(-12, 12, size=(300, 1, 1))
    stack[7], stack[8, -1, 0], stack[9, 0, 0] = 0.0, np.nan, np.inf
    expected = [_has_factor(own) for own in stack]
    assert 50 < sum(expected) < 275
    found = positive_definite(stack.reshape(30, 10, size, size))
    np.testing.assert_array_equal(found.ravel(), expected)
