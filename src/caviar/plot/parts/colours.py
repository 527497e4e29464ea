"""Colours, markers, hatches and line styles of components: distinct with any colour vision, and in grey."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array

_PALETTE = ("#0072b2", "#e69f00", "#2513b3", "#a07e5a", "#653e56", "#f7639d", "#4a6400", "#5cd3f1")
"""Found by a search that starts from Okabe and Ito's blue and orange: any two differ by at least 22 in CIELAB as seen
with and without each kind of colour blindness, and each from the next by at least 15 in lightness."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "+++", "ooo")
_LINES = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (8, 2)),
    (0, (2, 2)),
)


def colours_of(n_components: int) -> Array:
    """Return a colour for each component, RGB between 0 and 1, shape (K, 3); they repeat after eight.

    Examples
    --------
    >>> colours_of(2).round(1)
    array([[0. , 0.4, 0.7],
           [0.9, 0.6, 0. ]])
    """
    numbers = [int(colour[at : at + 2], 16) for colour in _PALETTE for at in (1, 3, 5)]
    return np.resize(np.reshape(numbers, (-1, 3)) / 255, (n_components, 3))


def _place(component: int) -> int:
    """Return a place in a list of eight that is shifted by one in each round of colours, to avoid repeated pairs."""
    return (component + component // len(_PALETTE)) % len(_PALETTE)


def marker_of(component: int) -> str:
    """Return the marker of a component; with its colour it names one of 64."""
    return _MARKERS[_place(component)]


def hatch_of(component: int) -> str:
    """Return the hatch of a component; with its colour it names one of 64."""
    return _HATCHES[_place(component)]


def line_of(component: int) -> str | tuple[int, tuple[float, ...]]:
    """Return the line style of a component; with its colour it names one of 64."""
    return _LINES[_place(component)]


def area_of(component: int, *, on_dark: bool = False) -> dict[str, Any]:
    """Return how the area of a component is filled: pale, hatched, with an edge that differs from the background."""
    colour = colours_of(component + 1)[component]
    return {
        "facecolor": (*(colour + 0.35 * (1.0 - colour) if on_dark else colour), 0.55),
        "edgecolor": tuple(colour + 0.6 * (1.0 - colour) if on_dark else colour * 0.7),
        "hatch": hatch_of(component),
    }


def blend(responsibilities: Array, colours: Array) -> Array:
    """Return the colour of each row, (N, 3): those of the components mixed by its responsibilities, as light mixes.

    Parameters
    ----------
    responsibilities
        Shape (N, K), rows summing to one.
    colours
        Shape (K, 3).
    """
    linear = responsibilities @ np.power(colours, 2.2)
    return np.clip(linear, 0, 1) ** (1 / 2.2)
