"""What a kind of page is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """A kind of page.

    Attributes
    ----------
    gather
        From what was fitted, data and the name of their source: everything that the page shows, as plain values.
    sections
        Name, word in the list of links, and what makes the markup of each section of the page.
    scripts
        Files of the script, in their order.
    figures
        From the page: what the script draws, as plain values.
    """

    gather: Callable[..., dict[str, Any]]
    sections: tuple[tuple[str, str, Callable[[Any], str]], ...]
    scripts: tuple[str, ...]
    figures: Callable[[dict[str, Any]], dict[str, Any]]
