"""What the pages of the theme lack for screen readers and keyboards; a hook of MkDocs."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

__all__ = ["accessible", "on_post_page"]

SECTION = re.compile(
    r'aria-labelledby="(?P<label>__nav_[\d_]+)_label"(?P<rest>[^>]*>\s*'
    r'<label class="md-nav__title" for="(?P=label)">\s*<span class="md-nav__icon md-icon"></span>)'
    r"(?P<title>.*?)</label>",
    re.DOTALL,
)
MARK = re.compile(r"<[^>]+>")
SWITCH = re.compile(r'<input class="md-toggle" data-md-toggle="(drawer|search)"')


def accessible(page: str) -> str:
    """Return the HTML of a page with names for its search, its sections and its switches.

    Examples
    --------
    >>> accessible('<div class="md-search" role="dialog">')
    '<div class="md-search" role="dialog" aria-label="Search">'
    """
    page = re.sub(r'(<div class="md-search"[^>]* role="dialog")', r'\1 aria-label="Search"', page)
    page = SWITCH.sub(r'\g<0> aria-label="Open the \1"', page)
    return SECTION.sub(_named_section, page)


def on_post_page(output: str, **_: Any) -> str:
    """Complete a page; MkDocs calls it for each page."""
    return accessible(output)


def _named_section(found: re.Match[str]) -> str:
    title = " ".join(unescape(MARK.sub(" ", found["title"])).split())
    return f'aria-label="{escape(title)}"{found["rest"]}{found["title"]}</label>'
