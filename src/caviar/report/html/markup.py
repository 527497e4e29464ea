"""Pieces of markup in which every text from outside is escaped: cells, tables, numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "component_mark", "number", "percent", "section", "table"]

_N_COLOURS = 8


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    markup
        What stands in it: markup, its texts already escaped.
    key
        The number, or text, by which it is sorted; None for what the cell says.
    is_number
        Whether it is set as a number.
    """

    markup: str
    key: float | str | None = None
    is_number: bool = True


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for readers; a dash for none.

    Examples
    --------
    >>> number(-1178.46731), number(1234567.0), number(0.00001234), number(None)
    ('−1,178', '1,234,567', '1.234e−05', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -4 <= size < 9:
        text = f"{value:,.{max(0, digits - 1 - size)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits - 1}e}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(share: float | None) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.3561), percent(0.0), percent(0.00004)
    ('35.6%', '0%', '<0.1%')
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def component_mark(k: int) -> str:
    """Return the number of a component beside its colour."""
    return f'<span class="mark c{k % _N_COLOURS}"></span>{k}'


def section(name: str, title: str, body: str, lead: str = "") -> str:
    """Return a section of the page; its title and lead are texts, its body is markup."""
    opening = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return (
        f'<section id="{escape(name)}" aria-labelledby="{escape(name)}-title">'
        f'<h2 id="{escape(name)}-title">{escape(title)}</h2>{opening}{body}</section>'
    )


def table(
    name: str, caption: str, headings: Sequence[str], rows: Iterable[Sequence[Cell]], *, sorts: bool = True
) -> str:
    """Return a table in a region of its own, which scrolls if it is wide; the first cell of a row is its heading.

    Parameters
    ----------
    name
        Its id.
    caption
        What it is a table of.
    headings
        Texts above the columns.
    rows
        Cells.
    sorts
        Whether readers can sort it.
    """
    body = list(rows)
    numeric = [cell.is_number for cell in body[0]] if body else [False] * len(headings)
    above = "".join(
        f'<th scope="col"{_class(is_number)}>{escape(heading)}</th>'
        for heading, is_number in zip(headings, numeric, strict=True)
    )
    lines = "".join(f"<tr>{''.join(_cell(cell, at) for at, cell in enumerate(row))}</tr>" for row in body)
    sortable = ' class="sortable"' if sorts and len(body) > 1 else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{escape(name)}-caption">'
        f'<table id="{escape(name)}"{sortable}><caption id="{escape(name)}-caption">{escape(caption)}</caption>'
        f"<thead><tr>{above}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(cell: Cell, at: int) -> str:
    key = "" if cell.key is None else f' data-key="{escape(str(cell.key))}"'
    if at == 0:
        return f'<th scope="row"{_class(cell.is_number)}{key}>{cell.markup}</th>'
    return f"<td{_class(cell.is_number)}{key}>{cell.markup}</td>"
