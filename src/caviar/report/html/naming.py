"""What users call the variables of the model that an estimator states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...language.distributions.joint_normals import Joint

PARTS = ("mean", "precision")
"""The parts of a joint factor, and the slots in which they are."""


def in_words(node: Any, shown: Callable[[str], str]) -> str:
    """Return what users call a node; a joint factor by its parts, where these have names of their own."""
    parts = parts_in_words(node, shown)
    return " and ".join(parts) if parts else shown(node.name)


def parts_in_words(node: Any, shown: Callable[[str], str]) -> tuple[str, ...]:
    """Return what users call the location and the precision of a joint factor; empty if they call them by its name."""
    if not isinstance(node, Joint):
        return ()
    stated = tuple(f"{node.name}.{part}" for part in PARTS)
    found = tuple(map(shown, stated))
    return () if found == stated else found
