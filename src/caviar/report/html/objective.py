"""The objective of a fit: its trace, the ends of its starts, and its terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_MOST_STEPS = 400


def objective_facts(
    posterior: Any, words: dict[str, str], names: Mapping[str, str] | None = None, *, offset: float = 0.0
) -> dict[str, Any]:
    """Return facts about the objective of a fit, as plain values.

    Parameters
    ----------
    posterior
        Of the fit.
    words
        Name of a factor -> what its part of the objective says.
    names
        Name of a factor -> what users call it, if that is something else.
    offset
        What the objective of an estimator is above that of its posterior, in nats.
    """
    trace = np.asarray(posterior.elbo_trace, dtype=np.float64) + offset
    return {
        "elbo": float(posterior.elbo + offset),
        "trace": _thinned(trace),
        "largest_fall": float(max(0.0, -np.diff(trace).min(initial=0.0))),
        "rise": float(trace[-1] - trace[0]),
        "restarts": [float(end) + offset for end in np.ravel(posterior.restart_elbos)],
        "ends": [[end + offset, n_starts] for end, n_starts in posterior.distinct_ends],
        "told_ends": posterior.told_ends,
        "terms": _terms(posterior, words, names or {}, offset),
        "n_iter": int(posterior.n_iter),
        "status": posterior.status.value,
        "explanation": posterior.status.explanation,
    }


def _thinned(trace: Any) -> list[list[float]]:
    """Return (iteration, objective), the first and last among them, of a long trace some hundreds."""
    steps = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _MOST_STEPS)).round().astype(int))
    return [[int(step), float(trace[step])] for step in steps if np.isfinite(trace[step])]


def _terms(
    posterior: Any, words: dict[str, str], names: Mapping[str, str], offset: float
) -> list[dict[str, Any]]:
    """Return the parts that the objective is the sum of."""
    terms = [
        {"name": names.get(name, name), "value": float(value), "words": words.get(name, "")}
        for name, value in posterior.elbo_terms.items()
    ]
    if abs(offset) > 1e-9:
        terms.append({"name": "constant", "value": float(offset), "words": "of the objective's own scale"})
    return terms
