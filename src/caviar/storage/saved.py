"""Files of saved models: what all of them have, whatever they hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from .._errors import ParameterError
from .document import write
from .packing import pack


def write_saved(path: str | os.PathLike[str], kind: str, document: Mapping[str, Any]) -> None:
    """Write plain values to a file that :func:`caviar.load` reads; whole or not at all.

    Parameters
    ----------
    path
        Where to; a file that is there is replaced.
    kind
        What the file holds: ``"Model"``, ``"Posterior"``, or the name of an estimator.
    document
        Of that.

    Raises
    ------
    DataError
        If the file cannot be written.
    ParameterError
        If there is something among the values that cannot be saved: the message says where.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        header, arrays = pack({"class": kind, "saved_at": now, **document})
        write(path, header, arrays)
    except (TypeError, UnicodeEncodeError) as error:
        raise ParameterError(f"the {kind} cannot be saved: {error}") from error
