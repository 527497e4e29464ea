"""Moments of observed variables that are absent from the data: one function for each kind of distribution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from ... import families
from ..._typing import Array
from ...language import (
    Bernoulli,
    Categorical,
    Gamma,
    Indexed,
    Link,
    Multinomial,
    MultivariateNormal,
    Node,
    Normal,
    Part,
    Poisson,
    Variable,
)
from ...language.links import Probit
from .expectations import Expectations, refuse

Moments = tuple[Array, Array]
"""Mean and variance of a variable, over its plates and event."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


def moments(
    owner: Variable, known: Mapping[str, Any], factors: Mapping[str, Any], gates: Mapping[Variable, Array]
) -> Moments:
    r"""Return mean and variance of a variable under q; those of a mixture where latent Categoricals choose its parents.

    .. math:: \mathrm E[y] = \sum_k w_k m_k, \qquad \mathrm{Var}[y] = \sum_k w_k [v_k + (m_k - \mathrm E[y])^2]

    Parameters
    ----------
    owner
        The variable.
    known
        Name -> values of known arrays and observed variables.
    factors
        Name -> distribution of each latent variable that has one.
    gates
        The latent Categoricals that choose parents of ``owner`` -> probabilities, shape (plates of ``owner``..., K),
        of length 1 along those where they do not vary.

    Raises
    ------
    ModelError
        If they have no closed form.
    """
    kind = next((kind for kind in _KINDS if type(owner) is kind), None)
    if kind is None:
        refuse(owner, f"that of a {type(owner).__name__} is not known")
    components = []
    for categories in itertools.product(*(range(weights.shape[-1]) for weights in gates.values())):
        weight = np.ones((1,) * len(owner.plates))
        held = dict(known)
        for (gate, weights), category in zip(gates.items(), categories, strict=True):
            # a label that is the same everywhere has an axis of length 1 for each plate
            held[gate.name] = np.full((1,) * len(gate.plates), category)
            weight = weight * weights[..., category]
        components.append((weight, *_KINDS[kind](Expectations(owner, held, factors))))
    return _mixed(components, len(owner.plates))


def _mixed(components: list[tuple[Array, Array, Array]], n_plates: int) -> Moments:
    if len(components) == 1:
        return components[0][1:]

    def weighted(weight: Array, value: Array) -> Array:
        return weight.reshape(weight.shape + (1,) * (value.ndim - n_plates)) * value

    mean = sum(weighted(w, m) for w, m, _ in components)
    # a component of weight zero adds nothing, not even infinity
    spread = (
        (w, np.where(w.reshape(w.shape + (1,) * (v.ndim - n_plates)) > 0, v, 0.0), m)
        for w, m, v in components
    )
    variance = sum(weighted(w, v + np.square(m - mean)) for w, v, m in spread)
    return np.asarray(mean), np.asarray(variance)


def _normal(slots: Expectations) -> Moments:
    mean, variance = slots.location()
    return mean, variance + slots.inverse("precision")[0]


def _bernoulli(slots: Expectations) -> Moments:
    link = slots.owner.stated["probability"]
    if not isinstance(link, Link):
        mean = slots.entries("probability")[0]
        return mean, mean * (1.0 - mean)
    _check_normal(slots, link)
    centre, variance = slots.predictor(link.predictor)
    if isinstance(link, Probit):
        scale = np.sqrt(1.0 + variance)
        return ndtr(centre / scale), ndtr(centre / scale) * ndtr(-centre / scale)
    yes, no = _expected_logistic(centre, variance), _expected_logistic(-centre, variance)
    return yes, yes * no


def _check_normal(slots: Expectations, link: Link) -> None:
    """Refuse a predictor that is not Normal under q: a product of two variables, or a variable of another kind."""
    for addend in link.predictor.addends:
        latent = []
        for operand in addend.operands:
            whole = operand.whole if isinstance(operand, Part) else operand
            node: Any = whole.node if isinstance(whole, Indexed) else whole
            factor = slots.factors.get(node.name) if isinstance(node, Node) else None
            if factor is not None and factor.learnt is not None:
                latent.append(node.name)
                if not isinstance(factor.learnt, families.Normal | families.MultivariateNormal):
                    refuse(slots.owner, f"'{node.name}' in its predictor is not Normal under q")
        if len(latent) > 1:
            names = " and ".join(f"'{name}'" for name in latent)
            refuse(slots.owner, f"the product of {names} in its predictor is not Normal under q")


def _expected_logistic(mean: Array, variance: Array) -> Array:
    r"""Return :math:`\mathrm E[1 / (1 + e^{-\eta})]` of a Normal :math:`\eta`.

    By 64 Gauss-Hermite nodes up to a standard deviation s of 1. Beyond, where the function is steep beside the density,
    they lose digits: there by the trapezoidal rule for :math:`\int f(t)\, \Phi((m - t) / s)\, dt`, f the logistic
    density, which is the same number.
    """
    mean, deviation = np.broadcast_arrays(mean, np.sqrt(variance))
    result, narrow = np.empty(mean.shape), deviation <= 1.0
    m, s = mean[narrow], deviation[narrow]
    weights = _WEIGHTS / _WEIGHTS.sum()
    result[narrow] = sum(w * expit(m + s * node) for node, w in zip(_NODES, weights, strict=True))
    m, s = mean[~narrow], deviation[~narrow]
    # half a unit apart, the rule loses exp(-2 pi^2 / 0.5) of a logistic density
    steps = np.arange(-37.0, 37.5, 0.5)
    result[~narrow] = sum(0.5 * expit(t) * expit(-t) * ndtr((m - t) / s) for t in steps)
    return result


def _poisson(slots: Expectations) -> Moments:
    rate, variance = slots.positive("rate")
    return rate, rate + variance


def _gamma(slots: Expectations) -> Moments:
    shape = slots.entries("shape")[0]
    first, second = slots.inverse("rate")
    with np.errstate(invalid="ignore"):
        variance = shape * second + np.square(shape) * (second - np.square(first))
    return shape * first, np.where(np.isfinite(second), variance, np.inf)


def _categorical(slots: Expectations) -> Moments:
    mean = slots.entries("probabilities")[0]
    return mean, mean * (1.0 - mean)


def _multinomial(slots: Expectations) -> Moments:
    trials = slots.owner.trials if isinstance(slots.owner, Multinomial) else None
    if trials is None:
        refuse(slots.owner, "it is stated without trials, so that nothing says how many draws it counts")
    mean, variance = slots.entries("probabilities")
    trials = trials.reshape((1,) * (len(slots.owner.plates) - trials.ndim) + trials.shape)[..., None]
    return trials * mean, trials * (mean * (1.0 - mean) - variance) + np.square(trials) * variance


_KINDS: dict[type[Variable], Callable[[Expectations], Moments]] = {
    Normal: _normal,
    MultivariateNormal: _normal,
    Bernoulli: _bernoulli,
    Poisson: _poisson,
    Gamma: _gamma,
    Categorical: _categorical,
    Multinomial: _multinomial,
}
