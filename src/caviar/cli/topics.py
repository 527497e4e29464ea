"""What fitted topics are, for readers and, as JSON, for programs: their shares and most probable words."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import caviar as cv

from .results import objective_document
from .speaking import counted, plain, say

__all__ = ["document_of_topics", "print_topics"]

_FEW_WORDS = 10
_MANY_WORDS = 50


def _topics(lda: cv.LatentDirichletAllocation, n_words: int) -> list[dict[str, Any]]:
    """Return number, share of the words of the fit, and most probable words of each topic, the largest first."""
    words = cv.report.column_names(lda)
    mean = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    added = np.maximum(lda.components_ - lda.topic_word_prior_, 0.0).sum(axis=1)
    shares = added / max(added.sum(), np.finfo(float).tiny)
    return [
        {
            "topic": k,
            "share": float(shares[k]),
            "words": {
                words[v]: float(mean[k, v]) for v in np.argsort(-mean[k], kind="stable")[:n_words].tolist()
            },
        }
        for k in np.argsort(-shares, kind="stable").tolist()
    ]


def document_of_topics(lda: cv.LatentDirichletAllocation) -> dict[str, Any]:
    """Return what fitted topics say, as JSON can hold it."""
    return {
        "model": type(lda).__name__,
        **getattr(lda, "about_", {}),
        **objective_document(lda.posterior_),
        "perplexity_bound": lda.bound_,
        "words": lda.n_features_in_,
        "topics": _topics(lda, _MANY_WORDS),
    }


def print_topics(console: Console, lda: cv.LatentDirichletAllocation) -> None:
    """Print a line for each topic, the bound, and why the fit ended."""
    data = lda.posterior_.data_summary
    documents = "" if data is None else f", {data['rows']:,} documents"
    n_topics = len(lda.components_)
    title = f"latent Dirichlet allocation, {n_topics} topics of {lda.n_features_in_:,} words{documents}"
    say(console, title, "bold")
    say(console)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    table.add_column("most probable words")
    for topic in _topics(lda, _FEW_WORDS):
        table.add_row(str(topic["topic"]), f"{topic['share']:.1%}", plain(", ".join(topic["words"])))
    console.print(table)
    say(console)
    starts = len(lda.posterior_.restart_elbos)
    best = f" (the best of {starts} starts)" if starts > 1 else ""
    iterations = counted(lda.n_iter_, "iteration")
    say(console, f"ELBO {lda.elbo_:.4f} nats after {iterations}{best}, perplexity bound {lda.bound_:.1f}")
    say(console, str(lda.posterior_.status))
    if lda.posterior_.told_ends:
        say(console, lda.posterior_.told_ends)
