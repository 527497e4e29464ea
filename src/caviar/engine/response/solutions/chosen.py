r"""Solutions of linear response: :math:`S = (I - K)^{-1}`, beside the identity that mean field has in its place.

Where there are few coordinates, K is formed and its eigenvalues tell all. Of more, K often has a range of few
dimensions, as that of a regression, whose coefficients meet one precision: random columns find the range. Else
conjugate gradients make each answer, all columns of a question in the same passes, until many are asked, and Lanczos'
method finds the smallest eigenvalue of I - K.

Sources: Halko, Martinsson and Tropp, "Finding structure with randomness" (2011), for the range; Parlett, *The Symmetric
Eigenvalue Problem* (1998), chapter 13, for the latter.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ...._errors import ModelError
from ...._typing import AnyArray, Array
from .formed import Formed
from .solution import FLAT, Operator, Solution, log_determinant_of, shares_in, why_saddle

ALWAYS_FORMED, MOST_FORMED = 300, 2_000
"""Coordinates up to which the matrix is formed: in any case, and where enough is asked."""

_MOST_WITH_UNSEEN = 5_000
"""Coordinates at most where some repetitions have nothing observed below them: these need the matrix."""

_STEPS = 25
"""Of conjugate gradients for a column, about: passes of which forming the matrix takes one for each coordinate."""

_RESIDUAL = 1e-10
"""Of conjugate gradients, relative to what is asked."""

_FIRST_COLUMNS = 8
"""Random columns by which the range of K is looked for, at first; doubled while they find more."""

_MOST_OF_RANGE, _SHARE_OF_RANGE = 256, 8
"""Dimensions up to which the range is looked for: so many, and an eighth of the coordinates."""

_IN_RANGE = 1e-11
"""Size below which a column is in the range that is known, relative to the largest singular value."""

_MOST_STEPS = 500
_LANCZOS_GAIN = 1e-4


def solution_of(operator: Operator) -> Solution:
    """Return the solution for an operator: from its matrix, or by steps as long as few questions are asked."""
    if operator.size <= ALWAYS_FORMED:
        return Formed(operator)
    if operator.counts.all():
        return low_rank_of(operator) or Asked(operator)
    if operator.size > _MOST_WITH_UNSEEN:
        raise ModelError(
            f"linear response of more than {_MOST_WITH_UNSEEN} coordinates (this model has {operator.size}) takes no "
            f"repetitions without anything observed below them; leave these out of their plate"
        )
    return Formed(operator)


def log_determinant_at(operator: Operator, which: AnyArray | None = None) -> float:
    """Return that of :class:`Formed`, without its vectors; if asked, of some of the coordinates."""
    if operator.size > MOST_FORMED:
        raise ModelError(_why_no_determinant(operator))
    kept = operator.counts if which is None else operator.counts & which
    if not kept.any():
        return 0.0
    values = np.linalg.eigvalsh(operator.matrix()[np.ix_(kept, kept)])
    return log_determinant_of(1.0 - np.asarray(values, dtype=np.float64))


def _why_no_determinant(operator: Operator) -> str:
    return (
        f"the determinant of linear response needs at most {MOST_FORMED:,} coordinates; this model has "
        f"{operator.size:,}"
    )


class LowRank(Solution):
    """The solution from the eigenvectors of K of which the eigenvalue is not 0.

    Parameters
    ----------
    values, vectors
        Eigenvalues of K, (k,), and their vectors, (r, k).
    """

    def __init__(self, values: Array, vectors: Array) -> None:
        left = 1.0 - values
        flat = np.abs(left) < FLAT
        self._values, self._vectors, self._flat = left, vectors, vectors[:, flat]
        # along flat directions nothing is added
        self._gains = np.divide(values, left, out=np.zeros_like(values), where=~flat)

    @property
    def smallest(self) -> tuple[float, Array]:
        if not len(self._values):
            return 1.0, np.zeros(len(self._vectors))
        place = int(self._values.argmin())
        return min(float(self._values[place]), 1.0), self._vectors[:, place]

    @property
    def log_determinant(self) -> float:
        return log_determinant_of(self._values)

    def excess(self, columns: Array) -> Array:
        return self._vectors @ (self._gains[:, None] * (self._vectors.T @ columns))

    def flat(self, columns: Array) -> AnyArray:
        return shares_in(self._flat, columns)


def low_rank_of(operator: Operator) -> LowRank | None:
    """Return the solution from the range of K, found by random columns; None if the range has many dimensions."""
    most = min(_MOST_OF_RANGE, operator.size // _SHARE_OF_RANGE)
    rng, width = np.random.default_rng(0), _FIRST_COLUMNS
    basis, largest = np.zeros((operator.size, 0)), 0.0
    while basis.shape[1] + width <= most:
        tried = operator.apply(rng.normal(size=(operator.size, width)))
        for _ in range(2):
            # twice, so that rounding leaves nothing of what is known
            tried = tried - basis @ (basis.T @ tried)
        vectors, sizes, _ = np.linalg.svd(tried, full_matrices=False)
        largest = max(largest, float(sizes[0]))
        new = sizes > _IN_RANGE * largest
        basis = np.concatenate([basis, vectors[:, new]], axis=1)
        if not new.all():
            if not basis.shape[1]:
                # nothing depends on anything else; products have a column at least
                basis = vectors[:, :1]
            inner = basis.T @ operator.apply(basis)
            values, turned = np.linalg.eigh(0.5 * (inner + inner.T))
            return LowRank(values, basis @ turned)
        width *= 2
    return None


class Asked(Solution):
    """The solution by steps, until it has cost more than the matrix would."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._solution: Solution = Iterated(operator)
        self._n_asked, self._is_formed = 0, False

    @property
    def smallest(self) -> tuple[float, Array]:
        return self._solution.smallest

    @property
    def log_determinant(self) -> float:
        return self._formed_if(self._operator.size <= MOST_FORMED).log_determinant

    def excess(self, columns: Array) -> Array:
        self._n_asked += columns.shape[1]
        return self._formed_if(_STEPS * self._n_asked > self._operator.size <= MOST_FORMED).excess(columns)

    def _formed_if(self, is_worth_it: bool) -> Solution:
        if is_worth_it and not self._is_formed:
            self._solution, self._is_formed = Formed(self._operator), True
        return self._solution

    def flat(self, columns: Array) -> AnyArray:
        return self._solution.flat(columns)


