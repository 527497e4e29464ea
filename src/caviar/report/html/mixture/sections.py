"""The sections of the page of a mixture: its components, plots of the rows under them, and outliers."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ..markup import Cell, component_mark, number, percent, section, table
from ..sections import Page

__all__ = ["components", "plots", "rows"]


def components(page: Page) -> str:
    """Return the table of components, with the controls that filter it."""
    fit, entries, names = page["fit"], page["components"], page["table_columns"]
    has_rows = page["rows"] is not None
    headings = ["Component", "Weight", *(["Rows of data"] if has_rows else []), *names]
    ordered = sorted(entries, key=lambda entry: -entry["weight"][0])
    lines = [_component(entry, has_rows) for entry in ordered]
    left_out = len(fit["columns"]) - len(names)
    lead = "Each entry is the mean of a column in a component"
    lead += "" if fit["is_point"] else ", with the interval that holds it with 95% probability"
    lead += ", and below it the standard deviation of the component's rows."
    lead += f" {fit['interval_remark']}" if fit["interval_remark"] else ""
    if left_out:
        lead += (
            f" The {len(names)} columns in which components differ most are shown; {left_out} more are not."
        )
    controls = (
        '<div class="controls" hidden data-filters="component-table" data-word="components">'
        '<label>Find <input type="search" autocomplete="off" '
        'placeholder="component or number"></label>'
        '<label>Weight at least <span class="unit"><input type="number" data-column="1" min="0" max="100" step="0.5" '
        'value="0" inputmode="decimal"> %</span></label>'
        '<output id="component-count" aria-live="polite"></output></div>'
    )
    body = controls + table("component-table", "Components, the heaviest first", headings, lines)
    return section("components", "Components", body, lead)


def _component(entry: Mapping[str, Any], has_rows: bool) -> list[Cell]:
    weight = entry["weight"]
    cells = [
        Cell(component_mark(entry["k"]), entry["k"], is_number=False),
        Cell(f"{escape(percent(weight[0]))}{_between(weight[1], weight[2], percent)}", weight[0]),
    ]
    if has_rows:
        cells.append(Cell(f"{entry['rows']:,}", entry["rows"]))
    for mean, spread in zip(entry["mean"], entry["sd"], strict=True):
        inside = f"{number(mean[0])}{_between(mean[1], mean[2], number)}<small>sd {number(spread, 3)}</small>"
        cells.append(Cell(inside, mean[0]))
    return cells


def _between(low: float | None, high: float | None, told: Any) -> str:
    return "" if low is None else f"<small>{escape(told(low))} to {escape(told(high))}</small>"


def plots(page: Page) -> str:
    """Return the frame in which the script draws pairs of columns, and the density of each column."""
    plot = page["plot"]
    points = plot["points"]
    if points is None:
        lead = "Without data only the components are drawn; give the data to the report to see their rows."
    elif len(points["rows"]) < points["of"]:
        lead = f"{len(points['rows']):,} of {points['of']:,} rows are drawn."
    else:
        lead = f"All {points['of']:,} rows are drawn."
    if plot["left_out"]:
        lead += f" The {len(plot['columns'])} columns in which components differ most are on offer."
    pairs = (
        '<figure id="pairs"><figcaption>Pairs of columns; each ellipse holds 95% of the rows of a component'
        '</figcaption><div class="controls" id="pair-controls"></div><div class="chips" id="chips" role="group" '
        'aria-label="Components shown in the plots"></div><div class="pair-layout"><div id="thumbs" role="group" '
        'aria-label="Choose a pair of columns"></div><div class="plot" id="pair-plot"></div></div>'
        '<output class="readout" id="pair-readout" aria-live="polite"></output></figure>'
    )
    density = (
        '<figure id="density"><figcaption>Density of one column, divided among the components</figcaption>'
        '<div class="controls" id="density-controls"></div><div class="plot" id="density-plot"></div>'
        '<output class="readout" id="density-readout" aria-live="polite"></output></figure>'
    )
    both = (pairs if len(plot["columns"]) > 1 else "") + density
    if len(plot["columns"]) == 1:
        both = (
            '<div class="chips" id="chips" role="group" aria-label="Components shown in the plot"></div>'
            + both
        )
    return section("plots", "Plots", f"<noscript><p>The plots need scripts.</p></noscript>{both}", lead)


def rows(page: Page) -> str:
    """Return what the fit says of data: how clearly rows belong, and which are not expected."""
    facts = page["rows"]
    if facts is None:
        text = (
            "No data were given, so there are no predictions and no outliers. Give the rows as well: "
            "caviar report MODEL DATA -o REPORT.html"
        )
        return section("rows", "Predictions and outliers", f"<p>{escape(text)}</p>")
    named = f" of {facts['source']}" if facts["source"] else ""
    label = facts["seen"]["label"]
    in_sample = f", {label}" if label else ""
    lead = (
        f"{facts['n']:,} rows{named}: {facts['seen']['words']}. Mean log density "
        f"{number(facts['mean_log_density'])} nats a row{in_sample}. "
        f"To have the component of every row: caviar predict MODEL DATA -o labels.csv"
    )
    edges = [entry["from"] for entry in facts["certainty"]]
    ends = [*edges[1:], 1.0]
    bars = [
        [
            Cell(f"{100 * low:g} to {100 * high:g}%", low, is_number=False),
            Cell(f"{entry['rows']:,}", entry["rows"]),
            Cell(escape(percent(entry["rows"] / facts["n"])), entry["rows"]),
        ]
        for low, high, entry in zip(edges, ends, facts["certainty"], strict=True)
    ]
    body = ""
    if page["fit"]["n_components"] > 1:
        caption = "How probable the component of each row is"
        body = table("certainty", caption, ["Probability", "Rows", "Share"], bars)
    return section("rows", "Predictions and outliers", body + _outliers(page), lead)


def _outliers(page: Page) -> str:
    facts, names = page["rows"], page["table_columns"]
    if not facts["n_judged"]:
        return "<p>Outliers cannot be told: every row has missing entries in too many patterns.</p>"
    label = facts["seen"]["label"]
    in_sample = f"{label.capitalize()}, " if label else ""
    less = "" if not label else " Rows that the fit has seen look less rare to it than new ones."
    told = (
        f"<p>{in_sample}{facts['n_outliers']:,} of {facts['n_judged']:,} rows are less expected than all but "
        f"{escape(percent(facts['rate']))} of rows of the fitted density would be; by chance alone it would be about "
        f"{round(facts['rate'] * facts['n_judged']):,}.{less}</p>"
    )
    headings = ["Row", "How rare", "Surprise, nats", "Component", *names]
    lines = [
        [
            Cell(f"{entry['row'] + 1:,}", entry["row"]),
            Cell(escape(_rarity(entry["tail"])), entry["tail"]),
            Cell(number(entry["score"]), entry["score"]),
            Cell(component_mark(entry["k"]), entry["k"], is_number=False),
            *(Cell(number(value), "" if value is None else value) for value in entry["values"]),
        ]
        for entry in page["outliers"]
    ]
    caption = f"The {len(lines)} least expected rows; row 1 is the first"
    return told + table("outliers", caption, headings, lines)


def _rarity(tail: float) -> str:
    """Return how rare a row is in words."""
    return "below 1 in 10,000" if tail < 2e-4 else f"1 in {round(1 / tail):,}"
