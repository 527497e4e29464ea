"""``caviar compare --model topics``: numbers of topics beside each other, fitted to the same documents."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np

import caviar as cv

from .compare_options import CompareOptions
from .documents import documents_to_fit
from .fits import fitted
from .kinds import KINDS, ModelName
from .options import column_names_of
from .speaking import standard_error
from .steps import counting_steps


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
