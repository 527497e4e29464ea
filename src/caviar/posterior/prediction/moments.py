"""Moments of observed variables that are absent from the data, mixed where latent Categoricals choose parents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array
from ...language import Indexed, SecondLabel, Variable
from ...language.values_in_slots import laid_out
from .expectations import Expectations, Joint, refuse

Moments = tuple[Array, Array]
"""Mean and variance of a variable, over its plates and event."""

Part = tuple[Array, Array, Array]
"""Weight, mean and variance of a variable for one category of each latent label that chooses its parents."""

Gates: TypeAlias = Mapping[tuple[Variable | SecondLabel, ...], Array]
"""Latent Categoricals, those that share a factor together -> probabilities, shape (plates of an owner..., K, ...), of
length 1 along the plates where they do not vary."""


def categories_of(owner: Variable, gates: Gates) -> Iterator[tuple[dict[str, Array], Array]]:
    """Yield each choice of categories of all gates, and its probabilities over the plates of the owner."""
    shapes = [weights.shape[len(owner.plates) :] for weights in gates.values()]
    for places in itertools.product(*map(np.ndindex, shapes)):
        held: dict[str, Array] = {}
        weight = np.ones((1,) * len(owner.plates))
        for (several, weights), categories in zip(gates.items(), places, strict=True):
            for gate, category in zip(several, categories, strict=True):
                # a label that is the same everywhere has an axis of length 1 for each plate
                held[gate.name] = np.full((1,) * len(gate.plates), category)
            weight = weight * weights[(..., *categories)]
        yield held, weight


def shown(
    owner: Variable, known: Mapping[str, Any], factors: Mapping[str, Any], gates: Gates, joint: Joint | None
) -> tuple[list[Part], list[Part]]:
    """Return weight, mean and variance of a variable under q for each choice of its parents by latent Categoricals.

    Beside these the same of the parts of its distribution: a Normal whose precision is not known is a mixture itself,
    of Normals with a few values of the precision.

    Parameters
    ----------
    owner
        The variable.
    known
        Name -> values of known arrays and observed variables.
    factors
        Name -> distribution of each latent variable that has one.
    gates
        The latent Categoricals that choose parents of ``owner``, and their probabilities.
    joint
        Covariances between variables; None where they are independent.

    Raises
    ------
    ModelError
        If they have no closed form.
    """
    whole, finer = [], []
    for weight, expectations in _given(owner, known, factors, gates, joint):
        mean, variance = owner.moments_given(expectations)
        whole.append((weight, mean, variance))
        n_event = np.ndim(mean) - len(owner.plates)
        own_weight = weight.reshape(weight.shape + (1,) * n_event)
        parts = owner.parts_given(expectations, mean, variance) if owner.by_moments is not None else []
        finer += [(own_weight * share, own, spread) for share, own, spread in parts]
    return whole, finer


def _given(
    owner: Variable, known: Mapping[str, Any], factors: Mapping[str, Any], gates: Gates, joint: Joint | None
) -> Iterator[tuple[Array, Expectations]]:
    """Yield the weight of each choice of categories, and the expectations of the slots given these."""
    for held, weight in categories_of(owner, gates):
        yield weight, Expectations(owner, {**known, **held}, factors, joint)


def weights_for(weights: Array, chosen: Indexed, owner: Variable, known: Mapping[str, Any]) -> Array:
    """Return probabilities of a Categorical, or of several at once, over the plates of the owner, (plates..., K, ...).

    Parameters
    ----------
    weights
        Over the plates of the Categoricals.
    chosen
        What the first of them chooses.
    known
        Name -> values of known arrays: of a label of groups, what says which group each repetition is of.
    """
    labels = {}
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
        As :func:`shown` returns them first.
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
