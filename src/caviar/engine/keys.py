"""Keys: what columns of rows are found by; values that are equal in every process, so that they can be sent."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ColumnKey"]


class ColumnKey(NamedTuple):
    """What a column of rows is found by.

    Attributes
    ----------
    name
        Of the node whose values they are.
    kind
        ``"value"`` of the values themselves (of a hidden Categorical, of the labels that are known), ``"observed"`` of
        what tells which values were observed, and ``"entries"`` of what tells which entries of vectors were.
    """

    name: str
    kind: str = "value"

    @property
    def is_mark(self) -> bool:
        """Whether the column tells what of another was observed."""
        return self.kind != "value"

    @property
    def observed(self) -> ColumnKey:
        """Key of the column that tells which of these values were observed."""
        return ColumnKey(self.name, "observed")

    @property
    def entries(self) -> ColumnKey:
        """Key of the column that tells which entries of these vectors were observed."""
        return ColumnKey(self.name, "entries")
