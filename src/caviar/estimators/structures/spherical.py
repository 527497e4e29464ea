"""One variance for each component."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ..arguments.checks import as_positive
from ..tables.data_scale import DataScale
from ._columns import ColumnStructure, IndependentColumns, JointColumns


class Spherical(ColumnStructure):
    r"""Each component has one variance, the same in every direction: ``covariances_`` of shape (K,).

    One Gamma a component, :math:`\mathrm{Gamma}(\nu / 2, B / 2)`, whose degrees of freedom :math:`\nu` grow by
    :math:`D N_k`: each of the D columns counts for the variance.
    """

    name = "spherical"
    joint: ClassVar = JointColumns(is_tied=True)
    independent: ClassVar = IndependentColumns(is_tied=True)

    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return (K,)."""
        return (n_components,)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return K."""
        return n_components

    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return multiples of the identity."""
        return covariances[:, None, None] * np.eye(n_features)

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Return (K,), or a number for all."""
        return as_positive(name, given, [(n_components,), ()], "one a component, or one for all")

    def covariance_of(self, scale: DataScale) -> Array:
        """Return the mean of the variances of the columns, a number."""
        return np.asarray(np.mean(scale.unit**2), dtype=np.float64)
