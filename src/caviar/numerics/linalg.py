"""Linear algebra over stacks of small symmetric matrices; the last two axes are the matrix."""

from collections.abc import Callable
from typing import cast

import numpy as np

from caviar._typing import AnyArray, Array

_LIKE = 2.0**10
"""Ratio of the entries of a diagonal below which units do not matter to an inverse."""

_FEW = 16
"""Numbers that take less time one by one than as an array."""

_ROUNDING = 1e-8
"""Difference of two entries, in units of their diagonals, that is taken for rounding."""

MANY = 128
"""Matrices of a stack from which on an entry of all of them at a time takes less than a call of LAPACK for each."""

_SMALL, _SMALL_TRIANGLE = 4, 12
"""Rows up to which that is so, of a factorisation or a product, and of the inverse of a triangular matrix."""

_TOGETHER = 2**16
"""Numbers of the matrices that are taken together: they stay in the cache, and each call is long."""


def cholesky(matrix: Array) -> Array:
    r"""Return the lower triangular L with :math:`A = L L'`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite. A matrix with NaN may pass and give NaN.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    if matrix.size >= MANY and _are_many(matrix, _SMALL):
        return _by_entries(_lower_factors, matrix)
    return cast(Array, np.linalg.cholesky(matrix))


def are_many(stack: Array) -> bool:
    """Return whether a stack has enough matrices, of few enough rows, to compute entry by entry."""
    return stack.size >= MANY and _are_many(stack, _SMALL)


def _are_many(stack: Array, largest: int) -> bool:
    """Return whether a stack holds many matrices, of few rows each."""
    size = stack.shape[-1]
    return 0 < size <= largest and stack.size >= MANY * size * size and stack.dtype == np.float64


def _by_entries(operation: Callable[[Array], Array], stack: Array) -> Array:
    """Return what an operation on matrices (D, D, N) makes of each matrix of a stack, (..., D, D)."""
    size = stack.shape[-1]
    rows = stack.reshape(-1, size * size)
    found = np.empty(rows.shape)
    with np.errstate(all="ignore"):
        together = _TOGETHER // (size * size)
        for first in range(0, len(rows), together):
            own = slice(first, first + together)
            entries = np.array(rows[own].T, order="C").reshape(size, size, -1)
            found[own] = operation(entries).reshape(size * size, -1).T
    return found.reshape(stack.shape)


def _lower_factors(matrices: Array) -> Array:
    """Overwrite positive definite matrices (D, D, N) by their Cholesky factors."""
    for k in range(len(matrices)):
        if np.less_equal(matrices[k, k], 0.0).any():
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        matrices[k, k] = np.sqrt(matrices[k, k])
        column = matrices[k + 1 :, k]
        column /= matrices[k, k]
        matrices[k + 1 :, k + 1 :] -= column[:, np.newaxis] * column
        matrices[k, k + 1 :] = 0.0
    return matrices


def _inverses_of_lower(lower: Array) -> Array:
    """Return the inverses of lower triangular matrices (D, D, N), by forward substitution."""
    found = np.zeros(lower.shape)
    for k in range(len(lower)):
        found[k, k] = 1.0
        found[k, : k + 1] /= lower[k, k]
        found[k + 1 :, : k + 1] -= lower[k + 1 :, k, np.newaxis] * found[k, : k + 1]
    return found


def _grams_of_lower(lower: Array) -> Array:
    """Return L'L of lower triangular matrices (D, D, N)."""
    found = np.zeros(lower.shape)
    for k in range(len(lower)):
        row = lower[k, : k + 1]
        found[: k + 1, : k + 1] += row[:, np.newaxis] * row
    return found


