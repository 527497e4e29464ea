"""Rows and components of a mixture in every pair of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.arguments import require_share
from ._pair import draw_curves, draw_pair, keys
from .parts.axes import BAR_EDGES, BARS, headline, hide_frame, in_style, ink, new_grid, paper, stroke
from .parts.colours import line_of, marker_of
from .parts.mixture import Mixture, mixture_of, rows_of, thinned

_MOST_COLUMNS = 8
_MOST_KEYS = 10
_FEWEST_ROWS = 20
"""Of fewer rows none is too far to be drawn."""


@in_style
def pairs(
    fitted: Any,
    X: Any,
    *,
    columns: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    max_points: int = 4000,
    hexagons: bool | None = None,
    robust: bool = True,
    axes: Any = None,
) -> AnyArray:
    r"""Return a scatter-plot matrix of the rows with the components of a fitted mixture of Gaussians.

    The diagonal has a histogram of each column and the predictive density, divided among the components. Below it are
    the rows, with two ellipses for each component. The outline contains its rows with probability ``level`` if they are
    Normal, :math:`(x - m_k)' \Sigma_k^{-1} (x - m_k) \le -2 \log(1 - \text{level})`. The small filled ellipse contains
    its mean under the posterior; a cross is a point estimate.

    Parameters
    ----------
    fitted
        A fitted mixture of Gaussians with any covariance structure.
    X
        Rows, shape (N, D), or a table with the columns of the fit. Missing entries are left out.
    columns
        Columns to draw, by number or name; by default all.
    names
        Labels of the axes for all D columns, with units; by default the names of the columns in the fit.
    level
        Probability of the ellipses.
    max_points
        Largest number of rows that are drawn; from more rows a random sample is drawn.
    hexagons
        Whether to draw the counts of all rows in hexagons instead; by default for more than 20 times ``max_points``
        rows.
    robust
        Whether axes are limited to the components and nearly all rows; outliers, and components that are wider than
        the data, then do not compress the plot. Arrows at the edge mark rows beyond it, and a label gives their number.
    axes
        Axes to draw into, columns x columns; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (columns, columns); those above the diagonal are hidden.

    Raises
    ------
    ParameterError
        If ``fitted`` is not a fitted mixture, a column does not exist, or there are more than eight columns to draw.
    DataError
        If the rows have other columns than the fit.

    Examples
    --------
    >>> import caviar as cv
    >>> faithful = cv.datasets.load_faithful()
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(faithful.values)
    >>> axes = cv.plot.pairs(mixture, faithful.values, names=["eruption (min)", "wait (min)"])
    >>> print(axes.shape, axes[1, 0].get_xlabel(), axes[1, 0].get_ylabel())
    (2, 2) eruption (min) wait (min)
    """
    level = require_share("level", level)
    mixture = mixture_of(fitted, names)
    rows = rows_of(mixture, X)
    shown = _chosen(mixture, columns)
    size = len(shown)
    side = (3.0 if size == 2 else 2.2 if size <= 4 else 1.75) * size
    grid = new_grid(axes, (size, size), (max(side, 5.6), max(side, 5.0)), sharex="col")
    draw_pairs(
        grid, mixture, rows, shown, level=level, max_points=max_points, hexagons=hexagons, robust=robust
    )
    if axes is None:
        say_aside(grid, mixture, level)
        headline(grid[0, 0], "Rows and components in pairs of columns")
        grid[0, 0].figure.align_ylabels(grid[:, 0])
    else:
        grid[-1, 0].legend(handles=keys(mixture, level), loc="best", fontsize="small")
    return grid


def draw_pairs(
    grid: AnyArray,
    mixture: Mixture,
    rows: Array,
    shown: Sequence[int],
    *,
    level: float,
    max_points: int,
    hexagons: bool | None = None,
    robust: bool = True,
) -> None:
    """Draw columns into axes, (columns, columns)."""
    in_hexagons = len(rows) > 20 * max_points if hexagons is None else hexagons
    points = rows if in_hexagons else thinned(rows, max_points)
    shares = None if in_hexagons else mixture.responsibilities(points)
    ends = [_ends(mixture, rows[:, column], column, level) if robust else None for column in shown]
    numbered = len(shown) <= 4 and len(mixture.drawn) <= _MOST_KEYS
    for i, row in enumerate(shown):
        for j, column in enumerate(shown):
            if j > i:
                grid[i, j].set_visible(False)
            elif i == j:
                _draw_column(grid[i, j], mixture, rows, row, ends[i])
            else:
                draw_pair(grid[i, j], mixture, points, shares, (column, row), level=level, numbered=numbered)
    _align(grid)
    if robust:
        _leave_out_far_rows(grid, rows, shown, ends)
    _label(grid, [mixture.names[column] for column in shown])


def _align(grid: AnyArray) -> None:
    """Give all axes of a column one range of x, and all pairs of a row one range of y."""
    for own in range(len(grid)):
        below = grid[own:, own]
        low, high = np.transpose([ax.get_xlim() for ax in below])
        for ax in below:
            ax.set_xlim(low.min(), high.max())
        beside = grid[own, :own]
        if len(beside):
            low, high = np.transpose([ax.get_ylim() for ax in beside])
            for ax in beside:
                ax.set_ylim(low.min(), high.max())


def _leave_out_far_rows(
    grid: AnyArray, rows: Array, shown: Sequence[int], ends: Sequence[tuple[float, float] | None]
) -> None:
    """End the axes where the components and nearly all rows do, and mark the rows beyond."""
    for i, own in enumerate(ends):
        if own is not None:
            for ax in grid[i:, i]:
                ax.set_xlim(*own)
            for ax in grid[i, :i]:
                ax.set_ylim(*own)
    for i, row in enumerate(shown):
        for j, column in enumerate(shown[:i]):
            if ends[i] is not None or ends[j] is not None:
                _mark_far(grid[i, j], rows[:, [column, row]])


def _ends(mixture: Mixture, x: Array, column: int, level: float) -> tuple[float, float] | None:
    """Return the ends of an axis without its outliers; None if it has none.

    Outliers lie beyond the regions of all components, and farther from the central 98 % of the rows than the width of
    these. A component that is wider than that counts for as much to each side of its mean.
    """
    x = x[~np.isnan(x)]
    if len(x) < _FEWEST_ROWS:
        return None
    radius = np.sqrt(-2 * np.log1p(-level))
    reach = radius * np.sqrt(mixture.covariances[mixture.drawn, column, column])
    means = mixture.means[mixture.drawn, column]
    low, high = np.quantile(x, [0.01, 0.99])
    width = high - low
    kept = np.minimum(reach, max(width, float(np.min(reach))))
    starts, ends = float((means - kept).min()), float((means + kept).max())
    low, high = min(low - width, starts), max(high + width, ends)
    if low <= x.min() and x.max() <= high and np.array_equal(kept, reach):
        return None
    inside = x[(x >= low) & (x <= high)]
    first, last = min(float(inside.min()), starts), max(float(inside.max()), ends)
    margin = 0.06 * (last - first)
    return first - margin, last + margin


def _mark_far(ax: Axes, pair: Array) -> None:
    """Draw rows beyond the axes as arrows at their edges, and say how many there are."""
    pair = pair[~np.isnan(pair).any(axis=1)]
    lows, highs = np.transpose([ax.get_xlim(), ax.get_ylim()])
    is_left, is_below = (pair < lows).T
    is_right, is_above = (pair > highs).T
    held = np.clip(pair, lows + 0.015 * (highs - lows), highs - 0.015 * (highs - lows))
    for rows, marker in ((is_left, "<"), (is_right, ">"), (is_below, "v"), (is_above, "^")):
        ax.plot(*held[rows].T, marker, ms=5, color=ink(), mec=paper(ax), mew=0.5, zorder=6)
    n_far = int((is_left | is_right | is_below | is_above).sum())
    if n_far:
        text = f"{n_far:,} {'row' if n_far == 1 else 'rows'} beyond"
        ax.annotate(
            text, (0.98, 0.03), xycoords="axes fraction", ha="right", fontsize=7.5, color=ink(), zorder=7
        )


def _chosen(mixture: Mixture, columns: Sequence[int | str] | None) -> list[int]:
    """Return the numbers of the columns to draw."""
    n_columns = len(mixture.names)
    known = [*map(str, getattr(mixture.estimator, "feature_names_in_", ())), *mixture.names]
    if columns is None:
        chosen = list(range(n_columns))
    else:
        chosen = []
        for column in columns:
            if isinstance(column, str) and column in known:
                chosen.append(known.index(column) % n_columns)
            elif not isinstance(column, str) and 0 <= int(column) < n_columns:
                chosen.append(int(column))
            else:
                raise ParameterError(
                    f"columns= names {column!r}; the columns are {', '.join(mixture.names)}, or 0 to {n_columns - 1}"
                )
    if len(chosen) < 2:
        raise ParameterError("pairs draws two columns or more; caviar.plot.density draws one")
    if len(chosen) > _MOST_COLUMNS:
        raise ParameterError(
            f"{len(chosen)} columns are too many for pairs; choose at most {_MOST_COLUMNS}, as in columns={[0, 1, 2]}"
        )
    return chosen


def _draw_column(
    ax: Axes, mixture: Mixture, rows: Array, column: int, ends: tuple[float, float] | None
) -> None:
    """Draw a histogram of a column, and the marginal predictive density divided among the components."""
    x = rows[~np.isnan(rows[:, column]), column]
    if ends is None:
        low, high = (x.min(), x.max()) if len(x) else (-1.0, 1.0)
        margin = 0.08 * (high - low) or 1.0
        low, high = low - margin, high + margin
    else:
        low, high = ends
        x = x[(x >= low) & (x <= high)]
    grid = np.linspace(low, high, 300)[:, np.newaxis]
    marginal = mixture.predictive.marginal([column])
    density = np.exp(marginal.log_density(grid))
    shares = density[:, np.newaxis] * marginal.responsibilities(grid)
    if len(x):
        ax.hist(x, bins=24, density=True, facecolor=BARS, edgecolor=BAR_EDGES, lw=0.4, zorder=1)
    draw_curves(ax, mixture, grid[:, 0], shares, alpha=0.22)
    ax.plot(grid[:, 0], density, color=ink(), lw=1.0, zorder=4)
    ax.set_ylim(bottom=0)
    hide_frame(ax, "left", "right", "top")


def _label(grid: AnyArray, names: Sequence[str]) -> None:
    """Write the names of the columns below the last row and beside the first column."""
    last = len(names) - 1
    for i in range(len(names)):
        grid[last, i].set_xlabel(names[i])
        if i:
            grid[i, 0].set_ylabel(names[i])
        for j in range(i + 1):
            grid[i, j].label_outer(remove_inner_ticks=False)
            if 0 < j < i:
                grid[i, j].tick_params(axis="y", labelleft=False)
    grid[0, 0].set_ylabel("density")


def say_aside(grid: AnyArray, mixture: Mixture, level: float) -> None:
    """Say in the empty corner which colour, marker and line is which component, and what the ellipses hold."""
    drawn = sorted(mixture.drawn)
    handles = [
        Line2D(
            [],
            [],
            color=stroke(grid[0, 0], mixture.colours[k], 0.15),
            marker=marker_of(k),
            ls=line_of(k),
            ms=5,
            label=f"component {k}",
        )
        for k in drawn[:_MOST_KEYS]
    ]
    if len(drawn) > _MOST_KEYS:
        handles.append(Line2D([], [], ls="", label=f"and {len(drawn) - _MOST_KEYS} more"))
    handles += keys(mixture, level)
    handles.append(Line2D([], [], color=ink(), lw=1.0, label="predictive density"))
    grid[0, 0].figure.legend(
        handles=handles, loc="upper right", bbox_to_anchor=(0.995, 0.955), handlelength=3.2
    )
