"""What speaks for and against the posterior of a stated model, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ..verdict import ascent, convergence, finding, restarts
from .subject import Subject

__all__ = ["findings_of"]

_MOST_DRAWS, _FEWEST_DRAWS = 1000, 100
_MOST_ROW_PASSES = 20_000_000
"""Draws times rows of the diagnosis: of more rows there are fewer draws."""


def findings_of(
    subject: Subject, fit: Mapping[str, Any], rows: Mapping[str, Any] | None
) -> list[dict[str, str]]:
    """Return what was found, each with a level (``good``, ``info``, ``note``, ``bad``), a title and a sentence.

    Parameters
    ----------
    subject
        What the page is about.
    fit
        What the page says of the fit.
    rows
        What the posterior says of data, if there are any.
    """
    found = [convergence(fit), _starts(subject, fit), ascent(fit)]
    if rows is not None and subject.data is not None:
        found += [_distance(subject, subject.data), *_coverage(rows), *_certainty(rows)]
    return [entry for entry in found if entry]


def _starts(subject: Subject, fit: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what the starts say; of one start only where there is something hidden that others may find otherwise."""
    if len(fit["restarts"]) > 1:
        return restarts(fit)
    if subject.hidden:
        return restarts(fit)
    if len(subject.posterior) == 1:
        return finding(
            "good",
            "One factor",
            "Nothing else is unknown, so one update gives the exact posterior, from any start.",
        )
    return None


def _distance(subject: Subject, data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return how far q is from the posterior, told by draws."""
    n_rows = max([1, *(np.shape(value)[0] for value in data.values() if np.ndim(value))])
    n_draws = min(_MOST_DRAWS, max(_FEWEST_DRAWS, _MOST_ROW_PASSES // n_rows))
    title = "Distance to the true posterior"
    try:
        found = subject.posterior.diagnose(data, n_draws=n_draws, seed=0)
    except ImportError:
        return finding(
            "info", title, 'Not looked at: it takes ArviZ, which pip install "caviar[arviz]" installs.'
        )
    except CaviarError as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        return finding("info", title, f"Cannot be told from draws: {reason}.")
    told = f"Pareto k of {n_draws:,} draws is {found.pareto_k:.2f}"
    gap = found.log_evidence - found.elbo
    if found.pareto_k < 0.7 and math.isfinite(gap):
        words = {"good": "close to", "usable": "near"}[found.verdict]
        text = (
            f"{told}: what was found is {words} the exact posterior. The ELBO is about {max(gap, 0.0):.2g} nats below "
            f"the log evidence."
        )
        return finding("good", title, text)
    text = (
        f"{told}, above 0.7: the exact posterior differs from what was found. Means may serve; intervals are likely "
        f"to be too narrow. With very many unknowns it is large for any posterior of independent factors."
    )
    return finding("note", title, text)


def _coverage(rows: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return whether prediction intervals hold as many observations as they say."""
    found = []
    for own in rows["predictions"]:
        if own["covered"] is None or own["n"] < 20:
            continue
        error = math.sqrt(0.95 * 0.05 / own["n"])
        told = f"{own['covered']:.1%} of {own['n']:,} observations of {own['name']} lie in their 95% interval"
        if abs(own["covered"] - 0.95) <= max(0.02, 4 * error):
            found.append(finding("good", "Predictions are calibrated", f"{told}."))
        else:
            words = "too narrow" if own["covered"] < 0.95 else "too wide"
            text = f"{told}, so these are {words} for these rows. Are they of the kind that was fitted to?"
            found.append(finding("note", "Predictions are off", text))
    return found


def _certainty(rows: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return whether hidden states and groups are clear."""
    found = []
    for own in [*rows["chains"], *rows["groups"]]:
        what = "steps" if "steps" in own else "rows"
        text = f"{own['unsure']:.1%} of the {what} have a {own['name']} that is less than 80% probable"
        if own["unsure"] <= 0.2:
            found.append(finding("good", f"{own['name']} is clear", f"{text}."))
        else:
            found.append(
                finding(
                    "note", f"{own['name']} is uncertain", f"{text}: read it as a tendency, not as a label."
                )
            )
    return found
