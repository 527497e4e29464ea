"""Whether to trust a fit: findings for and against it, in plain words, whatever was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SETTLED = 1e-6
"""Rise of the objective, relative to it, that is none to look at."""
_SAME = 0.1
"""Nats by which two starts may differ and still count as one end."""


def verdict_of(findings: list[dict[str, str]]) -> dict[str, str]:
    """Return the level and the sentence that sum up findings.

    Examples
    --------
    >>> verdict_of([{"level": "good", "title": "Converged", "text": ""}])["sentence"]
    'Nothing speaks against this fit.'
    >>> verdict_of([{"level": "info", "title": "Density is not tested", "text": ""}])["sentence"]
    'Nothing that was tested speaks against this fit.'
    """
    bad = sum(entry["level"] == "bad" for entry in findings)
    notes = sum(entry["level"] == "note" for entry in findings)
    if bad:
        return {"level": "bad", "sentence": "Do not rely on this fit yet: see below what to do."}
    if notes:
        things = "one thing" if notes == 1 else f"{notes} things"
        return {"level": "note", "sentence": f"The fit settled; {things} to look at before relying on it."}
    tested = "that was tested " if any(entry["level"] == "info" for entry in findings) else ""
    return {"level": "good", "sentence": f"Nothing {tested}speaks against this fit."}


def finding(level: str, title: str, text: str) -> dict[str, str]:
    """Return a finding: its kind (``good``, ``info``, ``note``, ``bad``), a title and a sentence."""
    return {"level": level, "title": title, "text": text}


def reproduction(checks: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return whether the model makes data like these; None where that was not tried."""
    if checks is None or not checks["replicates"]:
        return None
    missed = [own["name"] for own in checks["replicates"] if own["level"] == "note"]
    n_columns = len(checks["replicates"])
    if missed:
        listed = ", ".join(missed[:5]) + (f" and {len(missed) - 5} more" if len(missed) > 5 else "")
        text = f"Data sets that the model makes differ from the data in the shape of {listed}: see Checks."
        return finding("note", "The model misses something", text)
    columns = "the observed variable" if n_columns == 1 else f"all {n_columns} columns"
    return finding(
        "good", "The model reproduces the data", f"Data sets that it makes look like the data in {columns}."
    )


def convergence(fit: Mapping[str, Any]) -> dict[str, str]:
    """Return whether the fit converged, and what to do if it did not."""
    if fit["status"] == "converged":
        times = "iteration" if fit["n_iter"] == 1 else "iterations"
        return finding(
            "good",
            "Converged",
            f"The {fit['objective']} settled after {fit['n_iter']:,} {times}, besides the sweeps of the start.",
        )
    advice: dict[str, str] = {
        "max_iter": f"It was still changing after {fit['n_iter']:,} iterations. Fit again with a larger "
        f"{fit['say_iterations']}.",
        "interrupted": "The fit was interrupted; this is the best so far. Fit again and let it finish.",
        "collapsed": "A component shrank onto (almost) no data. Use fewer components, or a Bayesian mixture, whose "
        "prior prevents this.",
        "fell": "An update lowered the objective, which exact coordinate ascent cannot do: the numbers lost their "
        "digits. Bring the columns to similar scales.",
    }
    return finding("bad", "Not converged", advice.get(fit["status"], str(fit["explanation"])))


def restarts(fit: Mapping[str, Any]) -> dict[str, str]:
    """Return whether the starts ended at the same place, or that there was one only."""
    if len(fit["restarts"]) <= 1:
        text = f"Another start may end higher. Fit again with {fit['say_starts']} to find out."
        return finding("note", "One start only", text)
    reached = next((n_starts for end, n_starts in reversed(fit["ends"]) if fit["elbo"] <= end), 0)
    told = f"{fit['told_ends']} (those within {_SAME} nats are one)"
    if reached > 1:
        return finding("good", "Starts agree", f"{told}.")
    return finding("note", "Starts disagree", f"{told}: more starts may find a better fit.")


def ascent(fit: Mapping[str, Any]) -> dict[str, str]:
    """Return whether the objective rose all the way, as it must where updates are exact."""
    slack = 1e-9 * max(1.0, abs(fit["elbo"]))
    if fit["largest_fall"] <= slack and fit["rise"] <= _SETTLED * max(1.0, abs(fit["elbo"])):
        text = f"The start was already at the end: no iteration changed the {fit['objective']} by much."
        return finding("info", "Settled from the start", text)
    if fit["largest_fall"] <= slack:
        return finding("good", "Never fell", f"The {fit['objective']} rose at every iteration, as it must.")
    text = f"The {fit['objective']} fell by up to {fit['largest_fall']:.2g} nats in an iteration."
    return finding("note", "It fell on the way", text)
