"""Hidden Markov models: sequences of a table, what a fit says of them, steps ahead, and new sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
from rich.console import Console

import caviar as cv
from caviar.data.files.table_files import identifier, table_of
from caviar.files.naming import listed

from ..speaking.outputs import counted, plain, say
from ..speaking.results import columns_table, finite, print_end
from ..tables.files_and_streams import read_for
from ..tables.non_numeric import told_where_no_numbers
from .checked import Checked, again, as_fitted, complete_of, stretches_of, told_of
from .mixtures import document_of, print_components
from .saved import Saved

_EMISSIONS = {"gaussian": "Gaussian", "poisson": "Poisson", "categorical": "categorical"}
_MOST_STATES = 12
"""States whose transitions are printed; JSON holds them all."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """The rows of a table in sequences.

    Attributes
    ----------
    rows
        Shape (N, D): numbers, or one column of categories.
    columns
        Their names.
    lengths
        Rows of each sequence.
    names
        What the sequences are called.
    """

    rows: Any
    columns: tuple[str, ...]
    lengths: Any
    names: tuple[Any, ...] = (0,)

    def named(self) -> Any:
        """Return a table that says the names of its columns."""
        if self.rows.dtype != object:
            return cv.data.Table(self.rows, self.columns)
        values = self.rows[:, 0].tolist()
        words = tuple(dict.fromkeys(value for value in values if value is not None))
        places = {None: np.nan, **{word: float(place) for place, word in enumerate(words)}}
        return cv.data.Table(
            np.array([[places[value]] for value in values]), self.columns, {self.columns[0]: words}
        )


def sequences_of(
    data: str | None, sql: str | None, columns: list[str] | None, sequence: str | None, emission: str
) -> Sequences:
    """Return the sequences of a table.

    Parameters
    ----------
    data, sql, columns
        The table, and its columns; None for all.
    sequence
        The column that says which sequence each row belongs to; None for a single one.
    emission
        ``"categorical"`` for one column of texts or numbers, else numbers.

    Raises
    ------
    DataError
        If the columns are not there, or the rows of a sequence do not follow each other.
    """
    there = cv.scan(data, sql=sql).columns
    if sequence is not None and sequence not in there:
        raise cv.DataError(f"--sequence: there is no column {sequence!r}; the columns are {listed(there)}")
    names = [name for name in (columns or there) if name != sequence]
    begun = None if sequence is None else _lengths(_as_read(data, sql, sequence), sequence)
    if emission == "categorical":
        if len(names) != 1:
            raise cv.DataError(
                f"--emission categorical takes one column; choose it by --columns from {listed(names)}"
            )
        rows = _as_read(data, sql, names[0])[:, None]
    else:
        advice = "or use --sequence COLUMN, if the column has the sequence of each row"
        with told_where_no_numbers(advice if sequence is None else ""):
            rows = cv.data.read_table(data, columns=names, sql=sql, missing_ok=True).values
    lengths, called = (np.array([len(rows)]), (0,)) if begun is None else begun
    return Sequences(rows, tuple(names), lengths, called)


def _as_read(data: str | None, sql: str | None, column: str) -> Any:
    """Return the values of a column, texts or numbers; None where one is missing."""
    only = f"SELECT {identifier(column)} FROM {table_of(sql)}"
    found = cv.data.numeric_query(data, "categorical", sql=only)
    codes = cv.data.read_table(data, columns=[column], sql=found.sql, missing_ok=True).values[:, 0]
    words = found.categories.get(column)
    values = np.full(len(codes), None, dtype=object)
    for row, code in enumerate(codes.tolist()):
        if not np.isnan(code):
            values[row] = code if words is None else words[int(code)]
    return values


def _lengths(names: Sequence[Any], column: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the rows of each sequence, and what it is called."""
    begins = [row for row in range(len(names)) if row == 0 or names[row] != names[row - 1]]
    seen: dict[Any, int] = {}
    for row in begins:
        if names[row] is None:
            raise cv.DataError(f"column {column!r} of the sequences is empty in row {row}")
        if names[row] in seen:
            raise cv.DataError(
                f"sequence {names[row]} of column {column!r} begins in row {seen[names[row]]} and again in row "
                f"{row}: the rows of a sequence must follow each other; sort them, --sql 'SELECT * FROM data ORDER "
                f"BY ...'"
            )
        seen[names[row]] = row
    return np.diff([*begins, len(names)]), tuple(names[row] for row in begins)


