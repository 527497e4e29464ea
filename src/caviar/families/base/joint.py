"""What joint distributions of a location, or several, and a precision share."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, ExponentialFamily, as_value
from caviar.families.base.marginals import Ends, Marginals, widened
from caviar.families.base.parameters import (
    all_positive,
    matched_locations,
    read_parameters,
    refuse_improper,
    require,
)
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Joint(ExponentialFamily):
    r"""Joint distributions of locations and their common precision.

    .. math:: \mu_m \mid \Lambda \sim N(m_m,\, (K_m \Lambda)^{-1}), \quad \Lambda \sim \text{precision_family}

    The fields after the first two are the parameters of the precision. Subclasses have one location;
    :class:`SeveralLocations` makes it several, whose axis comes before those of a vector.
    """

    mean: Array
    mean_precision: Array

    precision_family: ClassVar[type[Any]]
    """Family of the precision alone."""

    is_shared: ClassVar[bool] = False
    """Whether several locations share the precision."""

    @classmethod
    def _read(cls, values: dict[str, ArrayLike]) -> dict[str, Array]:
        """Return the parameters, read and brought to one batch shape."""
        return read_parameters(cls.__name__, values, cls.parameter_ndims)

    @classmethod
    def _require_positive(cls, parameters: dict[str, Array], *names: str) -> None:
        for name in names:
            require(parameters[name] > 0, parameters[name], f"{cls.__name__}: {name} must be positive")

    @classmethod
    def _mean_precision_of(cls, quadratic: Array) -> Array:
        """Return k from its natural parameter -k/2."""
        mean_precision = -2.0 * quadratic
        if not all_positive(mean_precision):
            good = (mean_precision > 0) & (mean_precision < np.inf)
            refuse_improper(cls.__name__, good, "mean_precision must be positive and finite")
        return mean_precision

    @classmethod
    def _of_parts(cls, mean: Array, mean_precision: Array, marginal: Any, natural: Statistics) -> Self:
        """Return the distributions with these locations and this marginal of the precision, in one batch shape."""
        n_mean, n_precision = cls.parameter_ndims[:2]
        batches = (
            marginal.batch_shape,
            mean.shape[: mean.ndim - n_mean],
            mean_precision.shape[: mean_precision.ndim - n_precision],
        )
        if not batches[0] == batches[1] == batches[2]:
            batch = np.broadcast_shapes(*batches)
            marginal = marginal.broadcast_to(batch)
            mean = np.broadcast_to(mean, batch + mean.shape[mean.ndim - n_mean :])
            event = mean_precision.shape[mean_precision.ndim - n_precision :]
            mean_precision = np.broadcast_to(mean_precision, batch + event)
        return cls._trusted(
            mean=mean,
            mean_precision=mean_precision,
            **marginal._parameters(),
            natural=natural,
            precision_marginal=marginal,
        )

    @classmethod
    def _each(cls, shared: Array, event_ndim: int = 0) -> Array:
        """Return what the locations share, to go with an array of a figure for each of them."""
        return shared

    @classmethod
    def _total(cls, figures: Array) -> Array:
        """Return the sum over the locations of a figure for each."""
        return figures

    @classmethod
    def _count(cls, mean_precision: Array) -> int:
        """Return how many locations these precisions are of."""
        return 1

    @property
    def _n_locations(self) -> int:
        return self._count(self.mean_precision)

    @property
    def _locations_described(self) -> str:
        return ""

    @property
    def _n_numbers(self) -> int:
        """How many numbers the locations are."""
        return math.prod(self.event_shape)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """That of the precision."""
        return (0.0, 0.0, *self.precision_marginal.base_measure)

    @cached_property
    def precision_marginal(self) -> Any:
        """Distribution of the precision alone."""
        return self.precision_family._trusted(**dict(list(self._parameters().items())[2:]))

    @cached_property
    @abstractmethod
    def _log_determinant(self) -> Array:
        """Logarithm of the determinant of the precision of all locations together, given that their own is the unit."""

    @property
    def _n_repeats(self) -> int:
        """Exponent of the precision's determinant in that of all locations."""
        return self._n_locations

    @property
    def _log_normaliser(self) -> Array:
        """Twice the logarithm of the density of the locations at their means, where their own precision is the unit."""
        return self._log_determinant - self._n_numbers * LOG_TWO_PI

    @cached_property
    def log_partition(self) -> Array:
        """Log-partition of the precision's marginal, minus log-density of the locations at their means."""
        return self.precision_marginal.log_partition - 0.5 * self._log_normaliser

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, from the scales alone: no location can cancel."""
        return self.precision_marginal.entropy_about_base() + self._entropy_of_locations

    @property
    def _entropy_of_locations(self) -> Array:
        """Expected entropy of the locations given the precision."""
        expected_log = self._log_determinant + self._n_repeats * self.expected_statistics[2]
        return 0.5 * (self._n_numbers * (1.0 + LOG_TWO_PI) - expected_log)

    @property
    @abstractmethod
    def _spread(self) -> Array:
        """Variance of a number, covariance of a vector; infinite where the precision is too vague."""

    def location_moments(self) -> tuple[Array, Array]:
        # what is infinite is so with the expected inverse precision, which is added anyhow
        return self.mean, np.where(np.isfinite(self._spread), self._spread, 0.0)

    def inverse_moments(self) -> tuple[Array, Array]:
        return self.precision_marginal.inverse_moments()

    def log_moments(self) -> tuple[Array, Array] | None:
        return self.precision_marginal.log_moments()

    @classmethod
    def inverse_of(cls, value: Any) -> tuple[Array, Array]:
        return cls.precision_family.inverse_of(value[1])

    @abstractmethod
    def _response(self, change: Statistics) -> tuple[Array, Array, Statistics]:
        """Return the changes of the locations, of their precision, and of the precision's natural parameters."""

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        mean, _, natural = self._response(change)
        return mean, self.precision_marginal.response(natural)[1]

    @property
    def _covariances(self) -> Array:
        """Covariance of the numbers of each location, batch + (M, D, D)."""
        size = self._n_numbers // self._n_locations
        return self._spread.reshape(*self.batch_shape, self._n_locations, size, size)

    def covariance_of_value(self) -> Array:
        # locations have the same mean for every precision, and are independent given it
        blocks, of_precision = self._covariances, self.precision_marginal.covariance_of_value()
        n_locations, size = blocks.shape[-3:-1]
        start = n_locations * size
        total = np.zeros((*self.batch_shape, start + of_precision.shape[-1], start + of_precision.shape[-1]))
        for number in range(n_locations):
            own = slice(number * size, (number + 1) * size)
            total[..., own, own] = blocks[..., number, :, :]
        total[..., start:, start:] = of_precision
        return total

    @abstractmethod
    def _location_marginals(self, ends: Ends) -> Marginals:
        """Return the figures of the locations."""

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        (precision,) = self.precision_marginal.entry_marginals(ends)
        precision = replace(precision, part=".precision", is_shared=self.is_shared)
        return [self._location_marginals(ends), precision]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        if own.part == ".precision":
            return cls.precision_family.matched_marginals(own, sd, ends)
        return widened(own, sd, ends)

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of (locations + delta, precision)."""
        return self._at(self.mean + as_value(delta), precision_marginal=self.precision_marginal)


def scaled(matrix: Array, factor: Array) -> Array:
    """Return matrices times factors (..., 1, 1), which may be infinite; entries of 0 remain 0."""
    return np.where(matrix == 0, 0.0, matrix) * np.where((matrix == 0) & np.isinf(factor), 1.0, factor)


class SeveralLocations(Joint):
    """What differs where there are several locations: their axis comes first of those of one distribution."""

    is_shared = True
    of_one: ClassVar[type[Joint]]
    """The family of one location and the precision."""

    @classmethod
    def _read(cls, values: dict[str, ArrayLike]) -> dict[str, Array]:
        if np.ndim(values["mean_precision"]) == 0:
            values["mean_precision"] = np.reshape(values["mean_precision"], 1)
        parameters = read_parameters(cls.__name__, values, cls.parameter_ndims)
        cls._require_positive(parameters, "mean_precision")
        matched_locations(cls.__name__, parameters, axis=-cls.parameter_ndims[0])
        return parameters

    @classmethod
    def _each(cls, shared: Array, event_ndim: int = 0) -> Array:
        return np.expand_dims(shared, shared.ndim - event_ndim)

    @classmethod
    def _total(cls, figures: Array) -> Array:
        return figures.sum(axis=-1)

    @classmethod
    def _count(cls, mean_precision: Array) -> int:
        return mean_precision.shape[-1]

    @property
    def _locations_described(self) -> str:
        return f" of {self._n_locations} locations"

    @property
    def marginals(self) -> Any:
        """Joint distribution of each location and the precision, the other locations left out: batch (..., M)."""
        n_batch, n_locations = len(self.batch_shape), self._n_locations
        shared = {}
        for name, value in self.precision_marginal._parameters().items():
            full = (*self.batch_shape, n_locations, *value.shape[n_batch:])
            shared[name] = np.broadcast_to(self._each(value, value.ndim - n_batch), full)
        return self.of_one._trusted(mean=self.mean, mean_precision=self.mean_precision, **shared)

    def repeated(self, n_locations: int) -> Self:
        """Return the distributions of this number of locations, from one that represents all."""
        batch = self.batch_shape
        mean = np.broadcast_to(self.mean, (*batch, n_locations, *self.event_shape[1:]))
        mean_precision = np.broadcast_to(self.mean_precision, (*batch, n_locations))
        return self._trusted(**{**self._parameters(), "mean": mean, "mean_precision": mean_precision})
