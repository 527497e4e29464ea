"""Regression lines: the expected response along a column, with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray
from ..numerics.arguments import require_share
from .parts.axes import in_style, ink, new_axes, shade, stroke
from .parts.colours import colours_of, line_of, marker_of
from .parts.covariates import Covariates, covariates_of, levels_of
from .parts.curves import Curve, Draws
from .parts.mixture import thinned

_MOST_LINES = 8


@in_style
def regression(
    fitted: Any,
    data: Any,
    x: str | None = None,
    *,
    by: str | None = None,
    only: Sequence[Any] | None = None,
    variable: str | None = None,
    level: float = 0.95,
    n_draws: int = 200,
    seed: int | np.random.Generator | None = 0,
    max_points: int = 4000,
    ax: Axes | None = None,
) -> Axes:
    """Return a plot of regression lines: the expected response as a function of a known column, and the rows.

    The inner band is the interval of the expected response, the outer band that of a new row. All other columns are at
    their means or most common levels. For a mixed model the line is that of an average group, and the outer band that
    of a row in a new group, unless ``by`` names the column of the groups.

    Parameters
    ----------
    fitted
        A fitted :class:`caviar.MixedModel`, or the posterior of a model with known columns (``cv.Data``).
    data
        Rows, as for the fit: a table for a mixed model.
    x
        Name of the numeric column on the horizontal axis: of a table, or of a ``cv.Data``. An entry of a vector ``X``
        has the name of its column, or ``"X 1"``. It is optional if there is only one.
    by
        Name of a column; a line is drawn for each of its levels, or for three quantiles of its numbers.
    only
        Levels of ``by`` to draw, at most eight.
    variable
        Name of the observed variable; optional if there is only one.
    level
        Probability of both bands.
    n_draws, seed
        Number of draws of the parameters for the inner band, and their seed.
    max_points
        Largest number of rows that are drawn; from more rows a random sample is drawn.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        For a binary response the line is the probability of a 1; for a binomial, that of a success.

    Raises
    ------
    ParameterError
        If a column does not exist, or ``by`` has too many levels.

    Examples
    --------
    >>> import caviar as cv
    >>> sleep = cv.datasets.load_sleepstudy()
    >>> table = {name: sleep.column(name) for name in sleep.columns}
    >>> model = cv.MixedModel("reaction ~ days + (days | subject)").fit(table)
    >>> ax = cv.plot.regression(model, table, "days")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['row', 'expected, 95% interval', 'new row, 95% interval']
    """
    level = require_share("level", level)
    found = covariates_of(fitted, data, variable)
    name = found.require(x, "x")
    if found.columns[name].levels is not None:
        raise ParameterError(
            f"'{name}' is a column of categories; caviar.plot.partial_effects draws it, or take it for by="
        )
    draws = Draws.of(found, n_draws, level, seed)
    ax = new_axes(ax, (6.0, 4.0))
    if by is None:
        points = np.arange(len(found.observed))
        _draw_points(ax, found, name, points, 0, "row", max_points)
        grid = found.columns[name].grid()
        _draw_curve(ax, grid, draws.curves([{name: grid}])[0], 0, f"expected, {level:.0%} interval", level)
    else:
        _draw_lines(ax, found, name, found.require(by, "by"), only, draws, max_points)
    ax.set_xlabel(name)
    share = found.posterior.predict(found.rows({name: found.columns[name].grid()[:1]}))[found.response]
    is_probability = share.by_moments is not None and share.by_moments.is_binary
    of_numbers = f"{found.response}, share of trials" if found.is_share else found.response
    ax.set_ylabel(f"probability of {found.response} = 1" if is_probability else of_numbers)
    ax.set_title(f"Expected {found.response} by {name}" + ("" if by is None else f" and {by}"))
    ax.legend(fontsize="small")
    return ax


def _draw_lines(
    ax: Axes,
    found: Covariates,
    name: str,
    by: str,
    only: Sequence[Any] | None,
    draws: Draws,
    max_points: int,
) -> None:
    """Draw a line for each level of a column, or for quantiles of its numbers."""
    column = found.columns[by]
    levels = levels_of(column, only, _MOST_LINES, "by")
    grid = found.columns[name].grid()
    if column.levels is None:
        # each row belongs to the nearest of the lines
        places = np.abs(np.subtract.outer(column.values, levels)).argmin(axis=1)
    else:
        places = np.array([levels.index(own) if own in levels else -1 for own in column.values])
    dtype = np.float64 if column.levels is None else object
    curves = draws.curves([{name: grid, by: np.full(len(grid), own, dtype=dtype)} for own in levels])
    for number, (own, curve) in enumerate(zip(levels, curves, strict=True)):
        rows = places == number
        label = str(own) if column.levels is not None else f"{by} = {own:.4g}"
        _draw_points(ax, found, name, np.flatnonzero(rows), number, "_", max_points // len(levels))
        _draw_curve(ax, grid, curve, number, label, None)


def _draw_points(
    ax: Axes, found: Covariates, name: str, rows: AnyArray, number: int, label: str, most: int
) -> None:
    rows = thinned(rows, max(most, 1))
    colour = shade(ax, colours_of(number + 1)[number])
    alpha = float(np.clip(12 / np.sqrt(max(len(rows), 1)), 0.15, 0.65))
    x, y = found.columns[name].values[rows], found.observed[rows]
    ax.plot(x, y, marker_of(number), ms=3.8, mew=0, color=tuple(colour), alpha=alpha, label=label, zorder=2)


def _draw_curve(ax: Axes, grid: AnyArray, curve: Curve, number: int, label: str, level: float | None) -> None:
    """Draw the expected response with its band, and where a level is given the band of a new row."""
    colour = colours_of(number + 1)[number]
    line = ink() if level is not None else stroke(ax, colour)
    face = (*shade(ax, colour), 0.35)
    ax.fill_between(grid, curve.lower, curve.upper, color=face, lw=0, zorder=3)
    ax.plot(grid, curve.mean, color=line, lw=1.8, ls=line_of(number), label=label, zorder=4)
    if level is None or curve.new_lower is None or curve.new_upper is None:
        return
    edge, style = stroke(ax, colour), (0, (4, 2))
    ax.plot(
        grid, curve.new_lower, color=edge, lw=1.1, ls=style, zorder=3, label=f"new row, {level:.0%} interval"
    )
    ax.plot(grid, curve.new_upper, color=edge, lw=1.1, ls=style, zorder=3)
