"""Summaries of factors for people: mean, standard deviation and central credible interval of every entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv, ndtri, stdtrit

from .. import families
from .._typing import Array
from ..engine.binding.clamped.factor import ClampedFactor
from ..numerics.linalg import inverse

__all__ = ["MEAN_FIELD", "Marginals", "Summary", "SummaryRow", "marginals", "summary_of"]

MEAN_FIELD = "Intervals are those of mean field, and may be too narrow."
"""What is said of intervals wherever they are shown, except those of an exact posterior."""

_DRAWS = 4000
"""Of a factor whose quantiles have no closed form; then an end is known to some percent of the interval's width."""


@dataclass(frozen=True)
class SummaryRow:
    """One entry of a factor; NaN where its family gives no such figure.

    Attributes
    ----------
    variable
        Name; of a joint factor with ``.mean`` or ``.precision``.
    index
        Where the entry stands: the plates, then the axes of one value.
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
    """Rows of a posterior by variable; prints as a table, and as HTML in a notebook.

    Attributes
    ----------
    title
        One line about the fit.
    rows
        Those that are shown.
    left_out
        Name of a variable -> entries beyond those that are shown.
    level
        Of the intervals.
    restarts
        Where several starts ended; empty after one.
    remark
        What is to be known of the intervals; empty where there are none, or they are exact.
    """

    title: str
    rows: tuple[SummaryRow, ...]
    left_out: Mapping[str, int]
    level: float
    restarts: str = ""
    remark: str = ""

    def _heading(self) -> list[str]:
        return [line for line in (self.title, self.restarts) if line]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the header and the rows as text."""
        yield ("variable", "at", "mean", "sd", f"{100 * self.level:g}% interval")
        for number, row in enumerate(self.rows):
            interval = "" if np.isnan(row.lower) else f"{row.lower:.4g} to {row.upper:.4g}"
            yield (
                row.variable,
                row.index,
                f"{row.mean:.4g}",
                "" if np.isnan(row.sd) else f"{row.sd:.4g}",
                interval,
            )
            last = number + 1 == len(self.rows) or self.rows[number + 1].variable != row.variable
            if last and row.variable in self.left_out:
                yield (row.variable, f"... {self.left_out[row.variable]} more", "", "", "")

    def __str__(self) -> str:
        """Return the table."""
        cells = list(self._cells())
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        lines = [
            f"{name:<{widths[0]}}  {at:<{widths[1]}}  {mean:>{widths[2]}}  {sd:>{widths[3]}}  {interval}".rstrip()
            for name, at, mean, sd, interval in cells
        ]
        return "\n".join([*self._heading(), *lines, *filter(None, [self.remark])])

    def _repr_html_(self) -> str:
        """Return the table, every name escaped."""
        header, *rows = (tuple(escape(cell) for cell in row) for row in self._cells())
        lines = [f"<p>{'<br>'.join(map(escape, self._heading()))}</p>", "<table>"]
        lines.append("<tr>" + "".join(f"<th>{cell}</th>" for cell in header) + "</tr>")
        lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        remark = [f"<p>{escape(self.remark)}</p>"] if self.remark else []
        return "\n".join([*lines, "</table>", *remark])


@dataclass(frozen=True)
class Marginals:
    """Figures of every entry of a part of a value, each of shape (plates..., event...).

    What is shared along a tied plate, the last, lacks it. Points have a mean only; an end is NaN for an entry without a
    closed form.
    """

    mean: Array
    sd: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    part: str = ""
    is_shared: bool = False


def summary_of(
    title: str,
    factors: Mapping[str, Any],
    plates: Mapping[str, Sequence[str]],
    *,
    restarts: str = "",
    level: float,
    max_rows: int | None,
    remark: str,
) -> Summary:
    """Return the summary of factors by name, with at most ``max_rows`` rows for each part of each.

    Parameters
    ----------
    title
        Of the table.
    factors
        Name -> distribution or point mass.
    plates
        Name -> names of the plates.
    restarts
        Where several starts ended.
    level
        Of the intervals.
    max_rows
        None for all.
    remark
        On the intervals, if there are any.
    """
    rows: list[SummaryRow] = []
    left_out: dict[str, int] = {}
    for name, factor in factors.items():
        for part in marginals(factor, level):
            own = plates[name][:-1] if part.is_shared else plates[name]
            entries = list(_entries(name, own, part, max_rows))
            rows += entries
            total = _n_entries(part, len(own))
            if total > len(entries):
                left_out[name + part.part] = total - len(entries)
    has_intervals = any(not np.isnan(row.lower) for row in rows)
    return Summary(title, tuple(rows), left_out, level, restarts, remark if has_intervals else "")


