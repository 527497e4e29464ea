"""Pages of the site that have moved: the old address leads to the new one; a hook of MkDocs."""

from __future__ import annotations

import posixpath
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["MOVED", "on_post_build", "page_of"]

MOVED = {"derivation.html": "derivation/one-row.html"}
"""Address within the site that a page had -> the one that it has now. A page that moves gets a line; lines stay."""


def page_of(old: str, new: str) -> str:
    """Return the page that leads from an old address to the new one, without a script.

    Examples
    --------
    >>> print(page_of("a/b.html", "c.html").splitlines()[3])
    <meta http-equiv="refresh" content="0; url=../c.html">
    """
    link = escape(posixpath.relpath(new, posixpath.dirname(old) or "."), quote=True)
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={link}">
<title>This page has moved</title>
<p>This page has moved: <a href="{link}">{escape(new)}</a>.</p>
</html>
"""


def on_post_build(config: Any, **_: Any) -> None:
    """Write the pages that lead on; MkDocs calls it when the site is built.

    Raises
    ------
    FileExistsError
        If there is a page at an old address.
    FileNotFoundError
        If there is none at a new one.
    """
    site = Path(config["site_dir"])
    for old, new in MOVED.items():
        if (site / old).exists():
            raise FileExistsError(f"{old} is a page of the site; take its line out of docs/redirects.py")
        if not (site / new).exists():
            raise FileNotFoundError(
                f"{new}, where docs/redirects.py leads from {old}, is no page of the site"
            )
        (site / old).parent.mkdir(parents=True, exist_ok=True)
        (site / old).write_text(page_of(old, new), encoding="utf-8")
