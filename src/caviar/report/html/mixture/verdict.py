"""What speaks for and against a mixture of Gaussians, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..verdict import ascent, convergence, finding, restarts
from .rows import RATE, JudgedRows

__all__ = ["findings_of"]


def findings_of(fit: Mapping[str, Any], rows: JudgedRows | None) -> list[dict[str, str]]:
    """Return what was found, each with a level (``good``, ``note`` or ``bad``), a title and a sentence.

    Parameters
    ----------
    fit
        What :func:`fit_facts` gives.
    rows
        What the fit says of data, if there are any.
    """
    found = [convergence(fit), _starts(fit), ascent(fit), _use(fit)]
    if rows is not None:
        found += [_surprise(rows), _certainty(rows, fit["n_components"])]
    return [entry for entry in found if entry]


def _starts(fit: Mapping[str, Any]) -> dict[str, str]:
    if fit["n_components"] == 1:
        return finding("good", "Starts", "With one component every start ends at the same place.")
    return restarts(fit)


def _use(fit: Mapping[str, Any]) -> dict[str, str]:
    empty = [str(k) for k in range(fit["n_components"]) if k not in fit["used"]]
    n_components = fit["n_components"]
    if not empty:
        all_of = "The component has" if n_components == 1 else f"All {n_components} components have"
        return finding("good", "Components in use", f"{all_of} rows.")
    listed = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
    which = f"Component {listed} has" if len(empty) == 1 else f"Components {listed} have"
    text = f"{which} (almost) no rows. The data do not need so many; nothing is wrong with the others."
    return finding("good" if not fit["is_point"] else "note", "Superfluous components", text)


def _surprise(rows: JudgedRows) -> dict[str, str] | None:
    judged = rows.tails[~np.isnan(rows.tails)]
    if not len(judged):
        return None
    share = float((judged <= RATE).mean())
    error = math.sqrt(RATE * (1 - RATE) / len(judged))
    told = f"{share:.1%} of the rows are outliers at a threshold that {RATE:.0%} would exceed by chance"
    if share <= max(2 * RATE, RATE + 4 * error):
        return finding("good", "Density fits the rows", f"{told}.")
    text = f"{told}: the density misses part of the data. See the outliers below, or allow more components."
    return finding("bad" if share > 0.1 else "note", "Density misses rows", text)


def _certainty(rows: JudgedRows, n_components: int) -> dict[str, str] | None:
    if n_components == 1:
        return None
    unsure = float((rows.certainty < 0.8).mean())
    text = f"{unsure:.1%} of the rows belong to their component with less than 80% probability"
    if unsure <= 0.2:
        return finding("good", "Clear assignments", f"Only {text}." if unsure > 0 else "Every row is clear.")
    return finding("note", "Overlapping components", f"{text}: read the labels as tendencies, not as groups.")
