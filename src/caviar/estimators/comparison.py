"""The result of a comparison of mixtures: a table, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from .._tables import html_of, text_table
from .bayesian_gaussian_mixture import BayesianGaussianMixture
from .mixed_mixture import MixedMixture


@dataclass(frozen=True)
class ComparisonRow:
    """One fit of a comparison.

    Attributes
    ----------
    n_components
        K; where it was ``"auto"``, the number that was found.
    covariance_type
        What the components share; None of mixtures of mixed columns.
    elbo
        ELBO of all rows, a lower bound of the log evidence, in nats.
    corrected
        ``elbo`` + log K!, in nats; see :func:`compare_mixtures`.
    n_iter, converged
        Number of iterations of the best start, without the passes that find it, and whether the fit converged.
    seconds
        Seconds that all starts took together.
    held_out
        Mean log density of the held-out rows, in nats per row, under a fit to the other rows; None if no rows were held
        out.
    """

    n_components: int
    covariance_type: str | None
    elbo: float
    corrected: float
    n_iter: int
    converged: bool
    seconds: float
    held_out: float | None = None


_NAMES = tuple(entry.name for entry in fields(ComparisonRow))


@dataclass(frozen=True)
class MixtureComparison:
    """Fits of several mixtures, as :func:`caviar.compare_mixtures` returns them. It prints as a table.

    Attributes
    ----------
    rows
        One row for each fit, in the order of the fits.
    best
        The fitted estimator with the highest ELBO.
    best_row
        The row of the best estimator.
    """

    rows: tuple[ComparisonRow, ...]
    best: BayesianGaussianMixture | MixedMixture = field(repr=False)
    best_row: ComparisonRow

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table by column, name -> list with an entry for each row, which data frames accept."""
        return {name: [getattr(row, name) for row in self.rows] for name in _NAMES}

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the header and the rows as text; the last column marks the best."""
        has_held_out = any(row.held_out is not None for row in self.rows)
        has_kinds = any(row.covariance_type is not None for row in self.rows)
        held_out = ("held out per row",) if has_held_out else ()
        yield (
            "K",
            *(("covariance",) if has_kinds else ()),
            "ELBO",
            "ELBO + log K!",
            "iterations",
            "seconds",
            *held_out,
            "",
        )
        for row in self.rows:
            held_out = ("" if row.held_out is None else f"{row.held_out:.4f}",) if has_held_out else ()
            yield (
                str(row.n_components),
                *((str(row.covariance_type),) if has_kinds else ()),
                f"{row.elbo:.2f}",
                f"{row.corrected:.2f}",
                str(row.n_iter) if row.converged else f"{row.n_iter}, not converged",
                f"{row.seconds:.2f}",
                *held_out,
                "best" if row is self.best_row else "",
            )

    def __str__(self) -> str:
        """Return the table."""
        cells = list(self._cells())
        return text_table(cells, left={cells[0].index("ELBO") - 1, len(cells[0]) - 1} - {0})

    def __repr__(self) -> str:
        """Return the table."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the table, for a notebook; the best row is bold."""
        best = {number for number, row in enumerate(self.rows, 1) if row is self.best_row}
        return html_of("", list(self._cells()), bold=best)
