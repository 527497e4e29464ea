"""What is told of the data of a fit: found when it is asked for, where the data are few and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.checkpoint.row_marks import RowMarks


@dataclass(frozen=True, eq=False)
class Looks:
    """Looks at the data of a fit.

    Attributes
    ----------
    summary
        Returns the summary of the data.
    marks
        Returns the marks of their rows.
    told
        What else belongs to the summary.
    """

    summary: Callable[[], Mapping[str, Any] | None]
    marks: Callable[[], RowMarks | None]
    told: Mapping[str, Any]

    def whole_summary(self) -> Mapping[str, Any]:
        """Return the summary with all that belongs to it."""
        return {**(self.summary() or {}), **self.told}
