r"""Scales: if two hidden globals only appear as a product, one may grow as the other shrinks.

.. math:: a \, b = (c \, a) (b / c)

The data do not determine c. Each update moves c by about the share of the prior in the factor, which is tiny if there
are many rows, so a fit would stop far from the best c. So a start is moved to it:

.. math:: \max_c \; \langle \log p(c \, a) + \log p(b / c) \rangle + H[c \, a] + H[b / c]

Source: Qi and Jaakkola, "Parameter expanded variational Bayesian methods" (NIPS 2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...._errors import ImproperError
from ....families import Gamma, MultivariateNormal, Normal
from ....language import Indexed, Link, Part, Predictor, Variable
from ...ascent.problem import Problem, statistics_of
from ..factors.prior import Start, own_natural

_POWERS = {Normal: (1, 2), MultivariateNormal: (1, 2), Gamma: (0, 1)}
"""For each family, the power of the scale by which each natural parameter is divided."""

_MOST = 12.0
"""Largest logarithm of a scale: at this bound there is no best scale."""

_NOTHING = 1e-3
"""Logarithm of a scale that is too small to matter."""

_ROUNDS = 3
"""Number of rounds, if a global is in several products."""


@np.errstate(all="ignore")
def balanced(start: Start) -> Start:
    """Return globals with the best scale of each pair that only appears as a product; the ELBO rises."""
    problem, q = start
    pairs = [
        pair
        for pair in problem.fact("pairs of a product", lambda: list(_pairs(problem)))
        if all(type(q[variable]) in _POWERS for variable in pair)
    ]
    for _ in range(_ROUNDS if len(pairs) > 1 else 1):
        for one, other in pairs:
            scale = _best(problem, q, one, other)
            if scale is not None:
                q = {**q, one: _scaled(q[one], scale), other: _scaled(q[other], 1.0 / scale)}
    return problem, q


def _best(problem: Problem, q: dict[Variable, Any], one: Variable, other: Variable) -> float | None:
    """Return the best scale of two globals; None if it changes nothing, or there is none."""
    arrays = statistics_of(problem, q)
    sides = [
        (q[one], own_natural(problem, one, arrays), 1),
        (q[other], own_natural(problem, other, arrays), -1),
    ]

    def loss(log_scale: float) -> float:
        total = 0.0
        for factor, prior, sign in sides:
            try:
                scaled = _scaled(factor, math.exp(sign * log_scale))
            except ImproperError:
                # beyond the range of numbers
                return math.inf
            expected = zip(prior, scaled.expected_statistics, strict=True)
            total -= sum(float(np.sum(natural * statistic)) for natural, statistic in expected)
            total -= float(np.sum(scaled.entropy_about_base()))
        return total

    found: Any = minimize_scalar(loss, bounds=(-_MOST, _MOST), method="bounded", options={"xatol": _NOTHING})
    log_scale, is_less = float(found.x), found.fun < loss(0.0)
    return math.exp(log_scale) if is_less and _NOTHING < abs(log_scale) < _MOST - 1.0 else None


def _scaled(factor: Any, scale: float) -> Any:
    """Return the distribution of a variable times a number."""
    powers = _POWERS[type(factor)]
    natural = zip(factor.natural, powers, strict=True)
    return type(factor).from_natural(tuple(own / scale**power for own, power in natural))


def _pairs(problem: Problem) -> Iterator[tuple[Variable, Variable]]:
    """Yield pairs of globals that only appear as a product, possibly with further numbers."""
    partners: dict[Variable, list[list[Any]]] = {variable: [] for variable in problem.order}
    for node in problem.bound.nodes:
        for stated in node.stated.values() if isinstance(node, Variable) else ():
            for factors in _products(stated):
                for factor in factors:
                    if isinstance(factor, Variable) and factor in partners:
                        partners[factor].append([other for other in factors if other is not factor])
    multiplied = [
        variable
        for variable, several in partners.items()
        if several and all(several) and problem.coordinates.of(variable) is None
    ]
    for one, other in combinations(multiplied, 2):
        if _always_has(partners[one], other) and _always_has(partners[other], one):
            yield one, other


def _always_has(several: list[list[Any]], partner: Variable) -> bool:
    """Whether a partner is in each of some products, once."""
    return all(others.count(partner) == 1 for others in several)


def _products(stated: Any) -> Iterator[list[Any]]:
    """Yield the factors of each addend of an argument; the argument itself if it is not a sum."""
    predictor = stated.predictor if isinstance(stated, Link) else stated
    sums = predictor.addends if isinstance(predictor, Predictor) else ()
    for operands in [addend.operands for addend in sums] or [(predictor,)]:
        yield [own.node if isinstance(own, Indexed | Part) else own for own in operands]
