"""Colours of components: told apart by readers with any colour vision, and by their lightness in grey."""

from __future__ import annotations

import numpy as np

from .._typing import Array

__all__ = ["blend", "colours_of"]

_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f3c8d", "#8c8c8c")
"""After Okabe and Ito, in an order in which neighbours differ in lightness."""


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
