"""Summaries of factors for people: mean, standard deviation and central credible interval of every entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from .._tables import beside, html_of, text_table
from ..families.base.marginals import Ends
from .figures import figures_of
from .pandas_tables import data_frame
from .uncertainty.known import Uncertainty


@dataclass(frozen=True)
class SummaryRow:
    """One entry of a factor; NaN where its family gives no such figure.

    Attributes
    ----------
    variable
        Name; of a joint factor with ``.mean`` or ``.precision``.
    index
        Place of the entry: with names, as ``"slope, school Lincoln"``; with numbers the plates, then the axes of one
        value, as ``"school 1, [0]"``.
    mean, sd, lower, upper
        Moments, and ends of the central credible interval.
    """

    variable: str
    index: str
    mean: float
    sd: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Summary:
    """Table of a posterior by variable; it prints as a table, and as HTML in a notebook.

    Attributes
    ----------
    title
        One line about the fit.
    rows
        The rows that are shown.
    left_out
        Name of a variable -> number of entries that are not shown.
    level
        Probability of the intervals.
    restarts
        Where the starts ended; empty for a single start.
    remark
        The source of the intervals; empty if there are no intervals, or they are exact.
    on_factors
        Which variables that are added up have independent factors because a shared one is large; empty if none.
    """

    title: str
    rows: tuple[SummaryRow, ...]
    left_out: Mapping[str, int]
    level: float
    restarts: str = ""
    remark: str = ""
    on_factors: str = ""

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame: variable, at, mean, sd, lower and upper.

        The DataFrame has the rows that are shown; ``posterior.summary(max_rows=None)`` shows all.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {
            "variable": "variable",
            "at": "index",
            **{figure: figure for figure in ("mean", "sd", "lower", "upper")},
        }
        return data_frame({name: [getattr(row, own) for row in self.rows] for name, own in columns.items()})

    def _heading(self) -> list[str]:
        return [line for line in (self.title, self.restarts) if line]

    @property
    def _remarks(self) -> list[str]:
        return [remark for remark in (self.remark, self.on_factors) if remark]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the header and the rows as text."""
        yield ("variable", "at", "mean", "sd", f"{100 * self.level:g}% interval")
        for number, row in enumerate(self.rows):
            # what is known has neither
            interval = "" if np.isnan(row.lower) or row.sd == 0 else f"{row.lower:.4g} to {row.upper:.4g}"
            yield (
                row.variable,
                row.index,
                beside(row.mean, row.sd),
                "" if np.isnan(row.sd) or row.sd == 0 else f"{row.sd:.4g}",
                interval,
            )
            last = number + 1 == len(self.rows) or self.rows[number + 1].variable != row.variable
            if last and row.variable in self.left_out:
                yield (row.variable, f"... {self.left_out[row.variable]} more", "", "", "")

    def __repr__(self) -> str:
        """Return the table, as in a console."""
        return str(self)

    def __str__(self) -> str:
        """Return the table."""
        table = text_table(list(self._cells()), left={0, 1, 4})
        return "\n".join([*self._heading(), table, *self._remarks])

    def _repr_html_(self) -> str:
        """Return the table, every name escaped."""
        return html_of("\n".join(self._heading()), list(self._cells()), self._remarks)


def summary_of(
    posterior: Any,
    ends: Ends,
    max_rows: int | None,
    uncertainty: Uncertainty,
    remark: str | None = None,
) -> Summary:
    """Return the summary of a posterior, with at most ``max_rows`` rows for each part of each factor; None for all.

    Parameters
    ----------
    ends
        Probabilities below the ends of the intervals.
    uncertainty
        Where standard deviations and intervals come from.
    remark
        Sentence on the intervals; by default that of the uncertainty.
    """
    rows: list[SummaryRow] = []
    left_out: dict[str, int] = {}
    for name in posterior.stated_names:
        for own in figures_of(posterior, name, uncertainty.marginals(name, posterior[name], ends)):
            places = list(islice(own.places(), max_rows))
            rows += [SummaryRow(own.name, own.label(index), *own.numbers(index)) for index in places]
            if own.n_entries > len(places):
                left_out[own.name] = own.n_entries - len(places)
    title = f"ELBO {posterior.elbo:.6f} nats, {posterior.status.value} (iterations: {posterior.n_iter})"
    has_intervals = any(not np.isnan(row.lower) for row in rows)
    told = uncertainty.remark if remark is None else remark
    level = round(ends[1] - ends[0], 12)
    remark = told if has_intervals else ""
    return Summary(
        title, tuple(rows), left_out, level, posterior.told_ends, remark, posterior._evaluator.on_factors
    )
