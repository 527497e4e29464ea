"""Stacks of many small matrices, of which an entry of all is taken at a time, beside LAPACK one by one."""

import numpy as np
import pytest

from caviar.families import Wishart
from caviar.numerics.linalg import (
    cholesky,
    have_eigenvalues_above,
    inverse,
    inverse_from_factor,
    inverse_of_positive,
    log_size,
    outer,
    times_vector,
)

MANY = 1_500


def drawn(size: int) -> np.ndarray:
    """Return positive definite matrices whose rows have units far apart."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(3, MANY // 3, size, size + 2))
    units = 10.0 ** np.linspace(-6, 6, size)
    return units[:, None] * (root @ np.swapaxes(root, -1, -2)) * units


@pytest.mark.parametrize("size", [1, 2, 4, 5, 12, 13])
def test_they_have_the_factors_and_inverses_of_each(size: int) -> None:
    matrices = drawn(size)
    found = cholesky(matrices)
    each = np.array([np.linalg.cholesky(one) for one in matrices.reshape(-1, size, size)])
    units = 10.0 ** np.linspace(-6, 6, size)
    np.testing.assert_allclose(found / units[:, None], each.reshape(found.shape) / units[:, None], atol=1e-12)
    of_lower = inverse(found, is_lower=True)
    assert np.all(of_lower == np.tril(of_lower)) or size > 12
    product = (of_lower * units) @ (found / units[:, None])
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(size), product.shape), atol=1e-9)
    np.testing.assert_allclose(
        inverse_from_factor(of_lower), np.swapaxes(of_lower, -1, -2) @ of_lower, rtol=1e-9
    )


@pytest.mark.parametrize("size", [2, 4, 12, 13])
def test_products_with_vectors_are_those_of_each(size: int) -> None:
    rng = np.random.default_rng(size)
    matrices, x = rng.normal(size=(MANY, size, size)), rng.normal(size=(MANY, size))
    expected = np.array([matrix @ vector for matrix, vector in zip(matrices, x, strict=True)])
    np.testing.assert_allclose(times_vector(matrices, x), expected, atol=1e-12)
    np.testing.assert_allclose(times_vector(matrices[:1], x), x @ matrices[0].T, atol=1e-12)
    np.testing.assert_array_equal(outer(x), x[:, :, None] * x[:, None, :])


@pytest.mark.parametrize("size", [2, 4])
def test_one_that_is_not_positive_definite_is_refused(size: int) -> None:
    matrices = drawn(size)
    matrices[2, 7] = -matrices[2, 7]
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(matrices)


def test_how_many_there_are_beside_it_changes_no_bit_of_one() -> None:
    matrices = drawn(3)
    few, many = cholesky(matrices[:1]), cholesky(matrices)
    np.testing.assert_array_equal(few[0], many[0])
    np.testing.assert_array_equal(inverse(few, is_lower=True)[0], inverse(many, is_lower=True)[0])


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_inverses_and_determinants_are_those_of_each(size: int) -> None:
    matrices = drawn(size)
    units = 10.0 ** np.linspace(-6, 6, size)
    inverses = inverse_of_positive(matrices)
    found = inverses * units * units[:, None]
    each = np.linalg.inv(matrices / units / units[:, None])
    # relative to the spread of the eigenvalues, which are those of few rows
    np.testing.assert_allclose(found, each, atol=1e-9 * np.abs(each).max(), rtol=1e-7)
    np.testing.assert_array_equal(inverses, inverses.swapaxes(-1, -2))
    np.testing.assert_allclose(log_size(matrices), np.linalg.slogdet(matrices)[1], atol=1e-8)
    matrices[1, 3] = 0.0
    assert log_size(matrices)[1, 3] == -np.inf


@pytest.mark.parametrize("size", [2, 3, 4])
def test_eigenvalues_are_above_a_number_where_the_least_is(size: int) -> None:
    root = np.random.default_rng(size).normal(size=(3, 500, size, size))
    matrices = root @ root.swapaxes(-1, -2)
    least, bound = np.linalg.eigvalsh(matrices)[..., 0], np.full((3, 500), 0.3)
    np.testing.assert_array_equal(have_eigenvalues_above(matrices, bound), least > bound)
    assert not have_eigenvalues_above(matrices, least + 1e-9).any()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_bounded_modes_of_many_are_those_of_each(size: int) -> None:
    """With a variance that some matrices reach, and one of zeros."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(300, size, size + 1))
    inverse_scale, df = root @ root.swapaxes(-1, -2), rng.uniform(size + 2, 9, size=300)
    inverse_scale[7] = 0.0
    many = Wishart.mode_of_natural((df / 2, -inverse_scale / 2), np.asarray(0.1))
    each = [
        Wishart.mode_of_natural((own / 2, -matrix / 2), np.asarray(0.1))
        for own, matrix in zip(df, inverse_scale, strict=True)
    ]
    widest = np.linalg.eigvalsh(np.linalg.inv(many))[:, 0]
    assert 0 < np.isclose(widest, 0.1).sum() < 300
    np.testing.assert_allclose(many, each, rtol=1e-9, atol=1e-9)
