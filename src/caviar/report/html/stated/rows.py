"""Rows of data under a posterior: hidden states, groups and numbers; predictions, also by fits without the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import language
from ...._typing import AnyArray, Array
from ....families import Categorical, ChainMixture, ForecastMarkovChain, MarkovChain
from ....posterior.new_rows import rows_first
from ....posterior.prediction.residuals import Residuals, from_the_rest, means_of_neighbours
from ..numbers import as_numbers, in_digits, spread_out
from ..section import Page, Section
from ..seen import Seen, judged_by_others

_MOST_POINTS = 2000
_MOST_STEPS = 3000
_MOST_STATES = 12
_MOST_DOCUMENTS = 5
_GROUPS = 10
_SURE = 0.8
"""Probability of a label from which on it is taken for known."""
_WIDTH = 1.959963984540054
"""Half of the central 95% interval of a Normal, in standard deviations."""


class Rows(Section):
    """Hidden states, groups and numbers of the rows, and predictions beside what was observed."""

    name, link, template, scripts = "rows", "Predictions", "rows.html", ("chain.js", "scatter.js")

    def gather(self, subject: Any) -> dict[str, Any]:
        return {"rows": subject.rows}

    def figures(self, page: Page) -> dict[str, Any]:
        rows = page["rows"] or {"chains": [], "clouds": [], "predictions": []}
        return {
            "chain": rows["chains"][0] if rows["chains"] else None,
            "scatter": [*rows["predictions"], *rows["clouds"]],
        }


def rows_of(subject: Any) -> dict[str, Any] | None:
    """Return what the posterior says of the data, as plain values; None without data.

    Raises
    ------
    CaviarError
        If the data are not data of this model.
    """
    if subject.data is None:
        return None
    posterior, data = subject.posterior, subject.data
    local = posterior.local(data) if subject.hidden else {}
    local = {name: factor for name, factor in local.items() if name in subject.hidden}
    found: dict[str, Any] = {"chains": [], "groups": [], "clouds": [], "predictions": [], "documents": []}
    for name, factor in local.items():
        if isinstance(factor, MarkovChain | ForecastMarkovChain | ChainMixture):
            found["chains"].append(_chain(name, factor, subject))
        elif isinstance(factor, Categorical) and not subject.vocabulary:
            found["groups"].append(_groups(name, factor.probabilities))
        elif not subject.vocabulary and np.ndim(getattr(factor, "mean", 0.0)) == 2:
            found["clouds"].append(_cloud(name, np.asarray(factor.mean)))
    if subject.vocabulary:
        found["documents"] = _documents(local["proportions"].mean)
    found["predictions"] = [_beside(leaf, own, subject.seen) for leaf, own in subject.residuals]
    _add_held_out(subject, found)
    for own in [*found["chains"], *found["groups"]]:
        own["labels"] = subject.posterior.names.entries(own["name"])
        own["word"] = subject.words_of_labels.get(own["name"])
    return found


def _add_held_out(subject: Any, found: dict[str, Any]) -> None:
    """Add to predictions and groups what fits without them say of the rows, and what the fit has seen of these."""
    assert subject.seen is not None
    assert subject.data is not None
    variables = subject.posterior.model.variables
    # fits without some of the rows say nothing of values of other plates, as of one for each group
    of_rows = (subject.posterior.data_plate,)
    leaves = [own["name"] for own in found["predictions"] if variables[own["name"]].plates[:1] == of_rows]
    groups = [own["name"] for own in found["groups"]]
    told: HeldOut | str = "their steps depend on their neighbours"
    if leaves or groups:
        told = held_out_of(subject, leaves, groups)
    is_held_out = isinstance(told, HeldOut)
    found["seen"] = {
        "words": subject.seen.words,
        "label": subject.seen.label,
        "how": told.words if is_held_out else None,
        "why_not": None if is_held_out else told,
    }
    for own in [*found["predictions"], *found["groups"], *found["chains"]]:
        own["held_out"] = None
    if not is_held_out:
        return
    for own in found["predictions"]:
        if own["name"] not in leaves:
            continue
        observed = as_numbers(subject.data[own["name"]])
        assert observed is not None
        observed = rows_first(subject.posterior, own["name"], observed)
        mean, sd = told.predictions[own["name"]]
        own["held_out"] = _scores(
            variables[own["name"]], observed[told.rows].ravel(), mean.ravel(), sd.ravel()
        )
    for own in found["groups"]:
        own["held_out"] = {"unsure": float((told.certainty[own["name"]] < _SURE).mean())}


def _chain(
    name: str, chain: MarkovChain | ForecastMarkovChain | ChainMixture, subject: Any
) -> dict[str, Any]:
    """Return the most probable path as runs, and the probabilities of the states, of the first steps."""
    path, probabilities = np.asarray(chain.mode()), chain.probabilities
    n_steps = min(len(path), _MOST_STEPS)
    changes = np.flatnonzero(np.diff(path)) + 1
    begins = np.concatenate([[0], changes])
    lengths = np.diff(np.concatenate([begins, [len(path)]]))
    in_use = [k for k in range(probabilities.shape[1]) if probabilities[:, k].max() > 0.01]
    counts = np.bincount(path, minlength=probabilities.shape[1])
    visits = np.bincount(path[begins], minlength=len(counts))
    stays = np.bincount(path[begins], weights=lengths, minlength=len(counts))
    drawn = begins < n_steps
    return {
        "name": name,
        "steps": n_steps,
        "of": len(path),
        "runs": [[int(b), int(path[b])] for b in begins[drawn]],
        "states": in_use[:_MOST_STATES],
        "probabilities": {
            str(k): probabilities[:n_steps, k].round(3).tolist() for k in in_use[:_MOST_STATES]
        },
        "lines": _lines(subject, n_steps),
        "table": [
            {
                "k": k,
                "steps": int(counts[k]),
                "share": float(counts[k] / len(path)),
                "visits": int(visits[k]),
                "stay": float(stays[k] / visits[k]) if visits[k] else None,
            }
            for k in range(len(counts))
        ],
        "unsure": float((probabilities.max(axis=1) < _SURE).mean()),
    }


def _lines(subject: Any, n_steps: int) -> list[dict[str, Any]]:
    """Return up to three columns of what was observed, along the steps."""
    posterior = subject.posterior
    leaf = next(leaf for leaf in posterior.model.leaves if posterior.data_plate in leaf.plates)
    values = as_numbers((subject.data or {}).get(leaf.name))
    if values is None:
        return []
    values = rows_first(posterior, leaf.name, values)
    values = values[:n_steps].reshape(min(n_steps, len(values)), -1)
    arrays = (posterior.data_summary or {}).get("arrays", {})
    columns = arrays.get(leaf.name, {}).get("columns")
    names = columns if columns is not None and len(columns) == values.shape[1] else None
    is_category = isinstance(leaf, language.Categorical) and values.shape[1] == 1
    levels = posterior.names.entries(leaf.name) if is_category else None
    return [
        {
            "name": names[j] if names else f"{leaf.name} {j}" if values.shape[1] > 1 else leaf.name,
            "levels": None if levels is None else list(map(str, levels)),
            "values": [in_digits(value, 5) for value in values[:, j].tolist()],
        }
        for j in range(min(values.shape[1], 3))
    ]


def _groups(name: str, probabilities: AnyArray) -> dict[str, Any]:
    """Return how many rows each group has, and how sure it is of them."""
    flat = np.asarray(probabilities).reshape(-1, np.shape(probabilities)[-1])
    labels, certainty = flat.argmax(axis=1), flat.max(axis=1)
    return {
        "name": name,
        "n": len(labels),
        "unsure": float((certainty < _SURE).mean()),
        "table": [
            {
                "k": k,
                "rows": int((labels == k).sum()),
                "share": float(flat[:, k].mean()),
                "certainty": float(certainty[labels == k].mean()) if (labels == k).any() else None,
            }
            for k in range(flat.shape[1])
        ],
    }


def _cloud(name: str, mean: AnyArray) -> dict[str, Any]:
    """Return the first two hidden numbers of each row."""
    chosen = spread_out(len(mean), _MOST_POINTS)
    second = mean[chosen, 1] if mean.shape[1] > 1 else np.zeros(len(chosen))
    return {
        "x": f"{name} 0",
        "y": f"{name} 1" if mean.shape[1] > 1 else "",
        "points": np.column_stack([mean[chosen, 0], second]).tolist(),
        "of": len(mean),
        "diagonal": False,
        "title": f"Expected {name} of each row",
    }


def _documents(proportions: AnyArray) -> list[dict[str, Any]]:
    """Return, for each topic, its share and the documents that are most of it."""
    return [
        {
            "k": k,
            "share": float(own.mean()),
            "most": [
                [int(row), float(own[row])]
                for row in np.argsort(-own, kind="stable")[:_MOST_DOCUMENTS].tolist()
            ],
        }
        for k, own in enumerate(np.asarray(proportions).T)
    ]


def _beside(leaf: Any, residuals: Residuals, seen: Seen) -> dict[str, Any]:
    """Return predictions beside observations."""
    told = (residuals.observed, residuals.prediction.mean, residuals.prediction.sd)
    observed, mean, sd = (np.ravel(own) for own in told)
    rows = np.flatnonzero(~np.isnan(observed) & np.isfinite(mean))
    chosen = rows[spread_out(len(rows), _MOST_POINTS)]
    is_probability = isinstance(leaf, language.Bernoulli)
    points = np.column_stack([mean[chosen], observed[chosen]])
    title = f"Predictions of {leaf.name} beside what was observed"
    if is_probability:
        groups = means_of_neighbours(mean[rows], observed[rows], min(_GROUPS, len(rows) // 10))
        points = np.array([(probability, share) for probability, share, _ in groups])
        title = (
            f"Predicted probability of {leaf.name} beside the observed share, in {len(points)} groups of rows"
        )
    return {
        "x": f"predicted {leaf.name}",
        "y": f"observed {leaf.name}",
        "points": points.tolist(),
        "of": len(rows),
        "diagonal": True,
        "grouped": is_probability,
        "title": f"{title}, {seen.label}" if seen.label else title,
        "name": leaf.name,
        "is_probability": is_probability,
        **_scores(leaf, observed, mean, sd),
    }


def _scores(leaf: Any, observed: AnyArray, mean: AnyArray, sd: AnyArray) -> dict[str, Any]:
    """Return how well predictions agree with what was observed."""
    seen = ~np.isnan(observed) & np.isfinite(mean)
    observed, mean, sd, n = observed[seen], mean[seen], sd[seen], int(seen.sum())
    residual = observed - mean
    spread = float(np.sum((observed - observed.mean()) ** 2)) if n else 0.0
    inside = np.abs(residual) <= _WIDTH * sd
    return {
        "n": n,
        "right": float(((mean > 0.5) == (observed > 0.5)).mean()) if n else None,
        "rmse": float(np.sqrt(np.mean(residual**2))) if n else None,
        "explained": 1 - float(np.sum(residual**2)) / spread if spread > 0 else None,
        "covered": float(inside.mean()) if isinstance(leaf, language.Normal) and n else None,
    }


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, each judged by a fit to others.

    Attributes
    ----------
    rows
        Their numbers, (M,).
    predictions
        Name of an observed variable -> mean and standard deviation of its predictions, (M, ...).
    certainty
        Name of a hidden Categorical -> the probability of the most probable category, (M, ...).
    words
        How this was found.
    """

    rows: AnyArray
    predictions: Mapping[str, tuple[Array, Array]]
    certainty: Mapping[str, Array]
    words: str


