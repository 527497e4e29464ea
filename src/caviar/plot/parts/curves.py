"""Expected responses along a column, with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...engine.evaluation.evaluate import points_at
from ...names import Placed
from ...numerics.arguments import central_ends
from ...numerics.randomness import generator
from ...posterior.posterior import Posterior
from ...posterior.simulation import check_count, one_by_one
from .covariates import Covariates


@dataclass(frozen=True, eq=False)
class Curve:
    """The expected response of rows, (N,), and intervals.

    Attributes
    ----------
    mean, lower, upper
        Expected response of an average group, averaged over the parameters, and the ends of its interval.
    new_lower, new_upper
        Ends of the interval of a new row; None where the response is 0 or 1.
    """

    mean: Array
    lower: Array
    upper: Array
    new_lower: Array | None
    new_upper: Array | None


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of the globals of a posterior, with which expected responses are computed."""

    posterior: Posterior
    covariates: Covariates
    values: tuple[Mapping[str, object], ...]
    level: float

    @classmethod
    def of(
        cls, covariates: Covariates, n_draws: int, level: float, seed: int | np.random.Generator | None
    ) -> Draws:
        """Return draws of what predictions are made by: weighted draws of few rows, or q."""
        check_count("n_draws", n_draws)
        posterior = covariates.posterior
        values = one_by_one(posterior._drawn_to_predict(n_draws, generator(seed)), n_draws)
        return cls(posterior, covariates, tuple(values), level)

    def curves(self, changes: Sequence[Mapping[str, AnyArray]]) -> list[Curve]:
        """Return the curve along rows with these columns, and what is typical in the others, for each of several."""
        parts = [self.covariates.rows(changed) for changed in changes]
        lengths = [max(len(values) for values in changed.values()) for changed in changes]
        known = Placed(self.covariates.joined(parts))
        problem, _ = self.posterior._evaluator.bind(self.covariates.data)
        name, means = self.covariates.response, []
        for values in self.values:
            own = self.covariates.of_average_group(dict(values))
            told = self.posterior._predicted(known, points_at(problem, own))[name]
            if told.is_label:
                raise ParameterError(f"'{name}' is a label; plots of expected responses need a number")
            means.append(np.broadcast_to(told.mean, (sum(lengths),)))
        lower, upper = np.quantile(means, central_ends(self.level), axis=0)
        mean, new = np.mean(means, axis=0), self._of_new_rows(known, name)
        stops = np.cumsum(lengths)
        slices = [slice(int(stop) - length, int(stop)) for stop, length in zip(stops, lengths, strict=True)]
        return [
            Curve(mean[at], lower[at], upper[at], *(own if own is None else own[at] for own in new))
            for at in slices
        ]

    def _of_new_rows(self, known: Placed, name: str) -> tuple[Array | None, Array | None]:
        if self.covariates.is_share:
            return None, None
        try:
            told = self.posterior.predict(known)[name]
            if told.by_moments is None or told.by_moments.is_binary:
                return None, None
            lower, upper = told.interval(self.level)
        except ModelError:
            return None, None
        return lower, upper
