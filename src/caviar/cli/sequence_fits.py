"""``caviar fit --model hmm``: a hidden Markov model, fitted to the sequences of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from caviar.data.row_numbers import numbers_rows, remark

from .fit_options import FitOptions
from .fits import deliver, fitted, origin_of, pictures
from .non_numeric import NonNumeric
from .sequences import Sequences, SequencesOfFile, sequences_of
from .speaking import complain


def fit_to_sequences(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit a hidden Markov model to the sequences of a table in a file, and print and save the result."""
    _require_sequences(request)
    emission = arguments.get("emission", "gaussian")
    sequence = request.options.get("--sequence")
    found = sequences_of(data, request.sql, request.column_names, sequence, emission)
    _complain_of_time(found)
    kept = {"checkpoint": request.checkpoint, "lengths": found.lengths}
    hmm = fitted(request.kind, found.named(), arguments, quiet=request.quiet, **kept)
    hmm.about_ = {
        **origin_of(request),
        "rows": len(found.rows),
        "sequences": len(found.lengths),
        "sequence": sequence,
        "columns": list(found.columns),
    }
    deliver(
        request,
        SequencesOfFile,
        hmm,
        lambda path: pictures().draw_states(hmm, found.named(), found.lengths, path),
    )


def _complain_of_time(found: Sequences) -> None:
    """Warn of columns of numbers that only count the steps of each sequence."""
    if found.rows.dtype == object:
        return
    ends = np.cumsum(found.lengths)[:-1]
    for name, column in zip(found.columns, found.rows.T, strict=True):
        if all(numbers_rows(part) for part in np.split(column, ends)):
            complain("warning", remark(name, " by --columns"))


def _require_sequences(request: FitOptions) -> None:
    """Refuse what hidden Markov models do not have.

    Raises
    ------
    BadParameter
        If the user asked for it.
    """
    if request.non_numeric is not NonNumeric.ERROR:
        choice = request.non_numeric.value
        raise typer.BadParameter(
            f"--model hmm fits a hidden Markov model: leave --non-numeric {choice} out; --emission categorical takes a "
            f"column of texts"
        )
