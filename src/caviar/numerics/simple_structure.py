r"""Simple structure: the turn of components after which most loadings are small and few are large.

.. math:: \max_R \sum_k \mathrm{Var}_d \big[ (A R)_{dk}^2 \big]

Zeros among the loadings are hidden by the components of largest variance, each of which mixes all factors.

Source: Kaiser, "The varimax criterion for analytic rotation in factor analysis" (Psychometrika 1958).
"""

from __future__ import annotations

import numpy as np

from .._typing import Array

_ROUNDS, _SETTLED = 200, 1e-7
"""Rounds at most, and the relative change of the criterion that ends them."""


def simple_turn(loadings: Array) -> Array:
    """Return the orthogonal turn R of loadings (columns, components), (components, components)."""
    size = loadings.shape[1]
    turn, before = np.eye(size), 0.0
    for _ in range(_ROUNDS):
        turned = loadings @ turn
        gradient = loadings.T @ (turned**3 - turned * np.square(turned).mean(axis=0))
        left, values, right = np.linalg.svd(gradient)
        turn, total = left @ right, float(values.sum())
        if total <= before * (1 + _SETTLED):
            break
        before = total
    return turn
