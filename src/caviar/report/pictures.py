"""Pictures of a fitted mixture of Gaussians with the rows it was fitted to; drawn without Matplotlib's global state."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError
from .._files import replacing
from .._typing import Array
from ..estimators._uncertainty import MeanMarginal, mean_marginal
from .colours import blend, colours_of
from .tables import column_names, covariances_of

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon
except ImportError as error:
    message = f'pictures need Matplotlib ({error}); install it by pip install "caviar[plot]"'
    raise ImportError(message) from error

__all__ = ["draw", "save_picture"]

_LEVEL = 0.95
_MOST_POINTS = 4000
_MOST_COLUMNS = 4
_NEGLIGIBLE = 0.005
"""Weight below which a component is not drawn: it has (almost) no rows."""

_INK, _MUTED = "#222222", "#6b6b6b"
_LEGEND: dict[str, Any] = {"fontsize": 8.5, "frameon": False, "labelcolor": _INK}
_CIRCLE = np.stack([np.cos(np.linspace(0, 2 * np.pi, 121)), np.sin(np.linspace(0, 2 * np.pi, 121))])


@dataclass(frozen=True)
class _View:
    """What is drawn of a mixture: its rows with their colours, and its components."""

    rows: Array
    point_colours: Array
    names: Sequence[str]
    estimator: Any
    colours: Array
    means: Array
    covariances: Array
    marginal: MeanMarginal | None
    drawn: Sequence[int]


def draw(
    estimator: Any, X: Array, *, columns: Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """Return a picture of a fitted mixture and the rows it was fitted to.

    One column: a histogram under the predictive density, divided among the components. Two columns: the rows, each in
    the blended colours of its responsibilities, with two ellipses a component, the one that holds 95 % of its rows and
    (small, black) the one that holds its mean with 95 % probability. More: such pictures of pairs of columns, at most
    four, in which the components differ most.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    X
        Rows, shape (N, D). Of many rows some thousand are drawn.
    columns
        Names of the columns; by default those that the estimator was fitted to.
    title
        What stands above; by default the kind of mixture, the number of components and the bound.
    """
    names = column_names(estimator) if columns is None else tuple(columns)
    view = _view(estimator, np.asarray(X, dtype=np.float64), names)
    size = len(names)
    shown = _telling_columns(view)
    side = 3.6 if size == 1 else 5.4 if size == 2 else 2.6 * len(shown)
    figure = Figure(figsize=(6.4 if size <= 2 else side, side), layout="constrained")
    FigureCanvasAgg(figure)
    if size == 1:
        _draw_density(figure.add_subplot(), view)
    elif size == 2:
        axes = figure.add_subplot()
        _draw_pair(axes, view, (0, 1), numbered=True)
        axes.legend(handles=_keys(view), loc="best", **_LEGEND)
    else:
        _draw_pairs(figure, view, shown)
    figure.suptitle(_title(view) if title is None else title, fontsize=11, color=_INK)
    return figure


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture to a PNG file; whole or not at all.

    Raises
    ------
    DataError
        If the name does not end with ``.png``, or the file cannot be written.
    """
    if not str(path).lower().endswith(".png"):
        raise DataError(f"cannot write {path}: pictures are PNG files; its name must end with .png")
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=160)


def _view(estimator: Any, X: Array, names: Sequence[str]) -> _View:
    if X.ndim == 1:
        X = X[:, np.newaxis]
    if X.ndim != 2 or X.shape[1] != len(names):
        raise DataError(f"expected rows with the columns {', '.join(names)}; got an array of shape {X.shape}")
    rows = X[:: math.ceil(len(X) / _MOST_POINTS)]
    weights = np.asarray(estimator.weights_)
    colours = colours_of(len(weights))
    return _View(
        rows=rows,
        point_colours=blend(estimator.predict_proba(rows), colours),
        names=names,
        estimator=estimator,
        colours=colours,
        means=np.reshape(estimator.means_, (len(weights), -1)),
        covariances=covariances_of(estimator),
        marginal=mean_marginal(estimator),
        drawn=[int(k) for k in np.argsort(-weights) if weights[k] > _NEGLIGIBLE],
    )