def inverse(matrix: Array, *, is_lower: bool = False) -> Array:
    """Return the inverse of each matrix; with ``is_lower`` they are lower triangular.

    Where rows differ much in size, as those of columns in other units, they are brought to one size first: the pivots
    of an elimination are chosen by size, and would be those of the units.

    Examples
    --------
    >>> inverse(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if is_lower and matrix.size >= MANY and _are_many(matrix, _SMALL_TRIANGLE):
        return _by_entries(_inverses_of_lower, matrix)
    pivots = matrix.diagonal(0, -2, -1)
    if pivots.size and _are_alike(pivots):
        return cast(Array, np.linalg.inv(matrix))
    # by powers of two, which changes no digit
    exponents = np.frexp(np.abs(matrix).max(axis=-1, initial=0.0))[1]
    scaled = np.ldexp(matrix, -exponents[..., np.newaxis])
    return np.ldexp(cast(Array, np.linalg.inv(scaled)), -exponents[..., np.newaxis, :])


def inverse_of_positive(matrix: Array) -> Array:
    """Return the inverse of each positive definite matrix, exactly symmetric.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> inverse_of_positive(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if are_many(matrix):
        return _by_entries(_inverses_of_positive, matrix)
    return inverse_from_factor(inverse(cholesky(matrix), is_lower=True))


def _inverses_of_positive(matrices: Array) -> Array:
    """Return the inverses of positive definite matrices (D, D, N), which are overwritten."""
    return _grams_of_lower(_inverses_of_lower(_lower_factors(matrices)))


@np.errstate(all="ignore")
def have_eigenvalues_above(matrix: Array, smallest: Array) -> AnyArray:
    """Return whether all eigenvalues of each symmetric matrix, (..., D, D), exceed a number by more than rounding.

    Parameters
    ----------
    smallest
        The numbers, of shape (...).

    Examples
    --------
    >>> have_eigenvalues_above(np.array([[[3.0, 0.0], [0.0, 2.0]], [[3.0, 2.0], [2.0, 3.0]]]), np.ones(2))
    array([ True, False])
    """
    size = matrix.shape[-1]
    left = np.array(matrix.reshape(-1, size * size).T, order="C").reshape(size, size, -1)
    pivots = np.einsum("iin->in", left)
    least = 8 * size * np.finfo(float).eps * pivots.max(axis=0)
    pivots -= smallest.ravel()
    good = np.ones(left.shape[-1], dtype=bool)
    for _ in range(size):
        good &= left[0, 0] > least
        row = left[0, 1:]
        left = left[1:, 1:] - row[:, np.newaxis] * (row / left[0, 0])
    return good.reshape(matrix.shape[:-2])


def _are_alike(pivots: Array) -> bool:
    """Return whether the sizes of numbers differ little."""
    if pivots.size <= _FEW:
        sizes = [*map(abs, pivots.ravel().tolist())]
        return max(sizes) < _LIKE * min(sizes)
    sizes = np.abs(pivots)
    return bool(np.maximum.reduce(sizes, None) < _LIKE * np.minimum.reduce(sizes, None))


def singular_values(matrix: Array) -> Array:
    """Return the singular values, largest first, shape (..., D).

    Examples
    --------
    >>> singular_values(np.array([[0.0, 2.0], [-1.0, 0.0]]))
    array([2., 1.])
    """
    return cast(Array, np.linalg.svd(matrix, compute_uv=False))


def eigenvalues(matrix: Array) -> Array:
    """Return the eigenvalues of symmetric matrices, smallest first, shape (..., D).

    Examples
    --------
    >>> eigenvalues(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([-1.,  1.])
    """
    return cast(Array, np.linalg.eigvalsh(matrix))


def log_determinant(lower: Array) -> Array:
    r"""Return :math:`\log|A|` from the Cholesky factor of A.

    Parameters
    ----------
    lower
        Lower triangular factor L with :math:`A = L L'`, shape (..., D, D).

    Examples
    --------
    >>> float(log_determinant(np.array([[2.0, 0.0], [1.0, 0.5]])))
    0.0
    """
    return 2.0 * np.add.reduce(np.log(lower.diagonal(0, -2, -1)), axis=-1)


def log_size(matrix: Array) -> Array:
    r"""Return :math:`\log|A|` of positive definite matrices, minus infinity where one is singular.

    Examples
    --------
    >>> log_size(np.array([[2.0, 0.0], [0.0, 0.5]]))
    array(0.)
    """
    if are_many(matrix):
        try:
            return log_determinant(_by_entries(_lower_factors, matrix))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.slogdet(matrix)[1])


def inverse_from_factor(inverse_lower: Array) -> Array:
    r"""Return :math:`A^{-1}`, exactly symmetric, from the inverse :math:`L^{-1}` of A's Cholesky factor.

    Examples
    --------
    >>> inverse_from_factor(np.array([[0.5, 0.0], [0.0, 0.25]]))
    array([[0.25  , 0.    ],
           [0.    , 0.0625]])
    """
    if inverse_lower.size >= MANY and _are_many(inverse_lower, _SMALL):
        return _by_entries(_grams_of_lower, inverse_lower)
    return inverse_lower.swapaxes(-1, -2) @ inverse_lower


def outer(x: Array) -> Array:
    """Return x x' for vectors of shape (..., D).

    Examples
    --------
    >>> outer(np.array([1.0, 2.0]))
    array([[1., 2.],
           [2., 4.]])
    """
    if x.size > _FEW:
        return cast(Array, np.einsum("...i,...j->...ij", x, x))
    return x[..., :, np.newaxis] * x[..., np.newaxis, :]


