"""The sections of a page, each markup made from a part of what was gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .markup import Cell, component_mark, number, percent, section, table

__all__ = ["components", "header", "plots", "progress", "quality", "reproduce", "rows", "trust"]

_LEVELS = {"good": ("✓", "Good"), "note": ("!", "Note"), "bad": ("✕", "Problem")}
Page = Mapping[str, Any]


def header(page: Page) -> str:
    """Return the title, and the figures that say what was fitted."""
    fit = page["fit"]
    source = fit["source"] or ("the result of a query" if fit["query"] else "rows without a name")
    facts = [
        ("Fitted to", escape(str(source))),
        ("Rows", "not recorded" if fit["rows"] is None else f"{fit['rows']:,}"),
        ("Columns", f"{len(fit['columns']):,}"),
        ("Components", _components_in_use(fit)),
        (f"{fit['objective']}, nats", number(fit["elbo"], 7)),
    ]
    if fit["covariance_type"]:
        facts.insert(4, ("Covariances", escape(str(fit["covariance_type"]))))
    listed = "".join(f"<div><dt>{escape(term)}</dt><dd>{value}</dd></div>" for term, value in facts)
    heading = f'<p class="kicker">caviar report</p><h1>{escape(title(page))}</h1>'
    return f'<header>{heading}<dl class="facts">{listed}</dl></header>'


def title(page: Page) -> str:
    """Return what the page is called."""
    fit = page["fit"]
    of = f": {fit['source']}" if fit["source"] else ""
    return f"{fit['kind']}{of}"


def _components_in_use(fit: Page) -> str:
    if len(fit["used"]) == fit["n_components"]:
        return f"{fit['n_components']}"
    return f"{len(fit['used'])} in use of {fit['n_components']}"


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
    if left_out:
        lead += (
            f" The {len(names)} columns in which components differ most are shown; {left_out} more are not."
        )
    controls = (
        '<div class="controls" hidden id="component-controls">'
        '<label>Find <input type="search" id="find-component" autocomplete="off" '
        'placeholder="component or number"></label>'
        '<label>Weight at least <span class="unit"><input type="number" id="least-weight" min="0" max="100" step="0.5" '
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
    lead = (
        f"{facts['n']:,} rows{named}; mean log density {number(facts['mean_log_density'])} nats a row. "
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
    told = (
        f"<p>{facts['n_outliers']:,} of {facts['n_judged']:,} rows are less expected than all but "
        f"{escape(percent(facts['rate']))} of rows of the fitted density would be; by chance alone it would be about "
        f"{round(facts['rate'] * facts['n_judged']):,}.</p>"
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
    if page["rows"] is None:
        lead = "What was kept of the data when the model was fitted."
    headings = ["Column", "Missing", "Mean", "Std. dev.", "Smallest", "Median", "Largest", "Remarks"]
    return section("quality", "Data quality", table("columns", "Columns of the data", headings, lines), lead)


def reproduce(page: Page) -> str:
    """Return the command, or the call, that gives the same fit, and the versions it took."""
    fit = page["fit"]
    call = fit["command"] or f"import caviar as cv\ncv.{fit['call']}.fit(X)"
    parts = [f'<pre tabindex="0" aria-label="How to fit it again"><code>{escape(str(call))}</code></pre>']
    if not fit["command"] and "random_state" not in fit["call"]:
        parts.append("<p>No random_state was given: another run may begin, and end, elsewhere.</p>")
    headings = ["Software", "When fitted", "For this report"]
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
