"""The solution of linear response from its matrix K: by Cholesky's factor, or by eigenvectors where that has none."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotri

from ...._typing import AnyArray, Array
from ....numerics.linalg import cholesky, log_determinant
from .solution import FLAT, Operator, Solution, log_determinant_of, shares_in


class Formed(Solution):
    """The solution from the matrix K.

    A repetition that counts in no term of others, for nothing is observed below it, is drawn given these: with their
    coordinates C and its own, S = G D G' with G = (I - K)^-1 and D = (I - K_CC) beside the identity. The factor of a
    forecast is averaged over its parents as mean field takes them: to it only what their covariances add comes.

    Parameters
    ----------
    operator
        Of the fit.
    matrix
        Its K, if that is known.
    """

    def __init__(self, operator: Operator, matrix: Array | None = None) -> None:
        matrix = operator.matrix() if matrix is None else matrix
        counts = self._counts = operator.counts
        all_count = bool(counts.all())
        own = matrix if all_count else matrix[np.ix_(counts, counts)]
        self._left, self._tried = -0.5 * (own + own.T), dict[float, bool]()
        self._left.flat[:: len(own) + 1] += 1.0
        # a factor of Cholesky takes a tenth of the time of the eigenvectors
        inverse = _inverse(self._left)
        self._largest = np.inf if inverse is None else float(np.trace(inverse))
        self._flat = np.zeros((len(matrix), 0))
        if inverse is None or not self.is_above(FLAT):
            inverse = self._by_vectors()
        if not all_count:
            solved = np.zeros_like(matrix)
            solved[np.ix_(counts, counts)] = inverse
            inverse = _drawn_below(matrix, solved, counts, operator.forecasts[~counts])
            self._flat[~counts] = _reached(matrix, self._flat, counts)
        self._excess = inverse
        self._excess.flat[:: len(matrix) + 1] -= 1.0

    def _by_vectors(self) -> Array:
        """Return S of the coordinates that count, beside what is along flat directions."""
        values, vectors = self._spectrum
        is_flat = np.abs(values) < FLAT
        self._flat = np.zeros((len(self._counts), int(is_flat.sum())))
        self._flat[self._counts] = vectors[:, is_flat]
        kept = vectors[:, ~is_flat]
        return (kept / values[~is_flat]) @ kept.T + self._flat[self._counts] @ self._flat[self._counts].T

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of I - K, the smallest first, and their vectors, of the coordinates that count."""
        values, vectors = np.linalg.eigh(self._left)
        return values, vectors

    def is_above(self, value: float) -> bool:
        if self._largest < np.inf and value * self._largest < 1.0:
            # the trace of a positive inverse is larger than each of its eigenvalues
            return True
        if "_spectrum" in vars(self):
            return super().is_above(value)
        if value not in self._tried:
            # each of several questions asks whether there is a covariance
            self._tried[value] = self._is_positive(self._left - value * np.eye(len(self._left)))
        return self._tried[value]

    def _is_positive(self, matrix: Array) -> bool:
        try:
            return bool(np.isfinite(cholesky(matrix)).all())
        except np.linalg.LinAlgError:
            return False

    @property
    def smallest(self) -> tuple[float, Array]:
        values, vectors = self._spectrum
        last = np.zeros(len(self._counts))
        if len(values):
            last[self._counts] = vectors[:, 0]
        return float(values.min(initial=np.inf)), last

    @property
    def log_determinant(self) -> float:
        if self.is_above(FLAT):
            return float(log_determinant(cholesky(self._left)))
        return log_determinant_of(self._spectrum[0])

    def excess(self, columns: Array) -> Array:
        return self._excess @ columns

    def flat(self, columns: Array) -> AnyArray:
        return shares_in(self._flat, columns)


def _inverse(matrix: Array) -> Array | None:
    """Return the inverse of a positive definite matrix; None of any other."""
    if not matrix.size:
        # LAPACK complains of it, on standard error
        return matrix
    try:
        factor = cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(factor).all():
        return None
    lower, _ = dpotri(factor, lower=True)
    found = np.tril(lower, -1)
    found += found.T
    np.fill_diagonal(found, np.diagonal(lower))
    return found


def _drawn_below(matrix: Array, solved: Array, counts: AnyArray, forecasts: AnyArray) -> Array:
    """Return S of all coordinates from that of those which count; ``forecasts`` are numbers of those which do not."""
    below = ~counts
    inside = np.linalg.inv(np.eye(int(below.sum())) - matrix[np.ix_(below, below)])
    reached = inside @ matrix[np.ix_(below, counts)]
    own = solved[np.ix_(counts, counts)]
    solved[np.ix_(below, counts)] = reached @ own
    solved[np.ix_(counts, below)] = (reached @ own).T
    independent = inside @ inside.T + reached @ reached.T
    added = reached @ (own - np.eye(len(own))) @ reached.T
    of_one = (forecasts[:, None] == forecasts) & (forecasts >= 0)
    solved[np.ix_(below, below)] = added + np.where(of_one, np.eye(len(independent)), independent)
    return solved


def _reached(matrix: Array, flat: Array, counts: AnyArray) -> Array:
    below = ~counts
    inside = np.eye(int(below.sum())) - matrix[np.ix_(below, below)]
    return np.asarray(np.linalg.solve(inside, matrix[np.ix_(below, counts)] @ flat[counts]), dtype=np.float64)
