"""The quality of the arrays of a model: of the data that are given, or what was kept of those of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...._typing import AnyArray
from ....data.columns.row_numbers import has_moments_of_row_numbers
from ....language import Data, Variable
from ..numbers import as_numbers
from ..quality import CONSTANT, FIGURES, NUMBERS, line_of, quality_of

_MOST_COLUMNS = 100
_MOST_LEVELS = 6
"""Levels of a column of words whose rows are counted."""


def columns_of(subject: Any) -> list[dict[str, Any]]:
    """Return figures and remarks for each column of each array, the first hundred."""
    posterior = subject.posterior
    arrays = dict((posterior.data_summary or {}).get("arrays", {}))
    for name in posterior.model.axes.labels & arrays.keys():
        if posterior.names.entries(name) is not None:
            arrays[name] = {**arrays[name], "categories": posterior.names.entries(name)}
    if subject.data is None:
        labels = _labels(subject)
        found = (
            []
            if subject.vocabulary
            else [
                line for name in arrays for line in _remembered(name, arrays[name], is_label=name in labels)
            ]
        )
        return [_without_places(line, arrays.get(line["name"], {})) for line in found[:_MOST_COLUMNS]]
    if subject.vocabulary:
        return _of_documents(subject.data["word"])
    found = []
    nodes = {node.name: node for node in subject.posterior.model.nodes}
    for name, value in subject.data.items():
        columns = _table(value)
        if columns is not None and name not in getattr(subject.estimator, "_not_of_the_table", ()):
            kept = arrays.get(name, {})
            names = getattr(value, "columns", kept.get("columns"))
            own = _column_names(name, names, columns.shape[1], alone=subject.estimator is not None)
            lines = [
                {**_without_places(line, kept), "levels": _counts(column, kept)}
                for line, column in zip(quality_of(columns, own, {}), columns.T, strict=True)
            ]
            is_label = name in _labels(subject)
            found += [
                _as_stated(line, nodes[name], is_label=is_label) if name in nodes else line for line in lines
            ]
    return found[:_MOST_COLUMNS]


def columns_of_formula(model: Any, table: Any) -> list[dict[str, Any]]:
    """Return figures and remarks for the columns of a table that the formula of a mixed model reads.

    Parameters
    ----------
    model
        A fitted MixedModel.
    table
        ``Rows`` of its columns; None if there are none: the kept response is then described.
    """
    if table is None:
        response = model._formula.response
        arrays = (model.posterior_.data_summary or {}).get("arrays", {})
        return _remembered(response, arrays[response], is_label=False) if response in arrays else []
    read = {model._formula.response, *model._formula.trials, *model._encoding.read}
    found = []
    for name in table.names:
        if name not in read:
            continue
        if name in model.groups_ or table.are_texts(name):
            labels, _ = table.labels(name)
            levels, places = np.unique(labels.astype(str), return_inverse=True)
            told = _counts(places.astype(np.float64), {"categories": levels.tolist()})
            found.append({**line_of(name, [], 0.0), "levels": told})
        else:
            [line] = quality_of(table.numbers(name)[:, np.newaxis], [name], {})
            remarks = [remark for remark in line["remarks"] if "distinct values" not in remark]
            found.append({**line, "remarks": remarks})
    return found[:_MOST_COLUMNS]


def _counts(column: AnyArray, kept: Mapping[str, Any]) -> str:
    """Return how many rows have each level that occurs in a column of words, the most frequent first."""
    if "categories" not in kept:
        return ""
    levels = kept["categories"]
    places = column[(column >= 0) & (column < len(levels))].astype(np.intp)
    counts = np.bincount(places, minlength=len(levels))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    told = [f"{levels[k]} {counts[k]:,}" for k in order[:_MOST_LEVELS]]
    if len(order) > _MOST_LEVELS:
        told.append(f"{len(order) - _MOST_LEVELS} more levels")
    return ", ".join(told)


def _without_places(line: dict[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line; of a column of words without the figures of their places, which mean nothing."""
    if "categories" not in kept:
        return line
    remarks = [
        told for told in line["remarks"] if told.startswith(("constant", "no value")) or "missing" in told
    ]
    return {**line, **dict.fromkeys(FIGURES), "remarks": remarks}