def _title(view: _View) -> str:
    n_components = len(view.colours)
    components = f"{n_components} component{'s' * (n_components != 1)}"
    if len(view.drawn) < n_components:
        components += f", {len(view.drawn)} in use"
    objective = "objective" if view.marginal is None else "ELBO"
    value = f"{view.estimator.elbo_:,.2f}".replace("-", "\N{MINUS SIGN}")
    return f"{type(view.estimator).__name__}, {components}, {objective} {value} nats"


def _telling_columns(view: _View) -> list[int]:
    """Return the columns in which the components differ most, in units of their spread within components."""
    weights = np.asarray(view.estimator.weights_)
    between = weights @ np.square(view.means - weights @ view.means)
    within = weights @ np.diagonal(view.covariances, axis1=1, axis2=2)
    return sorted(np.argsort(-between / within)[:_MOST_COLUMNS].tolist())


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_MUTED)
    axes.tick_params(colors=_MUTED, labelsize=9)


def _ellipse(centre: Array, matrix: Array) -> Array:
    """Return points on (x - c)' M^-1 (x - c) = 1, shape (n, 2)."""
    values, vectors = np.linalg.eigh(matrix)
    return centre + (vectors * np.sqrt(np.maximum(values, 0)) @ _CIRCLE).T


def _draw_pair(axes: Axes, view: _View, pair: tuple[int, int], *, numbered: bool) -> None:
    """Draw rows and components in two columns."""
    size = float(np.clip(300 / math.sqrt(len(view.rows)), 4, 18))
    edge = 0.3 if size > 10 else 0.0
    axes.scatter(
        *view.rows[:, pair].T,
        s=size,
        c=view.point_colours,
        alpha=0.75,
        linewidths=edge,
        edgecolors="white",
        zorder=2,
    )
    radius = -2 * math.log1p(-_LEVEL)
    regions = None if view.marginal is None else view.marginal.region(pair, _LEVEL)
    for k in view.drawn:
        colour = view.colours[k]
        centre, block = view.means[k, list(pair)], view.covariances[k][np.ix_(pair, pair)]
        spread = _ellipse(centre, radius * block)
        axes.add_patch(
            Polygon(spread, facecolor=(*colour, 0.10), edgecolor=(*colour * 0.75, 1), lw=1.4, zorder=3)
        )
        if regions is None:
            axes.plot(*centre, marker="+", ms=9, mew=1.8, color=_INK, zorder=5)
        else:
            region = Polygon(
                _ellipse(centre, regions[k]), facecolor=_INK, edgecolor="white", lw=0.6, zorder=5
            )
            axes.add_patch(region)
            axes.plot(
                *centre, marker=".", ms=2.5, color=_INK, zorder=6
            )  # seen where the region is too small to be
        if numbered:
            _number(axes, k, spread[spread[:, 1].argmax()])
    axes.margins(0.06)
    _plain(axes)
    if numbered:
        axes.set_xlabel(view.names[pair[0]], color=_INK)
        axes.set_ylabel(view.names[pair[1]], color=_INK)


def _number(axes: Axes, label: int, place: Array) -> None:
    """Write the number of a component."""
    box = {"boxstyle": "circle,pad=0.25", "fc": "white", "ec": _MUTED, "lw": 0.6}
    x, y = (float(coordinate) for coordinate in place)
    axes.annotate(str(label), (x, y), ha="center", va="center", fontsize=9, color=_INK, bbox=box, zorder=7)


def _keys(view: _View) -> list[Line2D]:
    """Return what a legend says of the two ellipses of a component."""
    spread = Line2D([], [], color=_MUTED, lw=1.4, label=f"{_LEVEL:.0%} of the rows of a component")
    if view.marginal is None:
        return [spread, Line2D([], [], color=_INK, marker="+", ls="", ms=9, mew=1.8, label="its mean")]
    label = f"its mean, with {_LEVEL:.0%} probability"
    return [spread, Line2D([], [], color=_INK, marker="o", ls="", ms=6, mec="white", label=label)]


