"""``caviar show``: what a saved model is."""

from __future__ import annotations

from pathlib import Path

import caviar as cv

from .results import document_of, print_document, print_results
from .speaking import say, standard_output

__all__ = ["show_model"]


def show_model(model: Path, *, as_json: bool) -> None:
    """Do what ``caviar show`` does."""
    estimator = cv.load(model)
    if as_json:
        print_document(document_of(estimator))
        return
    console = standard_output()
    print_results(console, estimator)
    about = getattr(estimator, "about_", {})
    if about.get("source") or about.get("query"):
        query = f", query {about['query']}" if about.get("query") else ""
        say(console, f"fitted to {about.get('source') or 'the result of a query'}{query}")
    if about.get("seed") is not None:
        say(console, f"seed {about['seed']}")
