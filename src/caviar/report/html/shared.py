"""The sections that every page has."""

from __future__ import annotations

from typing import Any

from .findings import verdict_of
from .provenance import provenance_of, versions
from .section import Page, Section
from .subject import Subject


class Trust(Section):
    """Whether the fit is to be trusted, and why."""

    name, link, template = "trust", "Trust", "trust.html"

    def gather(self, subject: Subject) -> dict[str, Any]:
        findings = subject.findings()
        return {"verdict": verdict_of(findings), "findings": findings}


class Quality(Section):
    """The figures of each column, and what should be known of it."""

    name, link, template = "quality", "Data quality", "quality.html"

    def gather(self, subject: Subject) -> dict[str, Any]:
        return {"quality": subject.quality()}


class Progress(Section):
    """The trace of the objective, the ends of the starts, and the terms of the sum."""

    name, link, template, scripts = "progress", "Convergence", "progress.html", ("trace.js",)

    def gather(self, subject: Subject) -> dict[str, Any]:
        return {}

    def figures(self, page: Page) -> dict[str, Any]:
        return {"trace": page["fit"]["trace"], "name": page["fit"]["objective"]}


class Reproduce(Section):
    """The command, or the call, that gives the same fit, and the versions it took."""

    name, link, template = "reproduce", "Reproduce", "reproduce.html"

    def gather(self, subject: Subject) -> dict[str, Any]:
        return {"versions": versions(), "provenance": provenance_of(subject.data)}