def _labels(subject: Any) -> set[str]:
    """Return the names of the arrays whose values are places along a plate: of these each row may have its own."""
    slots = [operand.slot for term in subject.posterior.model.terms for operand in term.operands]
    return {slot.index.name for slot in slots if slot is not None and slot.index is not None}


def _as_stated(line: dict[str, Any], node: Any, *, is_label: bool) -> dict[str, Any]:
    """Return a line without remarks on what the model knows: a column of ones, categories, counts."""
    is_intercept = isinstance(node, Data) and line["min"] == line["max"] == 1
    is_column = isinstance(node, Data) and len(node.plates) == 1 and line["mean"] is not None
    is_discrete = isinstance(node, Variable) and node.is_discrete
    remarks = [
        remark
        for remark in line["remarks"]
        if not (is_intercept and remark.startswith("constant"))
        and not ((is_discrete or is_column) and "distinct values" in remark)
        and not ((is_discrete or is_label) and remark == NUMBERS)
    ]
    return {**line, "remarks": remarks}


def _table(value: Any) -> AnyArray | None:
    """Return an array as rows and columns of numbers; None if it is not one."""
    rows = as_numbers(value)
    if rows is None or rows.ndim == 0 or not len(rows):
        return None
    return rows.reshape(len(rows), -1)[:, :_MOST_COLUMNS]


def _column_names(name: str, names: Any, n_columns: int, *, alone: bool) -> Sequence[str]:
    """Return the names of the columns of an array, ``alone`` or after its own."""
    if names is not None and len(names) >= n_columns:
        return [str(column) if alone else f"{name}: {column}" for column in names][:n_columns]
    return [name] if n_columns == 1 else [f"{name} {number}" for number in range(n_columns)]


def _remembered(name: str, kept: Mapping[str, Any], *, is_label: bool) -> list[dict[str, Any]]:
    """Return what was kept of an array: missing entries of all, mean and standard deviation of each column."""
    means, deviations = (np.ravel(kept.get(figure, [])) for figure in ("mean", "standard_deviation"))
    n_columns = len(means)
    columns = kept.get("columns") or (
        [""] if n_columns == 1 else [str(number) for number in range(n_columns)]
    )
    size = max(1, int(np.prod(kept.get("shape", [1]))))
    missing = kept.get("missing", 0) / size
    return [
        line_of(
            f"{name} {column}".strip(),
            _remembered_remarks(kept, mean, deviation, is_label=is_label),
            missing if n_columns == 1 else None,
            mean=mean,
            sd=deviation,
        )
        for column, mean, deviation in zip(
            columns, means[:_MOST_COLUMNS].tolist(), deviations.tolist(), strict=False
        )
    ]


def _remembered_remarks(
    kept: Mapping[str, Any], mean: float, deviation: float, *, is_label: bool
) -> list[str]:
    if deviation == 0:
        return [CONSTANT]
    # a file that was changed may say that a single number varies
    rows, *_ = kept.get("shape") or [0]
    n_rows = 0 if is_label or kept.get("missing") or "categories" in kept else rows
    return [NUMBERS] if has_moments_of_row_numbers(n_rows, mean, deviation) else []


def _of_documents(counts: Any) -> list[dict[str, Any]]:
    """Return the lengths of documents and how often words occur, with remarks on empty ones."""
    lengths, totals = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(counts.sum(axis=0)).ravel()
    per_document, per_word = quality_of(lengths[:, np.newaxis], ["tokens of a document"], {}) + quality_of(
        totals[:, np.newaxis], ["occurrences of a word"], {}
    )
    for line, empty, what in (
        (per_document, int((lengths == 0).sum()), "documents without any word"),
        (per_word, int((totals == 0).sum()), "words that never occur"),
    ):
        # counts differ by orders of magnitude as a rule
        line["remarks"] = [f"{empty:,} {what}"] if empty else []
    return [per_document, per_word]
