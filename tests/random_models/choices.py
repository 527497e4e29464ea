"""Choices: what is random of a statement, by name, so that a model can be stated again with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

__all__ = ["Choices"]


class Choices:
    """Decisions by name: made when first asked for, the same ever after.

    Parameters
    ----------
    choose
        Given how many options there are, returns the number of one.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self.made: dict[str, int] = {}
        self.told: dict[str, str] = {}
        """What was chosen, by name, where the options are words."""

    @classmethod
    def drawn(cls, draw: Callable[..., Any]) -> Choices:
        """Return choices by Hypothesis, given its function to draw from a strategy."""
        return cls(lambda n: draw(st.integers(0, n - 1)))

    def pick(self, name: str, options: Sequence[Any]) -> Any:
        """Return one of the options, the first being the simplest."""
        if name not in self.made:
            self.made[name] = self._choose(len(options))
        chosen = options[self.made[name]]
        if isinstance(chosen, str):
            self.told[name] = chosen
        return chosen

    def __repr__(self) -> str:
        return f"Choices({self.made})"
