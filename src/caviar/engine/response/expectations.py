r"""What second order adds to the ELBO where this has the expected log densities of the rows themselves.

Among Normals q is at its optimum, so that its predictors have neither a linear nor a quadratic term left, and cubes are
the largest. The determinant of linear response counts these three times, and has terms of products with products, which
an expectation, linear in q, does not. With the numbers of the Normal factors first, and their products second,

.. math:: -\tfrac12 \log |I - K'| + \tfrac16 \|K_{12}\|^2,

where :math:`K'` is K with :math:`K_{11}` alone of what these factors say to each other.
"""

from __future__ import annotations

import numpy as np

from ..._typing import AnyArray, Array

_IN_SPAN = 1e-9
"""Singular value of columns that is not 0, relative to the largest."""


def correction_of_expectations(matrix: Array, columns: Array, meet_rows: AnyArray | None = None) -> float:
    """Return what is added to the ELBO; NaN at a saddle point.

    Parameters
    ----------
    matrix
        K, (r, r).
    columns
        What each number of the factors that meet the rows is in these coordinates, (r, n).
    meet_rows
        Coordinates of these factors, (r,); None if all are.
    """
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, sizes > _IN_SPAN * sizes.max(initial=0.0)]
    own = matrix if meet_rows is None else np.where(meet_rows & meet_rows[:, None], matrix, 0.0)
    all_met = basis.T @ own
    met = all_met @ basis
    # with the same eigenvalues beside ones, if that is all
    left = met if meet_rows is None else matrix - own + basis @ met @ basis.T
    sign, log_determinant = np.linalg.slogdet(np.eye(len(left)) - left)
    if sign <= 0:
        return np.nan
    cubes = float(np.square(all_met).sum() - np.square(met).sum())
    return cubes / 6.0 - 0.5 * float(log_determinant)
