"""The public names of a package: those that it imports from its modules, each under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType


def public_names(package: Mapping[str, object]) -> list[str]:
    """Return what ``__all__`` of a package lists, from its ``globals()``: constants, classes, then functions."""
    own = {name for name, value in package.items() if not isinstance(value, ModuleType)}
    public = (name for name in own - {"public_names"} if not name.startswith("_"))
    return sorted(public, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))
