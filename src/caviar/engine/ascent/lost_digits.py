"""Conditioning: what the rounding of a factor's natural parameters changes, and coefficients that are collinear.

A natural parameter is a sum, and is known to the rounding of its addends. Where parameters are a difference of such
sums, as the scale of a Normal-Wishart is, or the inverse of one, that may leave few digits or none.

Where columns are collinear as far as double precision can tell, the precision of their factor, prior plus X'X, has lost
the prior, and the ELBO with it: by about eps / r nats, where r is the smallest share of a coefficient's precision that
the others leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array
from ...families import ExponentialFamily
from ...language import Node, Variable
from .problem import Problem
from .state import AscentState

_EPS = float(np.finfo(float).eps)

_LEAST_SHARE = 1e-12
"""Share of a coefficient's precision, given the others, below which double precision leaves fewer than four digits."""


def lost_in_updates(state: AscentState) -> tuple[str, float]:
    """Return the variable whose factor the rounding of its natural parameters changes most, and by how many nats.

    It is the divergence of the next factor from the one of natural parameters that are off by the rounding of their
    addends: by that much the objective is below its optimum. The present factor would add how far the ascent has still
    to go. Factors whose parameters are plain sums are not looked at.
    """
    worst = ("", 0.0)
    for variable in state.problem.order:
        if not isinstance(state.q[variable], ExponentialFamily) or not _is_derived(variable):
            continue
        update = state.problem.updates[variable]
        with np.errstate(all="ignore"):
            natural, size = update.natural(state.arrays), update.magnitude(state.arrays)
            try:
                factor = variable.family.from_natural(natural)
                shifted = variable.family.from_natural(
                    tuple(
                        eta + _EPS * _signs(eta.shape) * own for eta, own in zip(natural, size, strict=True)
                    )
                )
                lost = float(np.sum(shifted.kl(factor)))
            except (ImproperError, np.linalg.LinAlgError):
                lost = np.inf
        if not lost <= worst[1]:
            worst = (variable.name, lost)
    return worst


def _is_derived(variable: Variable) -> bool:
    """Whether the parameters of a variable's factor are a difference of natural parameters, or an inverse of them."""
    return "precision_xx" in variable.family.statistics or any(
        len(own) == 2 for own in variable.letters.values()
    )


def _signs(shape: tuple[int, ...]) -> Array:
    """Return signs that are always the same, symmetric over the last two axes if they are as long."""
    signs = np.where(np.random.default_rng(0).random(shape) < 0.5, -1.0, 1.0)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        upper = np.triu(signs)
        signs = upper + np.swapaxes(np.triu(signs, 1), -1, -2)
    return signs


def nearly_singular(problem: Problem, q: Mapping[Variable, Any]) -> str:
    """Return the name of a vector of coefficients whose precision is singular to double precision, or nothing."""
    coefficients = problem.fact(
        "vectors of coefficients", lambda: _vectors_of_coefficients(problem.bound.nodes)
    )
    for variable in coefficients and q:
        factor = q[variable].learnt
        precision = getattr(factor, "mean_precision", getattr(factor, "precision", None))
        if variable in coefficients and precision is not None and _least_share(precision) < _LEAST_SHARE:
            return variable.name
    return ""


def _vectors_of_coefficients(nodes: Sequence[Node]) -> set[Node]:
    return {
        slot.node
        for node in nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.role.adds_up and slot.role.rank == 1
    }


def _least_share(precision: Any) -> float:
    """Return the smallest of 1 / (P_ii (P^-1)_ii) that a Cholesky factor shows: L_ii^2 / P_ii."""
    lower = np.linalg.cholesky(np.asarray(precision))
    pivots = np.diagonal(lower, axis1=-2, axis2=-1) ** 2
    return float(np.min(pivots / np.diagonal(precision, axis1=-2, axis2=-1)))
