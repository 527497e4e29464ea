"""The entries of all global variables, with their intervals."""

from __future__ import annotations

from typing import Any

from ..section import Section

_MOST_ENTRIES = 300
"""Entries of each variable in the table of all; of more, the largest in size are kept."""


class Variables(Section):
    """The table of the entries of all global variables, with the controls that filter it."""

    name, link, template = "variables", "Variables", "variables.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        entries, left_out = [], {}
        for own in subject.figures:
            places, left = own.places(_MOST_ENTRIES)
            if left:
                left_out[own.name] = left
            for place in places:
                figures = dict(zip(("mean", "sd", "low", "high"), own.at(place), strict=True))
                entries.append({"variable": own.name, "at": own.label(place), **figures})
        return {"entries": entries, "left_out": left_out}
