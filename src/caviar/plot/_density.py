"""The predictive density of a mixture: in one column with a credible band, in two as regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from .._errors import ParameterError
from .._typing import Array
from ..numerics.arguments import require_share
from ..posterior.simulation import one_by_one
from ._pair import draw_curves, draw_points, number
from .parts.axes import BAR_EDGES, BARS, in_style, ink, is_dark, muted, new_axes, stroke
from .parts.mixture import Mixture, mixture_of, rows_of, thinned

_MOST_ROWS = 4000
_GRID = 400
_SHARES = (0.95, 0.8, 0.5)
_REGIONS, _REGIONS_ON_DARK = ["#e9eef3", "#cfdbe6", "#abc3d8"], ["#14202b", "#203446", "#2f4d66"]
_REGION_LINES = ((0, (1, 1.2)), (0, (5, 1.5)), "-")


@in_style
def density(
    fitted: Any,
    X: Any,
    *,
    names: Sequence[str] | None = None,
    level: float | None = 0.95,
    n_draws: int = 200,
    seed: int | np.random.Generator | None = 0,
    components: bool = True,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a plot of the predictive density of a fitted mixture and the rows, for one or two columns.

    For one column the plot has a histogram of the rows, the predictive density with the contributions of the
    components, and at each point the central credible interval of the density :math:`p(x \mid \theta)` for parameters
    drawn from q. Ticks below the axis are the rows, and bars the intervals of the means. For two columns it has the
    rows and the smallest regions that contain 50, 80 and 95 % of new rows.

    Parameters
    ----------
    fitted
        A fitted mixture of one or two columns.
    X
        Rows, shape (N, D), or a table with the columns of the fit.
    names
        Labels of the axes, with units; by default the names of the columns in the fit.
    level
        Probability of the band and the intervals; None draws no band.
    n_draws, seed
        Number of draws of the parameters for the band, and their seed. The intervals are pointwise, so the band
        contains the whole curve :math:`p(x \mid \theta)` with a smaller probability.
    components
        Whether to draw the components.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        With one column, the line labelled "predictive density" is the density.

    Raises
    ------
    ParameterError
        If ``fitted`` is not a fitted mixture, or has more than two columns.
    DataError
        If the rows have other columns than the fit.

    Examples
    --------
    >>> import caviar as cv
    >>> galaxies = cv.datasets.load_galaxies().values
    >>> mixture = cv.BayesianGaussianMixture(3, random_state=0).fit(galaxies)
    >>> ax = cv.plot.density(mixture, galaxies, names=["velocity (1000 km/s)"], n_draws=20)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['predictive density', 'density, 95% band', 'a mean, with 95% probability']
    """
    mixture = mixture_of(fitted, names)
    rows = rows_of(mixture, X)
    if len(mixture.names) > 2:
        raise ParameterError(
            f"density draws one or two columns, and this mixture has {len(mixture.names)}; caviar.plot.pairs draws "
            f"them all, or fit fewer"
        )
    if level is not None:
        require_share("level", level)
    if len(mixture.names) == 2:
        ax = new_axes(ax, (5.4, 4.4))
        _draw_regions(ax, mixture, rows)
        return ax
    ax = new_axes(ax, (6.4, 3.6))
    grid = _grid(rows[:, 0])
    band = None if level is None else _band(mixture, grid, level, n_draws, seed)
    _draw_curve(ax, mixture, rows[~np.isnan(rows[:, 0]), 0], grid, band, level, components)
    return ax


def _grid(x: Array) -> Array:
    low, high = np.nanmin(x), np.nanmax(x)
    margin = 0.08 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, _GRID)


