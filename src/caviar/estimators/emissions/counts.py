"""States that emit counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...families.approximations.by_moments import COUNTS
from ...language import Gamma, Plate, Poisson, Variable
from ...numerics.gamma_function import log_rising_factorial
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ..mixtures.components import estimates_of
from ..priors.structure import Label
from ..tables.data_scale import scale_of
from ..tables.numbers import rows_of_numbers
from ._emission import Emission, Emitted, Observe


class Counts(Emission):
    """A Poisson for each state and column, whose rate is a Gamma."""

    name = "poisson"
    arguments: ClassVar = ("count_prior",)

    def check(self, settings: Any) -> None:
        """Refuse a prior that is not two positive numbers."""
        given = settings.count_prior
        if given is not None:
            found = np.asarray(given, dtype=object)
            is_pair = found.shape == (2,) and all(
                isinstance(own, int | float | np.number) and 0 < own < np.inf for own in found
            )
            if not is_pair:
                raise ParameterError(
                    f"count_prior must be the shape and the rate of a Gamma, two numbers above 0; got {given!r}"
                )

    def rows(self, estimator: Any, X: Any, *, reset: bool) -> Array:
        """Return rows of numbers, or NaN.

        Raises
        ------
        DataError
            If rows to fit to hold something else than counts.
        """
        found = rows_of_numbers(estimator, X, reset=reset)
        wrong = (found < 0) | (found != np.floor(found)) & ~np.isnan(found)
        if reset and wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise DataError(
                f"emission='poisson' takes counts, whole numbers from 0; row {row}, column {column} of X has "
                f"{found[row, column]:g}"
            )
        return found

    def stated(self, settings: Any, rows: Array, weights: Array | None) -> Callable[[int], Observe]:
        """Return what states counts; by default the prior expects the mean of each column."""
        if settings.count_prior is None:
            mean = scale_of(rows, weights, correlated=False).mean
            shape, rate = 1.0, np.where(mean > 0, 1 / np.where(mean > 0, mean, 1.0), 1.0)
        else:
            shape, rate = map(float, settings.count_prior)

        def observe_of(n_states: int) -> Observe:
            def observe(states: Label, state: Plate) -> Variable:
                feature = Plate("feature", rows.shape[1])
                rates = Gamma("rate", shape, rate, plates=(state, feature))
                return Poisson("x", rates[states], plates=(*states.plates, feature))

            return observe

        return observe_of

    def emitted(self, settings: Any, posterior: Posterior) -> Emitted:
        """Return the negative binomial distribution of a new count in each state."""
        return _Counted(posterior)


@dataclass(frozen=True, eq=False)
class _Counted(Emitted):
    posterior: Posterior

    def attributes(self) -> Mapping[str, Any]:
        """Return expected rates."""
        return {"rates_": self.posterior["rate"].mean}

    def log_densities(self, rows: Array) -> Array:
        """Return log probabilities of what was observed: negative binomials, one for each column."""
        factor = self.posterior["rate"]
        shape, rate, x = np.asarray(factor.shape), np.asarray(factor.rate), rows[:, None, :]
        with np.errstate(invalid="ignore", divide="ignore"):
            each = (
                log_rising_factorial(*np.broadcast_arrays(shape, np.where(x >= 0, x, 0.0)))
                - gammaln(x + 1)
                - shape * np.log1p(1 / rate)
                - x * np.log1p(rate)
            )
            each = np.where((x >= 0) & (x == np.floor(x)), each, -np.inf)
        return np.where(np.isnan(x), 0.0, each).sum(axis=2)

    def draw(self, states: AnyArray, generator: np.random.Generator) -> AnyArray:
        """Return counts."""
        factor = self.posterior["rate"]
        rates = generator.gamma(np.asarray(factor.shape)[states]) / np.asarray(factor.rate)[states]
        return generator.poisson(rates).astype(np.float64)

    def prediction(self, shares: Array) -> Prediction:
        """Return a mixture of negative binomials."""
        factor = self.posterior["rate"]
        mean, variance = factor.mean[:, None], factor.mean[:, None] + factor.variance[:, None]
        return Prediction.of_parts(shares.T[:, :, None], mean, np.sqrt(variance), COUNTS)

    def figures(self, level: float) -> Sequence[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Return rates with intervals, and standard deviations of counts."""
        (part,) = self.posterior.marginals("rate", level)
        rates, empty = estimates_of(part.mean, part.lower, part.upper), (None,) * part.mean.shape[1]
        return [
            (tuple(own), tuple(sds), empty)
            for own, sds in zip(rates, np.sqrt(part.mean).tolist(), strict=True)
        ]
