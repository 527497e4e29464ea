"""Conditioning: coefficients whose columns are collinear as far as double precision can tell.

Then the precision of their factor, prior plus X'X, has lost the prior where only that tells them apart, and the ELBO
with it: by about eps / r nats, where r is the smallest share of a coefficient's precision that the others leave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..language import Node, Variable
from .partly_known import PartlyKnown

__all__ = ["nearly_singular"]

_LEAST_SHARE = 1e-12
"""Share of a coefficient's precision, given the others, below which double precision leaves fewer than four digits."""


def nearly_singular(nodes: tuple[Node, ...], q: Mapping[Variable, Any]) -> str:
    """Return the name of a vector of coefficients whose precision is singular to double precision, or nothing."""
    coefficients = {
        slot.node
        for node in nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.role.adds_up and slot.role.rank == 1
    }
    for variable, own in q.items():
        factor = own.unknown if isinstance(own, PartlyKnown) else own
        precision = getattr(factor, "mean_precision", getattr(factor, "precision", None))
        if variable in coefficients and precision is not None and _least_share(precision) < _LEAST_SHARE:
            return variable.name
    return ""


def _least_share(precision: Any) -> float:
    """Return the smallest of 1 / (P_ii (P^-1)_ii) that a Cholesky factor shows: L_ii^2 / P_ii."""
    lower = np.linalg.cholesky(np.asarray(precision))
    pivots = np.diagonal(lower, axis1=-2, axis2=-1) ** 2
    return float(np.min(pivots / np.diagonal(precision, axis1=-2, axis2=-1)))
