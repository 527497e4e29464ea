"""Everything that the page of a posterior shows, as one plain dictionary: no markup, no NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..markup import number
from ..objective import objective_facts
from ..verdict import verdict_of
from ..versions import known_versions, versions
from .columns import columns_of
from .figures import Figures, figures_of
from .findings import findings_of
from .pictures import cells_of, intervals_of, topics_of
from .rows import rows_of
from .statement import statement_of
from .subject import Subject, subject_of

__all__ = ["gather"]

_MOST_ENTRIES = 300
"""Of each variable in the table of all: of more the largest in size."""


def gather(fitted: Any, data: Any = None, *, source: str | None = None) -> dict[str, Any]:
    """Return what a page shows of a posterior, and of data, as plain values.

    Parameters
    ----------
    fitted
        A posterior, or a fitted LatentDirichletAllocation.
    data
        As its methods take them; None for none.
    source
        What the data are called.

    Examples
    --------
    >>> import caviar as cv
    >>> p = cv.Beta("p", 1, 1)
    >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
    >>> page = gather(posterior)
    >>> page["fit"]["kind"], page["verdict"]["level"], page["entries"][0]["mean"]
    ('Model of x', 'good', 0.6)
    """
    subject = subject_of(fitted, data)
    fit, figures, rows = _fit(subject), figures_of(subject), rows_of(subject)
    findings = findings_of(subject, fit, rows)
    entries, left_out = _entries(figures)
    return {
        "fit": fit,
        "facts": _facts(subject, fit),
        "has_data": data is not None,
        "source": source,
        "verdict": verdict_of(findings),
        "findings": findings,
        "statement": statement_of(subject.posterior),
        "entries": entries,
        "left_out": left_out,
        "pictures": {
            "intervals": intervals_of(figures),
            "cells": cells_of(figures),
            "topics": topics_of(subject, figures),
        },
        "rows": rows,
        "quality": columns_of(subject),
        "versions": versions(),
    }


def _fit(subject: Subject) -> dict[str, Any]:
    """Return what a fit says of itself."""
    posterior, about = subject.posterior, subject.about
    of_posterior = ("--max-iter", "--restarts 10") if about.get("command") else ("max_iter=", "n_restarts=10")
    say_iterations, say_starts = of_posterior if subject.estimator is None else ("max_iter=", "n_init=10")
    summary = posterior.data_summary or {}
    return {
        **objective_facts(posterior, _words(subject)),
        "kind": subject.kind,
        "objective": "objective" if _is_point(subject) else "ELBO",
        "rows": summary.get("rows"),
        "source": about.get("source"),
        "query": about.get("query"),
        "command": about.get("command"),
        "fitted_with": dict(about.get("versions") or known_versions(posterior)),
        "call": _call(subject),
        "remarks": _remarks(subject),
        "interval_remark": posterior.interval_remark,
        "say_iterations": say_iterations,
        "say_starts": say_starts,
    }


def _is_point(subject: Subject) -> bool:
    """Whether every global is a point mass, so that the objective is a log joint density rather than a bound."""
    return len(subject.posterior) > 0 and set(subject.posterior) == set(subject.posterior._evaluator.point)


def _words(subject: Subject) -> dict[str, str]:
    """Return what each part of the objective says."""
    posterior = subject.posterior
    words = {}
    for name in posterior.elbo_terms:
        if name in posterior:
            words[name] = f"how far {name} has moved from its prior"
        elif name in posterior._local and name not in subject.hidden:
            owner = posterior.model.variables[name].stated_with.name
            words[name] = f"what the bound on the link of {owner} costs"
        elif name in posterior._local:
            words[name] = f"what finding {name} for each row costs"
        else:
            words[name] = f"how well {name} is explained, given the rest"
    return words


def _facts(subject: Subject, fit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures at the head of the page."""
    posterior = subject.posterior
    plate = posterior.data_plate
    rows = "Documents" if subject.words else "Rows" if plate is None else f"Rows ({plate.name})"
    facts = [(rows, "not recorded" if fit["rows"] is None else f"{fit['rows']:,}")]
    if subject.words:
        topics = posterior["topics"].mean
        facts += [("Topics", f"{len(topics):,}"), ("Words in the vocabulary", f"{topics.shape[1]:,}")]
        if hasattr(subject.estimator, "bound_"):
            facts.append(("Perplexity bound", number(float(subject.estimator.bound_), 5)))
    else:
        facts += [("Observed", ", ".join(leaf.name for leaf in posterior.model.leaves))]
        facts += [("Learnt", ", ".join(posterior) or "nothing")]
        hidden = ", ".join(subject.hidden)
        facts += [("Hidden, for each row", hidden)] if hidden else []
    if fit["source"]:
        facts.insert(0, ("Fitted to", str(fit["source"])))
    return [*facts, (f"{fit['objective']}, nats", number(fit["elbo"], 7))]


def _call(subject: Subject) -> str:
    """Return what fits the same model again."""
    if subject.estimator is not None:
        return f"import caviar as cv\ncv.{subject.estimator!r}.fit(counts)"
    evaluator = subject.posterior._evaluator
    arguments = ["data", "seed=0"]
    if len(subject.posterior.restart_elbos) > 1:
        arguments.append(f"n_restarts={len(subject.posterior.restart_elbos)}")
    if evaluator.point:
        arguments.append(f"point={list(evaluator.point)!r}")
    if evaluator.factors is not None:
        arguments.append(f"factors={[list(group) for group in evaluator.factors]!r}")
    names = [node.name for node in (*subject.posterior.model.leaves,)]
    arrays = (subject.posterior.data_summary or {}).get("arrays", dict.fromkeys(names))
    entries = ", ".join(f"{name!r}: ..." for name in arrays)
    return (
        f"import caviar as cv\n"
        f'model = cv.load("MODEL.caviar").model\n'
        f"data = {{{entries}}}\n"
        f"posterior = model.fit({', '.join(arguments)})"
    )


def _remarks(subject: Subject) -> list[str]:
    """Return what has to be known to fit the same again."""
    if subject.estimator is None and subject.about.get("command"):
        return []
    if subject.estimator is None:
        return [
            "The file keeps the model and its posterior, not the data nor the arguments of fit: give the seed, "
            "max_iter and tol that were given then."
        ]
    if subject.estimator.random_state is None:
        return ["No random_state was given: another run may begin, and end, elsewhere."]
    return []


def _entries(figures: Sequence[Figures]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the entries of all variables, of each at most some hundreds, and how many are left out."""
    entries, left_out = [], {}
    for own in figures:
        places, left = own.places(_MOST_ENTRIES)
        if left:
            left_out[own.name] = left
        for place in places:
            mean, sd, low, high = own.at(place)
            entries.append(
                {
                    "variable": own.name,
                    "at": own.label(place),
                    "mean": mean,
                    "sd": sd,
                    "low": low,
                    "high": high,
                }
            )
    return entries, left_out