def times_vector(matrix: Array, x: Array) -> Array:
    """Return A x for matrices of shape (..., D, D) and vectors of shape (..., D).

    Examples
    --------
    >>> times_vector(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    if matrix.size == x.shape[-1] ** 2 < x.size and matrix.ndim <= x.ndim + 1:
        # one matrix for many vectors
        return x @ matrix.reshape(matrix.shape[-2:]).T
    if x.size > _FEW and x.shape[-1] <= _SMALL_TRIANGLE:
        return cast(Array, np.einsum("...ij,...j->...i", matrix, x))
    return (matrix @ x[..., np.newaxis])[..., 0]


def symmetric_part(matrix: Array) -> Array:
    """Return (A + A') / 2.

    Examples
    --------
    >>> symmetric_part(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return 0.5 * (matrix + matrix.swapaxes(-1, -2))


def is_symmetric(matrix: Array) -> bool:
    """Whether matrices are symmetric to rounding: entries may differ by 1e-8 of the roots of their diagonal entries.

    An entry near zero has the rounding of what it was summed from, and no column's unit decides.

    Examples
    --------
    >>> is_symmetric(np.array([[1.0, 1e-17], [-1e-17, 1.0]]))
    True
    >>> is_symmetric(np.array([[1e12, 0.5], [-0.5, 1e-12]]))
    False
    """
    roots = np.sqrt(np.abs(matrix.diagonal(0, -2, -1)))
    scale = roots[..., :, np.newaxis] * roots[..., np.newaxis, :]
    return bool(np.all(np.abs(matrix - matrix.swapaxes(-1, -2)) <= _ROUNDING * scale))


def positive_definite(matrix: Array) -> AnyArray:
    """Return for each matrix of a stack whether it is finite and has a Cholesky factor; booleans of shape (...).

    Slower than one factorisation of the whole stack: for saying which matrix made that one fail.

    Examples
    --------
    >>> positive_definite(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]))
    array([ True, False])
    """
    stack = matrix.reshape(-1, *matrix.shape[-2:])
    good = _have_pivots(stack)
    found = good.nonzero()[0]
    good[found] = _by_halves(stack[found])
    return good.reshape(matrix.shape[:-2])


@np.errstate(all="ignore")
def _have_pivots(stack: Array) -> AnyArray:
    """Return whether no pivot of an elimination is clearly at 0 or below, (N,): all matrices in one step for each."""
    left, good = stack, np.logical_and.reduce(np.isfinite(stack), axis=(-1, -2))
    size = stack.shape[-1]
    smallest = -8 * size * np.finfo(float).eps * np.diagonal(stack, 0, -2, -1).max(axis=-1, initial=0.0)
    for _ in range(size):
        pivot, column = left[:, 0, 0], left[:, 1:, 0]
        good &= pivot > smallest
        left = left[:, 1:, 1:] - column[:, :, None] * (column / pivot[:, None])[:, None]
    return good


def _by_halves(stack: Array) -> AnyArray:
    """Return whether each of N matrices has a factor, (N,): a stack with one that has none is cut in two."""
    try:
        return np.isfinite(log_determinant(cholesky(stack)))
    except np.linalg.LinAlgError:
        if len(stack) == 1:
            return np.zeros(1, dtype=bool)
        middle = len(stack) // 2
        return np.concatenate([_by_halves(stack[:middle]), _by_halves(stack[middle:])])


def relative_spectrum(a: Array, inverse_lower_a: Array, b: Array, lower_b: Array) -> tuple[Array, Array]:
    r"""Return the eigenvalues :math:`\lambda` of :math:`A^{-1} B`, and :math:`\lambda - 1`, each accurate by itself.

    Parameters
    ----------
    a, b
        Positive definite matrices, shape (..., D, D), batch axes broadcasting.
    inverse_lower_a
        Inverse of the Cholesky factor of ``a``.
    lower_b
        Cholesky factor of ``b``.

    Returns
    -------
    tuple of Array
        Two arrays of shape (..., D).

    Examples
    --------
    >>> a, b = np.eye(2), np.diag([2.0, 0.5])
    >>> relative_spectrum(a, a, b, np.sqrt(b))
    (array([0.5, 2. ]), array([-0.5,  1. ]))
    """
    excess = eigenvalues(symmetric_part(inverse_lower_a @ (b - a) @ inverse_lower_a.swapaxes(-1, -2)))
    close = np.abs(excess).max(axis=-1, keepdims=True) < 0.5
    if close.all():
        return 1.0 + excess, excess
    # Far apart, small eigenvalues drown in the difference; as squares of singular values they keep their
    # digits.
    spectrum = singular_values(inverse_lower_a @ lower_b)[..., ::-1] ** 2
    return np.where(close, 1.0 + excess, spectrum), np.where(close, excess, spectrum - 1.0)


def lower_roots(stack: Array) -> Array:
    """Return lower Cholesky factors of a stack of matrices, (n, r, r); NaN of those that are not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(stack), dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(stack) == 1:
            return np.full(stack.shape, np.nan)
        return np.concatenate([lower_roots(half) for half in np.array_split(stack, 2)])
