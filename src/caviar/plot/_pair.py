"""Rows and components in two columns: the spread of each component, and how well its mean is known."""

from __future__ import annotations

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke

from .._typing import AnyArray, Array
from .parts.axes import ink, muted, paper, shade, stroke
from .parts.colours import blend, line_of, marker_of
from .parts.mixture import Mixture

_CIRCLE = np.stack([np.cos(np.linspace(0, 2 * np.pi, 121)), np.sin(np.linspace(0, 2 * np.pi, 121))])


_COUNTS = ListedColormap(colormaps["Greys"](np.linspace(0.2, 0.85, 256)))
"""Greys from one row, which has to be seen, to many, on which black ellipses have to be."""


def ellipse(centre: Array, matrix: Array) -> Array:
    """Return points on (x - c)' M^-1 (x - c) = 1, shape (n, 2)."""
    values, vectors = np.linalg.eigh(matrix)
    return centre + (vectors * np.sqrt(np.maximum(values, 0)) @ _CIRCLE).T


def draw_points(ax: Axes, rows: Array, responsibilities: Array, colours: Array) -> PathCollection:
    """Draw rows (N, 2) as one collection, in blended colours, each with the marker of its most probable component."""
    size = float(np.clip(300 / math.sqrt(len(rows)), 5, 20))
    points = ax.scatter(
        *rows.T,
        s=size,
        c=blend(responsibilities, shade(ax, colours)),
        alpha=0.75,
        linewidths=0.3 if size > 10 else 0.0,
        edgecolors=[paper(ax)],
        zorder=2,
    )
    styles = [MarkerStyle(marker_of(k)) for k in range(len(colours))]
    paths = [style.get_path().transformed(style.get_transform()) for style in styles]
    points.set_paths([paths[k] for k in responsibilities.argmax(axis=1)])
    return points


def draw_pair(
    ax: Axes,
    mixture: Mixture,
    rows: Array,
    responsibilities: Array | None,
    pair: tuple[int, int],
    *,
    level: float,
    numbered: bool,
) -> None:
    """Draw rows and components in two columns; without responsibilities the rows are counted in hexagons.

    For each component two ellipses: that which holds its rows with probability ``level`` if they are Normal with its
    covariance, and (filled) that which holds its mean under the posterior.
    """
    if responsibilities is None:
        shown = rows[~np.isnan(rows[:, pair]).any(axis=1)][:, pair]
        ax.hexbin(*shown.T, gridsize=40, cmap=_COUNTS, bins="log", mincnt=1, linewidths=0.1, zorder=1)
    else:
        draw_points(ax, rows[:, pair], responsibilities, mixture.colours)
    radius = -2 * math.log1p(-level)
    regions = None if mixture.marginal is None else mixture.marginal.region(pair, level)
    block = np.ix_(pair, pair)
    outlines = []
    for k in mixture.drawn:
        centre, colour = mixture.means[k, list(pair)], shade(ax, mixture.colours[k])
        outline = ellipse(centre, radius * mixture.covariances[k][block])
        outlines.append(outline)
        face = (*colour, 0.10 if responsibilities is not None else 0.0)
        spread = Polygon(
            outline, facecolor=face, edgecolor=stroke(ax, colour), lw=1.6, ls=line_of(k), zorder=3
        )
        spread.set_path_effects([withStroke(linewidth=3.2, foreground=to_rgba(paper(ax), 0.7))])
        ax.add_patch(spread)
        _draw_mean(ax, centre, None if regions is None else regions[k])
    ax.margins(0.06)
    if numbered:
        for place, k in zip(_apart(outlines), mixture.drawn, strict=True):
            number(ax, k, place)


def _draw_mean(ax: Axes, centre: Array, region: Array | None) -> None:
    """Draw the mean of a component as the region that holds it, or as a cross where it is a point."""
    if region is None:
        ax.plot(*centre, marker="+", ms=9, mew=1.8, color=ink(), zorder=5)
        return
    outline = ellipse(centre, region)
    ax.add_patch(Polygon(outline, facecolor=ink(), edgecolor=paper(ax), lw=0.6, zorder=5))
    # seen where the region is too small to be
    ax.plot(*centre, marker=".", ms=2.5, color=ink(), zorder=6)


def _apart(outlines: list[Array]) -> list[Array]:
    """Return a place on each outline, far from the outlines and places of the others in units of the whole plot."""
    if not outlines:
        return []
    everything = np.concatenate(outlines)
    scale = np.maximum(np.ptp(everything, axis=0), 1e-300)
    places: list[Array] = []
    for own, outline in enumerate(outlines):
        others = [other[::8] for number_, other in enumerate(outlines) if number_ != own] + [
            np.repeat(place[None], 1, axis=0) for place in places
        ]
        candidates = outline[:-1:6]
        if not others:
            places.append(candidates[candidates[:, 1].argmax()])
            continue
        far = np.linalg.norm((candidates[:, None] - np.concatenate(others)[None]) / scale, axis=-1).min(
            axis=1
        )
        # at the top of its outline, unless something else is there
        preference = 0.05 * (candidates[:, 1] - outline[:, 1].min()) / max(np.ptp(outline[:, 1]), 1e-300)
        places.append(candidates[(np.minimum(far, 0.08) + preference).argmax()])
    return places


def draw_curves(ax: Axes, mixture: Mixture, grid: Array, shares: Array, *, alpha: float) -> None:
    """Draw the part of a density that each component has, (G, K), over points of one column."""
    for k in mixture.drawn:
        colour = mixture.colours[k]
        ax.fill_between(grid, shares[:, k], color=tuple(shade(ax, colour)), alpha=alpha, lw=0, zorder=2)
        ax.plot(grid, shares[:, k], color=stroke(ax, colour), lw=1.3, ls=line_of(k), zorder=3)


def number(ax: Axes, label: int, place: AnyArray) -> None:
    """Write the number of a component."""
    box = {"boxstyle": "circle,pad=0.22", "fc": "white", "ec": muted(), "lw": 0.6}
    x, y = (float(coordinate) for coordinate in place)
    ax.annotate(
        str(label), (x, y), ha="center", va="center", fontsize=8.5, color="#222222", bbox=box, zorder=7
    )


def keys(mixture: Mixture, level: float) -> list[Line2D]:
    """Return what a legend says of the two ellipses of a component."""
    spread = Line2D([], [], color=muted(), lw=1.6, label=f"{level:.0%} of the rows of a component")
    if mixture.marginal is None:
        return [spread, Line2D([], [], color=ink(), marker="+", ls="", ms=9, mew=1.8, label="its mean")]
    label = f"its mean, with {level:.0%} probability"
    return [spread, Line2D([], [], color=ink(), marker="o", ls="", ms=6, mec="white", label=label)]
