"""Findings for and against a mixture of Gaussians, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..findings import ascent, convergence, finding, reproduction, restarts
from ..seen import Seen
from .held_out import HeldOut
from .judged import RATE, JudgedRows

_FEWEST_JUDGED = 100
"""Rows from which on the rate of outliers is judged: for one of 5% is then four standard errors from 1%."""


def findings_of(
    fit: Mapping[str, Any],
    rows: JudgedRows | None,
    seen: Seen | None,
    held_out: HeldOut | str,
    checks: Mapping[str, Any] | None,
) -> list[dict[str, str]]:
    """Return what was found, each with a level (``good``, ``info``, ``note``, ``bad``), a title and a sentence.

    Parameters
    ----------
    fit
        What the page says of the fit.
    rows
        What the fit says of data, if there are any.
    seen
        What the fit has seen of them.
    held_out
        What fits without them say of them; or why there is nothing.
    checks
        The data beside data sets of the model.
    """
    found = [convergence(fit), _starts(fit), ascent(fit), _use(fit)]
    if rows is not None and seen is not None:
        found += [
            reproduction(checks),
            _surprise(rows, seen, held_out),
            _certainty(rows, seen, held_out, fit["n_components"]),
        ]
    return [entry for entry in found if entry]


def _starts(fit: Mapping[str, Any]) -> dict[str, str]:
    if fit["n_components"] == 1:
        return finding("info", "Starts", "With one component every start ends at the same place.")
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
    return finding("info" if not fit["is_point"] else "note", "Superfluous components", text)


def _surprise(rows: JudgedRows, seen: Seen, held_out: HeldOut | str) -> dict[str, str] | None:
    """Return whether as many rows are outliers as there would be by chance: of rows that were left out, or are new."""
    tails = held_out.tails if isinstance(held_out, HeldOut) else rows.tails
    judged = tails[~np.isnan(tails)]
    if not len(judged):
        return None
    share = float((judged <= RATE).mean())
    told = f"{share:.1%} of {len(judged):,} rows{_how(seen, held_out)} are outliers"
    told += f" at a threshold that {RATE:.0%} would exceed by chance"
    largest = max(2 * RATE, RATE + 4 * math.sqrt(RATE * (1 - RATE) / len(judged)))
    if share > largest:
        return _missed(told, share, rows, held_out, largest)
    if not _is_test(seen, held_out):
        text = f"{seen.label.capitalize()}, {told}. That is not a test: {seen.words}, and {held_out}."
        return finding("info", "Density is not tested", text)
    if len(judged) < _FEWEST_JUDGED:
        text = f"{told}. So few rows cannot show whether the density fits."
        return finding("info", "Too few rows to judge the density", text)
    return finding("good", "Density fits the rows", f"{told}.")


def _missed(
    told: str, share: float, rows: JudgedRows, held_out: HeldOut | str, largest: float
) -> dict[str, str]:
    """Return the advice about a density that misses rows: only new rows, or those of the fit too."""
    level = "bad" if share > 0.1 else "note"
    in_sample = float((rows.tails[~np.isnan(rows.tails)] <= RATE).mean())
    if isinstance(held_out, HeldOut) and in_sample <= largest:
        text = (
            f"{told}, and {in_sample:.1%} in-sample: the fit follows the rows that it has seen. Take fewer components, "
            f"or covariances with fewer parameters."
        )
        return finding(level, "Density misses new rows", text)
    text = f"{told}: the density misses part of the data. See the outliers below, or allow more components."
    return finding(level, "Density misses rows", text)


def _certainty(
    rows: JudgedRows, seen: Seen, held_out: HeldOut | str, n_components: int
) -> dict[str, str] | None:
    if n_components == 1:
        return None
    certainty = held_out.certainty if isinstance(held_out, HeldOut) else rows.certainty
    unsure = float((certainty < 0.8).mean())
    how = _how(seen, held_out)
    text = f"{unsure:.1%} of the rows{how} belong to their component with less than 80% probability"
    if unsure > 0.2:
        text = f"{text}: read the labels as tendencies, not as groups."
        return finding("note", "Overlapping components", text)
    if not _is_test(seen, held_out):
        text = f"{seen.label.capitalize()}, {text}. That is not a test: {seen.words}, and {held_out}."
        return finding("info", "Clear assignments", text)
    return finding(
        "good", "Clear assignments", f"Only {text}." if unsure > 0 else f"Every row{how} is clear."
    )


def _is_test(seen: Seen, held_out: HeldOut | str) -> bool:
    return seen.is_new or isinstance(held_out, HeldOut)


def _how(seen: Seen, held_out: HeldOut | str) -> str:
    """Return by what fit rows are judged, where that is a test."""
    if isinstance(held_out, HeldOut):
        return f", each judged {held_out.words},"
    return ", which the fit has not seen," if seen.is_new else ""
