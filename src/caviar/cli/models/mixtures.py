"""Fitted mixtures: what they are, what they say of rows, and new rows of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import caviar as cv

from ..speaking.outputs import counted, plain, say, standard_error
from ..speaking.results import columns_table, finite, in_digits, objective_document, print_end
from ..speaking.wording import in_options
from ..tables.arrays import arrays_for, is_numpy_file
from ..tables.files_and_streams import absent_columns, read_for, with_empty
from .checked import Checked, again, complete_of, some_of, told_of
from .saved import LEVEL, Saved
from .stated import columns_of_prediction, posterior_document

_MOST_LINES = 200
"""Lines of a table on a terminal; JSON holds them all."""
_MOST_VALUES = 3
"""Categories of a column in the table."""
_MOVES = {"split": "split", "merge": "merge", "delete": "deletion", "anew": "new start"}
"""Kind of a move of a search -> what a user calls it."""


class GaussianMixtureOfFile(Saved):
    """A saved mixture of Gaussians."""

    label = "component"

    def document(self) -> dict[str, Any]:
        return document_of(self.fitted)

    def print(self, console: Console) -> None:
        """Print what a fitted mixture is: its components, heaviest first, its bound, and why the fit ended."""
        estimator = self.fitted
        about = self.about
        rows = f", {counted(about['rows'], 'row')}" if isinstance(about.get("rows"), int) else ""
        structure = getattr(estimator, "covariance_type", "full")
        shape = "" if structure == "full" else f" with {structure} covariances"
        say(console, f"{self.kind}{shape}, {counted(len(estimator.weights_), 'component')}{rows}", "bold")
        missing = about.get("missing_entries")
        if missing:
            say(
                console,
                f"{missing:,} missing {'entry, which was' if missing == 1 else 'entries, which were'} integrated out",
            )
        say(console)
        print_components(console, estimator)
        say(console)
        print_end(
            console,
            estimator.posterior_,
            objective=estimator._objective_in_words,
            value=estimator.elbo_,
            n_iter=estimator.n_iter_,
        )
        _say_moves(console, getattr(estimator, "moves_", []))

    def data(self, file: str | None, sql: str | None) -> Any:
        return read_for(self.fitted, self.path, file, sql)

    @property
    def kind(self) -> str:
        return self.fitted._kind_in_words

    def facts(self) -> dict[str, Any]:
        estimator, n_components = self.fitted, len(self.fitted.weights_)
        # a log-likelihood is the same for all numberings, and lacks nothing
        is_likelihood = isinstance(estimator, cv.GaussianMixture)
        return {
            **super().facts(),
            "objective": estimator._objective_in_words,
            "n_components": n_components,
            "covariance_type": getattr(estimator, "covariance_type", None),
            "corrected": None if is_likelihood else float(estimator.elbo_) + lgamma(n_components + 1),
        }

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        absent = absent_columns(self.fitted, file, sql)
        rows = read_for(self.fitted, self.path, file, with_empty(absent, sql), may_be_large=True)
        return self._with_absent(self._of_rows(rows), rows, absent, level=level, quiet=quiet)

    def _with_absent(
        self, columns: dict[str, Any], rows: Any, absent: list[str], *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        """Return the columns of a prediction, with what the rows say of the columns that they do not have."""
        if not absent:
            self.refuse_level(level, "rows have a label and the probabilities of all components")
        for name in absent:
            own = self._of_absent(name, rows, level)
            twice = sorted(set(own) & set(columns))
            if twice:
                raise cv.DataError(
                    f"column '{name}' is missing, and its prediction would be a second column {twice[0]}; give "
                    f"the rows an empty column '{name}'"
                )
            columns = {**columns, **own}
        if absent and not quiet:
            told = ", ".join(absent)
            say(standard_error(), f"predicted from the rest, as the rows do not have them: {told}")
        return columns

    def _of_absent(self, name: str, rows: Any, level: float | None) -> dict[str, Any]:
        """Return mean and standard deviation of a column that rows do not have."""
        place = cv.report.column_names(self.fitted).index(name)
        told = self.fitted.predict_columns(rows, place, level=level or LEVEL)
        return columns_of_prediction(name, told, [name], level=level)

    def _of_rows(self, X: Any) -> dict[str, Any]:
        """Return label, probabilities and density of each row, in their order."""
        probabilities = self.fitted.predict_proba(X)
        columns = {"label": probabilities.argmax(axis=1)}
        columns.update({f"probability_{k}": column for k, column in enumerate(probabilities.T)})
        return {**columns, "log_density": self.fitted.score_samples(X)}

    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        estimator = self.fitted
        if getattr(estimator, "fixed", None):
            raise cv.ParameterError("the check takes no components that are fixed: it fits all of them again")
        read = self.data(file, sql)
        values = estimator._validated(read, reset=False)
        complete = complete_of([np.isnan(values)])
        chosen = some_of(complete, n_rows, seed)
        # each category by its place among those of the mixture
        rows = cv.data.Table(values[chosen], read.columns, getattr(estimator, "categories_", {}))
        kinds = {"kinds": estimator.kinds_} if isinstance(estimator, cv.MixedMixture) else {}

        def stated() -> tuple[Any, Any, dict[str, Any]]:
            fitted = again(estimator, seed, n_components=len(estimator.weights_), **kinds).fit(rows)
            # maximum likelihood: all that is learnt is points
            point = tuple(fitted.posterior_.keys()) if isinstance(estimator, cv.GaussianMixture) else ()
            return fitted.posterior_.model, fitted._as_data(rows), {"point": point}

        return Checked(len(chosen), told_of(len(chosen), len(values), len(complete)), stated)


class MixedMixtureOfFile(GaussianMixtureOfFile):
    """A saved mixture of columns of several kinds; some columns of new rows may be missing."""

    def __init__(self, estimator: Any, path: Path) -> None:
        super().__init__(estimator, path)
        summary = estimator.posterior_.data_summary
        if summary and not hasattr(estimator, "about_"):
            # saved as a posterior, which keeps the same elsewhere
            missing = sum(own.get("missing", 0) for own in summary["arrays"].values())
            columns = list(cv.report.column_names(estimator))
            told = {"rows": summary["rows"], "missing_entries": missing, "columns": columns}
            estimator.about_ = {**summary.get("about", {}), **told}

    def _read(
        self, file: str | None, sql: str | None, *, needs_all: bool
    ) -> tuple[cv.data.Table, dict[str, Any]]:
        """Return a table of the columns of the fit, in which what is not there is missing; and what is there."""
        values = self.fitted.categories_
        written = {
            name: [(text, own) for own in several for text in _written(own, several)]
            for name, several in values.items()
        }
        texts = {name: [text for text, _ in pairs] for name, pairs in written.items()}
        arrays = arrays_for(self.fitted.posterior_, file, sql, needs_observed=needs_all, categories=texts)
        if not is_numpy_file(file):
            values = {name: tuple(own for _, own in pairs) for name, pairs in written.items()}
        n_rows, names = len(next(iter(arrays.values()))), cv.report.column_names(self.fitted)
        columns = [arrays.get(name, np.full(n_rows, np.nan)) for name in names]
        return cv.data.Table(np.column_stack(columns), names, values), arrays

    def data(self, file: str | None, sql: str | None) -> Any:
        return self._read(file, sql, needs_all=True)[0]

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        if not is_numpy_file(file):
            absent_columns(self.fitted, file, sql)
        table, arrays = self._read(file, sql, needs_all=False)
        absent = [name for name in table.columns if name not in arrays]
        return self._with_absent(self._of_rows(table), table, absent, level=level, quiet=quiet)

    def _of_absent(self, name: str, rows: Any, level: float | None) -> dict[str, Any]:
        """Return mean and standard deviation of a number, or the most probable category and the probability of each."""
        told = self.fitted.predict_columns(rows, [name])[name]
        if name not in self.fitted.categories_:
            return columns_of_prediction(name, told, [name], level=level)
        values = [str(value) for value in self.fitted.categories_[name]]
        shares = {f"{name}_probability_{value}": own for value, own in zip(values, told.mean.T, strict=True)}
        return {name: np.array(values)[told.mean.argmax(axis=1)], **shares}


def _written(value: Any, among: Sequence[Any]) -> list[str]:
    """Return how a value of a column of categories may be written in a table."""
    if isinstance(value, bool):
        return [str(value), str(value).lower()]
    if isinstance(value, str):
        return [value]
    # a model that is stated with 0 and 1 may be fitted to a column of false and true
    logical = [str(bool(value)).lower()] if set(among) == {0, 1} else []
    return list(dict.fromkeys([str(value), str(float(value)), *logical]))


def document_of(estimator: Any) -> dict[str, Any]:
    """Return everything that a fit says, as JSON can hold it."""
    names = cv.report.column_names(estimator)
    is_mixed = isinstance(estimator, cv.MixedMixture)
    posterior = estimator.posterior_
    objective = {name: value for name, value in objective_document(posterior).items() if name != "elbo_terms"}
    return {
        **(posterior_document(posterior) if is_mixed else objective),
        "model": type(estimator).__name__,
        **getattr(estimator, "about_", {}),
        "elbo": finite(estimator.elbo_),
        "elbo_trace": [finite(value) for value in estimator.elbo_trace_.tolist()],
        "covariance_type": getattr(estimator, "covariance_type", None),
        "components": [_component_document(row, names) for row in cv.report.component_table(estimator)],
        "interval_remark": interval_remark(estimator),
    }


def _component_document(row: cv.report.Component, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what is told of a component: mean and spread of columns of numbers, probabilities of the others."""
    told = list(zip(names, row.mean, row.standard_deviation, strict=True))
    found: dict[str, Any] = {
        "component": row.label,
        "weight": _estimate(row.weight),
        "mean": {name: _estimate(mean) for name, mean, _ in told if mean is not None},
        "standard_deviation": {name: spread for name, _, spread in told if spread is not None},
    }
    if row.probabilities:
        found["probabilities"] = {
            name: {value: _estimate(share) for value, share in own.items()}
            for name, own in zip(names, row.probabilities, strict=True)
            if own is not None
        }
    return found