def _band(
    mixture: Mixture, grid: Array, level: float, n_draws: int, seed: int | np.random.Generator | None
) -> tuple[Array, Array] | None:
    """Return the ends of the credible interval of the density at each point; None where all parameters are points."""
    estimator = mixture.estimator
    posterior = estimator.posterior_
    if mixture.marginal is None:
        return None
    if "true" in posterior.model.variables:
        raise ParameterError(
            "the mixture was fitted to rows with errors, and the density at given parameters has no closed form there; "
            "pass level=None for the predictive density of the true values without a band"
        )
    whole = estimator._factors(posterior) if hasattr(estimator, "_factors") else {}
    known = {name: factor.value for name, factor in whole.items() if name not in posterior}
    data = {"x": estimator._values(grid[:, np.newaxis]), **known}
    draws = one_by_one(posterior.sample(n_draws, seed), n_draws)
    densities = np.exp([posterior.log_predictive(data, given=values) for values in draws])
    lower, upper = np.quantile(densities, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return lower, upper


def _draw_curve(
    ax: Axes,
    mixture: Mixture,
    x: Array,
    grid: Array,
    band: tuple[Array, Array] | None,
    level: float | None,
    components: bool,
) -> None:
    """Draw a histogram of the rows of one column, the density with its band, and what components have of it."""
    density_ = np.exp(mixture.predictive.log_density(grid[:, np.newaxis]))
    bins = int(np.clip(2 * math.sqrt(len(x)), 8, 60))
    ax.hist(x, bins=bins, density=True, facecolor=BARS, edgecolor=BAR_EDGES, lw=0.6, zorder=1)
    (curve,) = ax.plot(grid, density_, color=ink(), lw=1.7, zorder=4, label="predictive density")
    handles: list[Any] = [curve]
    if band is not None:
        label = f"density, {level:.0%} band"
        face, edge = to_rgba(ink(), 0.15), to_rgba(ink(), 0.7)
        style = {"facecolor": face, "edgecolor": edge, "lw": 0.8, "ls": (0, (1, 1.5))}
        handles.append(ax.fill_between(grid, *band, zorder=1.5, label=label, **style))
    if components and len(mixture.drawn) > 1:
        shares = density_[:, np.newaxis] * mixture.predictive.responsibilities(grid[:, np.newaxis])
        draw_curves(ax, mixture, grid, shares, alpha=0.25)
        for k in mixture.drawn:
            peak = int(shares[:, k].argmax())
            number(ax, k, np.array([grid[peak], shares[peak, k]]))
    handles += _draw_below(ax, mixture, x, float(ax.get_ylim()[1]), level)
    ax.set_xlabel(mixture.names[0])
    ax.set_ylabel("density")
    ax.set_title("Predictive density and rows")
    ax.legend(handles=handles)


def _draw_below(ax: Axes, mixture: Mixture, x: Array, height: float, level: float | None) -> list[Line2D]:
    """Draw the rows, and the interval of each mean on its own line, below the axis; return entries of a legend."""
    ticks = thinned(x, _MOST_ROWS)
    ax.plot(ticks, np.full(len(ticks), -0.02 * height), "|", color=muted(), ms=5, mew=0.6, zorder=2)
    ax.axhline(0, color=muted(), lw=0.8, zorder=1)
    if mixture.marginal is None or level is None:
        return []
    low, high = mixture.marginal.interval(level)
    for line, k in enumerate(sorted(mixture.drawn)):
        place = -(0.055 + 0.026 * line) * height
        ends = [float(low[k, 0]), float(high[k, 0])]
        ax.plot(ends, [place] * 2, color=stroke(ax, mixture.colours[k]), lw=3, solid_capstyle="butt")
    return [Line2D([], [], color=muted(), lw=3, label=f"a mean, with {level:.0%} probability")]


def _draw_regions(ax: Axes, mixture: Mixture, rows: Array) -> None:
    """Draw the rows, and the smallest regions with given probabilities."""
    points = thinned(rows[~np.isnan(rows).any(axis=1)], _MOST_ROWS)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, high - low, 1.0) / 2
    x, y = (np.linspace(*ends, _GRID) for ends in zip(low - margin, high + margin, strict=True))
    across, along = np.meshgrid(x, y)
    density_ = np.exp(mixture.predictive.log_density(np.column_stack([across.ravel(), along.ravel()])))
    levels = _levels(density_, (x[1] - x[0]) * (y[1] - y[0]))
    ax.contourf(
        x,
        y,
        density_.reshape(across.shape),
        [*levels, np.inf],
        colors=_REGIONS_ON_DARK if is_dark(ax) else _REGIONS,
        zorder=0,
    )
    ax.contour(
        x, y, density_.reshape(across.shape), levels, colors=[ink()], linestyles=_REGION_LINES, linewidths=1.0
    )
    draw_points(ax, points, mixture.responsibilities(points), mixture.colours)
    is_inside = (density_ >= levels[0]).reshape(across.shape)
    ax.set_xlim(*_limits(x[is_inside.any(axis=0)], points[:, 0]))
    ax.set_ylim(*_limits(y[is_inside.any(axis=1)], points[:, 1]))
    ax.set_xlabel(mixture.names[0])
    ax.set_ylabel(mixture.names[1])
    ax.set_title("Predictive density and rows")
    ax.legend(
        handles=[
            Line2D([], [], color=ink(), lw=1.0, ls=style, label=f"{share:.0%} of new rows")
            for share, style in zip(_SHARES[::-1], _REGION_LINES[::-1], strict=True)
        ]
    )


def _limits(region: Array, points: Array) -> tuple[float, float]:
    """Return the ends of an axis that has room for the largest region and all points."""
    low, high = min(region.min(), points.min()), max(region.max(), points.max())
    margin = 0.05 * (high - low)
    return float(low - margin), float(high + margin)


def _levels(density_: Array, cell: float) -> list[float]:
    """Return the densities above which the probability is 95, 80 and 50 %, in rising order."""
    falling = np.sort(density_)[::-1]
    held = np.cumsum(falling) * cell
    return [float(falling[min(int(np.searchsorted(held, share)), len(falling) - 1)]) for share in _SHARES]
