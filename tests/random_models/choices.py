"""Choices: what is random of a statement, by name, so that a model can be stated again with one thing changed."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

__all__ = ["Choices"]


class Choices:
    """Decisions by name: drawn when first asked for, the same ever after.

    Parameters
    ----------
    draw
        Hypothesis' function to draw from a strategy.
    """

    def __init__(self, draw: Callable[..., Any]) -> None:
        self._draw = draw
        self.made: dict[str, Any] = {}

    def pick(self, name: str, options: Sequence[Any]) -> Any:
        """Return one of the options, the first being the simplest."""
        if name not in self.made:
            self.made[name] = self._draw(st.integers(0, len(options) - 1))
        return options[self.made[name]]

    def __repr__(self) -> str:
        return f"Choices({self.made})"
