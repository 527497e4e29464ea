"""A covariance matrix for each component."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._typing import Array
from ..arguments.checks import as_positive_definite
from ._matrices import IndependentMatrices, JointMatrices, MatrixStructure


class Full(MatrixStructure):
    """Each component has its own covariance matrix: ``covariances_`` of shape (K, D, D)."""

    name = "full"
    joint: ClassVar = JointMatrices(is_tied=False)
    independent: ClassVar = IndependentMatrices(is_tied=False)

    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return (K, D, D)."""
        return (n_components, n_features, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return K D (D + 1) / 2."""
        return n_components * n_features * (n_features + 1) // 2

    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return the covariances themselves."""
        return covariances

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Return (K, D, D), or (D, D) for all."""
        return as_positive_definite(
            name,
            given,
            [(n_components, n_features, n_features), (n_features, n_features)],
            "a matrix a component, or one for all",
        )
