"""Tables of texts, as lines of plain text and as HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from math import isfinite

MOST_LINES = 10
"""Lines of a table that a notebook shows."""

_ROUNDING = 1e-12
"""Part of the size of a figure that is nothing but rounding."""


def text_table(rows: Sequence[Sequence[str]], left: Collection[int]) -> str:
    """Return rows of cells as lines, the first of them the headings; the columns in ``left`` are aligned to the left.

    Examples
    --------
    >>> print(text_table([("name", "n"), ("a", "10"), ("long name", "5")], left={0}))
    name        n
    a          10
    long name   5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        [cell.ljust(width) if i in left else cell.rjust(width) for i, (cell, width) in enumerate(cells)]
        for cells in (zip(row, widths, strict=True) for row in rows)
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def html_of(
    heading: str,
    rows: Sequence[Sequence[str]] = (),
    remarks: Collection[str] = (),
    bold: Collection[int] = (),
) -> str:
    """Return what a notebook shows: a heading of one or several lines, a table, and remarks below it; all escaped.

    The first row of the table has the headings of its columns; rows by number in ``bold`` are bold.

    Examples
    --------
    >>> print(html_of("k < 0.5", [("figure", "value"), ("k", "0.2"), ("a", "")], ["done"], bold={1}))
    <p>k &lt; 0.5</p>
    <table>
    <tr><th>figure</th><th>value</th></tr>
    <tr><td><b>k</b></td><td><b>0.2</b></td></tr>
    <tr><td>a</td><td></td></tr>
    </table>
    <p>done</p>
    """
    above = escape(heading).replace("\n", "<br>")
    parts = [f"<p>{above}</p>" if heading else "", _html_table(rows, bold) if rows else ""]
    return "\n".join([*filter(None, parts), *(f"<p>{escape(remark)}</p>" for remark in remarks if remark)])


def _html_table(rows: Sequence[Sequence[str]], bold: Collection[int]) -> str:
    """Return rows of cells as a table."""
    lines = ["<table>"]
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        cells = (f"<b>{escape(cell)}</b>" if cell and number in bold else escape(cell) for cell in row)
        lines.append("<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def beside(value: float, size: float) -> str:
    """Return a number in four digits; 0 if it is rounding error compared with a size, as a mean with its sd.

    Examples
    --------
    >>> beside(-9.992e-15, 10.0), beside(1e-14, 1e-14), beside(0.25, float("nan"))
    ('0', '1e-14', '0.25')
    """
    return "0" if isfinite(size) and abs(value) < _ROUNDING * size else f"{value:.4g}"
