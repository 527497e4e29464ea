"""Checks of the parameters of mixtures that users give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..._errors import ParameterError
from ..._typing import Array
from ...numerics.linalg import is_symmetric, positive_definite, symmetric_part
from .whitening import whitening_of_shapes


def as_numbers(name: str, value: ArrayLike) -> Array:
    """Return finite numbers.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must hold numbers; got {value!r:.80}") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite; got {value!r:.80}")
    return array


def as_positive(name: str, value: ArrayLike) -> Array:
    """Return finite numbers above zero.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    array = as_numbers(name, value)
    if np.any(array <= 0):
        raise ParameterError(f"{name} must be positive; got {array.min():g}")
    return array


def as_weights(value: ArrayLike) -> Array:
    """Return the weights of a mixture, (K,).

    Raises
    ------
    ParameterError
        If they are negative or do not sum to one.

    Examples
    --------
    >>> as_weights([0.25, 0.75])
    array([0.25, 0.75])
    """
    weights = as_numbers("weights", value)
    if weights.ndim != 1 or len(weights) == 0:
        raise ParameterError(f"weights must have shape (K,), one a component; got shape {weights.shape}")
    if np.any(weights < 0) or abs(weights.sum() - 1) > 1e-9:
        raise ParameterError(
            f"weights must not be negative, and sum to one; got {weights}, which sum to {weights.sum():g}: divide "
            f"them by their sum"
        )
    return weights


def as_locations(value: ArrayLike, n_components: int) -> Array:
    """Return locations, (K, D); of one column shape (K,) will do.

    Raises
    ------
    ParameterError
        If they are anything else.

    Examples
    --------
    >>> as_locations([0.0, 1.0], 2).shape
    (2, 1)
    """
    locations = as_numbers("locations", value)
    if locations.ndim == 1:
        locations = locations[:, None]
    if locations.ndim != 2 or len(locations) != n_components or locations.shape[1] == 0:
        raise ParameterError(
            f"locations must have shape (K, D), a row for each of {n_components} weights; got shape {np.shape(value)}"
        )
    return locations


def as_df(value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return degrees of freedom of this shape; one number is for all.

    Raises
    ------
    ParameterError
        If they are not positive and finite, or do not broadcast.

    Examples
    --------
    >>> as_df(4.0, (2,))
    array([4., 4.])
    """
    df = as_positive("df", value)
    try:
        return np.array(np.broadcast_to(df, shape))
    except ValueError:
        raise ParameterError(f"df must be one number or have shape {shape}; got shape {df.shape}") from None


def as_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return names of columns, or None for none.

    Raises
    ------
    ParameterError
        If they are not as many as the columns, or one occurs twice.
    """
    if names is None:
        return None
    listed = tuple(str(name) for name in names)
    if len(listed) != n_features or len(set(listed)) < n_features:
        raise ParameterError(
            f"feature_names must be {n_features} different names, one a column; got {listed}"
        )
    return listed


def whitening_of(name: str, value: ArrayLike, n_components: int, n_features: int) -> Array:
    """Return the whitening of shape matrices in one of their structures, named by the number of axes.

    Parameters
    ----------
    value
        Matrices (K, D, D), diagonals (K, D), or multiples of the identity (K,); (1, ...) is one for all components.

    Raises
    ------
    ParameterError
        If the shape is none of these, or a matrix is not symmetric positive definite.

    Examples
    --------
    >>> whitening_of("shapes", [4.0, 16.0], 2, 3)
    array([0.5 , 0.25])
    """
    array = as_numbers(name, value)
    tail = {1: (), 2: (n_features,), 3: (n_features, n_features)}.get(array.ndim)
    if tail is None or array.shape[1:] != tail or len(array) not in (1, n_components):
        K, D = n_components, n_features
        raise ParameterError(
            f"{name} must have shape {(K, D, D)} (matrices), {(K, D)} (diagonals) or {(K,)} (multiples of the "
            f"identity), or 1 in place of {K} for one that all components share; got shape {array.shape}"
        )
    if array.ndim < 3:
        return 1.0 / np.sqrt(as_positive(name, array))
    diagonals = np.diagonal(array, axis1=1, axis2=2)
    if np.any(diagonals <= 0):
        raise ParameterError(f"{name} must be positive definite; got a diagonal entry of {diagonals.min():g}")
    roots = np.sqrt(diagonals)
    # in units of the deviations, so that no column's unit decides
    if not is_symmetric(array):
        raise ParameterError(
            f"{name} must be symmetric; pass (matrix + matrix.T) / 2 if only rounding makes the difference"
        )
    # in units of the deviations, so that no column's unit decides
    correlations = symmetric_part(array / roots[:, :, None] / roots[:, None, :])
    good = positive_definite(correlations)
    if not good.all():
        k = int(np.argmin(good))
        raise ParameterError(
            f"{name} must be positive definite: all eigenvalues positive; {name}[{k}] is not: {array[k]}"
        )
    return whitening_of_shapes(correlations) / roots[:, None, :]