class SequencesOfFile(Saved):
    """A saved hidden Markov model."""

    label = "state"

    def document(self) -> dict[str, Any]:
        """Return everything that a fit says, as JSON can hold it."""
        hmm = self.fitted
        return {
            **document_of(hmm),
            "emission": hmm.emission,
            "initial": [finite(value) for value in hmm.initial_.tolist()],
            "transition": [[finite(value) for value in row] for row in hmm.transition_.tolist()],
        }

    def print(self, console: Console) -> None:
        """Print what a hidden Markov model is: its states, how they follow each other, and why the fit ended."""
        hmm, about = self.fitted, self.about
        rows = f", {counted(about['rows'], 'row')}" if isinstance(about.get("rows"), int) else ""
        if isinstance(about.get("sequences"), int):
            rows += f" in {counted(about['sequences'], 'sequence')}"
        shape = f"{_EMISSIONS[hmm.emission]} rows"
        if hmm.emission == "gaussian" and hmm.covariance_type != "full":
            shape += f" with {hmm.covariance_type} covariances"
        say(console, f"hidden Markov model of {shape}, {counted(hmm.n_components_, 'state')}{rows}", "bold")
        say(console)
        print_components(console, hmm, what="state", share="share of rows")
        say(console)
        if hmm.n_components_ <= _MOST_STATES:
            say(console, "probability of the next state", "bold")
            order = np.argsort(-hmm.occupancy_, kind="stable").tolist()
            table = columns_table("from state", *(f"to {plain(str(k))}" for k in order), "steps it lasts")
            for k in order:
                stays = float(hmm.transition_[k, k])
                lasts = f"{1 / (1 - stays):.1f}" if stays < 1 else "for ever"
                table.add_row(str(k), *(f"{hmm.transition_[k, to]:.3f}" for to in order), lasts)
            console.print(table)
            say(console)
        print_end(console, hmm.posterior_, objective="ELBO", value=hmm.elbo_, n_iter=hmm.n_iter_)

    def _read(self, file: str | None, sql: str | None) -> Sequences:
        names, sequence = list(cv.report.column_names(self.fitted)), self.about.get("sequence")
        there = cv.scan(file, sql=sql).columns
        sequence = sequence if sequence in there else None
        if self.fitted.emission != "categorical" and sequence is None:
            table = read_for(self.fitted, self.path, file, sql)
            return Sequences(table.values, table.columns, np.array([len(table.values)]))
        return sequences_of(file, sql, names, sequence, self.fitted.emission)

    def data(self, file: str | None, sql: str | None) -> Any:
        found = self._read(file, sql)
        return {"X": found.named(), "lengths": found.lengths}

    @property
    def kind(self) -> str:
        return f"hidden Markov model of {_EMISSIONS[self.fitted.emission]} rows"

    def facts(self) -> dict[str, Any]:
        hmm = self.fitted
        return {
            **super().facts(),
            "n_components": hmm.n_components_,
            "covariance_type": hmm.covariance_type if hmm.emission == "gaussian" else None,
            "corrected": float(hmm.elbo_) + lgamma(hmm.n_components_ + 1),
        }

    def judged(self, file: str | None, sql: str | None) -> dict[str, float]:
        found = self._read(file, sql)
        return {"held_out": self.fitted.score(found.named(), lengths=found.lengths)}

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        self.refuse_level(
            level, "rows have a state and the probabilities of all; a forecast, by --ahead N, has some"
        )
        found, hmm = self._read(file, sql), self.fitted
        rows = found.named()
        shares = hmm.predict_proba(rows, found.lengths)
        columns: dict[str, Any] = {"state": hmm.predict(rows, found.lengths)}
        columns.update({f"probability_{k}": own for k, own in enumerate(shares.T)})
        return {**columns, "log_density": hmm.score_samples(rows, found.lengths)}

    def steps_ahead(self, file: str | None, sql: str | None, n_steps: int, level: float) -> dict[str, Any]:
        found, hmm, ahead = self._read(file, sql), self.fitted, n_steps
        n_sequences, rows = len(found.lengths), found.named()
        shares = hmm.forecast_proba(rows, ahead, found.lengths)
        told = hmm.forecast(rows, ahead, found.lengths)
        columns = {
            "sequence": np.repeat(np.array(found.names), ahead),
            "step": np.tile(np.arange(1, ahead + 1), n_sequences),
            **{f"probability_{k}": own for k, own in enumerate(shares.T)},
        }
        names = cv.report.column_names(hmm)
        if told.is_label:
            columns[names[0]] = np.array(told.names, dtype=str)[told.mean.argmax(axis=1)]
            for place, word in enumerate(told.names or ()):
                columns[f"{names[0]}_probability_{word}"] = told.mean[:, place]
            return columns
        lower, upper = told.interval(level)
        for place, name in enumerate(names):
            for word, values in (("mean", told.mean), ("sd", told.sd), ("lower", lower), ("upper", upper)):
                columns[f"{name}_{word}"] = values[:, place]
        return columns

    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        hmm, found = self.fitted, self._read(file, sql)
        values, lengths = hmm._sequences(found.named(), found.lengths)
        complete = complete_of([np.isnan(values)])
        parts = stretches_of(complete, lengths, n_rows, seed)
        chosen, lengths = np.concatenate(parts), [len(part) for part in parts]
        words = tuple(hmm.categories_) if hmm.emission == "categorical" else None
        categories = {} if words is None else {found.columns[0]: words}
        rows = cv.data.Table(values[chosen], found.columns, categories)

        def stated() -> tuple[Any, Any, dict[str, Any]]:
            own = {} if words is None else {"categories": words}
            fitted = again(hmm, seed, n_components=hmm.n_components_, **own).fit(rows, lengths=lengths)
            data = fitted._as_data({"X": rows, "lengths": lengths})
            return fitted.posterior_.model, data, as_fitted(fitted.posterior_)

        told = told_of(len(chosen), len(values), len(complete))
        return Checked(len(chosen), f"{told}; in {counted(len(parts), 'sequence')}", stated)
