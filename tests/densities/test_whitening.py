"""Roots of covariances: their inverses by substitution, whatever the scales."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv
from caviar.densities.components.whitening import inverse_of_triangular


def test_lower_and_upper_triangles_are_inverted() -> None:
    lower = np.tril(np.random.default_rng(0).normal(size=(3, 4, 4)))
    for matrices in (lower, lower.swapaxes(-1, -2)):
        np.testing.assert_allclose(
            inverse_of_triangular(matrices) @ matrices, np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-9
        )


def test_what_is_not_triangular_is_refused() -> None:
    with pytest.raises(cv.ImproperError, match="not triangular"):
        inverse_of_triangular(np.array([[1.0, np.nan], [np.nan, 1.0]]))
