"""Prediction: mean and standard deviation of what was not observed in new rows, under q."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from ..._errors import ModelError
from ..._typing import Array
from ...families import Categorical, ExponentialFamily, ForecastMarkovChain, MarkovChain
from ...names import Names
from ..pandas_tables import data_frame
from ..uncertainty import ends_of

_BISECTIONS = 60
"""Steps, each of which halves what is not known of a quantile."""


class OfRows(dict[str, Any]):
    """What a posterior says about rows of data, by the names of variables.

    Attributes
    ----------
    names
        Of the places along the axes of the model.
    index
        Index of the rows of a DataFrame of pandas; None if the data had none.
    """

    def __init__(self, found: Mapping[str, Any], names: Names | None = None, index: Any = None) -> None:
        super().__init__(found)
        self.names, self.index = Names() if names is None else names, index

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas with a row for each row of data, and with the same index.

        A number has the columns ``NAME_mean`` and ``NAME_sd``; a vector has such columns for each entry,
        ``NAME_ENTRY_mean``; a label has ``NAME``, the most probable category, and ``NAME_probability_CATEGORY`` for
        each category. Variables with other axes are left out.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns: dict[str, Any] = {}
        for name, own in self.items():
            columns.update(_columns_of(name, own, self.names.entries(name)))
        return data_frame(columns, self._fitting_index(columns))

    def _fitting_index(self, columns: Mapping[str, Any]) -> Any:
        n_rows = max(map(len, columns.values()), default=0)
        return self.index if self.index is not None and len(self.index) == n_rows else None


def _columns_of(name: str, own: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns that tell of a variable of the rows; none of one that is repeated within these."""
    if isinstance(own, Prediction):
        if own.is_label and own.mean.ndim == 2:
            return _of_labels(name, np.argmax(own.mean, axis=1), own.mean, names)
        return {} if own.is_label else _of_numbers(name, own.mean, own.standard_deviation, names)
    if isinstance(own, Categorical | MarkovChain | ForecastMarkovChain):
        probabilities = np.asarray(own.probabilities)
        # of a chain the most probable path, which is more than the most probable state of each step
        return _of_labels(name, own.mode(), probabilities, names) if probabilities.ndim == 2 else {}
    if isinstance(own, ExponentialFamily):
        first, *parts = own.entry_marginals((0.25, 0.75))
        return {} if parts or first.sd is None else _of_numbers(name, first.mean, first.sd, names)
    return {}


def _of_labels(name: str, places: Any, shares: Array, names: Sequence[str] | None) -> dict[str, Any]:
    known = _as_many(names, shares.shape[1])
    labels = np.asarray(places) if known is None else np.array(known, dtype=object)[places]
    said = range(shares.shape[1]) if known is None else known
    return {name: labels, **{f"{name}_probability_{own}": shares[:, k] for k, own in enumerate(said)}}


def _of_numbers(name: str, mean: Array, sd: Array, names: Sequence[str] | None) -> dict[str, Any]:
    if mean.ndim == 1:
        return {f"{name}_mean": mean, f"{name}_sd": sd}
    if mean.ndim != 2:
        return {}
    said = _as_many(names, mean.shape[1]) or range(mean.shape[1])
    return {
        f"{name}_{entry}_{figure}": values[:, place]
        for place, entry in enumerate(said)
        for figure, values in (("mean", mean), ("sd", sd))
    }


def _as_many(names: Sequence[str] | None, size: int) -> Sequence[str] | None:
    return names if names is not None and len(names) == size else None


class Predictions(OfRows):
    """Predictions by name; a name that is not among them says why."""

    def __init__(
        self,
        found: Mapping[str, Any],
        given: Collection[str],
        learnt: Collection[str],
        names: Names | None = None,
        index: Any = None,
    ) -> None:
        super().__init__(found, names, index)
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
        For real numbers, weight, mean and standard deviation for each choice of parents by latent labels; a single part
        if nothing is chosen. None for counts and labels.
    is_label
        Whether it predicts a Categorical, so that ``mean`` has a probability for each category.

    Examples
    --------
    >>> import numpy as np
    >>> Prediction(np.array([1.5, 2.0]), np.array([0.5, 0.25]))
    Prediction(mean=[1.5, 2. ], standard_deviation=[0.5 , 0.25])
    """

    mean: Array
    standard_deviation: Array
    parts: tuple[tuple[Array, Array, Array], ...] = ()
    is_label: bool = field(default=False, kw_only=True)

    @property
    def sd(self) -> Array:
        """Short name of ``standard_deviation``."""
        return self.standard_deviation

    def interval(self, level: float = 0.95) -> Array:
        """Return central intervals of real numbers: lower ends, then upper ends, (2, rows...).

        The intervals are those of Normals with these means and standard deviations, or of mixtures of such Normals.

        Parameters
        ----------
        level
            Between 0 and 1.

        Raises
        ------
        ModelError
            If this predicts a count or a label.
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
