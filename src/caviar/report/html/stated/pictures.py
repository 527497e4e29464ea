"""The data of the plots of a posterior: intervals, tables of cells, words of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....posterior.figures import Figures
from ..section import Page, Section
from .figures import are_probabilities, event_name, figures_at, is_over_words

_MOST_INTERVALS = 60
_MOST_COLUMNS = 30
_MOST_LINES = 60
_MOST_WORDS = 12
_MANY_CATEGORIES = 30


class Pictures(Section):
    """Intervals, coloured cells, and words of topics."""

    name, link, template, scripts = "pictures", "Plots", "pictures.html", ("intervals.js", "cells.js")

    def gather(self, subject: Any) -> dict[str, Any]:
        figures = subject.drawn
        return {
            "pictures": {
                "intervals": intervals_of(subject, figures),
                "cells": cells_of(subject, figures),
                "topics": topics_of(subject, figures),
            }
        }

    def figures(self, page: Page) -> dict[str, Any]:
        return page["pictures"]


def intervals_of(subject: Any, figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Return the variables whose entries are drawn below each other; the table has single numbers and matrices."""
    found = []
    for own in figures:
        if own.mean.size < 2 or own.n_event == 2 or _is_topics(subject, own):
            continue
        places, left = own.largest(_MOST_INTERVALS)
        entries = [(own.label(place), figures_at(own, place)) for place in places]
        found.append(
            {
                "name": own.title,
                "labels": [label for label, _ in entries],
                "mean": [mean for _, (mean, *_) in entries],
                "low": [low for _, (_, _, low, _) in entries],
                "high": [high for _, (*_, high) in entries],
                "bars": are_probabilities(subject, own),
                "left_out": left,
            }
        )
    return found


def cells_of(subject: Any, figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Return the variables with two axes, which are drawn as tables of coloured cells."""
    return [
        _cells(subject, own)
        for own in figures
        if own.mean.ndim == 2 and own.n_event < 2 and min(own.mean.shape) > 1 and not _is_topics(subject, own)
    ]


def _cells(subject: Any, own: Figures) -> dict[str, Any]:
    n_lines, n_columns = min(own.mean.shape[0], _MOST_LINES), min(own.mean.shape[1], _MOST_COLUMNS)
    return {
        "name": own.title,
        "lines": list(own.labels[0][:n_lines]),
        "columns": list(own.labels[1][:n_columns]),
        "line": own.plates[0],
        "column": own.plates[1] if len(own.plates) == 2 else event_name(subject, own),
        "values": own.mean[:n_lines, :n_columns].tolist(),
        "weak": own.contains_zero[:n_lines, :n_columns].tolist(),
        "cut": [own.mean.shape[0] - n_lines, own.mean.shape[1] - n_columns],
    }


def _is_topics(subject: Any, own: Figures) -> bool:
    """Whether these are topics, or other distributions with too many categories to show them all."""
    is_table = own.mean.ndim == 2 and are_probabilities(subject, own)
    return is_table and (is_over_words(subject, own) or own.mean.shape[1] > _MANY_CATEGORIES)


def topics_of(subject: Any, figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Return the topics: how much of the tokens each has, and its words, by probability and by what sets it apart."""
    topics = next((own for own in figures if _is_topics(subject, own)), None)
    if topics is None:
        return []
    mean = topics.mean
    # Blei and Lafferty (2009), Topic models: the probability times the log of its ratio to the geometric mean
    logs = np.log(np.maximum(mean, 1e-300))
    apart = mean * (logs - logs.mean(axis=0))
    shares = _shares(subject, topics)
    numbers = [int(label) for label in topics.labels[0]]
    order = np.argsort(-shares, kind="stable") if shares is not None else np.arange(len(mean))
    return [
        {
            "k": numbers[k],
            "share": None if shares is None else float(shares[k]),
            "words": _words(topics, k, mean[k]),
            "apart": _words(topics, k, apart[k]),
        }
        for k in order.tolist()
    ]


def _shares(subject: Any, topics: Figures) -> Any:
    """Return the expected share of the tokens that each topic has: what the data added to its concentrations."""
    name = topics.name
    prior = subject.posterior.model.variables[name].known("concentration")
    concentration = getattr(subject.posterior[name], "concentration", None)
    if prior is None or concentration is None:
        return None
    added = np.maximum((concentration - prior).sum(axis=-1), 0.0)
    shown = [int(label) for label in topics.labels[0]]
    return (added / added.sum())[shown] if added.sum() > 0 else None


def _words(topics: Figures, k: int, by: Any) -> list[list[Any]]:
    best = np.argsort(-by, kind="stable")[:_MOST_WORDS].tolist()
    return [[topics.labels[1][word], *_at(topics, (k, word))] for word in best]


def _at(topics: Figures, place: tuple[int, int]) -> list[float | None]:
    mean, _, low, high = figures_at(topics, place)
    return [mean, low, high]
