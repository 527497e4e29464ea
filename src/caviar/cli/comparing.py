"""``caviar compare``: mixtures or topics of several sizes beside each other, or models that were saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import caviar as cv

from .non_numeric import NonNumeric, complain_of_indicators, numbers_only, other_choice_told
from .opening import opened
from .progress import watching
from .results import columns_table, print_document
from .rows import rows_of_table
from .speaking import gathered_warnings, plain, say, speaking_of, standard_error, standard_output
from .tables import input_file, source_name
from .topic_comparison import compare_topics


@dataclass(frozen=True)
class ComparisonRequest:
    """The request of the user.

    Attributes
    ----------
    data, sql, columns
        Where the rows come from.
    models
        Saved models to compare on them; empty to fit new ones.
    components, covariances
        Of the new ones.
    topics
        Whether to fit topics, in the place of mixtures.
    options
        Those that say how texts are read, by name.
    held_out
        Share of rows that a second fit of each does not see; None for none.
    non_numeric
        What is done with columns without numbers.
    restarts, seed
        Of each fit.
    output
        Where the best is saved, if anywhere.
    as_json, quiet
        How to print.
    """

    data: str | None
    sql: str | None
    columns: list[str] | None
    models: tuple[Path, ...]
    components: tuple[int | str, ...]
    covariances: tuple[str, ...]
    topics: bool
    options: dict[str, Any]
    held_out: float | None
    non_numeric: NonNumeric
    restarts: int
    seed: int
    output: Path | None
    as_json: bool
    quiet: bool

    @property
    def is_mixed(self) -> bool:
        """Whether columns of words are to be categories of mixtures of mixed columns."""
        return self.non_numeric is NonNumeric.CATEGORICAL


def numbers_of_components(text: str) -> tuple[int | str, ...]:
    """Return the numbers that a text lists.

    Raises
    ------
    ValueError
        If it lists none.

    Examples
    --------
    >>> numbers_of_components("1-3,8,auto")
    (1, 2, 3, 8, 'auto')
    """
    found: list[int | str] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if low == "auto" and not dash:
            found.append(low)
        elif low.isdecimal() and int(low) >= 1 and (not dash or (high.isdecimal() and int(high) >= int(low))):
            found += range(int(low), int(high or low) + 1)
        else:
            raise ValueError(f"expected numbers such as 1-8 or 2,4,auto; got {text}")
    return tuple(dict.fromkeys(found))


def compare(request: ComparisonRequest) -> None:
    """Do what ``caviar compare`` does."""
    with input_file(request.data) as file:
        if request.models:
            rows = [_of_saved(path, file, request) for path in request.models]
        elif request.topics:
            rows = compare_topics(
                request,
                file,
                lambda n: {"source": source_name(request.data), "query": request.sql, "rows": n},
            )
        else:
            rows = _of_fits(request, file)
    best = max(range(len(rows)), key=lambda at: rows[at]["elbo"]) if _comparable(rows) else None
    if request.as_json:
        print_document({"best": best, "rows": rows})
        return
    _print(standard_output(), rows, best)
    if request.output is not None:
        say(standard_output(), f"the best is saved in {request.output}")


def _comparable(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the objectives mean the same, and are of equally many rows and of the same columns."""
    meanings = {
        (row.get("objective"), row.get("fitted_rows"), tuple(sorted(row.get("explained") or ())))
        for row in rows
    }
    return len(meanings) == 1


def _of_saved(path: Path, data: str | None, request: ComparisonRequest) -> dict[str, Any]:
    """Return what a saved model says of itself, and of data."""
    sql = request.sql
    with speaking_of(path, request.data or "the query"):
        saved = opened(path)
        about = getattr(saved.fitted, "about_", {})
        posterior = getattr(saved.fitted, "posterior_", saved.fitted)
        row = {
            "model": str(path),
            **saved.facts(),
            "converged": bool(getattr(saved.fitted, "converged_", posterior.converged)),
            "fitted_rows": about.get("rows", (posterior.data_summary or {}).get("rows")),
            "columns": about.get("columns"),
            "explained": saved.explained(),
        }
        if data is None and sql is None:
            return row
        with gathered_warnings():
            return row | saved.judged(data, sql)


def _of_fits(request: ComparisonRequest, data: str | None) -> list[dict[str, Any]]:
    numeric = numbers_only(data, request.sql, request.columns, request.non_numeric, quiet=request.quiet)
    places = numeric.categories if request.is_mixed else {}
    with other_choice_told(request.non_numeric, others="categorical, one-hot, or drop"):
        table = rows_of_table(data, numeric.sql, numeric.columns, needs_all=True, categories=places)
    complain_of_indicators(numeric, request.covariances)
    with gathered_warnings(), watching(standard_error(), "ELBO", quiet=request.quiet) as callback:
        found = cv.compare_mixtures(
            table.named(places),
            request.components,
            None if request.is_mixed else request.covariances,
            estimator=cv.MixedMixture() if request.is_mixed else None,
            held_out=request.held_out,
            n_init=request.restarts,
            random_state=request.seed,
            verbose=callback,
        )
    if request.output is not None:
        about = {
            **({} if request.is_mixed else {"categories": numeric.categories}),
            "source": source_name(request.data),
            "query": request.sql,
            "rows": len(table.values),
            "missing_entries": table.missing,
        }
        found.best.save(
            request.output, about={**about, "columns": list(table.columns), "column_summary": table.summary}
        )
    columns = found.to_dict()
    return [dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True)]


_HEADINGS = {
    "model": "model",
    "kind": "kind",
    "n_components": "components",
    "covariance_type": "covariance",
    "elbo": "ELBO",
    "corrected": "ELBO + log K!",
    "held_out": "held-out density",
    "perplexity": "perplexity",
    "n_iter": "iterations",
    "seconds": "seconds",
}


def _print(console: Console, rows: Sequence[dict[str, Any]], best: int | None) -> None:
    """Print the table, the highest ELBO first."""
    keys = [key for key in _HEADINGS if any(row.get(key) is not None for row in rows)]
    table = columns_table()
    for key in keys:
        heading = "density of DATA" if key == "held_out" and "model" in keys else _HEADINGS[key]
        table.add_column(heading, justify="left" if key in {"model", "kind", "covariance_type"} else "right")
    table.add_column("")
    for at in sorted(range(len(rows)), key=lambda at: -rows[at]["elbo"]):
        remark = "<- highest ELBO" if at == best else "" if rows[at]["converged"] else "not converged"
        table.add_row(*(_told(rows[at].get(key)) for key in keys), remark)
    console.print(table)
    say(
        console,
        "ELBO in nats, for all rows; densities in nats a row. Compare ELBOs only of fits to the same rows.",
    )
    if "perplexity" in keys:
        say(console, "Perplexity of half the words of documents, told from the other half: lower is better.")
    if len({tuple(sorted(row.get("explained") or ())) for row in rows}) > 1:
        told = "; ".join(f"{row['model']}: {', '.join(row['explained']) or 'not known'}" for row in rows)
        say(
            console,
            f"These models explain different columns, so their ELBOs and densities cannot be compared: {told}",
        )
    elif best is None:
        say(
            console,
            "These models were fitted to different rows or columns, or by different objectives: their ELBOs cannot be "
            "compared. Compare the density of the same DATA instead.",
        )


def _told(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else plain(str(value))
