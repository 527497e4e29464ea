"""Covariance matrices that are known to be the identity."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from .._data_scale import DataScale
from ._columns import ColumnStructure, KnownColumns


class Unit(ColumnStructure):
    """Every covariance matrix is the identity, which is known: ``covariances_`` are ones, shape (K,)."""

    name = "unit"
    joint: ClassVar = KnownColumns()
    independent: ClassVar = KnownColumns()
    is_known = True

    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return (K,)."""
        return (n_components,)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return 0."""
        return 0

    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return identity matrices."""
        return covariances[:, None, None] * np.eye(n_features)

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Refuse: there is nothing to give."""
        raise ParameterError(
            f'{name} has no meaning with covariance_type="unit", whose covariances are known to be the identity; leave '
            f"it out"
        )

    def covariance_of(self, scale: DataScale) -> Array:
        """Return 1."""
        return np.ones(())
