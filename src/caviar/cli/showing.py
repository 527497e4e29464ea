"""``caviar show``: what a saved model is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

import caviar as cv

from .mixed_results import document_of_mixed, is_mixed, print_mixed
from .results import document_of, document_of_posterior, print_document, print_results
from .speaking import counted, say, standard_output
from .topics import document_of_topics, print_topics

__all__ = ["show_model"]

_MOST_ROWS = 20
"""Entries of each variable on a terminal; JSON holds them all."""


def show_model(model: Path, *, as_json: bool) -> None:
    """Do what ``caviar show`` does."""
    found = cv.load(model)
    if as_json:
        print_document(_document_of(found))
        return
    console = standard_output()
    if isinstance(found, cv.Posterior) and is_mixed(found):
        print_mixed(console, found)
        _print_origin(console, (found.data_summary or {}).get("about", {}))
    elif isinstance(found, cv.Posterior):
        _print_posterior(console, found)
    elif isinstance(found, cv.Model):
        _print_statement(console, found)
    elif isinstance(found, cv.LatentDirichletAllocation):
        print_topics(console, found)
        _print_origin(console, getattr(found, "about_", {}))
    else:
        _print_estimator(console, found)


def _document_of(found: Any) -> dict[str, Any]:
    if isinstance(found, cv.Posterior):
        return document_of_mixed(found) if is_mixed(found) else document_of_posterior(found)
    if isinstance(found, cv.Model):
        return {"model": "Model", "statement": _statement_of(found)}
    if isinstance(found, cv.LatentDirichletAllocation):
        return document_of_topics(found)
    return document_of(found)


def _statement_of(model: cv.Model) -> dict[str, Any]:
    return {name: variable.describe() for name, variable in model.variables.items()}


def _print_statement(console: Console, model: cv.Model) -> None:
    say(console, str(model), "bold")
    say(console)
    for name, stated in _statement_of(model).items():
        slots = ", ".join(f"{slot}={value}" for slot, value in stated["slots"].items())
        plates = f", plates=({', '.join(stated['plates'])})" if stated["plates"] else ""
        say(console, f"{name} ~ {stated['family']}({slots}{plates})")


def _print_posterior(console: Console, posterior: cv.Posterior) -> None:
    _print_statement(console, posterior.model)
    say(console)
    say(console, str(posterior.summary(max_rows=_MOST_ROWS)))
    say(console, str(posterior.status))
    data = posterior.data_summary
    if data:
        say(console, f"fitted to {counted(data['rows'], 'row')}")


def _print_estimator(console: Console, estimator: Any) -> None:
    print_results(console, estimator)
    _print_origin(console, getattr(estimator, "about_", {}))


def _print_origin(console: Console, about: Mapping[str, Any]) -> None:
    """Print where the data and the fit come from, as far as it was kept."""
    if about.get("source") or about.get("query"):
        query = f", query {about['query']}" if about.get("query") else ""
        say(console, f"fitted to {about.get('source') or 'the result of a query'}{query}")
    if about.get("seed") is not None:
        say(console, f"seed {about['seed']}")
