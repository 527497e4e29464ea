"""One covariance matrix for all components."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ..arguments.checks import as_positive_definite
from ._matrices import IndependentMatrices, JointMatrices, MatrixStructure


class Tied(MatrixStructure):
    r"""All components share one covariance matrix: ``covariances_`` of shape (D, D).

    One Wishart, whose degrees of freedom grow by the number of rows: :math:`\nu + N`.
    """

    name = "tied"
    joint: ClassVar = JointMatrices(is_tied=True)
    independent: ClassVar = IndependentMatrices(is_tied=True)

    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return (D, D)."""
        return (n_features, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return D (D + 1) / 2."""
        return n_features * (n_features + 1) // 2

    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return the matrix, once a component."""
        return np.broadcast_to(covariances, (n_components, n_features, n_features))

    def n_precisions(self, n_components: int) -> None:
        """Return None: there is one."""

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Return (D, D)."""
        return as_positive_definite(
            name, given, [(n_features, n_features)], "one matrix for all components, columns by columns"
        )