def _n_entries(part: Marginals, n_plates: int) -> int:
    shape = np.shape(part.mean)
    batch, event = shape[:n_plates], shape[n_plates:]
    size = event[0] * (event[0] + 1) // 2 if len(event) == 2 else int(np.prod(event, dtype=int))
    return int(np.prod(batch, dtype=int)) * size


def _entries(name: str, plates: Sequence[str], part: Marginals, max_rows: int | None) -> Iterator[SummaryRow]:
    """Yield the first entries of a part, of a symmetric matrix those of its lower triangle."""
    n_rows = 0
    for index in np.ndindex(np.shape(part.mean)):
        event = index[len(plates) :]
        if len(event) == 2 and event[1] > event[0]:
            continue
        if n_rows == max_rows:
            return
        n_rows += 1
        where = [f"{plate} {i}" for plate, i in zip(plates, index, strict=False)]
        where += [f"[{', '.join(str(i) for i in event)}]"] if event else []
        figures = (
            float("nan") if array is None else float(array[index])
            for array in (part.mean, part.sd, part.lower, part.upper)
        )
        yield SummaryRow(name + part.part, ", ".join(where), *figures)


def marginals(factor: Any, level: float) -> list[Marginals]:
    """Return the figures of the entries of a factor: one part, or location and precision of a joint one.

    Parameters
    ----------
    factor
        Distribution or point mass.
    level
        Of the central credible intervals.
    """
    if isinstance(factor, ClampedFactor):
        known = marginals(factor.known, level)
        return [
            _laid_out(factor, *pair) for pair in zip(marginals(factor.unknown, level), known, strict=True)
        ]
    reader = _READERS.get(type(factor))
    if reader is not None:
        return reader(factor, (0.5 - level / 2, 0.5 + level / 2))
    # a point mass, or a family that gives only its mean
    if isinstance(factor.mean, tuple):
        mean, precision = (np.asarray(part) for part in factor.mean)
        tied = factor.family in (families.TiedNormalGamma, families.TiedNormalWishart)
        return [Marginals(mean, part=".mean"), Marginals(precision, part=".precision", is_shared=tied)]
    return [Marginals(np.asarray(factor.mean))]


def _laid_out(factor: ClampedFactor, unknown: Marginals, known: Marginals) -> Marginals:
    """Return figures of all repetitions of a factor; of those that are known the value alone."""
    sd, lower, upper = (
        None if array is None else factor.laid_out(array, np.nan)
        for array in (unknown.sd, unknown.lower, unknown.upper)
    )
    return Marginals(factor.laid_out(unknown.mean, known.mean), sd, lower, upper, unknown.part)


Ends = tuple[float, float]


def _student(mean: Array, scale: Array, df: Array, sd: Array, ends: Ends) -> Marginals:
    lower, upper = (mean + scale * stdtrit(df, end) for end in ends)
    return Marginals(mean, sd, lower, upper, ".mean")


def _normal(q: families.Normal, ends: Ends) -> list[Marginals]:
    sd = np.sqrt(q.variance)
    lower, upper = (q.mean + sd * ndtri(end) for end in ends)
    return [Marginals(q.mean, sd, lower, upper)]


def _multivariate_normal(q: families.MultivariateNormal, ends: Ends) -> list[Marginals]:
    sd = np.sqrt(np.diagonal(q.covariance, axis1=-2, axis2=-1))
    lower, upper = (q.mean + sd * ndtri(end) for end in ends)
    return [Marginals(q.mean, sd, lower, upper)]


def _gamma(q: families.Gamma, ends: Ends, part: str = "") -> list[Marginals]:
    lower, upper = (gammaincinv(q.shape, end) / q.rate for end in ends)
    return [Marginals(q.mean, np.sqrt(q.variance), lower, upper, part)]


