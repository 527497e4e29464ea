"""Checks of the arguments of estimators, with messages in the user's words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ...numerics.linalg import is_symmetric, symmetric_part


def require_number(name: str, value: Any, above: float | None = None) -> None:
    """Raise ParameterError unless an argument is a finite number, not negative, or above a bound if one is given."""
    is_number = isinstance(value, Real) and math.isfinite(value)
    if not is_number or (value < 0 if above is None else value <= above):
        bound = "at least 0" if above is None else f"above {above:g}"
        raise ParameterError(f"{name} must be a finite number {bound}; got {value!r}")


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ParameterError unless an argument is one of the words that exist."""
    if not isinstance(value, str) or value not in choices:
        listed = " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))
        raise ParameterError(f"{name} must be {listed}; got {value!r}")


def as_array(
    name: str, value: Any, shape: tuple[int, ...], meaning: str, *, with_gaps: bool = False
) -> Array:
    """Return an argument as a finite array of this shape; ``with_gaps``, some numbers may be NaN.

    Raises
    ------
    ParameterError
        If it is not that.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must hold numbers, {meaning}, shape {shape}; got {value!r}") from None
    if array.shape != shape:
        raise ParameterError(f"{name} must have shape {shape}, {meaning}; got shape {array.shape}")
    if (np.isinf(array) if with_gaps else ~np.isfinite(array)).any():
        raise ParameterError(f"{name} must be finite{', or ' + meaning if with_gaps else ''}; got {value!r}")
    return array


def as_broadcast(
    name: str, value: Any, shape: tuple[int, ...], meaning: str, above: float | None = None
) -> Array | float:
    """Return an argument as a finite number, shape (), or as a finite array of this shape.

    Raises
    ------
    ParameterError
        If it is neither, or an entry is not above a bound that is given.
    """
    if type(value) in (int, float) and math.isfinite(value) and (above is None or value > above):
        return float(value)
    array = as_array(name, value, () if np.ndim(value) == 0 else shape, meaning)
    if above is not None and (array <= above).any():
        raise ParameterError(f"{name} must be above {above:g}; got {value!r}")
    return array if array.ndim else float(array)


def as_positive(name: str, value: Any, shapes: Sequence[tuple[int, ...]], meaning: str) -> Array:
    """Return an argument as positive numbers in one of these shapes.

    Raises
    ------
    ParameterError
        If it is not that.
    """
    array = as_array(name, value, _shape_among(name, value, shapes, meaning), meaning)
    if np.any(array <= 0):
        raise ParameterError(f"{name} must be positive; got {value!r}")
    return array


def as_positive_definite(name: str, value: Any, shapes: Sequence[tuple[int, ...]], meaning: str) -> Array:
    """Return an argument as symmetric positive definite matrices in one of these shapes.

    Raises
    ------
    ParameterError
        If it is not that.
    """
    matrix = as_array(name, value, _shape_among(name, value, shapes, meaning), meaning)
    if not is_symmetric(matrix):
        raise ParameterError(
            f"{name} must be symmetric; pass (matrix + matrix.T) / 2 if only rounding makes the difference"
        )
    matrix = symmetric_part(matrix)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ParameterError(
            f"{name} must be positive definite: all eigenvalues positive; got {value!r}"
        ) from None
    return matrix


def _shape_among(name: str, value: Any, shapes: Sequence[tuple[int, ...]], meaning: str) -> tuple[int, ...]:
    """Return that of the shapes which a value has."""
    try:
        shape = np.shape(value)
    except ValueError:
        raise ParameterError(f"{name} must be one array, {meaning}; got rows of different lengths") from None
    if shape in shapes:
        return shape
    if len(shapes) == 1:
        return shapes[0]
    listed = " or ".join(map(str, shapes))
    raise ParameterError(f"{name} must have shape {listed}, {meaning}; got shape {shape}")


def as_weights(name: str, value: Any, n_components: int) -> Array:
    """Return an argument as the weights of a mixture, shape (K,); those of lower precision are made to sum to one.

    Raises
    ------
    ParameterError
        If it is not that.

    Examples
    --------
    >>> as_weights("weights", np.float32([0.1, 0.2, 0.7]), 3).sum()
    np.float64(1.0)
    """
    weights = as_array(name, value, (n_components,), "one weight a component")
    if np.any(weights < 0):
        raise ParameterError(f"{name} must not be negative; got {value!r}")
    kind = np.asarray(value).dtype
    rounding = n_components * np.finfo(kind).eps if kind.kind == "f" else 0.0
    if abs(weights.sum() - 1) > max(rounding, 1e-9):
        raise ParameterError(f"{name} must sum to one; got {value!r}, whose sum is {weights.sum():.6g}")
    return weights if abs(weights.sum() - 1) <= 1e-9 else weights / weights.sum()


def as_generator(random_state: Any) -> np.random.Generator:
    """Return the generator of a ``random_state``: whole number, Generator, RandomState, or None for a fresh one.

    Examples
    --------
    >>> as_generator(0).random() == as_generator(0).random()
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise ParameterError(
        f"random_state must be None, a whole number >= 0, a Generator or a RandomState; got {random_state!r}"
    )
