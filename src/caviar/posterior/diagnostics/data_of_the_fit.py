"""The summary of the data of a fit; for a small copy of the data, computed at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...engine.checkpoint.row_marks import RowMarks
from ...numerics.cached import cached_property
from ...numerics.records import replaced


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


class KnowsItsData:
    """What a posterior knows about the data of its fit."""

    _looks: Looks | None = None

    @cached_property
    def data_summary(self) -> Mapping[str, Any] | None:
        """What it was fitted to."""
        return None if self._looks is None else self._looks.whole_summary()

    @cached_property
    def row_marks(self) -> RowMarks | None:
        """Marks of the rows that it was fitted to."""
        return None if self._looks is None else self._looks.marks()

    def _tell(self, more: Mapping[str, Any]) -> None:
        """Add to the summary of the data."""
        if self._looks is None or "data_summary" in vars(self):
            self.data_summary = {**(self.data_summary or {}), **more}
        else:
            self._looks = replaced(self._looks, told={**self._looks.told, **more})
