"""Global variables whose values came with the data of a fit: they have no factor, and new rows need the values too."""

from __future__ import annotations

from typing import NoReturn

from ...._errors import ModelError
from ....language import Plate, Variable


def belongs_to_rows(variable: Variable, data_plate: Plate | None) -> bool:
    """Return whether a variable is repeated over rows, or over what is nested with them.

    Where the plate of the rows is not known, any plate may be theirs.
    """
    if data_plate is None:
        return bool(variable.plates)
    return any(
        plate is data_plate or plate.within is data_plate or data_plate.within is plate
        for plate in variable.plates
    )


def refuse_missing_value(name: str) -> NoReturn:
    """Say that a global variable has neither a factor nor a value.

    Raises
    ------
    ModelError
        Always.
    """
    raise ModelError(
        f"the posterior has no factor of '{name}': in the fit its values came with the data. Give them with these "
        f"data, too: {{'{name}': ..., ...}}"
    )
