"""Where a page comes from: its date, the data it was made with, and the versions of the libraries behind it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._typing import AnyArray
from ..._version import __version__
from ...lazy.rows import LazyRows

_DIGITS = 16
_MOST_BYTES = 2_000_000_000


def file_name(source: str | None) -> str | None:
    r"""Return the name of a file without its folders, which a page should not disclose; other text unchanged.

    Examples
    --------
    >>> (
    ...     file_name("/home/ada/data/faithful.csv"),
    ...     file_name("rows of June"),
    ...     file_name("C:\\data\\june.csv"),
    ... )
    ('faithful.csv', 'rows of June', 'june.csv')
    """
    if source is None or "://" in source:
        return source
    parts = PurePath(source.replace("\\", "/")).parts
    return parts[-1] if len(parts) > 1 and PurePath(source.replace("\\", "/")).suffix else source


def provenance_of(data: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return when a page was made, and the digest of the data that it was made with."""
    facts = [("Report made", datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"))]
    digest = None if data is None else digest_of(data)
    return [*facts, ("SHA-256 of the data", digest)] if digest else facts


def digest_of(data: Mapping[str, Any]) -> str | None:
    """Return the first digits of the SHA-256 of arrays by name; None for rows that are not in memory.

    Of each array its name, its shape and its numbers in double precision count, in the order of the names.

    Examples
    --------
    >>> digest_of({"x": [1.0, 2.0]}) == digest_of({"x": np.array([1, 2])})
    True
    >>> digest_of({"x": [1.0, 2.0]}) == digest_of({"x": [2.0, 1.0]})
    False
    """
    found = hashlib.sha256()
    for name in sorted(data):
        value = data[name]
        if isinstance(value, LazyRows):
            return None
        for array in _arrays(value):
            if array.nbytes > _MOST_BYTES:
                return None
            found.update(f"{name}{array.shape}".encode())
            found.update(array.tobytes())
    return found.hexdigest()[:_DIGITS]


def _arrays(value: Any) -> list[AnyArray]:
    if issparse(value):
        own: Any = value.tocsr()
        own.sort_indices()
        return [np.ascontiguousarray(part, dtype=np.float64) for part in (own.data, own.indices, own.indptr)]
    filled = np.ma.filled(np.ma.asarray(value), np.nan) if np.ma.isMaskedArray(value) else value
    try:
        return [np.ascontiguousarray(filled, dtype=np.float64)]
    except (TypeError, ValueError):
        texts = np.asarray(filled, dtype=object).ravel().tolist()
        return [np.frombuffer("\0".join(map(str, texts)).encode(), dtype=np.uint8)]


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
