"""Shapes of the parameters of a factor, checked against its variable before the factor is made.

Families broadcast what they are given. A made-up file could so ask for far more memory than it has bytes; and a factor
of another shape than its variable would be found out only when it is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...language import Plate, Variable

Sizes = dict[Plate, int]
"""Sizes of plates as factors have them; those that the data decide are settled by the first factor."""


def _size_of_letter(variable: Variable, letter: str) -> int | None:
    if letter == "m":
        return None if variable.tied is None else variable.tied.size
    if letter == "s":
        return None if variable.dimension is None else variable.dimension - 1
    if letter == "f":
        return len(variable.family.statistics)
    return variable.dimension


def check_parameters(variable: Variable, parameters: Mapping[str, AnyArray], batch: Sequence[int]) -> None:
    """Refuse parameters of a factor that do not all have one batch shape, and the event shape of the variable.

    Parameters
    ----------
    variable
        Whose factor it is.
    parameters
        By the names of the fields of its family.
    batch
        The batch shape that they must have.

    Raises
    ------
    ValueError, LookupError, TypeError
        If they do not fit.
    """
    letters = variable.family.parameter_letters
    fields = [field.name for field in dataclasses.fields(variable.family)]  # type: ignore[arg-type]
    for name, own in zip(fields, letters, strict=True):
        array = parameters[name]
        wanted = (*batch, *(_size_of_letter(variable, letter) for letter in own))
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != wanted:
            raise ValueError(
                f"'{name}' of the factor of '{variable.name}', which must have the shape {wanted}"
            )


def batch_of(
    variable: Variable, plates: Sequence[Plate], shape: Sequence[int], sizes: Sizes
) -> tuple[int, ...]:
    """Return the sizes of plates, from the leading axes of an array if they are not known otherwise.

    Raises
    ------
    ValueError
        If the array has other sizes.
    """
    if len(shape) < len(plates):
        raise ValueError(f"a factor of '{variable.name}' that lacks axes of its plates")
    found = []
    for plate, size in zip(plates, shape, strict=False):
        known = sizes.setdefault(plate, plate.size if plate.size is not None else size)
        if size != known:
            raise ValueError(
                f"a factor of '{variable.name}' over {size} of plate '{plate.name}' of size {known}"
            )
        found.append(known)
    return tuple(found)


def check_point(variable: Variable, value: Any, batch: Sequence[int] | None, sizes: Sizes) -> None:
    """Refuse what is not a value of a variable for each repetition.

    Parameters
    ----------
    batch
        How many repetitions, as axes; None for those of its plates.

    Raises
    ------
    ValueError, TypeError
        If it has another shape, or lies off the (closed) support.
    """
    is_joint = "precision" in variable.family.statistics
    if is_joint != isinstance(value, tuple) or (is_joint and len(value) != 2):
        raise TypeError(f"a point of '{variable.name}' that is not a value of it")
    location, precision = value if is_joint else (value, None)
    _check_value(variable, location, variable.plates, variable.value_rank, batch, sizes)
    if precision is not None:
        _check_value(variable, precision, variable.batch_plates, variable.precision_rank, batch, sizes)
        _check_positive(variable, precision, variable.precision_rank)
    elif variable.own_family.__name__ in ("Gamma", "Wishart"):
        _check_positive(variable, location, variable.value_rank)
    elif variable.family.__name__ == "Categorical":
        problem = variable.problem_with(location) if location.size else ""
        if problem:
            raise ValueError(f"a point of '{variable.name}' that {problem}")
    elif variable.own_family.__name__ in ("Beta", "Dirichlet", "StickBreaking") and np.any(
        (location < 0) | (location > 1 + 1e-9)
    ):
        raise ValueError(f"a point of '{variable.name}' that is not a probability")


def _check_value(
    variable: Variable,
    value: Any,
    plates: Sequence[Plate],
    rank: int,
    batch: Sequence[int] | None,
    sizes: Sizes,
) -> None:
    kinds = "bif" if variable.family.__name__ in ("Bernoulli", "Categorical") else "if"
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or not np.isfinite(value).all():
        raise TypeError(f"a point of '{variable.name}' that is not an array of finite numbers")
    own = batch_of(variable, plates, value.shape, sizes) if batch is None else tuple(batch)
    wanted = (*own, *(variable.dimension,) * rank)
    if value.shape != wanted:
        raise ValueError(f"a point of '{variable.name}' of shape {value.shape}, which must be {wanted}")


def _check_positive(variable: Variable, value: AnyArray, rank: int) -> None:
    numbers = np.diagonal(value, axis1=-2, axis2=-1) if rank == 2 else value
    if np.any(numbers < 0) or (rank == 2 and not np.allclose(value, np.swapaxes(value, -1, -2))):
        raise ValueError(f"a point of '{variable.name}' that is not positive")
