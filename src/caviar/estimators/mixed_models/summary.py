"""The summary of a mixed model: common effects, spreads of the effects of groups, and the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._tables import beside, html_of, text_table
from ..._typing import Array
from ...posterior.pandas_tables import data_frame
from .design import COMMON
from .families import RESIDUAL, TAILS, THRESHOLDS
from .origins import figures_of
from .spreads import spread_of
from .statement import Block

_FEW_ROWS, _FEW_GROUPS = 20, 10
"""Rows beyond the common effects, and groups, up to which 95% intervals from the factors are about a twentieth or more
too narrow."""


@dataclass(frozen=True)
class MixedRow:
    """A row of the summary of a mixed model.

    Attributes
    ----------
    part
        ``"thresholds"``, ``"common effects"``, ``"standard deviations"``, ``"correlations"`` or ``"noise"``.
    name
        Name of the effect, or of what the number describes.
    mean, sd, lower, upper
        Mean, standard deviation, and ends of the central interval.
    """

    part: str
    name: str
    mean: float
    sd: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MixedSummary:
    """Tables of a fitted mixed model; it prints as text, and as HTML in a notebook.

    Attributes
    ----------
    title
        Lines about the fit.
    rows
        The rows, ordered by part.
    level
        Probability of the intervals.
    remark
        Where the intervals come from.
    units
        What the effects and their standard deviations are measured in, such as ``"in log odds"``.
    """

    title: tuple[str, ...]
    rows: tuple[MixedRow, ...]
    level: float
    remark: str
    units: str

    def to_frame(self) -> Any:
        """Return the numbers as a DataFrame of pandas."""
        names = ("part", "name", "mean", "sd", "lower", "upper")
        return data_frame({name: [getattr(row, name) for row in self.rows] for name in names})

    def _parts(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield the table of each part as text."""
        for part in dict.fromkeys(row.part for row in self.rows):
            table: list[tuple[str, ...]] = [(part, "mean", "sd", f"{100 * self.level:g}% interval")]
            table += [
                (row.name, beside(row.mean, row.sd), _said(row.sd), f"{row.lower:.4g} to {row.upper:.4g}")
                for row in self.rows
                if row.part == part
            ]
            yield table

    def __repr__(self) -> str:
        """Return the tables, as in a console."""
        return str(self)

    def __str__(self) -> str:
        """Return the tables."""
        tables = [text_table(own, left={0, 3}) for own in self._parts()]
        return "\n\n".join(["\n".join(self.title), *tables, *self._remarks()])

    def _remarks(self) -> list[str]:
        """Return what is said below the tables."""
        remarks = [self.remark] if self.remark else []
        if any(math.isinf(row.sd) for row in self.rows):
            remarks.append("No sd (–): with so few groups the posterior has no finite one; use the interval.")
        return remarks

    def _repr_html_(self) -> str:
        """Return the tables, every name escaped."""
        tables = (html_of("", own) for own in self._parts())
        parts = [html_of("\n".join(self.title)), *tables, html_of("", remarks=self._remarks())]
        return "\n".join(filter(None, parts))


def _said(sd: float) -> str:
    return "–" if math.isinf(sd) else f"{sd:.4g}"


def rows_of(
    posterior: Any,
    names: Sequence[str],
    centres: Mapping[str, Mapping[str, float]],
    blocks: Sequence[Block],
    level: float,
) -> Iterator[MixedRow]:
    """Yield the numbers of a mixed model."""
    own = figures_of(posterior, names, centres, level)
    figures = (np.asarray(array, dtype=float) for array in (own.mean, own.sd, own.lower, own.upper))
    for name, *numbers in zip(names, *figures, strict=True):
        yield MixedRow(COMMON, name, *map(float, numbers))
    spreads = {block.label: spread_of(posterior, block.precision) for block in blocks}
    for block in blocks:
        for name, numbers in zip(block.shown, spreads[block.label].sds(level), strict=True):
            yield MixedRow("standard deviations", f"{block.term.group}, {name}", *numbers)
    for block in blocks:
        for (i, j), numbers in spreads[block.label].correlations(level):
            name = f"{block.term.group}, {block.shown[i]} and {block.shown[j]}"
            yield MixedRow("correlations", name, *numbers)
    if RESIDUAL in posterior:
        (numbers,) = spread_of(posterior, RESIDUAL).sds(level)
        what = "scale" if TAILS in posterior else "standard deviation"
        yield MixedRow("noise", f"residual {what}", *numbers)
    if TAILS in posterior:
        (df,) = posterior.marginals(TAILS, level)
        yield MixedRow("noise", TAILS, *map(float, (df.mean, df.sd, df.lower, df.upper)))


AT_MODE = (
    "Standard deviations of thresholds and common effects are those of Laplace's approximation: from the information "
    "at the mode, the precisions of groups at their means."
)


def threshold_rows(
    posterior: Any, categories: Sequence[str], covariance: Array, level: float
) -> list[MixedRow]:
    """Return the thresholds between categories, with their standard deviations from a covariance."""
    names = [f"{one} | {other}" for one, other in pairwise(categories)]
    means = np.asarray(posterior[THRESHOLDS].mean)
    return [*_normal("thresholds", names, means, np.sqrt(np.diagonal(covariance)[: len(means)]), level)]


def with_thresholds(
    rows: Sequence[MixedRow], posterior: Any, categories: Sequence[str], covariance: Array, level: float
) -> tuple[MixedRow, ...]:
    """Return rows with the thresholds, and the common effects as wide as they are beside these."""
    common = [row for row in rows if row.part == COMMON]
    sds = np.sqrt(np.diagonal(covariance)[len(categories) - 1 :])
    wide = _normal(COMMON, [row.name for row in common], np.array([row.mean for row in common]), sds, level)
    others = (row for row in rows if row.part != COMMON)
    return (*threshold_rows(posterior, categories, covariance, level), *wide, *others)


def _normal(part: str, names: Sequence[str], means: Array, sds: Array, level: float) -> Iterator[MixedRow]:
    half = ndtri(0.5 + 0.5 * level)
    for name, mean, sd in zip(names, means, sds, strict=True):
        yield MixedRow(part, name, float(mean), float(sd), float(mean - half * sd), float(mean + half * sd))


def title_of(estimator: Any, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return lines about a fit."""
    posterior = estimator.posterior_
    groups = ", ".join(f"{size:,} of {name}" for name, size in sizes.items())
    chosen = "" if estimator.size is not None else ", which has the highest ELBO"
    size = "" if estimator.size_ is None else f", size {estimator.size_:.4g}{chosen}"
    return (
        f"{estimator.formula}, family {estimator.family}{size}",
        f"{estimator.n_rows_:,} rows{'; groups: ' if groups else ''}{groups}",
        f"ELBO {posterior.elbo:.3f} nats, {posterior.status.value} (iterations: {posterior.n_iter})",
    )


def remark_on_few(n_rows: int, groups: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence on predictions from few rows or groups; empty if both are many."""
    fewest = min(map(len, groups.values()))
    if n_rows > _FEW_ROWS and fewest > _FEW_GROUPS:
        return ""
    whose, few = (
        ("These intervals", "few rows") if n_rows <= _FEW_ROWS else ("Those of new groups", "few groups")
    )
    return (
        f"{whose} may be too narrow, because there are {few}: these predictions use the factors of the fit, and "
        "are not integrated over its precisions."
    )
