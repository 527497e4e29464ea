"""The sections that every page has, each markup made from a part of what was gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .markup import Cell, number, percent, section, table

__all__ = ["Page", "header", "progress", "quality", "reproduce", "title", "trust"]

_LEVELS = {"good": ("✓", "Good"), "info": ("i", "To know"), "note": ("!", "Note"), "bad": ("✕", "Problem")}
Page = Mapping[str, Any]


def header(page: Page) -> str:
    """Return the title, and the figures that say what was fitted."""
    listed = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>" for term, value in page["facts"]
    )
    heading = f'<p class="kicker">caviar report</p><h1>{escape(title(page))}</h1>'
    return f'<header>{heading}<dl class="facts">{listed}</dl></header>'


def title(page: Page) -> str:
    """Return what the page is called."""
    fit = page["fit"]
    of = f": {fit['source']}" if fit["source"] else ""
    return f"{fit['kind']}{of}"


def trust(page: Page) -> str:
    """Return whether the fit is to be trusted, and why."""
    verdict = page["verdict"]
    listed = "".join(_finding(finding) for finding in page["findings"])
    body = (
        f'<p class="verdict {verdict["level"]}">{_sign(verdict["level"])}<span>{escape(verdict["sentence"])}</span></p>'
        f'<ul class="findings">{listed}</ul>'
    )
    return section("trust", "Is it to be trusted?", body)


def _finding(finding: Mapping[str, str]) -> str:
    return (
        f'<li class="{escape(finding["level"])}">{_sign(finding["level"])}'
        f"<div><strong>{escape(finding['title'])}</strong><p>{escape(finding['text'])}</p></div></li>"
    )


def _sign(level: str) -> str:
    sign, word = _LEVELS[level]
    return f'<span class="sign" aria-hidden="true">{sign}</span><span class="unseen">{word}: </span>'


def progress(page: Page) -> str:
    """Return how the objective rose, where the starts ended, and what it is the sum of."""
    fit = page["fit"]
    name = fit["objective"]
    chart = (
        f'<figure><figcaption>{name} of the kept start at each iteration</figcaption><div class="controls" '
        f'id="trace-controls"></div><div class="plot" id="trace-plot"></div></figure>'
    )
    best = max(fit["restarts"], default=0.0)
    starts = [
        [
            Cell(str(at + 1), at),
            Cell(number(end, 8), end),
            Cell(number(best - end, 3) if best - end >= 0.001 else "0", best - end),
        ]
        for at, end in enumerate(fit["restarts"])
    ]
    terms = [
        [
            Cell(f"<code>{escape(term['name'])}</code>", term["name"], is_number=False),
            Cell(number(term["value"], 7), term["value"]),
            Cell(escape(term["words"]), is_number=False),
        ]
        for term in fit["terms"]
    ]
    tables = table(
        "terms", f"What the {name} is the sum of, in nats", ["Part", "Nats", "What it says"], terms
    )
    if len(starts) > 1:
        tables += table(
            "starts", "Where the starts ended", ["Start", name, "Short of the best, nats"], starts
        )
    two = " two" if len(starts) > 1 else ""
    lead = (
        "The ELBO is a lower bound on the log probability of the data under the model, every constant included: fits "
        "of different models to the same rows may be compared by it."
        if name == "ELBO"
        else "The log probability of the rows at the estimated parameters; with more components it always rises."
    )
    return section(
        "progress", "On the way up", f'{chart}<div class="pair-of-tables{two}">{tables}</div>', lead
    )


def quality(page: Page) -> str:
    """Return the figures of each column, and what should be known of it."""
    columns: Sequence[Mapping[str, Any]] = page["quality"]
    if not columns:
        return section("quality", "Data quality", "<p>Nothing was kept of the data, and none were given.</p>")
    kinds = ("mean", "sd", "min", "median", "max")
    lines = [
        [
            Cell(escape(column["name"]), is_number=False),
            Cell(escape(percent(column["missing"])), "" if column["missing"] is None else column["missing"]),
            *(Cell(number(column[kind]), "" if column[kind] is None else column[kind]) for kind in kinds),
            Cell(escape("; ".join(column["remarks"]) or "–"), is_number=False),
        ]
        for column in columns
    ]
    remarked = sum(bool(column["remarks"]) for column in columns)
    lead = (
        "Nothing stands out."
        if not remarked
        else f"There is a remark on {remarked} of {len(columns)} columns."
    )
    if not page["has_data"]:
        lead = "What was kept of the data when the model was fitted."
    headings = ["Column", "Missing", "Mean", "Std. dev.", "Smallest", "Median", "Largest", "Remarks"]
    return section("quality", "Data quality", table("columns", "Columns of the data", headings, lines), lead)


def reproduce(page: Page) -> str:
    """Return the command, or the call, that gives the same fit, and the versions it took."""
    fit = page["fit"]
    told = escape(str(fit["command"] or fit["call"]))
    parts = [f'<pre tabindex="0" aria-label="How to fit it again"><code>{told}</code></pre>']
    parts += [f"<p>{escape(remark)}</p>" for remark in fit["remarks"]]
    headings = ["Software", "When fitted or saved", "For this report"]
    names = dict.fromkeys([*page["versions"], *fit["fitted_with"]])
    lines = [
        [
            Cell(escape(name), is_number=False),
            Cell(escape(str(fit["fitted_with"].get(name, "not recorded"))), is_number=False),
            Cell(escape(str(page["versions"].get(name, "–"))), is_number=False),
        ]
        for name in names
    ]
    parts.append(table("versions", "Versions", headings, lines, sorts=False))
    return section("reproduce", "To reproduce it", "".join(parts))
