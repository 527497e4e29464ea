"""Files of checkpoints: those of saved models, with another kind of document in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .._errors import CheckpointError, DataError
from .document import read, write
from .packing import pack, unpack

REMEDY = "To begin again, choose another path for checkpoint=, or delete the file if you need nothing in it"

_KIND = "Checkpoint"


def write_checkpoint(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write plain values to a file; whole or not at all. What was there is replaced.

    Raises
    ------
    DataError
        If the file cannot be written; the one before is then as it was.
    """
    header, arrays = pack({"class": _KIND, "checkpoint": dict(document)}, once=True)
    write(path, header, arrays)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what :func:`write_checkpoint` wrote; None if there is no file.

    Raises
    ------
    CheckpointError
        If the file is damaged or something else. It is left as it is.
    """
    if isinstance(path, str | os.PathLike) and not os.path.exists(path):
        return None
    try:
        header, arrays = read(path)
        if header.get("class") != _KIND:
            raise DataError(f"{path} is a saved {header.get('class')!s:.40}, and no checkpoint")
        found = unpack(header["checkpoint"], arrays)
        if not isinstance(found, dict):
            raise TypeError("it holds no document")
    except DataError as error:
        raise CheckpointError(f"cannot go on: {error}. {REMEDY}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{path} is a damaged checkpoint: {error}. {REMEDY}") from error
    return found
