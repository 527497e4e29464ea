"""Moments of observed variables that are absent from the data, mixed where latent Categoricals choose parents."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Indexed, Slot, Variable
from ...language.values_in_slots import laid_out
from .expectations import Expectations, Joint, refuse

Moments = tuple[Array, Array]
"""Mean and variance of a variable, over its plates and event."""

Part = tuple[Array, Array, Array]
"""Weight, mean and variance of a variable for one category of each latent label that chooses its parents."""


def moments(
    owner: Variable,
    known: Mapping[str, Any],
    factors: Mapping[str, Any],
    gates: Mapping[Variable, Array],
    joint: Joint | None = None,
) -> list[Part]:
    r"""Return weight, mean and variance of a variable under q for each choice of its parents by latent Categoricals.

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
    joint
        Covariances between variables; None where they are independent.

    Raises
    ------
    ModelError
        If they have no closed form.
    """
    components = []
    for categories in itertools.product(*(range(weights.shape[-1]) for weights in gates.values())):
        weight = np.ones((1,) * len(owner.plates))
        held = dict(known)
        for (gate, weights), category in zip(gates.items(), categories, strict=True):
            # a label that is the same everywhere has an axis of length 1 for each plate
            held[gate.name] = np.full((1,) * len(gate.plates), category)
            weight = weight * weights[..., category]
        components.append((weight, *owner.moments_given(Expectations(owner, held, factors, joint))))
    return components


def weights_for(weights: Array, slot: Slot, owner: Variable, known: Mapping[str, Any]) -> Array:
    """Return probabilities of the Categorical that chooses in a slot over the plates of the owner, (plates..., K).

    Parameters
    ----------
    weights
        Over the plates of the Categorical.
    known
        Name -> values of known arrays: of a label of groups, what says which group each repetition is of.
    """
    assert isinstance(slot.expression, Indexed)
    chosen, labels = slot.expression, {}
    if set(chosen.along) - set(owner.plates):
        refuse(owner, "a Categorical chooses its parents that is repeated over plates which it does not have")
    if chosen.through is not None:
        records = chosen.through.by
        labels[chosen.through.plate] = laid_out(known[records.name], records.plates, owner, {})
    return laid_out(weights, chosen.by.plates, owner, labels)


def mixed(components: list[Part], n_plates: int) -> Moments:
    r"""Return mean and variance of a mixture.

    .. math:: \mathrm E[y] = \sum_k w_k m_k, \qquad \mathrm{Var}[y] = \sum_k w_k [v_k + (m_k - \mathrm E[y])^2]

    Parameters
    ----------
    components
        As :func:`moments` returns them.
    n_plates
        Number of the plates of the variable.
    """
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
