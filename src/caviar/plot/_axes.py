"""Where a picture is drawn: into given axes as they are, or into new ones in the style of the library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray

STYLE = Path(__file__).with_name("caviar.mplstyle")
"""The style sheet of the library's pictures."""

BARS, BAR_EDGES = (0.5, 0.5, 0.5, 0.22), (0.5, 0.5, 0.5, 0.5)
"""Colours of histograms: a grey in the background, on white and on black."""

P = ParamSpec("P")
R = TypeVar("R")


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Return a function that draws in the style of the library, unless it is given axes, which have a style already."""

    @wraps(draw)
    def styled(*arguments: P.args, **keywords: P.kwargs) -> R:
        is_new = keywords.get("ax") is None and keywords.get("axes") is None
        with mpl.rc_context(fname=STYLE) if is_new else nullcontext():
            return draw(*arguments, **keywords)

    return styled


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
        If what is given is none.
    """
    if ax is None:
        return _figure(size).add_subplot()
    if not isinstance(ax, Axes):
        raise ParameterError(
            f"ax= is one Matplotlib Axes, such as plt.subplots()[1]; got {type(ax).__name__}"
        )
    return ax


def new_grid(axes: Any, shape: tuple[int, int], size: tuple[float, float], **layout: Any) -> AnyArray:
    """Return the given axes, or those of a new figure, as an array of this shape.

    Raises
    ------
    ParameterError
        If the number of what is given is another, or some are none.
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


def hide_frame(ax: Axes, *sides: str) -> None:
    """Hide these sides of the frame, with their ticks and numbers."""
    ax.spines[list(sides)].set_visible(False)
    if "left" in sides:
        ax.set_yticks([])
    if "bottom" in sides:
        ax.tick_params(axis="x", length=0)
