"""Sections of a page, each a template and what fills it; the templates escape every text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from .numbers import number, percent

Page = Mapping[str, Any]


class Section(ABC):
    """A section of a page."""

    name: ClassVar[str]
    """Its id on the page."""
    link: ClassVar[str]
    """The word in the list of links."""
    template: ClassVar[str]
    """File of its markup, which sees everything that was gathered for the page."""
    scripts: ClassVar[tuple[str, ...]] = ()
    """Files of the script that draws it."""

    @abstractmethod
    def gather(self, subject: Any) -> dict[str, Any]:
        """Return what it shows, as plain values: no markup, no NumPy."""

    def figures(self, page: Page) -> dict[str, Any]:
        """Return what the script draws, from everything that was gathered for the page."""
        return {}


@dataclass(frozen=True)
class Heading:
    """The heading of a column of a table, and whether it is a column of numbers."""

    text: str
    is_number: bool


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("caviar.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        percent=percent,
        grouped=lambda count: f"{count:,}",
        headings=lambda texts: [Heading(text.removeprefix("#"), text.startswith("#")) for text in texts],
        numeric_headings=lambda names: [Heading(name, is_number=True) for name in names],
        breakable=_breakable,
        as_id=lambda name: "".join(c if c.isalnum() else "-" for c in name),
    )
    return environment


def _breakable(name: str) -> Markup:
    """Return a name that a line may end within, after an underscore or a full stop."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_.])", name))


def rendered(template: str, **values: Any) -> str:
    """Return the markup of a template, in which every value is escaped that is not markup itself."""
    return _environment().get_template(template).render(**values)
