"""Prediction: mean and standard deviation of what was not observed in new rows, under q."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from ..._errors import ModelError
from ..._typing import Array
from ..uncertainty import ends_of

_BISECTIONS = 60
"""Steps, each of which halves what is not known of a quantile."""


class Predictions(dict[str, Any]):
    """Predictions by name; a name that is not among them says why."""

    def __init__(self, found: Mapping[str, Any], given: Collection[str], learnt: Collection[str]) -> None:
        super().__init__(found)
        self._given, self._learnt = tuple(given), tuple(learnt)

    def __missing__(self, name: str) -> Any:
        there = ", ".join(map(repr, self)) or "none"
        if name in self._given:
            raise KeyError(
                f"{name!r} is in the data, so it is not predicted, not even where its entries are missing: these are "
                f"integrated out of what is told of the rest ({there}). Leave {name!r} out of the data to predict it"
            )
        if name in self._learnt:
            raise KeyError(f"{name!r} is no variable of rows: its distribution is posterior[{name!r}]")
        raise KeyError(f"{name!r} is not predicted of these rows; there are {there}")


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    r"""Prediction of an observed variable whose values are not among the data.

    .. math:: \mathrm E[y] = \mathrm E_q[\mathrm E[y \mid \theta]], \qquad
              \mathrm{Var}[y] = \mathrm E_q[\mathrm{Var}[y \mid \theta]] + \mathrm{Var}_q[\mathrm E[y \mid \theta]]

    Attributes
    ----------
    mean
        Rows first, then its other plates and its event: of a Normal or a count the expected value, of a Bernoulli the
        probability of a 1, of a Categorical the probability of each category.
    standard_deviation
        Of a single value, of the same shape: noise and what is not known of the parameters. Of a vector that of each
        entry, of a Categorical that of the indicator of each category. Infinite where the variance is.
    parts
        Of real numbers the weight, mean and standard deviation for each choice of parents by latent labels; one where
        nothing is chosen. Of counts and labels none.

    Examples
    --------
    >>> import numpy as np
    >>> Prediction(np.array([1.5, 2.0]), np.array([0.5, 0.25]))
    Prediction(mean=[1.5, 2. ], standard_deviation=[0.5 , 0.25])
    """

    mean: Array
    standard_deviation: Array
    parts: tuple[tuple[Array, Array, Array], ...] = ()

    @property
    def sd(self) -> Array:
        """The standard deviation, by its short name."""
        return self.standard_deviation

    def interval(self, level: float = 0.95) -> Array:
        """Return central intervals of real numbers: lower ends, then upper ends, (2, rows...).

        They are those of Normals with these means and standard deviations, or of mixtures of them.

        Parameters
        ----------
        level
            Between 0 and 1.

        Raises
        ------
        ModelError
            If it is the prediction of a count or a label.
        """
        if not self.parts:
            raise ModelError(
                "counts and labels have no interval here; posterior.predictive(data=...) draws them"
            )
        return np.stack([self._quantile(end) for end in ends_of(level)])

    def log_density(self, values: Array) -> Array:
        """Return the log density of real numbers, those of Normals or of mixtures of them, in nats."""
        own = [np.log(weight) + norm.logpdf(values, mean, sd) for weight, mean, sd in self.parts]
        return np.asarray(np.logaddexp.reduce(own))

    def _quantile(self, share: float) -> Array:
        """Return the number below which each value is with a probability, by bisection between those of the parts."""
        own = [(weight, mean + ndtri(share) * sd) for weight, mean, sd in self.parts]
        counts = [np.where(weight > 0, end, np.nan) for weight, end in own]
        low, high = np.fmin.reduce(counts), np.fmax.reduce(counts)
        for _ in range(_BISECTIONS if len(self.parts) > 1 else 0):
            middle = 0.5 * (low + high)
            below = sum(weight * ndtr((middle - mean) / sd) for weight, mean, sd in self.parts) > share
            low, high = np.where(below, low, middle), np.where(below, middle, high)
        return 0.5 * (low + high)

    def __repr__(self) -> str:
        mean, deviation = (
            np.array2string(array, precision=4, threshold=6, edgeitems=2, separator=", ")
            for array in (self.mean, self.standard_deviation)
        )
        return f"Prediction(mean={mean}, standard_deviation={deviation})"
