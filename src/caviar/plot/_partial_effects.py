"""Partial effects: the expected response along each known column, the others at what is typical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray
from ..numerics.arguments import require_share
from .parts.axes import ACROSS, headline, in_style, muted, new_panels, shade, slant, stroke
from .parts.colours import colours_of
from .parts.covariates import Column, covariates_of
from .parts.curves import Curve, Draws

_MOST = 16
_MOST_TICKS = 300


@in_style
def partial_effects(
    fitted: Any,
    data: Any,
    columns: str | Sequence[str] | None = None,
    *,
    variable: str | None = None,
    level: float = 0.95,
    n_draws: int = 200,
    seed: int | np.random.Generator | None = 0,
    axes: Any = None,
) -> AnyArray:
    """Return a plot of partial effects: the expected response as a function of each known column.

    The other columns are at their means or most common levels; to see an interaction use :func:`regression` with
    ``by``. For a mixed model the curves are those of an average group. All panels have the same vertical scale.

    Parameters
    ----------
    fitted
        A fitted :class:`caviar.MixedModel`, or the posterior of a model with known columns (``cv.Data``).
    data
        Rows, as for the fit: a table for a mixed model.
    columns
        Name or names of the columns to draw; by default all except groups. An entry of a vector ``X`` has the name of
        its column, or ``"X 1"``.
    variable
        Name of the observed variable; optional if there is only one.
    level
        Probability of the interval of the expected response.
    n_draws, seed
        Number of draws of the parameters for the interval, and their seed.
    axes
        Axes to draw into, one for each column; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (columns,). Ticks below a curve are the rows; categories are points.

    Raises
    ------
    ParameterError
        If a column does not exist.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> table = {"dose": rng.uniform(size=90), "sex": np.tile(["f", "m"], 45)}
    >>> table["y"] = 2 * table["dose"] - (table["sex"] == "m") + 0.3 * rng.normal(size=90)
    >>> axes = cv.plot.partial_effects(cv.MixedModel("y ~ dose + sex").fit(table), table)
    >>> [ax.get_xlabel() for ax in axes]
    ['dose', 'sex']
    """
    level = require_share("level", level)
    found = covariates_of(fitted, data, variable)
    own = [name for name in found.columns if name not in found.groups]
    stated = [columns] if isinstance(columns, str) else columns
    names = own if stated is None else [found.require(name, "columns") for name in stated]
    if not 0 < len(names) <= _MOST:
        raise ParameterError(f"columns= takes 1 to {_MOST} of the known columns; got {len(names)}")
    draws = Draws.of(found, n_draws, level, seed)
    grid = new_panels(axes, len(names), (2.6, 2.5), (0.0, 0.5), 4.2, sharey=True)
    for is_group in (False, True):
        own = [name for name in names if (name in found.groups) == is_group]
        curves = draws.curves([{name: found.columns[name].grid()} for name in own]) if own else []
        for name, curve in zip(own, curves, strict=True):
            ax = grid[names.index(name)]
            _draw(ax, found.columns[name], curve)
            ax.set_xlabel(name)
    for ax in grid[::ACROSS]:
        ax.set_ylabel(f"expected {found.response}")
    title = f"Expected {found.response} by each column, others at typical values, {level:.0%} interval"
    if axes is None:
        headline(grid[0], title)
    else:
        grid[0].set_title(title)
    return grid


def _draw(ax: Axes, column: Column, curve: Curve) -> None:
    """Draw a curve with its band and the rows below, or a point with its interval for each level."""
    colour = colours_of(1)[0]
    line = stroke(ax, colour, 0.15)
    if column.levels is not None:
        at = np.arange(len(column.levels))
        ax.vlines(at, curve.lower, curve.upper, color=line, lw=2, zorder=2)
        ax.plot(at, curve.mean, "o", ms=4.5, color=line, zorder=3)
        ax.set_xticks(at, column.levels)
        ax.set_xlim(-0.6, len(at) - 0.4)
        if max(map(len, column.levels)) * len(at) > 18:
            slant(ax)
        return
    grid = column.grid()
    ax.fill_between(grid, curve.lower, curve.upper, color=(*shade(ax, colour), 0.35), lw=0, zorder=2)
    ax.plot(grid, curve.mean, color=line, lw=1.8, zorder=3)
    rows = column.values
    if len(rows) > _MOST_TICKS:
        rows = np.sort(rows)[:: len(rows) // _MOST_TICKS + 1]
    ticks = ax.get_xaxis_transform()
    ax.plot(rows, np.full(len(rows), 0.02), "|", color=muted(), ms=5, mew=0.6, transform=ticks, zorder=1)