def _wishart(q: families.Wishart, ends: Ends, part: str = "") -> list[Marginals]:
    """Return the marginals; on the diagonal X_ii / (B^-1)_ii is chi-squared with df degrees of freedom."""
    diagonal = np.eye(q.mean.shape[-1], dtype=bool)
    df = q.df[..., None, None]
    scale = q.mean / df
    lower, upper = (np.where(diagonal, 2 * gammaincinv(df / 2, end) * scale, np.nan) for end in ends)
    return [Marginals(q.mean, np.sqrt(q.variance), lower, upper, part)]


def _normal_gamma(q: families.NormalGamma, ends: Ends) -> list[Marginals]:
    scale = np.sqrt(q.rate / (q.mean_precision * q.shape))
    location = _student(q.mean, scale, 2 * q.shape, np.sqrt(q.variance), ends)
    return [location, *_gamma(q.precision_marginal, ends, ".precision")]


def _multivariate_normal_gamma(q: families.MultivariateNormalGamma, ends: Ends) -> list[Marginals]:
    shape, rate = q.shape[..., None], q.rate[..., None]
    relative = inverse(q.mean_precision)
    scale = np.sqrt(rate / shape * np.diagonal(relative, axis1=-2, axis2=-1))
    sd = np.sqrt(np.diagonal(q.covariance, axis1=-2, axis2=-1))
    return [_student(q.mean, scale, 2 * shape, sd, ends), *_gamma(q.precision_marginal, ends, ".precision")]


def _normal_wishart(q: families.NormalWishart, ends: Ends) -> list[Marginals]:
    df = (q.df - q.mean.shape[-1] + 1)[..., None]
    scale = np.sqrt(np.diagonal(q.inverse_scale, axis1=-2, axis2=-1) / (q.mean_precision[..., None] * df))
    sd = np.sqrt(np.diagonal(q.covariance, axis1=-2, axis2=-1))
    return [_student(q.mean, scale, df, sd, ends), *_wishart(q.precision_marginal, ends, ".precision")]


def _tied(q: families.TiedNormalGamma | families.TiedNormalWishart, ends: Ends) -> list[Marginals]:
    """Return the marginals of each location as by itself, and of the precision once for all."""
    (locations, *_), (precision, *_) = (
        _marginals_of(q.marginals, ends),
        _marginals_of(q.precision_marginal, ends),
    )
    return [locations, replace(precision, part=".precision", is_shared=True)]


def _marginals_of(q: Any, ends: Ends) -> list[Marginals]:
    return _READERS[type(q)](q, ends)


def _beta(q: families.Beta, ends: Ends) -> list[Marginals]:
    lower, upper = (betaincinv(q.a, q.b, end) for end in ends)
    return [Marginals(q.mean, np.sqrt(q.variance), lower, upper)]


def _dirichlet(q: families.Dirichlet, ends: Ends) -> list[Marginals]:
    others = q.concentration.sum(axis=-1, keepdims=True) - q.concentration
    if others.shape[-1] == 1:
        return [Marginals(q.mean, np.zeros_like(q.mean), q.mean, q.mean)]
    lower, upper = (betaincinv(q.concentration, others, end) for end in ends)
    return [Marginals(q.mean, np.sqrt(q.variance), lower, upper)]


def _stick_breaking(q: families.StickBreaking, ends: Ends) -> list[Marginals]:
    """Return the marginals; their ends come from draws, the same at each call."""
    lower, upper = np.quantile(q.sample(_DRAWS, np.random.default_rng(0)), ends, axis=0)
    return [Marginals(q.mean, np.sqrt(q.variance), lower, upper)]


_READERS: Mapping[type, Callable[[Any, Ends], list[Marginals]]] = {
    families.Normal: _normal,
    families.MultivariateNormal: _multivariate_normal,
    families.Gamma: _gamma,
    families.Wishart: _wishart,
    families.NormalGamma: _normal_gamma,
    families.MultivariateNormalGamma: _multivariate_normal_gamma,
    families.NormalWishart: _normal_wishart,
    families.TiedNormalGamma: _tied,
    families.TiedNormalWishart: _tied,
    families.Beta: _beta,
    families.Dirichlet: _dirichlet,
    families.StickBreaking: _stick_breaking,
}
