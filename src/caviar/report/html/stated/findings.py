"""Findings for and against the posterior of a stated model, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...._errors import CaviarError
from ..findings import ascent, convergence, finding, reproduction, restarts

_LEVEL = 0.95
_FEWEST_TOLD, _FEWEST_JUDGED = 20, 80
"""Observations from which on coverage is told; and is judged, for 95% is two standard errors from 90%."""
_MOST_DRAWS, FEWEST_DRAWS = 1000, 100
_MOST_ROW_PASSES = 20_000_000
"""Draws times rows of the diagnosis: of more rows there are fewer draws."""


def findings_of(subject: Any, fit: Mapping[str, Any], rows: Mapping[str, Any] | None) -> list[dict[str, str]]:
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
        found += [
            reproduction(subject.checks),
            _distance(subject, subject.data),
            *_coverage(rows),
            *_certainty(rows, subject.words_of_labels),
        ]
    return [entry for entry in found if entry]


def _starts(subject: Any, fit: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what the starts say; of one start only where there is something hidden that others may find otherwise."""
    if len(fit["restarts"]) > 1 or subject.hidden:
        return restarts(fit)
    if subject.posterior.is_exact:
        return finding(
            "info",
            "One factor",
            "Nothing else is unknown, so one update gives the exact posterior, from any start.",
        )
    return None


def _distance(subject: Any, data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a finding on the distance of q from the posterior, by draws."""
    title = "Distance to the true posterior"
    if subject.seen is not None and not subject.seen.is_fit:
        return finding(
            "info",
            title,
            "Not checked: it compares the fit with the posterior given the rows of the fit, and these are other rows.",
        )
    n_rows = max([1, *(_length(value) for value in data.values())])
    n_draws = subject.n_draws or min(_MOST_DRAWS, max(FEWEST_DRAWS, _MOST_ROW_PASSES // n_rows))
    try:
        found = subject.posterior.diagnose(data, n_draws=n_draws, seed=0)
    except CaviarError as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        return finding("info", title, f"Not checked: {reason}.")
    return _told_by_draws(found, n_draws, title, f"{subject.spelled['say_draws']}{10 * n_draws}")


def _length(value: Any) -> int:
    """Return the number of entries along the first axis; lists may have entries of different lengths."""
    if hasattr(value, "shape"):
        return int(value.shape[0]) if len(value.shape) else 1
    return len(value) if hasattr(value, "__len__") else 1


def _told_by_draws(found: Any, n_draws: int, title: str, more: str) -> dict[str, str]:
    """Return the result of the diagnosis by draws, in plain words before its figure."""
    figure = f"Pareto k of {n_draws:,} draws is {found.pareto_k:.2f} ± {found.pareto_k_error:.2f}"
    gap = max(found.log_evidence - found.elbo, 0.0)
    near = f"The ELBO is about {gap:.2g} nats below the log evidence"
    if found.verdict == "unclear":
        text = (
            f"It is not clear how close this fit is to the exact posterior. If it is not close, means may still be "
            f"useful, but intervals are likely to be too narrow. Write the report with {more} to find out. ({figure}, "
            f"so it may be 0.7 or more.)"
        )
        return finding("note", title, text)
    if found.verdict == "poor":
        text = (
            f"The exact posterior differs from this fit: means may still be useful, but intervals are likely to be too "
            f"narrow. With very many unknowns this is so for any posterior of independent factors. ({figure}, 0.7 or "
            f"more.)"
        )
        return finding("note", title, text)
    if found.pareto_k >= 0.5:
        text = (
            f"This fit is only fairly close to the exact posterior: means are useful, but intervals may be too narrow. "
            f"The ELBO is at least about {gap:.2g} nats below the log evidence. ({figure}, between 0.5 and 0.7.)"
        )
        return finding("note", title, text)
    if found.pareto_k + found.pareto_k_error >= 0.5:
        text = (
            f"This fit seems close to the exact posterior; write the report with {more} to be sure. ({figure}; below "
            f"0.5 is close.)"
        )
        return finding("info", title, text)
    return finding("good", title, f"This fit is close to the exact posterior. {near}. ({figure}.)")


def _coverage(rows: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return whether prediction intervals hold as many observations as they say: of rows that were left out, or new."""
    return [
        _calibration(own, rows["seen"])
        for own in rows["predictions"]
        if own["covered"] is not None and own["n"] >= _FEWEST_TOLD
    ]


def _calibration(own: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, str]:
    """Return whether the intervals of one observed variable hold as many observations as they say."""
    tested = own["held_out"] or own
    is_test = own["held_out"] is not None or not seen["label"]
    what = f"{tested['covered']:.1%} of {tested['n']:,} observations of {own['name']}"
    if own["held_out"] is not None:
        told = f"{what}, each predicted {seen['how']}, lie in their 95% interval"
        told += f" (in-sample {own['covered']:.1%})"
    elif is_test:
        told = f"{what}, which the fit has not seen, lie in their 95% interval"
    else:
        told = f"{seen['label'].capitalize()}, {what} lie in their 95% interval"
    error = math.sqrt(_LEVEL * (1 - _LEVEL) / tested["n"])
    if abs(tested["covered"] - _LEVEL) > max(0.02, 2 * error) and (is_test or tested["covered"] < _LEVEL):
        words = "too narrow" if tested["covered"] < _LEVEL else "too wide"
        of_kind = " Are they of the kind that was fitted to?" if own["held_out"] is None else ""
        return finding(
            "note", "Predictions are off", f"{told}, so these are {words} for these rows.{of_kind}"
        )
    if not is_test:
        text = f"{told}. That is not a test: {seen['words']}, and {seen['why_not']}."
        return finding("info", "Calibration is not tested", text)
    if tested["n"] < _FEWEST_JUDGED:
        text = f"{told}. So few observations cannot distinguish {_LEVEL:.0%} from {_LEVEL - 0.05:.0%}."
        return finding("info", "Too few rows to judge the calibration", text)
    return finding("good", "Predictions are calibrated", f"{told}.")


def _certainty(rows: Mapping[str, Any], words: Mapping[str, str]) -> list[dict[str, str]]:
    """Return whether hidden states and groups are clear; ``words`` says what a label is called, if not by its name."""
    found = []
    for own in [*rows["chains"], *rows["groups"]]:
        what, label = "steps" if "steps" in own else "rows", words.get(own["name"], own["name"])
        title = f"The {label}" if own["name"] in words else label
        is_test = own["held_out"] is not None or not rows["seen"]["label"]
        unsure = (own["held_out"] or own)["unsure"]
        how = f", each judged {rows['seen']['how']}," if own["held_out"] is not None else ""
        text = f"{unsure:.1%} of the {what}{how} have a {label} that is less than 80% probable"
        if unsure > 0.2:
            text = f"{text}: read it as a tendency, not as a label."
            found.append(finding("note", f"{title} is uncertain", text))
        elif is_test:
            found.append(finding("good", f"{title} is clear", f"{text}."))
        else:
            text = f"In-sample {text}. That is not a test: {rows['seen']['words']}, and {rows['seen']['why_not']}."
            found.append(finding("info", f"{title} is clear", text))
    return found
