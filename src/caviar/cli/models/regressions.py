"""Mixed models: regressions with effects of groups, and what they say of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

import caviar as cv
from caviar.files.naming import listed

from ..speaking.outputs import say, standard_error
from ..speaking.results import finite, objective_document
from ..speaking.wording import in_options, status_in_options
from .checked import Checked, again, as_fitted, complete_of, some_of, told_of
from .saved import LEVEL, Saved

_NO_INTERVAL = ("bernoulli", "probit")
"""Families of 0 and 1: the mean, a probability, says all."""


class RegressionOfFile(Saved):
    """A saved mixed model."""

    def document(self) -> dict[str, Any]:
        """Return everything that a fit says, as JSON can hold it."""
        model = self.fitted
        summary = model.summary(level=0.95)
        figures = ("mean", "sd", "lower", "upper")
        return {
            "model": type(model).__name__,
            **self.about,
            **objective_document(model.posterior_),
            "formula": model.formula,
            "family": model.family,
            "groups": {name: len(own) for name, own in model.groups_.items()},
            "entries": [
                {"part": row.part, "name": row.name, **{own: finite(getattr(row, own)) for own in figures}}
                for row in summary.rows
            ],
            "interval_remark": in_options(summary.remark),
        }

    def print(self, console: Console) -> None:
        """Print the common effects, the spreads of the effects of groups, and the noise."""
        say(console, in_options(str(self.fitted.summary(level=0.95))))
        say(console)
        say(console, status_in_options(self.fitted.posterior_.status))

    def data(self, file: str | None, sql: str | None) -> Any:
        return cv.data.read_columns(file, sql=sql)

    @property
    def kind(self) -> str:
        return f"mixed model {self.fitted.formula}"

    def explained(self) -> list[str]:
        return [self._response]

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        """Return mean, standard deviation and interval of the response of each row; of 0 and 1 the probability.

        Of ordered categories the likeliest one and the probabilities of all.
        """
        if self.fitted.categories_ or self.fitted.family in _NO_INTERVAL:
            self.refuse_level(level, "a probability says all of a response that is a category")
        table = self.data(file, sql)
        found = self._predicted(table, level)
        if not quiet:
            self._tell_new_groups(table)
        return found

    def _predicted(self, table: Any, level: float | None) -> dict[str, Any]:
        name = self._response
        if self.fitted.categories_:
            shares = self.fitted.predict_proba(table)
            most = shares.to_numpy().argmax(axis=1)
            likely = {f"{name}_prediction": np.array(self.fitted.categories_, dtype=object)[most]}
            return likely | {f"{name}_{own}": shares[own].to_numpy() for own in self.fitted.categories_}
        told = self.fitted.predict(table)
        columns = {f"{name}_mean": told.mean, f"{name}_sd": told.sd}
        if self.fitted.family not in _NO_INTERVAL:
            columns[f"{name}_lower"], columns[f"{name}_upper"] = told.interval(level or LEVEL)
        return columns

    def draws(self, data: str | None, n: int | None, seed: int, *, with_component: bool) -> dict[str, Any]:
        """Return a drawn response for each row of DATA, beside its columns."""
        if data is None:
            raise cv.DataError(
                "the rows of a mixed model have known columns: give them as DATA, and as many rows are drawn: caviar "
                "sample MODEL DATA -o new.csv"
            )
        self.refuse_number(n)
        table = self.data(data, None)
        known = {name: table.column(name) for name in table.column_names if name != self._response}
        if self.fitted.categories_:
            shares = self.fitted.predict_proba(table).to_numpy().cumsum(axis=1)
            uniform = np.random.default_rng(seed).random(len(shares))[:, None]
            places = np.minimum((uniform >= shares).sum(axis=1), shares.shape[1] - 1)
            return {**known, self._response: np.array(self.fitted.categories_, dtype=object)[places]}
        drawn = self.fitted.predict(table).sample(1, seed)[0]
        return {**known, self._response: drawn}

    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        model, table = self.fitted, self.data(file, sql)
        trials = [name for name in model._formula.trials if not name.isdigit()]
        names = dict.fromkeys([self._response, *trials, *sorted(model._encoding.read)])
        absent = [name for name in names if name not in table.column_names]
        if absent:
            there = listed(table.column_names)
            which = f"column{'s' * (len(absent) > 1)} {listed(absent)}"
            raise cv.DataError(f"the data lack {which} of the formula; they have {there}")
        complete = complete_of([np.array(table.column(name).is_null(nan_is_null=True)) for name in names])
        chosen = some_of(complete, n_rows, seed)
        rows = table.take(chosen)
        size = {} if model.size_ is None else {"size": model.size_}

        def stated() -> tuple[Any, Any, dict[str, Any]]:
            fitted = again(model, seed, **size).fit(rows)
            return fitted.posterior_.model, fitted._as_data(rows), as_fitted(fitted.posterior_)

        return Checked(len(chosen), told_of(len(chosen), table.num_rows, len(complete)), stated)

    def _tell_new_groups(self, table: Any) -> None:
        """Say which groups the fit has not seen; their effects are averaged over the population of groups."""
        for name, new in self.fitted._unseen_groups(table).items():
            which = f"{name} {listed(new)}"
            say(standard_error(), f"groups that the fit has not seen, averaged over all groups: {which}")

    @property
    def _response(self) -> str:
        """The name of the column that is explained."""
        return next(leaf.name for leaf in self.fitted.posterior_.model.leaves)