class Iterated(Solution):
    """The solution by conjugate gradients: a pass for each step, of all columns together."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    @cached_property
    def smallest(self) -> tuple[float, Array]:  # pyright: ignore[reportIncompatibleMethodOverride]
        size = self._operator.size

        def image(vector: Array) -> Array:
            column = vector.reshape(size, 1)
            return (column - self._operator.apply(column))[:, 0]

        begin = np.random.default_rng(0).normal(size=size)
        of_operator = LinearOperator((size, size), matvec=image, dtype=np.float64)
        try:
            values, vectors = eigsh(of_operator, k=1, which="SA", v0=begin, tol=_LANCZOS_GAIN)
        except ArpackNoConvergence as unsettled:
            raise ModelError(
                "the smallest eigenvalue of linear response has not settled: many directions are nearly flat; give "
                "priors that tell what the data do not"
            ) from unsettled
        return float(values[0]), vectors[:, 0]

    @property
    def log_determinant(self) -> float:
        raise ModelError(_why_no_determinant(self._operator))

    def excess(self, columns: Array) -> Array:
        """Return (S - I) w of each column w: x with (I - K) x = K w."""
        wanted = self._operator.apply(columns)
        found, residual = np.zeros_like(wanted), wanted.copy()
        direction, squared = residual.copy(), (residual**2).sum(axis=0)
        goal = _RESIDUAL**2 * (columns**2).sum(axis=0)
        for _ in range(_MOST_STEPS):
            open_ = np.flatnonzero(squared > goal)
            if not len(open_):
                return found
            own = direction[:, open_]
            image = own - self._operator.apply(own)
            curvature = (own * image).sum(axis=0)
            if (curvature <= 0).any():
                raise ModelError(why_saddle(self.smallest_eigenvalue))
            step = squared[open_] / curvature
            found[:, open_] += step * own
            residual[:, open_] -= step * image
            renewed = (residual[:, open_] ** 2).sum(axis=0)
            direction[:, open_] = residual[:, open_] + renewed / squared[open_] * own
            squared[open_] = renewed
        raise ModelError(
            f"linear response does not settle in {_MOST_STEPS} steps: the objective is nearly flat along some "
            f"direction; give informative priors for what the data do not determine"
        )

    def flat(self, columns: Array) -> AnyArray:
        return np.zeros(columns.shape[1], dtype=bool)
