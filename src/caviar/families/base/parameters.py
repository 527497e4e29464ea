"""Reading the standard parameters of a batch of distributions, and refusing impossible ones."""

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import AnyArray, Array
from caviar.numerics.linalg import eigenvalues, positive_definite, symmetric_part

FEW = 16
"""Numbers that take less time one by one than as an array."""


def read_parameters(
    family: str, values: dict[str, ArrayLike], event_ndims: Sequence[int]
) -> dict[str, Array]:
    """Return finite float64 copies of the parameters, broadcast to one batch shape.

    Parameters
    ----------
    family
        Name of the family, for messages.
    values
        What the caller gave, by parameter name.
    event_ndims
        For each parameter the number of trailing axes that belong to one distribution; the others are the batch.

    Raises
    ------
    ParameterError
        If a value is not numeric or not finite, has too few axes, or the batch shapes do not broadcast.
    """
    arrays = {}
    for (name, value), ndim in zip(values.items(), event_ndims, strict=True):
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{family}: {name} must be an array of numbers, got {value!r}.") from error
        if array.ndim < ndim:
            raise ParameterError(
                f"{family}: {name} must have at least {ndim} axes (the last {ndim} belong to one distribution), "
                f"got shape {array.shape}."
            )
        require(np.isfinite(array), array, f"{family}: {name} must be finite")
        arrays[name] = array
    batches = [
        array.shape[: array.ndim - ndim] for array, ndim in zip(arrays.values(), event_ndims, strict=True)
    ]
    if len(set(batches)) == 1:
        return arrays
    try:
        batch_shape = np.broadcast_shapes(*batches)
    except ValueError as error:
        given = ", ".join(f"{name} {batch}" for name, batch in zip(arrays, batches, strict=True))
        raise ParameterError(
            f"{family}: the batch shapes of the parameters must broadcast, got {given}. "
            "Give one value for the whole batch or one per distribution."
        ) from error
    return {
        name: np.array(np.broadcast_to(array, batch_shape + array.shape[array.ndim - ndim :]))
        for (name, array), ndim in zip(arrays.items(), event_ndims, strict=True)
    }


def matched_locations(family: str, parameters: dict[str, Array], axis: int) -> None:
    """Bring means and mean precisions to one number of locations, in place; one counts for all.

    Raises
    ------
    ParameterError
        If the numbers differ.
    """
    mean, mean_precision = parameters["mean"], parameters["mean_precision"]
    sizes = (mean.shape[axis], mean_precision.shape[-1])
    if sizes[0] != sizes[1] and 1 not in sizes:
        raise ParameterError(
            f"{family}: mean_precision must be one number for each of {sizes[0]} locations, got {sizes[1]}. Give one, "
            f"or {sizes[0]}."
        )
    n_axes, largest = mean.ndim + axis, max(sizes)
    full = (*mean.shape[:n_axes], largest, *mean.shape[n_axes + 1 :])
    parameters["mean"] = np.array(np.broadcast_to(mean, full))
    parameters["mean_precision"] = np.array(np.broadcast_to(mean_precision, full[: n_axes + 1]))


def require(condition: AnyArray, values: Array, expectation: str, remedy: str = "") -> None:
    """Raise ParameterError, naming the first offending entry, unless ``condition`` holds everywhere."""
    if np.count_nonzero(condition) == np.size(condition):
        return
    index = tuple(int(i) for i in np.argwhere(~np.asarray(condition))[0])
    value = np.asarray(values)[index]
    where = f" at index {index}" if index else ""
    raise ParameterError(f"{expectation}, got {value}{where}. {remedy}".rstrip())


def require_positive_definite(family: str, name: str, matrix: Array) -> Array:
    """Return the symmetric part of ``matrix`` after checking that it is square, symmetric and positive definite."""
    if matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ParameterError(
            f"{family}: {name} must be square in its last two axes, got shape {matrix.shape}."
        )
    transposed = matrix.swapaxes(-1, -2)
    scale = np.abs(matrix).max(axis=(-1, -2), initial=0.0)[..., np.newaxis, np.newaxis]
    require(
        np.abs(matrix - transposed) <= 1e-8 * scale,
        matrix,
        f"{family}: {name} must be symmetric",
        "Pass (matrix + matrix.T) / 2 if the difference is only rounding.",
    )
    matrix = symmetric_part(matrix)
    good = positive_definite(matrix)
    require(
        good,
        eigenvalues(matrix)[..., 0],
        f"{family}: {name} must be positive definite, that is have only positive eigenvalues",
        "The value shown is the smallest eigenvalue; add a small multiple of the identity, or check the data.",
    )
    return matrix


def precision_of_vector(family: str, name: str, parameters: dict[str, Array]) -> Array:
    """Return the precision matrix with this name, after checking it and its size against the mean."""
    matrix = require_positive_definite(family, name, parameters[name])
    size = parameters["mean"].shape[-1]
    if matrix.shape[-1] != size:
        raise ParameterError(
            f"{family}: {name} must have shape (..., {size}, {size}) to go with a mean of {size} entries, got shape "
            f"{matrix.shape}."
        )
    return matrix


def all_positive(values: Array) -> bool:
    """Whether numbers are all positive and finite; NaN is not."""
    if not values.ndim:
        return 0.0 < values.item() < math.inf
    if values.size <= FEW:
        numbers = values.ravel().tolist()
        # a sum that overflows, or has a NaN, says nothing
        if min(numbers, default=1.0) > 0.0 and sum(numbers) < math.inf:
            return True
    return bool(np.logical_and.reduce((values > 0) & (values < np.inf), axis=None))


def all_finite(values: Array) -> bool:
    """Whether no number is infinite or NaN."""
    if not values.ndim:
        return math.isfinite(values.item())
    if values.size <= FEW and math.isfinite(sum(values.ravel().tolist())):
        return True
    return bool(np.logical_and.reduce(np.isfinite(values), axis=None))


def refuse_improper(family: str, condition: AnyArray, expectation: str) -> NoReturn:
    """Raise ImproperError for the first batch index at which ``condition`` does not hold."""
    index = tuple(int(i) for i in np.argwhere(~np.asarray(condition))[0])
    where = f" at batch index {index}" if index else ""
    raise ImproperError(
        f"{family}{where}: the natural parameters do not belong to a proper distribution: {expectation}. "
        "Give a proper prior, or check the data for NaN and infinities.",
        np.asarray(condition),
    )