def held_out_of(subject: Any, leaves: Sequence[str], groups: Sequence[str]) -> HeldOut | str:
    """Return what fits without them say of the rows of a fit; or why there is nothing.

    Parameters
    ----------
    subject
        What the page is about, with data.
    leaves
        Names of observed variables that known columns predict.
    groups
        Names of hidden Categoricals.
    """
    posterior, data = subject.posterior, dict(subject.data or {})
    if subject.seen is None or not subject.seen.is_fit:
        return "fits without some of the rows need all rows of the fit"

    def judge(other: Any, rows: AnyArray) -> tuple[dict[str, tuple[Array, Array]], dict[str, Array]]:
        told = {name: _predicted(other, data, name, rows) for name in leaves}
        local = other.local(data) if groups else {}
        return told, {name: np.asarray(local[name].probabilities)[rows].max(axis=-1) for name in groups}

    n_rows = int((posterior.data_summary or {}).get("rows", 0))
    found = judged_by_others(posterior, data, n_rows, judge)
    if isinstance(found, str):
        return found
    parts = [own for _, own in found.parts]
    return HeldOut(
        np.concatenate([rows for rows, _ in found.parts]),
        {
            name: (
                np.concatenate([told[name][0] for told, _ in parts]),
                np.concatenate([told[name][1] for told, _ in parts]),
            )
            for name in leaves
        },
        {name: np.concatenate([sure[name] for _, sure in parts]) for name in groups},
        found.words,
    )


def _predicted(posterior: Any, data: Mapping[str, Any], name: str, rows: AnyArray) -> tuple[Array, Array]:
    """Return mean and standard deviation of predictions of an observed variable for some of the rows."""
    told = from_the_rest(posterior, data, name)
    return np.asarray(told.mean)[rows], np.asarray(told.standard_deviation)[rows]
