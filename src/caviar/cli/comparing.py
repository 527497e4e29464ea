"""``caviar compare``: mixtures or topics of several sizes beside each other, or models that were saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import lgamma
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import caviar as cv

from .fits import fitted
from .opening import opened
from .options.compare_options import CompareOptions
from .options.kinds import KINDS, ModelName
from .options.shared import column_names_of
from .speaking.outputs import gathered_warnings, plain, say, speaking_of, standard_error, standard_output
from .speaking.progress import watching
from .speaking.results import columns_table, print_document
from .speaking.steps import counting_steps
from .tables.documents import documents_to_fit
from .tables.files_and_streams import input_file, source_name
from .tables.non_numeric import complain_of_indicators, numbers_only, other_choice_told
from .tables.rows import rows_of_table


def compare(request: CompareOptions) -> None:
    """Do what ``caviar compare`` does."""
    with input_file(request.data) as file:
        if request.saved:
            rows = [_of_saved(path, file, request) for path in request.saved]
        elif request.has_topics:
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


def _of_saved(path: Path, data: str | None, request: CompareOptions) -> dict[str, Any]:
    """Return what a saved model says of itself, and of data."""
    sql = request.sql
    with speaking_of(path, request.data or "the query"):
        saved = opened(path)
        about, posterior = saved.about, saved.posterior
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


def _of_fits(request: CompareOptions, data: str | None) -> list[dict[str, Any]]:
    columns = column_names_of(request.columns)
    numeric = numbers_only(data, request.sql, columns, request.non_numeric, quiet=request.quiet)
    places = numeric.categories if request.is_mixed else {}
    with other_choice_told(request.non_numeric, others="categorical, one-hot, or drop"):
        table = rows_of_table(data, numeric.sql, numeric.columns, needs_all=True, categories=places)
    complain_of_indicators(numeric, request.covariances)
    with watching("ELBO", quiet=request.quiet) as callback:
        found = cv.compare_mixtures(
            table.named(places),
            request.numbers,
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
    told = found.to_dict()
    return [dict(zip(told, own, strict=True)) for own in zip(*told.values(), strict=True)]


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


def compare_topics(
    request: CompareOptions, data: str | None, about: Callable[[int], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each number of topics, and save the best where that was asked for.

    Parameters
    ----------
    request
        The request of the user.
    data
        Where the documents are.
    about
        Number of documents -> what is kept with the best of where it comes from.
    """
    found = documents_to_fit(
        data, request.sql, column_names_of(request.columns), request.reading, quiet=request.quiet
    )
    counts, named = found.counts, {} if found.words is None else {"vocabulary": list(found.words)}
    seen, rest = _divided(counts, request.held_out, request.seed)
    rows: list[dict[str, Any]] = []
    best: tuple[float, Any] | None = None
    with counting_steps(
        standard_error(), "numbers of topics", len(request.numbers), quiet=request.quiet
    ) as step:
        for number in request.numbers:
            began = time.monotonic()
            lda = _fit(request, number, counts, named)
            row = _row(lda, time.monotonic() - began)
            if rest is not None:
                row["perplexity"] = _fit(request, number, seen, named).completion_perplexity(rest)
            rows.append(row)
            if best is None or lda.elbo_ > best[0]:
                best = lda.elbo_, lda
            step()
    if request.output is not None and best is not None:
        texts = {"texts": dict(found.how)} if found.how else {}
        best[1].save(request.output, about={**about(counts.shape[0]), **texts})
    return rows


def _fit(request: CompareOptions, number: int | str, counts: Any, named: dict[str, Any]) -> Any:
    kind = KINDS[ModelName.TOPICS]
    arguments = {
        **kind.defaults,
        "n_components": number,
        "n_init": request.restarts,
        "random_state": request.seed,
        "max_iter": 500,
        **named,
    }
    return fitted(kind, counts, arguments, quiet=True)


def _row(lda: cv.LatentDirichletAllocation, seconds: float) -> dict[str, Any]:
    number = len(lda.topics_in_use_)
    return {
        "n_components": number,
        "elbo": float(lda.elbo_),
        "corrected": float(lda.elbo_) + lgamma(number + 1),
        "perplexity": None,
        "n_iter": int(lda.n_iter_),
        "seconds": seconds,
        "converged": bool(lda.converged_),
    }


def _divided(counts: Any, held_out: float | None, seed: int) -> tuple[Any, Any]:
    """Return documents to fit to and others to judge by; None where none are held out."""
    if held_out is None:
        return counts, None
    n_documents = counts.shape[0]
    n_held = round(held_out * n_documents)
    if not 0 < n_held < n_documents:
        raise cv.DataError(f"--held-out {held_out:g} of {n_documents:,} documents leaves none on one side")
    order = np.random.default_rng(seed).permutation(n_documents)
    return counts[np.sort(order[n_held:])], counts[np.sort(order[:n_held])]
