"""Chains whose noise is learnt: how wide their steps are at first, in the units of the data.

At a prior such as Gamma(2, 0.02) steps are as small as 0.1. Of values in the thousands such a chain tells nothing: the
noise of the values takes all that varies, states fall silent, and their steps stay as small as the prior has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...._typing import Array
from ....language import Constant, Data, LinearGaussianChain, MultivariateNormal, Node, Normal, Part, Variable
from ....language.nodes.algebra import Addend, Algebra
from ...ascent.problem import Problem, statistics_of
from ...binding.clamped.factor import PointMass
from ...design.keys import StatisticKey
from .columns import Setting, sampled_values
from .effects import learnt_in, shape_of
from .statement import sum_of

_TOO_NARROW = 1e4
"""Times that the variance of values is that of steps, or of noise, at their priors, from which on they begin wider.

Smooth states and precise values may well have less, from which plain updates find their way.
"""


def widths_of_steps(setting: Setting, q: Mapping[Variable, Any]) -> dict[Variable, Any]:
    """Return points for the noise of chains and of their observations, to be kept in the first updates.

    Both are all that varies in the values. None where no steps are learnt, where chains are multiplied by what is
    hidden, so that their units are free, or where priors are wide enough.

    Parameters
    ----------
    q
        Globals at their priors.
    """
    problem = setting.problem
    variances: dict[Variable, float] = {}
    for leaf, chain, size in _told_by_chains(setting):
        steps, noise = learnt_in(problem, chain, "noise_precision"), learnt_in(problem, leaf, "precision")
        variance = _variance(setting, leaf) if steps else 0.0
        if not (variance > 0 and size > 0):
            continue
        for found, own in ((steps, variance / size), (noise, variance)):
            variances.update(dict.fromkeys(found[1:], 1.0))
            variances.update({first: max(own, variances.get(first, 0.0)) for first in found[:1]})
    arrays = statistics_of(problem, {own: q[own] for own in variances})
    if not any(_largest(own, arrays) * variance > _TOO_NARROW for own, variance in variances.items()):
        return {}
    return {own: _point(problem, own, 1.0 / variance) for own, variance in variances.items()}


def _told_by_chains(setting: Setting) -> Iterator[tuple[Variable, LinearGaussianChain, float]]:
    """Yield leaves, the chains in their means, and the mean squares of the known numbers that multiply these."""
    for leaf in setting.problem.compiled.sources:
        if isinstance(leaf, Normal):
            stated = sum_of(leaf)
            for addend in () if stated is None else stated.addends:
                yield from ((leaf, *own) for own in _chains_in(setting, addend))
        elif isinstance(leaf, MultivariateNormal) and isinstance(
            leaf.stated.get("mean"), LinearGaussianChain
        ):
            yield leaf, leaf.stated["mean"], 1.0


def _chains_in(setting: Setting, addend: Addend) -> Iterator[tuple[LinearGaussianChain, float]]:
    nodes = [own.node if isinstance(own, Part) else own for own in addend.operands]
    chains = [node for node in nodes if isinstance(node, LinearGaussianChain)]
    others = [_known(setting, node) for node in nodes if not isinstance(node, LinearGaussianChain)]
    known = [own for own in others if own is not None]
    if len(chains) == 1 and len(known) == len(others):
        yield chains[0], addend.coefficient**2 * math.prod(map(_mean_square, known))


def _known(setting: Setting, node: Any) -> Array | None:
    """Return a known number or known vectors; None if they are hidden, or chosen by labels."""
    if isinstance(node, Data):
        return setting.columns_of(node)
    if isinstance(node, Constant):
        return np.asarray(setting.problem.bound.values_of(node), dtype=np.float64)
    return None if isinstance(node, Algebra | Node) else np.asarray(node, dtype=np.float64)


def _mean_square(values: Array) -> float:
    """Return the mean square of numbers, or of the largest entry of vectors."""
    return float(np.square(np.atleast_2d(values)).mean(axis=0).max())


def _variance(setting: Setting, leaf: Variable) -> float:
    """Return the variance of the observed values of a leaf, its columns together; 0 where there are none."""
    found = sampled_values(setting.problem, setting.sample, leaf)
    if found is None or setting.problem.bound.data_plate not in leaf.plates:
        return 0.0
    values = found[0].reshape(len(found[0]), math.prod(found[0].shape[1:]))
    weights = np.where(np.isfinite(values), setting.sample.row_weights[:, None], 0.0)
    values, total = np.where(weights > 0, values, 0.0), np.maximum(weights.sum(axis=0), 1e-300)
    about = values - (weights * values).sum(axis=0) / total
    return float(((weights * about**2).sum(axis=0) / total).max(initial=0.0))


def _largest(precision: Variable, arrays: Mapping[Any, Any]) -> float:
    expected = arrays[StatisticKey(precision.name, "x")]
    return float(np.max(expected if not precision.value_rank else np.diagonal(expected, axis1=-2, axis2=-1)))


def _point(problem: Problem, precision: Variable, value: float) -> PointMass:
    """Return a precision at one value, alone or on a diagonal."""
    entry = np.eye(precision.dimension or 1) if precision.value_rank else 1.0
    shape = shape_of(problem, precision) + np.shape(entry)
    return problem.with_known(
        precision, PointMass.of(precision, np.broadcast_to(value * entry, shape).copy())
    )
