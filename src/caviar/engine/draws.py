"""Random local factors: the start of models in which no Categorical chooses a location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ..language import Variable
from .chain import ChainFactor
from .locals import GatedFactor
from .loop import statistics_of
from .passes import Passes
from .plan import Plan
from .sample import Sample
from .sums import LocalState

__all__ = ["drawn"]


def drawn(
    plan: Plan, q: Mapping[Variable, Any], sample: Sample, passes: Passes, rng: np.random.Generator
) -> LocalState:
    """Return local factors that are points, drawn from what they are given globals at their priors."""
    state: LocalState = {}
    coefficients = plan.rows.coefficients(statistics_of(plan, q))
    blocks = list(passes.natural_parameters(plan, sample, coefficients))
    for factor in plan.factors:
        natural = np.concatenate([block[factor] for block in blocks], axis=1)
        if isinstance(factor, ChainFactor):
            state[factor] = factor.drawn(natural, rng)
            continue
        distributions = factor.distributions(natural)
        expected = np.zeros_like(natural)
        if isinstance(factor, GatedFactor):
            _draw_gated(factor, distributions, expected, rng)
        else:
            (variable,) = factor.variables
            values = distributions[variable].sample(seed=rng)
            for name, statistic in zip(
                variable.family.statistics, variable.statistics_of(values), strict=True
            ):
                factor.view(expected, (variable, name))[...] = np.moveaxis(statistic, 0, -1)
        state[factor] = expected
    return state


def _draw_gated(
    factor: GatedFactor, distributions: Mapping[Variable, Any], expected: Array, rng: np.random.Generator
) -> None:
    labels = distributions[factor.gate].sample(seed=rng)
    one_hot = factor.gate.statistics_of(labels)[0].T
    factor.view(expected, (factor.gate, "x"))[...] = one_hot
    for variable in factor.variables[1:]:
        values = distributions[variable].conditional.sample(seed=rng)
        for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
            view = factor.view(expected, (variable, name))
            view[...] = np.moveaxis(statistic, 0, -1) * one_hot.reshape(
                len(one_hot), *(1,) * (view.ndim - 2), -1
            )
