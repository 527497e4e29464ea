"""Where a plot is drawn: into given axes as they are, or into new ones in the style of the library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb, to_rgba

from ..._errors import ParameterError
from ..._typing import AnyArray, Array

STYLE = Path(__file__).parents[1] / "caviar.mplstyle"
"""The style sheet of the library's plots."""

_DARK = 0.2
"""Luminance of a background, up to which it is dark."""

_OF_LIGHT = {
    "axes.edgecolor",
    "axes.labelcolor",
    "axes.titlecolor",
    "figure.facecolor",
    "legend.labelcolor",
    "text.color",
    "xtick.color",
    "ytick.color",
}
"""Settings of the style that are readable on a light background only."""

LINES = (0.5, 0.5, 0.5, 0.22)
"""Colour of the lines of a grid, on white and on black."""

BARS, BAR_EDGES = (0.5, 0.5, 0.5, 0.22), (0.5, 0.5, 0.5, 0.5)
"""Colours of histograms: a grey in the background, on white and on black."""

P = ParamSpec("P")
R = TypeVar("R")


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Return a function that draws in the style of the library, unless it is given axes."""

    @wraps(draw)
    def styled(*arguments: P.args, **keywords: P.kwargs) -> R:
        is_new = keywords.get("ax") is None and keywords.get("axes") is None
        with mpl.rc_context(_style()) if is_new else nullcontext():
            return draw(*arguments, **keywords)

    return styled


@cache
def _own_style() -> dict[Any, Any]:
    return dict(mpl.rc_params_from_file(STYLE, use_default_template=False))


def _style() -> dict[Any, Any]:
    """Return the settings of a new figure; where figures are dark, the colours of text and background stay."""
    style = _own_style()
    if luminance(mpl.rcParams["figure.facecolor"]) > _DARK:
        return style
    return {name: value for name, value in style.items() if name not in _OF_LIGHT}


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, 0 for black and 1 for white."""
    linear = np.power(to_rgb(colour), 2.2)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def is_dark(ax: Axes) -> bool:
    """Whether axes, or the figure behind them, have a dark background."""
    face = to_rgba(ax.get_facecolor())
    behind = ax.get_figure(root=True)
    if face[3] < 0.5 and behind is not None:
        face = to_rgba(behind.get_facecolor())
    return face[3] >= 0.5 and luminance(face) <= _DARK


def stroke(ax: Axes, colour: Any, strength: float = 0.25) -> tuple[float, float, float]:
    """Return a colour for lines: darker than that of an area on white, by ``strength``, and lighter on black."""
    own = np.asarray(to_rgb(colour))
    red, green, blue = own + 0.5 * (1.0 - own) if is_dark(ax) else own * (1.0 - strength)
    return float(red), float(green), float(blue)


def shade(ax: Axes, colours: Any) -> Array:
    """Return colours (..., 3) for areas and points: as they are on white, and lighter on black."""
    own = np.asarray(colours, dtype=np.float64)
    return own + 0.35 * (1.0 - own) if is_dark(ax) else own


def paper(ax: Axes) -> Any:
    """Return the colour of the background of axes."""
    face = to_rgba(ax.get_facecolor())
    behind = ax.get_figure(root=True)
    return behind.get_facecolor() if face[3] < 0.5 and behind is not None else face


def ink() -> Any:
    """Return the colour of what is drawn over the data: that of text in the style in force."""
    return mpl.rcParams["text.color"]


def muted() -> Any:
    """Return the colour of the background of a plot: grey that is readable on white and on black."""
    return "#7b7b7b"


def _figure(size: tuple[float, float]) -> Any:
    # pyplot chooses a backend and shows the figure in a notebook; whoever gives axes needs neither
    return import_module("matplotlib.pyplot").figure(figsize=size)


def new_axes(ax: Any, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches.

    Raises
    ------
    ParameterError
        If it is not an Axes.
    """
    if ax is None:
        return _figure(size).add_subplot()
    if not isinstance(ax, Axes):
        raise ParameterError(
            f"ax= must be one Matplotlib Axes, such as plt.subplots()[1]; got {type(ax).__name__}"
        )
    return ax


def new_grid(axes: Any, shape: tuple[int, int], size: tuple[float, float], **layout: Any) -> AnyArray:
    """Return the given axes, or those of a new figure, as an array of this shape.

    Raises
    ------
    ParameterError
        If the number differs, or some are not Axes.
    """
    if axes is None:
        return _figure(size).subplots(*shape, squeeze=False, **layout)
    given = np.array(axes, dtype=object).ravel()
    rows, columns = shape
    if len(given) != rows * columns or not all(isinstance(ax, Axes) for ax in given):
        kinds = ", ".join(sorted({type(ax).__name__ for ax in given}))
        raise ParameterError(
            f"axes= takes {rows * columns} Matplotlib Axes here, as of plt.subplots({rows}, {columns})[1]; got "
            f"{len(given)} ({kinds})"
        )
    return given.reshape(shape)


ACROSS = 4
"""Panels beside each other, at most."""


def new_panels(
    axes: Any,
    n: int,
    panel: tuple[float, float],
    margin: tuple[float, float],
    least: float = 0.0,
    **layout: Any,
) -> AnyArray:
    """Return the given axes, or some of a new figure in rows of four.

    Parameters
    ----------
    n
        How many.
    panel
        Width and height of one of a new figure, in inches.
    margin
        Added to these for the whole figure.
    least
        Smallest width of the figure.
    **layout
        As for :func:`new_grid`.
    """
    across = min(ACROSS, n)
    down = -(-n // across)
    size = (max(least, panel[0] * across + margin[0]), panel[1] * down + margin[1])
    grid = new_grid(axes, (down, across) if axes is None else (1, n), size, **layout).ravel()
    for ax in grid[n:]:
        ax.set_visible(False)
    return grid[:n]


_TITLE = 10.0
"""Size of titles, in points."""


def headline(ax: Axes, text: str) -> None:
    """Write a title over all axes of a figure, in lines that fit its width."""
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.suptitle(in_lines(ax, text), fontsize=_TITLE)


def in_lines(ax: Axes, text: str) -> str:
    """Return a title in lines that fit the width of the figure."""
    figure = ax.get_figure(root=True)
    # a letter of the font is about 0.62 of its size wide
    letters = 0 if figure is None else int(figure.get_figwidth() * 72 / (0.62 * _TITLE))
    return fill(text, max(letters, 20))


def slant(ax: Axes) -> None:
    """Turn the labels along the horizontal axis: long ones end at their ticks."""
    for label in ax.get_xticklabels():
        label.set(rotation=35, ha="right", rotation_mode="anchor")


def hide_frame(ax: Axes, *sides: str) -> None:
    """Hide these sides of the frame, with their ticks and numbers."""
    ax.spines[list(sides)].set_visible(False)
    if "left" in sides:
        ax.set_yticks([])
    if "bottom" in sides:
        ax.tick_params(axis="x", length=0)
