r"""Predictions of few rows, integrated over the precision of their noise.

Given the precision :math:`\tau` the coefficients are Normal, with natural parameters that are linear in it: those of
their prior :math:`\eta_0`, and what the rows say. So those of the fit tell them at any other value,

.. math:: \eta(\tau) = \eta_0 + \frac{\tau}{\mathrm E_q[\tau]} (\hat\eta - \eta_0),

and a prediction is the mixture of those given the weighted values of :math:`\tau` that the summary has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from ... import families
from ..._typing import Array, Statistics
from ...families._shared import SharedFactor
from ...language import Constant, Gamma, Normal, Variable
from ..simulation import conditional
from .prediction import Prediction

_MOST_ROWS = 100.0
"""Rows beyond the number of coefficients up to which it matters: a Student-t with as many degrees of freedom has
intervals that are 1.2% wider than those of a Normal."""

_STEP, _FURTHEST = 0.5, 9.0
"""Log odds between the probabilities at which the values of the precision are cut into groups, and of the last cut."""

_OF_ONE = 0.1
"""Share of the variance of the noise that a single value makes up at most, unless it is infinite."""


Told: TypeAlias = "Callable[..., Mapping[str, Prediction]]"
"""Returns predictions of variables by name."""


class GivenNoise(NamedTuple):
    """What is known given one of a few values of the precision.

    Attributes
    ----------
    weight
        Of the value.
    known
        The value by the name of the precision.
    factors
        Name -> factor of all globals, beside the factors that some share.
    """

    weight: float
    known: Mapping[str, Any]
    factors: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class OverNoise:
    """What is known given each of a few values of the precision.

    Attributes
    ----------
    given
        Of each value; the weights sum to one.
    is_finite
        Whether the mean variance of the noise is finite.
    """

    given: Sequence[GivenNoise]
    is_finite: bool

    def mixed(self, told: Told, data: Mapping[str, Any]) -> Told:
        """Return a function of variables that returns the mixtures of their predictions given each value.

        Parameters
        ----------
        told
            Returns predictions of variables by name, given data and factors.
        data
            Of new rows. Where these have the precision itself, nothing is mixed.
        """
        if self.given[0].known.keys() & data.keys():
            return told

        def mixtures(absent: Sequence[Variable]) -> dict[str, Prediction]:
            each = [told(absent, data={**data, **own.known}, factors=own.factors) for own in self.given]
            return {name: self._mixed([own[name] for own in each]) for name in each[0]}

        return mixtures

    def _mixed(self, told: Sequence[Prediction]) -> Prediction:
        weights = np.array([own.weight for own in self.given])
        means, sds = (np.stack([getattr(own, figure) for own in told]) for figure in ("mean", "sd"))
        found = Prediction.of_parts(weights.reshape(-1, *(1,) * (means.ndim - 1)), means, sds)
        sd = found.standard_deviation if self.is_finite else np.full_like(found.mean, np.inf)
        return replace(told[0], mean=found.mean, standard_deviation=sd, parts=found.parts)


def over_noise(posterior: Any) -> OverNoise | None:
    """Return the factors of a posterior given values of the precision of its noise.

    None where summaries are not integrated over this precision alone, where the rows are many, or where the
    coefficients have no prior with known parameters.
    """
    noise = _noise_of(posterior.model.leaves)
    if noise is None or posterior._local or posterior._evaluator.prior is not None:
        return None
    factors = posterior._independent
    precision, priors = factors.get(noise.name), _priors(posterior.model, factors, noise)
    if not priors or not isinstance(precision, families.Gamma):
        return None
    n_numbers = sum(np.size(own.mean) for name in priors for own in _marginals(name, factors[name]).values())
    if 2.0 * float(precision.shape) - n_numbers > _MOST_ROWS:
        return None
    shown = posterior._shown_as("auto")
    weighted = shown.weighted(noise.name)
    if weighted is None or set(shown.values) != {noise.name}:
        return None
    weights, values, is_finite = _grouped(weighted.values, weighted.weights)
    given = []
    for weight, value in zip(weights.tolist(), values.tolist(), strict=True):
        known = {noise.name: np.float64(value)}
        moved = _at_ratio(value / float(precision.mean), factors, priors)
        given.append(GivenNoise(weight, known, {**posterior._factors, **factors, **moved}))
    return OverNoise(given, is_finite)


def _at_ratio(ratio: float, factors: Mapping[str, Any], priors: Mapping[str, Statistics]) -> dict[str, Any]:
    """Return the factors of coefficients where the precision is so many times its mean, see the head of this file."""
    found: dict[str, Any] = {}
    for name, prior in priors.items():
        pairs = zip(prior, factors[name].natural, strict=True)
        own = factors[name].family.from_natural(
            tuple(first + ratio * (last - first) for first, last in pairs)
        )
        found |= {name: own, **_marginals(name, own)}
    return found


def _noise_of(leaves: Sequence[Variable]) -> Gamma | None:
    """Return the Gamma variable that is the precision of all observed variables; None if there is none."""
    found = {id(leaf.stated.get("precision")): leaf.stated.get("precision") for leaf in leaves}
    (first, *others) = found.values()
    is_one = not others and isinstance(first, Gamma) and not first.plates
    return first if is_one and all(type(leaf) is Normal for leaf in leaves) else None


def _priors(model: Any, factors: Mapping[str, Any], noise: Gamma) -> dict[str, Statistics] | None:
    """Return the natural parameters of the priors of what the rows depend on beside the noise, by name of the factor.

    None if a prior has an unknown, or some are flat and others are not.
    """
    variables = {node.name: node for node in model.nodes if isinstance(node, Variable)}
    leaves = set(model.leaves)
    above = {
        own.name
        for leaf in leaves
        for own in leaf.drawn_given
        if isinstance(own, Variable) and own is not noise
    }
    for variable in variables.values():
        depends = [own for own in variable.drawn_given if not isinstance(own, Constant)]
        if variable.name in above and depends:
            return None
        if variable not in leaves and any(own.name in above for own in depends):
            return None
    found = {}
    for name, factor in factors.items():
        names = factor.names if isinstance(factor, SharedFactor) else [name]
        if not set(names) & above:
            continue
        flat = [variables[own].is_flat for own in names]
        if not set(names) <= above or factor.learnt is not factor or any(flat) != all(flat):
            return None
        if all(flat):
            found[name] = tuple(np.zeros_like(eta) for eta in factor.natural)
            continue
        own = [conditional(variables[each], {}) for each in names]
        found[name] = (factor.family.independent(own) if isinstance(factor, SharedFactor) else own[0]).natural
    return found


def _marginals(name: str, factor: Any) -> dict[str, Any]:
    return factor.marginals if isinstance(factor, SharedFactor) else {name: factor}


def _grouped(values: Array, weights: Array) -> tuple[Array, Array, bool]:
    """Return the weights and values of groups of neighbours, and whether the mean variance of the noise is finite.

    Each group has the mean variance of its values, so that of the noise is kept. The last groups are small: the tails
    of a prediction come from them.
    """
    order = np.argsort(values)
    weights, variances = weights[order], 1.0 / values[order]
    is_finite = bool((weights * variances).max() <= _OF_ONE * (weights @ variances))
    edges = expit(np.arange(-_FURTHEST, _FURTHEST + _STEP, _STEP))
    group = np.searchsorted(edges, np.cumsum(weights) - 0.5 * weights)
    masses, sums = np.bincount(group, weights), np.bincount(group, weights * variances)
    kept = masses > 0
    return masses[kept] / masses.sum(), masses[kept] / sums[kept], is_finite
