"""A variance for each component and column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ..arguments.checks import as_positive
from ..tables.data_scale import DataScale
from ._columns import ColumnStructure, IndependentColumns, JointColumns


class Diagonal(ColumnStructure):
    r"""Each component has a diagonal covariance matrix: ``covariances_`` of shape (K, D).

    A Gamma for each component and column, :math:`\mathrm{Gamma}(\nu / 2, B_d / 2)`: what a Wishart is for one column.
    """

    name = "diag"
    joint: ClassVar = JointColumns(is_tied=False)
    independent: ClassVar = IndependentColumns(is_tied=False)

    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return (K, D)."""
        return (n_components, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return K D."""
        return n_components * n_features

    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return diagonal matrices."""
        return covariances[:, :, None] * np.eye(n_features)

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Return (K, D), or (D,) for all."""
        return as_positive(
            name,
            given,
            [(n_components, n_features), (n_features,)],
            "one a component and column, or one a column for all components",
        )

    def covariance_of(self, scale: DataScale) -> Array:
        """Return the variances of the columns, (D,)."""
        return scale.unit**2