def _draw_density(axes: Axes, view: _View) -> None:
    """Draw a histogram of the rows of one column, and the density divided among the components."""
    x = view.rows[~np.isnan(view.rows[:, 0]), 0]
    margin = 0.08 * np.ptp(x) or 1.0
    grid = np.linspace(x.min() - margin, x.max() + margin, 800)[:, np.newaxis]
    density = np.exp(view.estimator.score_samples(grid))
    shares = density[:, np.newaxis] * view.estimator.predict_proba(grid)
    bins = int(np.clip(2 * math.sqrt(len(x)), 8, 60))
    axes.hist(x, bins=bins, density=True, color="#d9d9d9", edgecolor="white", lw=0.5, zorder=1)
    for k in view.drawn:
        axes.fill_between(grid[:, 0], shares[:, k], color=view.colours[k], alpha=0.35, lw=0, zorder=2)
        axes.plot(grid[:, 0], shares[:, k], color=view.colours[k] * 0.75, lw=1.0, zorder=3)
    (curve,) = axes.plot(grid[:, 0], density, color=_INK, lw=1.6, zorder=4, label="predictive density")
    for k in view.drawn:
        peak = int(shares[:, k].argmax())
        _number(axes, k, np.array([grid[peak, 0], shares[peak, k]]))
    handles = [curve, *_draw_below(axes, view, float(axes.get_ylim()[1]))]
    _plain(axes)
    axes.set_xlabel(view.names[0], color=_INK)
    axes.set_ylabel("density", color=_INK)
    axes.legend(handles=handles, **_LEGEND)


def _draw_below(axes: Axes, view: _View, height: float) -> list[Line2D]:
    """Draw the rows, and the interval of each mean on a line of its own, below the axis; return what a legend says."""
    axes.plot(
        view.rows[:, 0], np.full(len(view.rows), -0.02 * height), "|", color=_MUTED, ms=5, mew=0.6, zorder=2
    )
    if view.marginal is None:
        return []
    low, high = view.marginal.interval(_LEVEL)
    for line, k in enumerate(sorted(view.drawn)):
        level = -(0.055 + 0.022 * line) * height
        axes.plot(
            [low[k, 0], high[k, 0]], [level] * 2, color=view.colours[k] * 0.75, lw=3, solid_capstyle="butt"
        )
    return [Line2D([], [], color=_MUTED, lw=3, label=f"a mean, with {_LEVEL:.0%} probability")]


def _draw_pairs(figure: Figure, view: _View, shown: Sequence[int]) -> None:
    """Draw each pair of columns below the diagonal, and the columns themselves on it."""
    grid = figure.subplots(len(shown), len(shown), squeeze=False, sharex="col")
    _legend_of_pairs(figure, view)
    for i, row in enumerate(shown):
        for j, column in enumerate(shown):
            axes = grid[i, j]
            if j > i:
                axes.set_visible(False)
            elif i == j:
                _draw_column(axes, view, row)
            else:
                _draw_pair(axes, view, (column, row), numbered=False)
            if i == len(shown) - 1:
                axes.set_xlabel(view.names[column], color=_INK)
            if j == 0 and i > 0:
                axes.set_ylabel(view.names[row], color=_INK)


def _legend_of_pairs(figure: Figure, view: _View) -> None:
    """Say in the empty corner which colour is which component."""
    handles = [
        Line2D([], [], color=tuple(view.colours[k]), marker="o", ls="", label=f"component {k}")
        for k in sorted(view.drawn)
    ]
    figure.legend(handles=[*handles, *_keys(view)], loc="upper right", bbox_to_anchor=(0.98, 0.94), **_LEGEND)


def _draw_column(axes: Axes, view: _View, column: int) -> None:
    """Draw a histogram of one column, each bar divided among the components by the labels of its rows."""
    labels = view.estimator.predict(view.rows)
    seen = ~np.isnan(view.rows[:, column])
    parts = [view.rows[seen & (labels == k), column] for k in view.drawn]
    axes.hist(parts, bins=24, stacked=True, color=[tuple(view.colours[k]) for k in view.drawn], alpha=0.8)
    _plain(axes)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