def _estimate(estimate: Any) -> dict[str, float | None]:
    return {"value": finite(estimate.value), "low": finite(estimate.low), "high": finite(estimate.high)}


def interval_remark(estimator: Any) -> str:
    """Return what is to be known of the intervals of a mixture; empty where it gives none."""
    first = cv.report.component_table(estimator)[0]
    told = [estimate for estimate in (first.weight, *first.mean) if estimate is not None]
    if not any(own.low is not None for own in told):
        return ""
    # that of the summary has the names of the attributes, where the posterior has those of the stated model
    return in_options(estimator.summary(max_rows=1).remark)


def _say_moves(console: Console, moves: Any) -> None:
    """Say how the number of components was found, where it was searched for."""
    if moves:
        taken = [move for move in moves if move.accepted]
        kinds = ", ".join(
            counted(count, in_words)
            for kind, in_words in _MOVES.items()
            if (count := sum(move.kind == kind for move in taken))
        )
        say(
            console,
            f"{counted(len(moves), 'move')} tried, {len(taken)} accepted{': ' + kinds if kinds else ''}",
        )


def print_components(
    console: Console, estimator: Any, *, what: str = "component", share: str = "weight"
) -> None:
    """Print a line for each component, or state, and column, those of numbers before those of categories.

    What is to be known of the intervals follows.
    """
    rows = sorted(cv.report.component_table(estimator), key=lambda row: -row.weight.value)
    names = cv.report.column_names(estimator)
    shown = rows[: max(1, _MOST_LINES // len(names))]
    order = sorted(range(len(names)), key=lambda j: rows[0].mean[j] is None)
    first = rows[0].mean[order[0]]
    values = ", or values" if rows[0].probabilities else ""
    table = columns_table(what)
    table.add_column(share + _interval_word(rows[0].weight))
    table.add_column("column")
    table.add_column("mean" + _interval_word(first or rows[0].weight) + values)
    table.add_column("std. dev.", justify="right")
    for row in shown:
        start = (str(row.label), in_digits(row.weight))
        for j in order:
            table.add_row(*start, plain(names[j]), *_figures(row, j))
            start = ("", "")
    console.print(table)
    if len(shown) < len(rows):
        say(console, f"... and {len(rows) - len(shown)} lighter {what}s; --json shows all")
    remark = interval_remark(estimator)
    if remark:
        say(console, remark)


def _figures(row: cv.report.Component, column: int) -> tuple[str, str]:
    """Return mean and spread of a column in a component, or its most probable values."""
    mean, spread = row.mean[column], row.standard_deviation[column]
    if mean is not None and spread is not None:
        return in_digits(mean), f"{spread:.4g}"
    ranked = sorted((row.probabilities[column] or {}).items(), key=lambda pair: -pair[1].value)
    told = [f"{name} {estimate.value:.3f}" for name, estimate in ranked[:_MOST_VALUES]]
    return plain(", ".join([*told, *(["..."] if len(ranked) > _MOST_VALUES else [])])), "-"


def _interval_word(estimate: Any) -> str:
    return "" if estimate.low is None else " [95% interval]"
