"""Formulas of the site as MathML, which browsers draw without a script and without a network; a hook of MkDocs."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

__all__ = ["on_page_content", "with_mathml"]

# What pymdownx.arithmatex writes in its generic mode.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
# What the converter does not know, in words that it does.
SAID_OTHERWISE = (
    (re.compile(r"\\(?:big|Big|bigg|Bigg)[lr]?\s*(\\[lr]angle)"), r"\1"),
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{align*}"),
    (re.compile(r"\\(begin|end)\{gathered\}"), r"\\\1{matrix}"),
)
# MathML leaves no space between the name of a function and an argument without parentheses.
FUNCTION = re.compile(r"(<mi>(?:log|exp|det|max|min|sup|inf|arg)</mi>)(?!<mo stretchy=\"false\">&#x00028;)")


def with_mathml(page: str) -> str:
    r"""Return the HTML of a page with MathML in the place of its TeX.

    Examples
    --------
    >>> print(with_mathml(r'<span class="arithmatex">\(x\)</span>'))
    <math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>
    """
    page = DISPLAYED.sub(lambda match: f'<div class="formula">{_formula(match[1], "block")}</div>', page)
    return INLINE.sub(lambda match: _formula(match[1], "inline"), page)


def on_page_content(html: str, **_: Any) -> str:
    """Convert the formulas of a page; MkDocs calls it for each page."""
    return with_mathml(html)


def _formula(tex: str, display: str) -> str:
    tex = unescape(tex).strip()
    for unknown, known in SAID_OTHERWISE:
        tex = unknown.sub(known, tex)
    made = convert(tex, display=display)
    if left := re.findall(r"\\[A-Za-z]+|<mi>&</mi>", made):
        raise ValueError(f"{', '.join(left)} of the formula {tex!r} have no MathML")
    return FUNCTION.sub(r'\1<mspace width="0.167em" />', made)
