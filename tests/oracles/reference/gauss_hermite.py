r"""The ELBO of Gaussian factors by Gauss-Hermite quadrature, exact where the log joint is a polynomial.

.. math:: \mathrm{ELBO} = \langle\log p(x, z)\rangle_q + \sum_j H[q_j], \qquad q_j = N(m_j, S_j)

Three points for each coordinate are exact up to degree five in it; the log joint of a linear predictor with known
precisions has degree two.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array

__all__ = ["Gaussian", "as_gaussian", "elbo", "normal"]

Gaussian = tuple[Array, Array]
"""Mean (D,) and covariance (D, D)."""


def as_gaussian(factor: object) -> Gaussian:
    """Return a Normal (a number, or a vector of independent ones) or a MultivariateNormal as mean and covariance."""
    mean = np.atleast_1d(factor.mean)  # type: ignore[attr-defined]
    if hasattr(factor, "covariance"):
        return mean, factor.covariance  # type: ignore[attr-defined]
    return mean, np.diag(np.atleast_1d(factor.variance))  # type: ignore[attr-defined]


def elbo(factors: Sequence[Gaussian], log_joint: Callable[..., float]) -> float:
    """Return the ELBO; ``log_joint`` takes a vector for each factor."""
    roots = [np.linalg.cholesky(covariance) for _, covariance in factors]
    sizes = np.cumsum([0, *(len(mean) for mean, _ in factors)])
    total = 0.0
    for points in product(((-np.sqrt(3), 1 / 6), (0.0, 2 / 3), (np.sqrt(3), 1 / 6)), repeat=int(sizes[-1])):
        standard = np.array([point for point, _ in points])
        values = [
            mean + root @ standard[start:stop]
            for (mean, _), root, start, stop in zip(factors, roots, sizes[:-1], sizes[1:], strict=True)
        ]
        total += float(np.prod([weight for _, weight in points])) * log_joint(*values)
    return total + sum(float(np.linalg.slogdet(2 * np.pi * np.e * s)[1]) / 2 for _, s in factors)


def normal(x: ArrayLike, mean: ArrayLike, precision: ArrayLike) -> float:
    """Return the summed log density of Normals."""
    x, mean, precision = np.asarray(x), np.asarray(mean), np.asarray(precision)
    return float(np.sum(0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * (x - mean) ** 2))
