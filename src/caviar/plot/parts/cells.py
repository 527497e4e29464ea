"""Tables of cells, in colours that are lightest at 0, with numbers that say the sign in grey too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from ..._typing import Array
from .axes import hide_frame, ink


def draw_cells(
    ax: Axes, values: Array, text_of: Callable[[tuple[int, ...]], str] | None, label: str, *, shrink: float
) -> None:
    """Draw a cell for each value, with its text, and a bar that says which colour is which value.

    Parameters
    ----------
    values
        Shape (lines, columns).
    text_of
        Place -> what is written in the cell; None for no texts.
    label
        Of the bar.
    shrink
        Length of the bar, relative to the height of the axes.
    """
    largest = float(np.abs(values).max()) or 1.0
    image = ax.imshow(
        values, cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
    )
    if text_of is not None:
        for index in np.ndindex(values.shape):
            colour = "white" if abs(values[index]) > 0.6 * largest else "#222222"
            ax.text(index[1], index[0], text_of(index), ha="center", va="center", fontsize=7.5, color=colour)
    hide_frame(ax, "right", "top")
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=shrink)
    bar.set_label(label, color=ink())
    bar.outline.set_visible(False)
