"""How a fit ended, where that was before it settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from .speaking import FAILURE, complain, counted

__all__ = ["end_told"]


def end_told(status: Any, n_iter: int, *, output: Path | None, checkpoint: Path | None) -> None:
    """Say that a fit has not settled, or was stopped.

    Raises
    ------
    Exit
        If it was stopped.
    """
    if status.value == "max_iter":
        advice = "raise --max-iter, or --tol, or begin elsewhere with --seed"
        complain("warning", f"the fit has not settled after {counted(n_iter, 'iteration')}: {advice}")
    if status.value == "interrupted":
        kept = "" if output is None else f", and is saved in {output}"
        again = "" if checkpoint is None else "; the same command again goes on from the checkpoint"
        complain(
            "interrupted", f"the fit was stopped before it settled; the best so far is shown{kept}{again}"
        )
        raise typer.Exit(FAILURE)
