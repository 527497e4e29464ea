"""Random local factors: the start of models in which no Categorical chooses a location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._typing import Array
from ....families import Categorical, JointLabels
from ....language import Variable
from ...ascent.problem import Problem, statistics_of
from ...binding.nested import nested_plates
from ...design.keys import StatisticKey
from ...local.categorical import CategoricalFactor
from ...local.chains.chain import ChainFactor
from ...local.gated import SwitchedFactor
from ...local.known_in_part import KnownInPartFactor
from ...local.label_frequencies import FrequenciesFactor
from ...local.missing_vector import VectorFactor
from ...local.statistics import LocalState
from ...rows.row_map import RowMap
from ...rows.subsample import Sample

_NESTED_CONCENTRATION = 30.0
"""Of the random probabilities where plates are nested: topics that begin near each other end better."""


def drawn(
    problem: Problem, q: Mapping[Variable, Any], sample: Sample, row_map: RowMap, rng: np.random.Generator
) -> LocalState:
    """Return local factors that are points, drawn from what they are given globals at their priors.

    Of numbers that are known in some rows the others are at the mean of the known ones.
    """
    state: LocalState = {}
    coefficients = problem.rows.coefficients(statistics_of(problem, q))
    nested = bool(nested_plates(problem.bound.nodes))
    blocks = list(row_map.at(problem.rows).natural_parameters(coefficients))
    for factor in problem.factors:
        if nested and isinstance(factor, CategoricalFactor):
            state[factor.key] = _near_each_other(factor, sample.n_rows, rng)
            continue
        natural = np.concatenate([block[factor.key] for block in blocks], axis=1)
        if isinstance(factor, VectorFactor):
            state[factor.key] = np.ones_like(natural)
            continue
        if isinstance(factor, ChainFactor | FrequenciesFactor):
            state[factor.key] = factor.drawn(natural, rng)
            continue
        distributions = factor.distributions(natural)
        expected = np.zeros_like(natural)
        if isinstance(factor, SwitchedFactor):
            _draw_gated(factor, distributions, expected, rng)
        else:
            (variable,) = factor.variables
            values = distributions[variable].sample(seed=rng)
            if isinstance(factor, KnownInPartFactor):
                values = factor.at_known(natural, values)
            for name, statistic in zip(
                variable.family.statistics, variable.statistics_of(values), strict=True
            ):
                factor.view(expected, StatisticKey(variable.name, name))[...] = np.moveaxis(statistic, 0, -1)
        state[factor.key] = expected
    return state


def _near_each_other(factor: CategoricalFactor, n_rows: int, rng: np.random.Generator) -> Array:
    """Return random probabilities of the categories for each distinct row, all of about the same size."""
    ((*plates, categories),) = factor.shapes.values()
    probabilities = rng.dirichlet(np.full(categories, _NESTED_CONCENTRATION), (n_rows, *plates))
    return np.ascontiguousarray(probabilities.reshape(n_rows, -1).T)


def _draw_gated(
    factor: SwitchedFactor, distributions: Mapping[Variable, Any], expected: Array, rng: np.random.Generator
) -> None:
    first = distributions[factor.labels[0]]
    joint = first.joint if isinstance(first, JointLabels) else first.probabilities
    labels = Categorical(joint.reshape(len(joint), -1)).sample(seed=rng)
    one_hot = factor.choices(expected)
    one_hot[labels, np.arange(len(labels))] = 1.0
    factor.write_marginals(expected)
    for variable in factor.switched:
        values = distributions[variable].conditional.sample(seed=rng)
        for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
            view = expected[factor.rows[StatisticKey(variable.name, name)]]
            own = np.moveaxis(statistic, 0, -1).reshape(len(one_hot), -1, len(labels))
            view[...] = (own * one_hot[:, None]).reshape(view.shape)
