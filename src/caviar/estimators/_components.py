"""What tables and pictures read off a fitted mixture: the names of its columns, and how its components spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["column_names", "covariances_of"]


def covariances_of(estimator: Any) -> Array:
    """Return the covariance matrix of the rows of each component, (K, D, D)."""
    if hasattr(estimator, "covariances_"):
        return estimator.covariance_matrices()
    return np.full((len(estimator.weights_), 1, 1), float(estimator.variance))


def column_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted to: x0, x1, ... if they had none."""
    if hasattr(estimator, "feature_names_in_"):
        return tuple(map(str, estimator.feature_names_in_))
    told = getattr(estimator, "about_", {}).get("columns")
    if isinstance(told, list) and len(told) == estimator.n_features_in_:
        return tuple(map(str, told))
    return tuple(f"x{number}" for number in range(estimator.n_features_in_))
