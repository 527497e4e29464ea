"""Loadings of hidden factors: intervals, or a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._typing import AnyArray
from ..numerics.arguments import require_share
from ..posterior.figures import Figures
from .parts.axes import LINES, headline, in_style, muted, new_grid, paper, stroke
from .parts.cells import draw_cells
from .parts.colours import colours_of
from .parts.posterior_figures import names_along, table_of

_MOST_PANELS = 6
_MOST_CELLS = 150
"""Above this cells have no numbers."""


@in_style
def loadings(
    fitted: Any,
    *,
    variable: str = "loadings",
    names: Sequence[str] | None = None,
    level: float = 0.95,
    heat_map: bool | None = None,
    axes: Any = None,
) -> AnyArray:
    """Return a plot of the loadings of a factor analysis or probabilistic PCA.

    Parameters
    ----------
    fitted
        Posterior of a model with loadings, such as ``caviar.models.factor_analysis``.
    variable
        Name of the loadings: a MultivariateNormal with a plate over the columns and an entry for each factor.
    names
        Names of the columns; by default those of the posterior, or their numbers.
    level
        Probability of the central credible intervals.
    heat_map
        True draws a cell for each loading with its mean, in brackets if the interval contains 0. False draws a panel
        with intervals for each factor, with hollow markers if the interval contains 0. The default is False for up to
        six factors.
    axes
        Axes to draw into: one for a heat map, otherwise one for each factor; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (1,) for a heat map, otherwise (K,).

    Raises
    ------
    ParameterError
        If the variable does not exist, or is not a table of columns by factors.

    Notes
    -----
    The data do not determine the signs and the rotation of the factors. The intervals do not include this uncertainty,
    and two fits may show the same subspace rotated.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1)) * [1.0, -2.0, 0.0] + 0.3 * rng.normal(size=(200, 3))
    >>> posterior = cv.models.factor_analysis(3, 1).fit({"x": x}, seed=0)
    >>> axes = cv.plot.loadings(posterior, names=["a", "b", "c"])
    >>> print(axes.shape, [label.get_text() for label in axes[0].get_yticklabels()])
    (1,) ['a', 'b', 'c']
    """
    level = require_share("level", level)
    expected = "loadings are a table of columns by factors: a MultivariateNormal over one plate"
    figures = table_of(fitted, variable, level, expected=expected)
    n_columns, n_factors = figures.mean.shape
    labels = names_along("names", n_columns, figures.names[0] if names is None else names)
    if n_factors > _MOST_PANELS if heat_map is None else heat_map:
        width = 1.8 + 0.07 * max(map(len, labels)) + 0.62 * n_factors
        grid = new_grid(axes, (1, 1), (max(4.6, width), 0.28 * n_columns + 1.2))
        _draw_cells(grid[0, 0], figures, labels)
    else:
        width = 0.6 + 0.07 * max(map(len, labels)) + 1.9 * n_factors
        grid = new_grid(
            axes, (1, n_factors), (max(4.2, width), 0.26 * n_columns + 1.2), sharey=True, sharex=True
        )
        for k in range(n_factors):
            _draw_factor(grid[0, k], figures, k)
        grid[0, 0].set_yticks(range(n_columns), labels)
        grid[0, 0].set_ylim(n_columns - 0.4, -0.6)
        if axes is None:
            headline(
                grid[0, 0], f"Loadings: mean and {figures.told_interval(level)}; hollow where it contains 0"
            )
    return grid[0]


def _draw_factor(ax: Axes, figures: Figures, k: int) -> None:
    """Draw the loadings of a factor with their intervals."""
    lines = np.arange(len(figures.mean))
    colour = stroke(ax, colours_of(1)[0], 0.15)
    ax.axvline(0, color=muted(), lw=0.8, zorder=0)
    if figures.lower is not None and figures.upper is not None:
        ax.hlines(lines, figures.lower[:, k], figures.upper[:, k], color=colour, lw=2, zorder=2)
    for line, hollow in zip(lines, figures.contains_zero[:, k], strict=True):
        fill = paper(ax) if hollow else colour
        ax.plot(figures.mean[line, k], line, "o", ms=5.5, mfc=fill, mec=colour, mew=1.3, zorder=3)
    ax.set_title(f"factor {k}")
    ax.set_xlabel("loading")
    ax.grid(axis="y", color=LINES, lw=0.6)
    ax.set_axisbelow(True)


def _draw_cells(ax: Axes, figures: Figures, labels: Sequence[str]) -> None:
    """Draw a table of the loadings, those whose interval contains 0 in brackets."""
    n_columns, n_factors = figures.mean.shape

    def text_of(index: tuple[int, ...]) -> str:
        number = f"{round(float(figures.mean[index]), 2) + 0.0:.2f}".replace("-", "\N{MINUS SIGN}")
        return f"({number})" if figures.contains_zero[index] else number

    draw_cells(ax, figures.mean, text_of if figures.mean.size <= _MOST_CELLS else None, "loading", shrink=0.8)
    ax.set_xticks(range(n_factors))
    ax.set_yticks(range(n_columns), labels)
    ax.set_xlabel("factor")
    title = "Loadings" if figures.lower is None else "Loadings; in brackets where the interval contains 0"
    ax.set_title(title)
