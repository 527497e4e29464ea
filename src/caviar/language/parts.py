"""Parts of a joint factor, the mean and the precision that it covers: ``theta.mean``, ``theta[z].precision``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .algebra import Algebra

if TYPE_CHECKING:
    from .nodes import Indexed, Node

__all__ = ["Part"]


class Part(Algebra):
    """One of the two values that a joint factor covers, where a mean or a precision may stand.

    Attributes
    ----------
    whole
        The joint factor, or the choice among its repetitions.
    which
        ``"mean"`` or ``"precision"``.
    """

    def __init__(self, whole: Node | Indexed, which: Literal["mean", "precision"]) -> None:
        self.whole = whole
        self.which = which

    @property
    def node(self) -> Any:
        """The joint factor, without its index."""
        return getattr(self.whole, "node", self.whole)

    @property
    def by(self) -> Any:
        """What chooses among the repetitions of the joint factor; None where nothing does."""
        return getattr(self.whole, "by", None)

    @property
    def event_rank(self) -> int:
        """Event axes of one value: 0 a number, 1 a vector, 2 a matrix."""
        return self.node.value_rank if self.which == "mean" else self.node.precision_rank

    @property
    def whole_name(self) -> str:
        """How the joint factor, or the choice among its repetitions, is written."""
        return self.node.name if self.by is None else repr(self.whole)

    def belongs_with(self, other: Part) -> bool:
        """Whether both are parts of the same repetitions of the same joint factor."""
        return self.node is other.node and self.by is other.by

    def __getitem__(self, index: Any) -> Part:
        """Return this part with a plate chosen: ``theta.mean[z]`` is ``theta[z].mean``."""
        return Part(self.whole[index], self.which)  # type: ignore[index]

    def __repr__(self) -> str:
        return f"{self.whole_name}.{self.which}"
