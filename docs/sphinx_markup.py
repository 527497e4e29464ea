"""Docstrings, which are written for Sphinx, as the pages of the reference read them: roles and formulas as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

from caviar.estimators.arguments.paragraphs import with_paragraphs

__all__ = ["SphinxMarkup", "markdown"]

FORMULA = re.compile(
    r"^(?P<indent> *)\.\. math::[ ]*(?P<line>.*)\n(?P<block>(?:[ ]*\n|(?P=indent) +.*\n)*)", re.MULTILINE
)
MATH = re.compile(r":math:`([^`]*)`", re.DOTALL)
REFERENCE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`(~?)([^`]*)`")
LITERAL = re.compile(r"^(?P<text>.*)(?P<colons>::)\n(?=\n {4})", re.MULTILINE)
HOME = "caviar."


def markdown(text: str) -> str:
    r"""Return a docstring with Markdown in the place of Sphinx's markup.

    Examples
    --------
    >>> print(markdown("The mean of :math:`x`, see :class:`caviar.Normal` and :meth:`fit`."))
    The mean of \(x\), see <autoref identifier="caviar.Normal" optional><code>caviar.Normal</code></autoref> and `fit`.
    >>> print(markdown(".. math:: x^2\n\nend\n"))
    <BLANKLINE>
    \[
    x^2
    \]
    <BLANKLINE>
    end
    <BLANKLINE>
    """
    text = FORMULA.sub(_formula, text + "\n")[:-1]
    text = MATH.sub(lambda match: rf"\({' '.join(match[1].split())}\)", text)
    text = LITERAL.sub(lambda match: match["text"] + (":" if match["text"].strip() else "") + "\n", text)
    return REFERENCE.sub(_reference, text)


def _formula(match: re.Match[str]) -> str:
    lines = [match["line"], *textwrap.dedent(match["block"]).strip("\n").splitlines()]
    formula = [line for line in lines if line.strip()]
    if any("&" in line for line in formula):
        formula = [r"\begin{aligned}", *formula, r"\end{aligned}"]
    elif any(line.endswith(r"\\") for line in formula):
        formula = [r"\begin{gathered}", *formula, r"\end{gathered}"]
    shown = [r"\[", *formula, r"\]"]
    return "\n" + "".join(f"{match['indent']}{line}\n" for line in shown) + "\n"


def _reference(match: re.Match[str]) -> str:
    """Return a link, where the reference has a page for what is named; elsewhere the name."""
    name = match[2]
    if not name.startswith(HOME):
        return f"`{name}`"
    shown = name.rpartition(".")[2] if match[1] else name
    return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'


class SphinxMarkup(griffe.Extension):
    """Rewrites the docstring of each object that is loaded; a function takes the place of a module of its name."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(with_paragraphs(obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        _uncover(pkg)


def _uncover(module: griffe.Module) -> None:
    """Let ``models.poisson_mixture`` be the function, as it is once ``models`` was imported, and not its module."""
    for child in list(module.members.values()):
        if not isinstance(child, griffe.Module):
            continue
        _uncover(child)
        if child.name in (module.exports or ()):
            for name, found in list(child.members.items()):
                if isinstance(found, griffe.Function | griffe.Class):
                    module.set_member(name, found)
