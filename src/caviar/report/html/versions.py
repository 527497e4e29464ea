"""The versions of the libraries behind the numbers of a page."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..._version import __version__


def versions() -> dict[str, str]:
    """Return the versions of the software that computed the results.

    Examples
    --------
    >>> sorted(versions())
    ['caviar', 'numpy', 'python', 'scikit-learn', 'scipy']
    """
    found = {"caviar": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def known_versions(posterior: Any) -> dict[str, str]:
    """Return what a posterior knows of the software that fitted or saved it."""
    return {} if posterior.saved_by is None else {"caviar": posterior.saved_by}
