"""Whether a fit is to be trusted: what speaks for and against it, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .rows import RATE, JudgedRows

__all__ = ["findings_of", "verdict_of"]

_SAME = 0.1
"""Nats by which two starts may differ and still count as one end."""


def findings_of(fit: Mapping[str, Any], rows: JudgedRows | None) -> list[dict[str, str]]:
    """Return what was found, each with a level (``good``, ``note`` or ``bad``), a title and a sentence.

    Parameters
    ----------
    fit
        What :func:`fit_facts` gives.
    rows
        What the fit says of data, if there are any.
    """
    found = [_convergence(fit), _restarts(fit), _ascent(fit), _use(fit)]
    if rows is not None:
        found += [_surprise(rows), _certainty(rows, fit["n_components"])]
    return [finding for finding in found if finding]


def verdict_of(findings: list[dict[str, str]]) -> dict[str, str]:
    """Return the level and the sentence that sum up findings.

    Examples
    --------
    >>> verdict_of([{"level": "good", "title": "Converged", "text": ""}])["sentence"]
    'Nothing speaks against this fit.'
    """
    bad = sum(finding["level"] == "bad" for finding in findings)
    notes = sum(finding["level"] == "note" for finding in findings)
    if bad:
        return {"level": "bad", "sentence": "Do not rely on this fit yet: see below what to do."}
    if notes:
        things = "one thing" if notes == 1 else f"{notes} things"
        return {"level": "note", "sentence": f"The fit settled; {things} to look at before relying on it."}
    return {"level": "good", "sentence": "Nothing speaks against this fit."}


def _finding(level: str, title: str, text: str) -> dict[str, str]:
    return {"level": level, "title": title, "text": text}


def _convergence(fit: Mapping[str, Any]) -> dict[str, str]:
    if fit["status"] == "converged":
        times = "iteration" if fit["n_iter"] == 1 else "iterations"
        return _finding(
            "good", "Converged", f"The {fit['objective']} settled after {fit['n_iter']:,} {times}."
        )
    advice: dict[str, str] = {
        "max_iter": f"It was still changing after {fit['n_iter']:,} iterations. Fit again with a larger --max-iter "
        f"(max_iter=).",
        "interrupted": "The fit was interrupted; this is the best so far. Fit again and let it finish.",
        "collapsed": "A component shrank onto (almost) no data. Use fewer components, or a Bayesian mixture, whose "
        "prior prevents this.",
        "fell": "An update lowered the objective, which exact coordinate ascent cannot do: the numbers lost their "
        "digits. Bring the columns to similar scales.",
    }
    return _finding("bad", "Not converged", advice.get(fit["status"], str(fit["explanation"])))


def _restarts(fit: Mapping[str, Any]) -> dict[str, str]:
    ends = np.asarray(fit["restarts"])
    if fit["n_components"] == 1:
        return _finding("good", "Starts", "With one component every start ends at the same place.")
    if len(ends) <= 1:
        text = "Another start may end higher. Fit again with --restarts 10 (n_init=10) to find out."
        return _finding("note", "One start only", text)
    reached = int((ends >= np.nanmax(ends) - _SAME).sum())
    told = f"{reached} of {len(ends)} starts ended at the best {fit['objective']}, up to {_SAME} nats"
    if reached > 1:
        return _finding("good", "Starts agree", f"{told}.")
    return _finding("note", "Starts disagree", f"Only {told}: more starts may find a better fit.")


def _ascent(fit: Mapping[str, Any]) -> dict[str, str]:
    slack = 1e-9 * max(1.0, abs(fit["elbo"]))
    if fit["largest_fall"] <= slack:
        return _finding("good", "Never fell", f"The {fit['objective']} rose at every iteration, as it must.")
    text = f"The {fit['objective']} fell by up to {fit['largest_fall']:.2g} nats in an iteration."
    return _finding("note", "It fell on the way", text)


def _use(fit: Mapping[str, Any]) -> dict[str, str]:
    empty = [str(k) for k in range(fit["n_components"]) if k not in fit["used"]]
    n_components = fit["n_components"]
    if not empty:
        all_of = "The component has" if n_components == 1 else f"All {n_components} components have"
        return _finding("good", "Components in use", f"{all_of} rows.")
    listed = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
    which = f"Component {listed} has" if len(empty) == 1 else f"Components {listed} have"
    text = f"{which} (almost) no rows. The data do not need so many; nothing is wrong with the others."
    return _finding("good" if not fit["is_point"] else "note", "Superfluous components", text)


def _surprise(rows: JudgedRows) -> dict[str, str] | None:
    judged = rows.tails[~np.isnan(rows.tails)]
    if not len(judged):
        return None
    share = float((judged <= RATE).mean())
    error = math.sqrt(RATE * (1 - RATE) / len(judged))
    told = f"{share:.1%} of the rows are outliers at a threshold that {RATE:.0%} would exceed by chance"
    if share <= max(2 * RATE, RATE + 4 * error):
        return _finding("good", "Density fits the rows", f"{told}.")
    text = f"{told}: the density misses part of the data. See the outliers below, or allow more components."
    return _finding("bad" if share > 0.1 else "note", "Density misses rows", text)


def _certainty(rows: JudgedRows, n_components: int) -> dict[str, str] | None:
    if n_components == 1:
        return None
    unsure = float((rows.certainty < 0.8).mean())
    text = f"{unsure:.1%} of the rows belong to their component with less than 80% probability"
    if unsure <= 0.2:
        return _finding("good", "Clear assignments", f"Only {text}." if unsure > 0 else "Every row is clear.")
    return _finding(
        "note", "Overlapping components", f"{text}: read the labels as tendencies, not as groups."
    )
