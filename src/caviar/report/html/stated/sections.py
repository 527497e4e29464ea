"""The sections of the page of a posterior: statement, global variables, pictures, and what it says of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..markup import Cell, component_mark, number, percent, section, table
from ..sections import Page

__all__ = ["pictures", "rows", "statement", "variables"]


def statement(page: Page) -> str:
    """Return the model in words."""
    lines = [
        [
            Cell(f"<code>{escape(line['name'])}</code>", line["name"], is_number=False),
            Cell(escape(line["role"]), is_number=False),
            Cell(f"<code>{escape(line['law'])}</code>" if line["law"] else "–", is_number=False),
            Cell(escape(line["over"] or "once"), is_number=False),
        ]
        for line in page["statement"]
    ]
    roles = [line["role"] for line in page["statement"]]
    learnt = roles.count("learnt")
    lead = (
        f"{learnt} unknown{'s' * (learnt != 1)} {'is' if learnt == 1 else 'are'} learnt from what was observed. Of a "
        f"precision the inverse is a variance."
    )
    headings = ["Name", "Role", "Distribution", "Repeated for"]
    return section(
        "statement", "What was fitted", table("stated", "The model, as it was stated", headings, lines), lead
    )


def variables(page: Page) -> str:
    """Return the table of the entries of all global variables, with the controls that filter it."""
    entries = page["entries"]
    if not entries:
        return section(
            "variables", "What was learnt", "<p>The model has nothing that is learnt for all rows.</p>"
        )
    lines = [
        [
            Cell(escape(entry["variable"]), is_number=False),
            Cell(escape(entry["at"] or "–"), is_number=False),
            Cell(number(entry["mean"]), _key(entry["mean"])),
            Cell(number(entry["sd"], 3), _key(entry["sd"])),
            Cell(number(entry["low"]), _key(entry["low"])),
            Cell(number(entry["high"]), _key(entry["high"])),
        ]
        for entry in entries
    ]
    names = dict.fromkeys(entry["variable"] for entry in entries)
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    chosen = (
        f'<label>Variable <select><option value="">all</option>{options}</select></label>'
        if len(names) > 1
        else ""
    )
    controls = (
        f'<div class="controls" hidden data-filters="variable-table" data-word="entries">{chosen}'
        f'<label>Find <input type="search" autocomplete="off" placeholder="name or number"></label>'
        f'<output aria-live="polite"></output></div>'
    )
    headings = ["Variable", "Entry", "Mean", "Std. dev.", "95% from", "95% to"]
    lead = "Each entry lies between the last two columns with 95% probability, given the model."
    has_intervals = any(entry["low"] is not None for entry in entries)
    lead += f" {page['fit']['interval_remark']}" if has_intervals and page["fit"]["interval_remark"] else ""
    for name, left in page["left_out"].items():
        lead += f" Of {name} the entries that are largest in size are shown; {left:,} more are not."
    body = controls + table("variable-table", "Entries of all global variables", headings, lines)
    return section("variables", "What was learnt", body, lead)


def _key(value: float | None) -> float | str:
    return "" if value is None else value


def pictures(page: Page) -> str:
    """Return the frames in which the script draws, and words of topics as text."""
    own = page["pictures"]
    parts = [_topics(own["topics"])]
    if own["intervals"]:
        parts.append(_frame("intervals", "Means and 95% intervals; hollow where the interval holds 0"))
    if own["cells"]:
        parts.append(_frame("cells", "Means as coloured cells; in brackets where the 95% interval holds 0"))
    body = (
        "".join(parts)
        or "<p>There is nothing to draw: every unknown is one number, and stands in the table.</p>"
    )
    needs = "<noscript><p>The plots need scripts.</p></noscript>" if own["intervals"] or own["cells"] else ""
    return section("pictures", "Pictures", needs + body)


def _frame(name: str, caption: str, *, readout: bool = True) -> str:
    below = f'<output class="readout" id="{name}-readout" aria-live="polite"></output>' if readout else ""
    return (
        f'<figure id="{name}"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="controls" id="{name}-controls"></div><div class="plot" id="{name}-plot"></div>{below}</figure>'
    )


def _topics(topics: Sequence[Mapping[str, Any]]) -> str:
    """Return a card for each topic with its words, which need no script; the script draws the bars beside them."""
    if not topics:
        return ""
    cards = "".join(_topic(topic) for topic in topics)
    order = ", the largest first" if topics[0]["share"] is not None else ""
    return (
        f'<figure id="topics"><figcaption>The most probable words of each topic{order}; a line is the 95% interval'
        f'</figcaption><div class="controls" id="topics-controls"></div><div class="topics">{cards}</div></figure>'
    )


def _topic(topic: Mapping[str, Any]) -> str:
    share = (
        "" if topic["share"] is None else f" <small>{escape(percent(topic['share']))} of the words</small>"
    )
    words = ", ".join(escape(str(word[0])) for word in topic["words"])
    apart = ", ".join(escape(str(word[0])) for word in topic["apart"])
    k = topic["k"]
    return (
        f'<div class="topic"><h3>Topic {k}{share}</h3><div class="plot" data-topic="{k}"></div>'
        f'<p class="words">{words}</p><p class="words"><em>set apart by</em> {apart}</p></div>'
    )


def rows(page: Page) -> str:
    """Return what the posterior says of data."""
    found = page["rows"]
    if found is None:
        text = (
            "No data were given, so there are no predictions, hidden states or groups, and nothing tells how far the "
            "fit is from the exact posterior. Give the data as well: caviar report MODEL DATA -o REPORT.html"
        )
        return section("rows", "What it says of the data", f"<p>{escape(text)}</p>")
    parts = [_chain(chain, number) for number, chain in enumerate(found["chains"])]
    parts += [_groups(own) for own in found["groups"]]
    parts += [_documents(found["documents"])] if found["documents"] else []
    parts += [_prediction(own, found["seen"]) for own in found["predictions"]]
    if found["predictions"] or found["clouds"]:
        parts.append(_frame("scatter", "Rows", readout=False))
    seen = found["seen"]["words"]
    lead = f"The rows of {page['source']}: {seen}." if page["source"] else f"{seen[0].upper()}{seen[1:]}."
    none = "<p>The model has nothing hidden in its rows, and no known columns to predict them from.</p>"
    return section("rows", "What it says of the data", "".join(parts) or none, lead)


def _chain(chain: Mapping[str, Any], at: int) -> str:
    shown = (
        "" if chain["steps"] == chain["of"] else f"; the first {chain['steps']:,} of {chain['of']:,} steps"
    )
    caption = f"Hidden states {chain['name']}: the most probable path, and the probability of each{shown}"
    lines = [
        [
            Cell(component_mark(own["k"]), own["k"], is_number=False),
            Cell(f"{own['steps']:,}", own["steps"]),
            Cell(escape(percent(own["share"])), own["share"]),
            Cell(f"{own['visits']:,}", own["visits"]),
            Cell(number(own["stay"], 3), _key(own["stay"])),
        ]
        for own in chain["table"]
    ]
    headings = ["State", "Steps", "Share", "Visits", "Mean stay, steps"]
    states = table(
        f"states-{at}", f"States of {chain['name']}, along the most probable path", headings, lines
    )
    return (_frame("chain", caption) if at == 0 else "") + states


def _groups(own: Mapping[str, Any]) -> str:
    lines = [
        [
            Cell(component_mark(line["k"]), line["k"], is_number=False),
            Cell(f"{line['rows']:,}", line["rows"]),
            Cell(escape(percent(line["share"])), line["share"]),
            Cell(escape(percent(line["certainty"])), _key(line["certainty"])),
        ]
        for line in own["table"]
    ]
    caption = f"Groups {own['name']} of {own['n']:,} rows"
    headings = ["Group", "Rows that are most probably here", "Expected share", "How sure of them"]
    return table(
        "groups-" + "".join(c if c.isalnum() else "-" for c in own["name"]), caption, headings, lines
    )


def _documents(documents: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        [
            Cell(component_mark(own["k"]), own["k"], is_number=False),
            Cell(escape(percent(own["share"])), own["share"]),
            Cell(
                escape(", ".join(f"{row + 1:,} ({percent(share)})" for row, share in own["most"])),
                is_number=False,
            ),
        ]
        for own in sorted(documents, key=lambda own: -own["share"])
    ]
    headings = [
        "Topic",
        "Share of a document on average",
        "Documents that are most of it (row 1 is the first)",
    ]
    return table("documents", "Topics in the documents", headings, lines)


def _prediction(own: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    """Return how well predictions agree with what was observed: in-sample, and of rows that are a test."""
    told = f"{own['n']:,} observations of {own['name']}, each predicted from the known columns"
    if own["held_out"] is not None:
        held_out = own["held_out"]
        lines = [
            f"{held_out['n']:,} observations of {own['name']}, each predicted from the known columns {seen['how']}: "
            f"{_agreement(own, held_out)}",
            f"In-sample, by the fit that has seen them: {_agreement(own, own)}",
        ]
    elif not seen["label"]:
        lines = [f"{told} by a fit that has not seen them: {_agreement(own, own)}"]
    else:
        lines = [f"{told}, {seen['label']} ({seen['words']}): {_agreement(own, own)}"]
    return "".join(f"<p>{escape(line)}.</p>" for line in lines)


def _agreement(own: Mapping[str, Any], scores: Mapping[str, Any]) -> str:
    told = []
    if own["is_probability"]:
        told.append(f"{percent(scores['right'])} are on the side of one half that was predicted")
    else:
        told.append(f"root mean square error {number(scores['rmse'])}")
        if scores["explained"] is not None:
            told.append(f"{percent(max(scores['explained'], 0.0))} of the variance explained")
    if scores["covered"] is not None:
        told.append(f"{percent(scores['covered'])} lie in their 95% prediction interval")
    return "; ".join(told)
