"""Profiles of the clusters of a mixed table: typical values of each in every column."""

from __future__ import annotations

from typing import Any

from ....estimators._components import told_by
from ...tables import component_table
from ..numbers import number, percent
from ..section import Section

_USED = 0.005
"""Weight from which on a cluster has a profile."""
_MOST_CLUSTERS, _MOST_COLUMNS, _MOST_VALUES = 12, 40, 3


class Profiles(Section):
    """A table with a row for each column of the data and a column for each cluster."""

    name, link, template = "profiles", "Clusters", "profiles.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        estimator = subject.estimator
        found = sorted(component_table(estimator), key=lambda own: -own.weight.value)
        found = [own for own in found if own.weight.value >= _USED]
        shown, names = found[:_MOST_CLUSTERS], estimator._columns.names
        lines = [
            {
                "name": name,
                "kind": kind,
                "cells": [_cell(own, place) for own in shown],
                "apart": told_by(shown, place),
            }
            for place, (name, kind) in enumerate(zip(names, estimator.kinds_, strict=True))
        ]
        order = sorted(range(len(lines)), key=lambda place: -lines[place]["apart"])
        kept = sorted(order[:_MOST_COLUMNS])
        return {
            "profiles": {
                "clusters": [{"k": own.label, "weight": own.weight.value} for own in shown],
                "left_out": len(found) - len(shown),
                "lines": [lines[place] for place in kept],
                "of": len(lines),
                "telling": [lines[place]["name"] for place in order[:3] if lines[place]["apart"] > 0],
            }
        }


def _cell(component: Any, place: int) -> dict[str, Any]:
    """Return what a cluster has in a column: mean and spread of the rows, or the most probable values."""
    shares = component.probabilities[place]
    if shares is not None:
        best = sorted(shares.items(), key=lambda pair: -pair[1].value)[:_MOST_VALUES]
        text = [f"{value} {percent(share.value)}" for value, share in best]
        return {"first": text[0], "rest": text[1:], "key": best[0][1].value}
    mean = component.mean[place]
    rest = [f"sd {number(component.standard_deviation[place], 3)}"]
    width = None if mean.low is None else mean.high - mean.low
    if width is not None:
        rest.append(f"mean in {number(mean.low, beside=width)} to {number(mean.high, beside=width)}")
    return {"first": number(mean.value, beside=width), "rest": rest, "key": mean.value}
