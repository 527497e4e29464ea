"""Covariance matrices that are known to be the identity."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ..tables.data_scale import DataScale
from ._columns import KnownColumns
from .spherical import Spherical


class Unit(Spherical):
    """Every covariance matrix is the identity, which is known: ``covariances_`` are ones, shape (K,)."""

    name = "unit"
    joint: ClassVar = KnownColumns()
    independent: ClassVar = KnownColumns()
    is_known = True

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return 0."""
        return 0

    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Refuse: there is nothing to give."""
        raise ParameterError(
            f'{name} has no meaning with covariance_type="unit", whose covariances are known to be the identity; leave '
            f"it out"
        )

    def covariance_of(self, scale: DataScale) -> Array:
        """Return 1."""
        return np.ones(())
