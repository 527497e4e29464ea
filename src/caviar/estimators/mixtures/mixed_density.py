"""The density of a new row of columns of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...densities.outliers import OutlierThreshold, enough, flagged_by, threshold_of
from ...posterior.posterior import Posterior
from ..tables.mixed_columns import CATEGORY, COUNT, NUMBER, Columns

_N_DRAWS = 100_000
"""Draws that a threshold of outliers comes from."""


@dataclass(frozen=True, eq=False)
class MixedDensity:
    """The density of a new row: of each component a product over the columns."""

    posterior: Posterior
    columns: Columns

    def log_density(self, rows: AnyArray) -> Array:
        """Return the log density of what was observed of each row, (N,)."""
        return self.posterior.log_predictive(above_a_whole_row(rows, self.columns.names))[:-1]

    def outlier_threshold(self, rate: float, generator: np.random.Generator) -> OutlierThreshold:
        """Return the score that a share of complete rows exceed, from draws."""
        drawn, _ = self.sample(enough(rate, _N_DRAWS), generator)
        return threshold_of(-self.log_density(drawn), rate)

    def is_outlier(self, rows: AnyArray, rate: float, generator: np.random.Generator) -> AnyArray:
        """Return which rows are less expected than a share of rows with the same entries observed, (N,)."""
        drawn, _ = self.sample(enough(rate, _N_DRAWS), generator)

        def scores(some: AnyArray, observed: AnyArray) -> Array:
            known = np.full(some.shape, np.nan)
            known[:, observed] = some[:, observed]
            return -self.log_density(known)

        return flagged_by(scores, drawn, rows, rate)

    def sample(self, n_samples: int, generator: np.random.Generator) -> tuple[Array, AnyArray]:
        """Return rows as numbers, (n, D), and their components: with parameters drawn for each row."""
        weights = self.posterior[self.columns.weights].mean
        labels = generator.choice(len(weights), n_samples, p=weights)
        drawn = [
            _DRAWS[kind](self.posterior[name], labels, generator)
            for name, kind in zip(self.columns.parameters, self.columns.kinds, strict=True)
        ]
        return np.column_stack(drawn), labels


def _draw_numbers(factor: Any, labels: AnyArray, generator: np.random.Generator) -> Array:
    precision = generator.gamma(factor.shape[labels]) / factor.rate[labels]
    mean = generator.normal(factor.mean[labels], 1 / np.sqrt(factor.mean_precision[labels] * precision))
    return generator.normal(mean, 1 / np.sqrt(precision))


def _draw_categories(factor: Any, labels: AnyArray, generator: np.random.Generator) -> Array:
    bounds = np.cumsum(factor.mean, axis=1)[labels][:, :-1]
    return (generator.random(len(labels))[:, np.newaxis] > bounds).sum(axis=1).astype(np.float64)


def _draw_counts(factor: Any, labels: AnyArray, generator: np.random.Generator) -> Array:
    return generator.poisson(generator.gamma(factor.shape[labels]) / factor.rate[labels]).astype(np.float64)


_DRAWS = {NUMBER: _draw_numbers, CATEGORY: _draw_categories, COUNT: _draw_counts}


def above_a_whole_row(rows: AnyArray, names: Sequence[str]) -> dict[str, Array]:
    """Return columns by name, with a row of zeros below: a column without any value would be refused."""
    return {name: np.append(rows[:, j], 0.0) for j, name in enumerate(names)}
